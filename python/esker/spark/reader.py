"""Reads a Lance table in Spark: the driver pins the version and plans partitions, tasks read slices of fragments.

A plan carries numbers of fragments, not fragments: a task opens the version itself, once for each Python worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from esker.exceptions import InvalidArgumentError
from esker.lance.scan.scan import Scan
from esker.spark.cast import exchanged
from esker.spark.matching import check_read, renamed
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.packing import packed, target_bytes
from esker.spark.partitions import SlicePartition, described
from esker.spark.session_settings import machine_zone, session_zone
from esker.spark.spelling import spelled_as
from esker.spark.table import FragmentSize, PinnedTable
from esker.spark.types import exchange_schema, spark_schema
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_tables import check_entry, pinned_table
from esker.spark.worker_task import MadeInWorkers

__all__ = ["EskerReader", "SliceScan", "lance_version", "plan_slices", "read_schema"]

# Functions get larger batches than Spark; wide rows are bounded by their bytes.
_BATCH_ROWS = 128 * 1024
_BATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class SliceScan:
    """Reads slices of one version of a table as batches of an exact Spark schema. Can be pickled.

    Args:
        address: The table.
        version: The version.
        schema: The Spark schema of the result: columns by name, types as in `exchange_schema`.
        options: The filter, and what to do with nanoseconds.
        driver_zone: The zone of times without one in the filter, if the session has no zone.
        entry: What tells the version from one with its number of another table.
        clock: What `now()` and today's day are in the filter: the same for all tasks.
    """

    address: TableAddress
    version: int
    schema: StructType
    options: ReadOptions
    driver_zone: str | None = None
    entry: str | None = None
    clock: datetime = field(default_factory=partial(datetime.now, UTC))

    def batches(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """The rows of several partitions, one after the other, in the types that Spark exchanges."""
        wanted = exchange_schema(self.schema)
        for batch in self.rows(partitions):
            yield from exchanged(batch, wanted, truncate=self.options.truncate)

    def rows(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """The rows of several partitions in the types of the table, with the names of the schema."""
        shown = self.schema.names
        for part in partitions:
            if not isinstance(part, SlicePartition):
                # A table without rows has no partitions; Spark then passes one of its own.
                continue
            table = pinned_table(self.address, self.version, self.entry)
            names = spelled_as(shown, table.schema.names)
            for scan in self._scans(table, part, names):
                for batch in scan.to_batches():
                    if batch.num_rows > 0:
                        yield batch if names == shown else batch.rename_columns(shown)

    def count(self, partitions: Iterable[InputPartition]) -> int:
        """The number of rows of several partitions. Only columns of the filter are read."""
        rows = 0
        for part in partitions:
            if isinstance(part, SlicePartition):
                table = pinned_table(self.address, self.version, self.entry)
                rows += sum(scan.count_rows() for scan in self._scans(table, part, []))
        return rows

    def _scans(self, table: PinnedTable, part: SlicePartition, names: list[str]) -> Iterator[Scan]:
        zone = session_zone(self.options.timezone, self.driver_zone)
        # Whole fragments are one scan, which reads ahead from one into the next.
        for is_whole, group in groupby(part.slices, lambda each: each[2] is None):
            slices = list(group)
            ranges = [(tuple(each[0] for each in slices), None)] if is_whole else [_range(each) for each in slices]
            for fragment_ids, rows in ranges:
                yield table.scan(
                    columns=names,
                    filter=self.options.filter,
                    zone=zone,
                    clock=self.clock,
                    fragment_ids=fragment_ids,
                    rows=rows,
                    batch_rows=part.batch_rows,
                )


def _range(part: tuple[int, int, int | None]) -> tuple[tuple[int, ...], tuple[int, int] | None]:
    fragment_id, start, end = part
    return (fragment_id,), None if end is None else (start, end)


class EskerReader(MadeInWorkers, DataSourceReader):
    """Reads one version of a table.

    It has no filter pushdown from Spark (`pushFilters`): Spark keeps pushed filters with the loaded DataFrame, and
    another query on the same DataFrame would miss rows. Use the option `filter` instead.

    Args:
        address: The table.
        version: The version, pinned when the DataFrame was loaded. None if the user gave a schema, so that Spark never
            called `EskerSource.schema`: then it is pinned here.
        schema: The Spark schema of the result.
        options: The other options.
        entry: What tells the pinned version from one with its number of another table.

    Raises:
        CommitConflictError: The table was replaced by another one since the version was pinned.
    """

    def __init__(
        self,
        address: TableAddress,
        version: int | None,
        schema: StructType,
        options: ReadOptions,
        entry: str | None = None,
    ) -> None:
        self._snapshot: PinnedTable | None = PinnedTable(address, version)
        if entry is not None:
            check_entry(address.uri, self._snapshot.version, entry, self._snapshot.entry)
        options = options.spelled(self._snapshot.schema.names)
        if options.output == "rows":
            read_schema(self._snapshot, options, schema)
        self._options = options
        number, found = self._snapshot.version, self._snapshot.entry
        self._scan = SliceScan(address, number, schema, options, machine_zone(), found)

    def __getstate__(self) -> dict[str, object]:
        # Each task opens the version itself: an open one would send the whole manifest to every task.
        return {**self.__dict__, "_snapshot": None}

    @in_words_of_spark()
    def partitions(self) -> list[InputPartition]:
        """Small fragments share a partition, large ones are cut into several."""
        snapshot = self._snapshot or PinnedTable(self._scan.address, self._scan.version)
        return [*plan_slices(snapshot.fragments(), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; with the option `output=partitions` a row that describes it."""
        if self._options.output == "partitions":
            yield from described(partition)
            return
        with in_words_of_spark():
            yield from self._scan.batches([partition])


