"""A version of a Delta table as Spark reads it: its files are the partitions.

The driver replays the log; a task gets the files that it reads and what they need, and opens no log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from esker._native.expr import Predicate
from esker.commit import resolve
from esker.delta.log.entries import LOG
from esker.delta.read.change_feed import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from esker.delta.read.file_reader import TableFile, TableFileReader
from esker.delta.read.filesystem import FileLocator
from esker.delta.read.filters import BoundFilter, bind
from esker.delta.read.scan import TableScan
from esker.delta.read.sql_names import columns_in_backticks
from esker.delta.table import DeltaTable
from esker.exceptions import InvalidArgumentError
from esker.spark.cast import cast_batch
from esker.spark.matching import check_read
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.session_settings import machine_zone, session_zone
from esker.spark.time_travel import version_of_time, version_range_of
from esker.spark.types import exchange_schema, spark_schema
from esker.spark.zoned_filter import instants_apart, reads_times, told_zone, whatever_the_zone

__all__ = ["ChangesPartition", "DeltaReader", "FilePartition", "delta_schema", "is_delta", "open_delta"]


def is_delta(address: TableAddress) -> bool:
    """Whether a Delta table is there: something lies in its `_delta_log`."""
    return bool(resolve(address.uri, storage_options=address.storage_options).list_paths(LOG))


def open_delta(address: TableAddress, options: ReadOptions, version: int | None = None) -> DeltaTable:
    """The version that the options name, or the one given.

    Raises:
        InvalidArgumentError: Both a version and a time are asked for, or a time that is another one in another zone.
        NotFoundError: There is no such version.
    """
    if options.version is not None and options.timestamp is not None:
        raise InvalidArgumentError("expected the option version or timestampAsOf, found both; leave one out")
    table = DeltaTable(
        address.uri,
        options.version if version is None else version,
        storage_options=dict(address.storage_options),
        timezone=options.partition_timezone,
        session_timezone=options.timezone,
    )
    if version is None and options.timestamp is not None:
        table.load_as_version(version_of_time(table, options.timestamp, options.timezone, "timestampAsOf"))
    return table


def delta_schema(table: DeltaTable, options: ReadOptions, wanted: StructType | None = None) -> StructType:
    """The Spark schema of what a read gives, after a check that the table can give it.

    Raises:
        InvalidArgumentError: A column does not exist, the filter does not parse, or slices are asked for.
        UnsupportedError: A column has a type that Spark has none for.
    """
    if options.output != "rows":
        raise InvalidArgumentError("option output: a Delta table has no slices, expected rows")
    schema = TableScan.schema_of(table._snapshot)
    if options.changes is not None:
        schema = pa.schema([*schema, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP])
    bind(zoned_sql(options), schema, session_timezone=options.timezone)
    names = wanted.names if wanted is not None else options.columns or schema.names
    for name in names:
        if name not in schema.names:
            known = ", ".join(schema.names)
            raise InvalidArgumentError(f"expected some of the columns {known}, found {name!r}", column=name)
    if wanted is not None:
        check_read(schema, wanted)
        exchange_schema(wanted)
        return wanted
    return spark_schema(pa.schema([schema.field(name) for name in names]))


@dataclass(frozen=True)
class FilePartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """A file, which one task reads."""

    file: TableFile


class ChangesPartition(InputPartition):
    """All that changed, which one task reads."""


class DeltaReader(DataSourceReader):
    """Reads one version of a Delta table.

    Args:
        address: The table.
        version: The version, pinned when the DataFrame was loaded; None if the user gave a schema, then it is pinned
            here.
        schema: What Spark wants to get.
        options: The rest.
    """

    def __init__(self, address: TableAddress, version: int | None, schema: StructType, options: ReadOptions) -> None:
        options.check_format("delta", address.uri)
        table = open_delta(address, options, version)
        delta_schema(table, options, schema)
        self._address = address
        self._version = table.version()
        self._schema = schema
        self._options = options
        self._driver_zone = machine_zone()
        self._partitions: list[TableFile] = []
        self._changes = None if options.changes is None else version_range_of(table, options.changes, options.timezone)
        if self._changes is not None:
            return
        snapshot, store = table._snapshot, table._store
        selection = snapshot.select(store, self._pruning(TableScan.schema_of(snapshot)))
        files = FileLocator(store, snapshot.root, dict(address.storage_options))
        self._reader = TableFileReader.of(store, snapshot, files)
        self._partitions = TableScan(store, snapshot, files, selection).table_files()

    def _pruning(self, schema: pa.Schema) -> list[Predicate] | None:
        """What leaves out files: the filter, or as much of it as means the same in any zone."""
        sql = zoned_sql(self._options)
        if sql is None:
            return None
        if self._options.timezone is None and reads_times(columns_in_backticks(sql), schema):
            return whatever_the_zone(sql, schema) or None
        where = bind(sql, schema, session_timezone=self._options.timezone)
        return where.predicates if where is not None else None

    def partitions(self) -> list[InputPartition]:
        """One partition for each file."""
        if self._changes is not None:
            return [ChangesPartition(0)]
        return [FilePartition(file) for file in self._partitions]

    def __getstate__(self) -> dict[str, object]:
        # Each task gets its own file; the list of all is the driver's.
        return {**self.__dict__, "_partitions": []}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one file."""
        if self._changes is not None:
            yield from self._read_changes(*self._changes)
            return
        if not isinstance(partition, FilePartition):
            # A table without files has no partition, so that Spark makes one of its own.
            return
        reader = self._reader
        where = self._where(reader.plain_schema())
        wanted = exchange_schema(self._schema)
        names = list(self._schema.names)
        read = names + [name for name in (where.columns or [] if where else []) if name not in names]
        for batch in reader.read(partition.file, read, where):
            yield cast_batch(batch.select(names), wanted, truncate=self._options.truncate)

    def _where(self, schema: pa.Schema) -> BoundFilter | None:
        return bind(zoned_sql(self._options), schema, session_timezone=self._zone(schema))

    def _zone(self, schema: pa.Schema) -> str | None:
        sql = zoned_sql(self._options)
        zone = session_zone(self._options.timezone, self._driver_zone)
        return told_zone(None if sql is None else columns_in_backticks(sql), schema, zone)

    def _read_changes(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        wanted = exchange_schema(self._schema)
        zone = session_zone(self._options.timezone, self._driver_zone)
        table = open_delta(self._address, replace(self._options, timezone=zone), self._version)
        feed = table.load_cdf(start, end, None, None, list(self._schema.names), zoned_sql(self._options))
        for batch in feed:
            yield cast_batch(batch, wanted, truncate=self._options.truncate)


def zoned_sql(options: ReadOptions) -> str | None:
    """The option `filter`, in which times that name their zone keep it."""
    return None if options.filter is None else instants_apart(options.filter)
