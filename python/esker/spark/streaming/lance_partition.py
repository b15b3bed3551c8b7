"""What a task reads of a Lance table in a stream: rows of a fragment, or rows that a version changed.

Rows that a version changed are found by their stable row ids and the versions that inserted and last updated them: a
row that an update rewrote is not an insert, though it lies in a new fragment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from esker._native import scan as native
from esker._native.expr import Predicate
from esker._native.schema import Schema
from esker.arrow.batches import read
from esker.arrow.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from esker.arrow.json_columns import stored_batch
from esker.cached import cached_property
from esker.exceptions import NotFoundError
from esker.lance.log import entry_of
from esker.lance.scan.options import ScanOptions
from esker.lance.scan.scan import Scan
from esker.lance.scan.take import take_row_ids
from esker.lance.system_columns import (
    CREATED_AT_VERSION,
    LAST_UPDATED_AT_VERSION,
    ROW_ID,
    with_system_columns,
)
from esker.lance.version import TableVersion
from esker.spark.cast import cast_batch
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.session_settings import session_zone
from esker.spark.streaming.history import READ_AGAIN, may_be_cleaned_up, not_opened, replaced
from esker.spark.streaming.version_columns import Followed, VersionColumns
from esker.spark.types import exchange_schema
from esker.spark.zoned_filter import instants_apart, row_filter, told_zone, zoned_predicate

__all__ = ["FEED", "FEED_NAMES", "ChangeKind", "ChangedRows", "FragmentRows", "Reading"]

ChangeKind = Literal["insert", "delete", "update_preimage", "update_postimage"]
FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""The columns of a change feed beside the table's."""
FEED_NAMES = [field.name for field in FEED]
_TAKEN_ROWS = 8 * 1024