def read_schema(snapshot: PinnedTable, options: ReadOptions, wanted: StructType | None = None) -> StructType:
    """The Spark schema of the rows of a read, checked against the table.

    Args:
        snapshot: The version to read.
        options: The options, of which `columns` and `filter` are checked.
        wanted: The user's schema; None takes the table's types.

    Raises:
        InvalidArgumentError: A column does not exist, or the filter does not parse.
        SchemaMismatchError: A type of the user's schema does not fit its column.
        UnsupportedError: Spark has no type for that of a column.
    """
    known = snapshot.schema.names
    options = options.spelled(known)
    names = options.columns or tuple(known)
    if wanted is None:
        return spark_schema(snapshot.projected_schema(names, options.filter))
    asked = renamed(wanted, known)
    check_read(snapshot.projected_schema(asked.names, options.filter), asked)
    exchange_schema(wanted)
    return wanted


def lance_version(options: ReadOptions) -> int | None:
    """The version of a Lance table in the options, None for the newest.

    Raises:
        InvalidArgumentError: It is version 0, which only Delta tables have.
    """
    if options.version == 0:
        raise InvalidArgumentError("option version: expected a whole number from 1, found '0'")
    return options.version


def plan_slices(fragments: list[FragmentSize], options: ReadOptions) -> list[SlicePartition]:
    """The partitions of a read: large fragments are cut, small ones share a partition.

    Example:
        >>> from esker.spark.options import ReadOptions
        >>> from esker.spark.reader import plan_slices
        >>> from esker.spark.table import FragmentSize
        >>> small = [FragmentSize(number, 10, 400) for number in range(3)]
        >>> plan_slices(small, ReadOptions(parallelism=1))[0].slices
        ((0, 0, None), (1, 0, None), (2, 0, None))
    """
    sizes = [fragment.size_bytes or 0 for fragment in fragments]
    most = target_bytes(sizes, max_bytes=options.bytes_per_partition, parallelism=options.parallelism)
    cut = [part for fragment in fragments for part in _slices(fragment, options.rows_per_partition, most)]
    groups = packed(cut, lambda part: (part.rows, part.size), max_rows=options.rows_per_partition, max_bytes=most)
    return [
        SlicePartition(tuple((part.fragment_id, part.start, part.end) for part in group), _batch_rows(group))
        for group in groups
    ]


@dataclass(frozen=True)
class _Slice:
    fragment_id: int
    start: int
    end: int | None
    rows: int
    size: int


def _slices(fragment: FragmentSize, max_rows: int, max_bytes: int) -> Iterator[_Slice]:
    rows, size = fragment.physical_rows, fragment.size_bytes or 0
    if rows == 0:
        return
    count = max(-(-rows // max_rows), min(rows, -(-size // max_bytes)))
    whole = _Slice(fragment.id, 0, None, rows, size)
    if count == 1:
        yield whole
        return
    for index in range(count):
        start, end = rows * index // count, rows * (index + 1) // count
        yield replace(whole, start=start, end=end, rows=end - start, size=size * (end - start) // rows)


def _batch_rows(group: Iterable[_Slice]) -> int:
    """Rows of a batch: as many as go through Spark well, but less where they are wide."""
    widest = max(part.size / max(part.rows, 1) for part in group)
    return int(max(64, min(_BATCH_ROWS, _BATCH_BYTES / max(widest, 1e-9))))