@dataclass(frozen=True)
class Reading:
    """What all tasks of a stream have in common.

    Args:
        address: The table.
        schema: The Spark schema of the rows.
        options: Columns, filter and zones.
        driver_zone: The zone of the driver's machine.
        known: The version in which all columns of the schema are there.
        fields: The columns of that version, with their ids.
        is_feed: Whether rows have the columns of a change feed.
        time_ns: When the version that is read was committed, in nanoseconds since the epoch.
        origins: By version, what it calls the columns; without those that have the columns as they were known.
        entries: By version, what tells it from one with its number of another table, as the driver has read it.
    """

    address: TableAddress
    schema: StructType
    options: ReadOptions
    driver_zone: str | None
    known: int
    fields: Schema
    is_feed: bool
    time_ns: int = 0
    origins: Mapping[int, tuple[Followed, ...]] = field(default_factory=dict)
    entries: Mapping[int, str] = field(default_factory=dict)

    def at(self, time_ns: int) -> Reading:
        """The same, for a version that was committed then."""
        return replace(self, time_ns=time_ns)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the table among those of the stream."""
        return [name for name in self.schema.names if not (self.is_feed and name in FEED_NAMES)]

    @cached_property
    def filter_columns(self) -> list[str]:
        """The columns that the filter reads."""
        sql = self.options.filter
        if sql is None:
            return []
        schema = with_system_columns(self._known_schema)
        if self.is_feed:
            schema = pa.schema([*schema, *FEED])
        return Predicate.parse_sql(instants_apart(sql), schema).columns

    @cached_property
    def _known_schema(self) -> pa.Schema:
        return pa.schema(self.fields.described())

    def open(self, version: int) -> TableVersion:
        """The table at a version.

        Raises:
            NotFoundError: It was cleaned up, or its commit on a branch has expired.
            CommitConflictError: The table was replaced since the batch was planned.
        """
        try:
            table = TableVersion.open(self.address.uri, version, storage_options=dict(self.address.storage_options))
        except NotFoundError as error:
            raise not_opened(version, self.address, error) from None
        expected, found = self.entries.get(version), entry_of(table.manifest)
        if expected is not None and found != expected:
            # A batch may wait for its tasks, or run them again, long after the driver has looked at the table.
            raise replaced(self.address.uri, version, expected, f"another one of that number ({found})")
        return table

    def columns(self, table: TableVersion) -> VersionColumns:
        """The columns of the stream in a version."""
        return VersionColumns(tuple(table.schema.names), self.origins.get(table.number))

    def present(self, columns: VersionColumns) -> list[str]:
        """The columns that a version has: an older one may lack some, which are null there."""
        return [name for name in self.names if columns.has(name)]

    def filters_in_scan(self, columns: VersionColumns) -> bool:
        """Whether a scan of a version can filter: it has all columns of the filter, under their names."""
        return all(columns.is_as_known(name) for name in self.filter_columns)

    def zone(self, schema: pa.Schema) -> str | None:
        """The zone of times without one in the filter."""
        zone = session_zone(self.options.timezone, self.driver_zone)
        return told_zone(self.options.filter, schema, zone)

    def exchanged(
        self,
        batch: pa.RecordBatch,
        change: ChangeKind | None,
        version: int,
        time_ns: int,
        *,
        is_filtered: bool = True,
    ) -> pa.RecordBatch:
        """Rows as Spark takes them, with what happened to them, and nulls where the version lacks a column."""
        rows = batch.num_rows
        wanted = exchange_schema(self.schema)
        asked = wanted.names if is_filtered else [*wanted.names, *self.filter_columns]
        if change is not None:
            for feed, value in zip(FEED, (change, version, time_ns // 1000), strict=True):
                if feed.name in asked:
                    batch = batch.append_column(feed, pa.repeat(pa.scalar(value, feed.type), rows))
        if not is_filtered:
            there = frozenset(batch.schema.names)
            for name in self.filter_columns:
                if name not in there:
                    absent = self._known_schema.field(name)
                    batch = batch.append_column(absent.with_nullable(True), pa.nulls(rows, absent.type))
            batch = self._filtered(batch)
        there = frozenset(batch.schema.names)
        for absent in wanted:
            if absent.name not in there:
                batch = batch.append_column(absent, pa.nulls(batch.num_rows, absent.type))
        truncate = self.options.truncate
        return cast_batch(batch, wanted, truncate=truncate, fill=version <= self.known, advice=READ_AGAIN)

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sql = self.options.filter
        if sql is None or not batch.num_rows:
            return batch
        read = stored_batch(batch.select(self.filter_columns) if self.filter_columns else batch)
        return batch.filter(row_filter(sql, read.schema, self.zone(read.schema)).evaluate(read))


@dataclass(frozen=True)
class FragmentRows(InputPartition):  # type: ignore[misc, unused-ignore]
    """Physical rows [start, end) of a fragment in a version; `change` says what happened to all of them."""

    reading: Reading
    version: int
    change: ChangeKind | None
    fragment_id: int
    start: int
    end: int
    batch_rows: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its live rows."""
        with may_be_cleaned_up(self.version, self.reading.address.uri):
            yield from self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        reading = self.reading
        table = reading.open(self.version)
        version, time_ns = self.version, reading.time_ns
        if self.change == "delete":
            # An overwrite deletes the rows of the version before it.
            version, time_ns = version + 1, reading.open(version + 1).manifest.timestamp_ns
        columns = reading.columns(table)
        in_scan = reading.filters_in_scan(columns)
        names = _read_names(reading, columns, in_scan)
        schema = table.described_schema
        sql = reading.options.filter
        options = ScanOptions(
            columns=columns.there(names) or [ROW_ID],
            filter=zoned_predicate(sql, schema, reading.zone(schema)) if sql is not None and in_scan else None,
            batch_size=self.batch_rows,
            fragment_ids=(self.fragment_id,),
            row_range=(self.start, self.end),
            json_text=True,
        )
        for batch in Scan(table, options).to_batches():
            made = _named(batch, columns, names)
            made = reading.exchanged(made, self.change, version, time_ns, is_filtered=in_scan)
            if made.num_rows:
                yield made


@dataclass(frozen=True)
class ChangedRows(InputPartition):  # type: ignore[misc, unused-ignore]
    """Rows that a version inserted, updated or deleted, of one fragment or of all: numbers [start, end) of them."""

    reading: Reading
    version: int
    change: ChangeKind
    fragment_id: int | None
    start: int
    end: int | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """These rows: as they were before, if they were deleted or are the old state of an update."""
        with may_be_cleaned_up(self.version, self.reading.address.uri):
            yield from self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        after = self.reading.open(self.version)
        time_ns = after.manifest.timestamp_ns
        found = self._present(after) if self.change in ("insert", "update_postimage") else self._past(after)
        for batch, is_filtered in found:
            made = self.reading.exchanged(batch, self.change, self.version, time_ns, is_filtered=is_filtered)
            if made.num_rows:
                yield made

    def _condition(self) -> str:
        if self.change == "insert":
            return f"{CREATED_AT_VERSION} = {self.version}"
        return f"{CREATED_AT_VERSION} < {self.version} AND {LAST_UPDATED_AT_VERSION} = {self.version}"

    def _of_fragment(self, table: TableVersion, columns: list[str], sql: str, zone: str | None) -> Scan:
        schema = table.described_schema
        return Scan(
            table,
            ScanOptions(
                columns=columns,
                filter=zoned_predicate(sql, schema, zone),
                fragment_ids=None if self.fragment_id is None else (self.fragment_id,),
                json_text=True,
            ),
        )

    def _present(self, after: TableVersion) -> Iterator[tuple[pa.RecordBatch, bool]]:
        reading, sql = self.reading, self._condition()
        columns = reading.columns(after)
        in_scan = reading.filters_in_scan(columns)
        names = _read_names(reading, columns, in_scan)
        zone = None
        if reading.options.filter is not None and in_scan:
            # A comment at the end of the filter must not reach over the parenthesis behind it.
            sql = f"({sql}) AND ({reading.options.filter}\n)"
            zone = reading.zone(after.described_schema)
        for batch in self._of_fragment(after, columns.there(names) or [ROW_ID], sql, zone).to_batches():
            yield _named(batch, columns, names), in_scan

    def _past(self, after: TableVersion) -> Iterator[tuple[pa.RecordBatch, bool]]:
        reading = self.reading
        before = reading.open(self.version - 1)
        columns = reading.columns(before)
        names = _read_names(reading, columns, False)
        read_columns = columns.there(names) or [before.schema.names[0]]
        for ids in self._ids(before, after):
            taken = take_row_ids(before.store, before.manifest, before.schema, ids, read_columns)
            for batch in taken.to_batches():
                yield _named(batch, columns, names), reading.options.filter is None

    def _ids(self, before: TableVersion, after: TableVersion) -> Iterator[pa.Array]:
        """The ids of the rows, some at a time."""
        if self.change == "update_preimage":
            for batch in self._of_fragment(after, [ROW_ID], self._condition(), None).to_batches():
                for start in range(0, batch.num_rows, _TAKEN_ROWS):
                    yield batch.column(ROW_ID).slice(start, _TAKEN_ROWS)
            return
        at = 0
        for batch in read(native.deleted_row_ids(before.store, before.manifest, after.manifest)):
            ids = batch.column(ROW_ID)
            low = max(self.start - at, 0)
            high = len(ids) if self.end is None else min(self.end - at, len(ids))
            at += len(ids)
            for start in range(low, high, _TAKEN_ROWS):
                yield ids.slice(start, min(_TAKEN_ROWS, high - start))


def _read_names(reading: Reading, columns: VersionColumns, filters_in_scan: bool) -> list[str]:
    """The columns of the stream to read of a version: those that it has, and what the filter needs."""
    names = reading.present(columns)
    if filters_in_scan:
        return names
    return list(dict.fromkeys([*names, *(name for name in reading.filter_columns if columns.has(name))]))


def _named(batch: pa.RecordBatch, columns: VersionColumns, names: list[str]) -> pa.RecordBatch:
    """A batch with the names of the stream. One column at least stays: a batch without any has no rows to Arrow."""
    return columns.shown(batch, names) if names else batch
