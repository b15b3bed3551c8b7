"""A version of a Delta table as Spark reads it: a partition is a large file, or several small ones.

The driver replays the log; a task gets the files that it reads and what they need, and opens no log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from esker._native.expr import Predicate
from esker.arrow.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from esker.delta.read.file_reader import TableFile, TableFileReader
from esker.delta.read.filesystem import FileLocator
from esker.delta.read.filters import BoundFilter, bind
from esker.delta.read.scan import TableScan
from esker.delta.read.sql_names import columns_in_backticks
from esker.delta.table import DeltaTable
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.spark.cast import exchanged
from esker.spark.matching import check_read, renamed
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.packing import packed, target_bytes
from esker.spark.parquet_frame import frame_of_parquet
from esker.spark.partitions import ChangesPartition, FilesPartition, described
from esker.spark.session_settings import machine_zone, session_zone
from esker.spark.spelling import spelled_as
from esker.spark.time_travel import version_of_time, version_range_of
from esker.spark.types import exchange_schema, spark_schema
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_tables import check_entry
from esker.spark.worker_task import MadeInWorkers
from esker.spark.zoned_filter import instants_apart, reads_times, told_zone, whatever_the_zone

__all__ = ["ChangesPartition", "DeltaReader", "FilesPartition", "delta_schema", "open_delta", "plan_files"]

_LEAST_PIECE_BYTES = 8 * 1024 * 1024
"""Files are not cut into smaller pieces: row groups are hardly ever smaller."""
_BEHIND_ALL = 2**63 - 1
_FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


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
        SchemaMismatchError: The table has a column with the name of one of the feed.
        UnsupportedError: A column has a type that Spark has none for.
    """
    schema = TableScan.schema_of(table._snapshot)
    if options.changes is not None:
        for field in _FEED:
            if field.name in schema.names:
                raise SchemaMismatchError(
                    f"the table has a column {field.name!r}, which a change feed adds; rename it", column=field.name
                )
        schema = pa.schema([*schema, *_FEED])
    options = options.spelled(schema.names, quotes_names=True)
    bind(zoned_sql(options), schema, session_timezone=options.timezone)
    asked = None if wanted is None else renamed(wanted, schema.names)
    names = asked.names if asked is not None else options.columns or schema.names
    there = frozenset(schema.names)
    for name in names:
        if name not in there:
            known = ", ".join(schema.names)
            raise InvalidArgumentError(f"expected some of the columns {known}, found {name!r}", column=name)
    if asked is not None and wanted is not None:
        check_read(schema, asked)
        exchange_schema(wanted)
        return wanted
    return spark_schema(pa.schema([schema.field(name) for name in names]))


class DeltaReader(MadeInWorkers, DataSourceReader):
    """Reads one version of a Delta table.

    Args:
        address: The table.
        version: The version, pinned when the DataFrame was loaded; None if the user gave a schema, then it is pinned
            here.
        schema: What Spark wants to get.
        options: The rest.
        table_id: The id of the table that was loaded: one that was made anew at its place has another one.

    Raises:
        CommitConflictError: The table was replaced by another one since it was loaded.
    """

    def __init__(
        self,
        address: TableAddress,
        version: int | None,
        schema: StructType,
        options: ReadOptions,
        table_id: str | None = None,
    ) -> None:
        options.check_format("delta", address.uri)
        table = open_delta(address, options, version)
        self._table_id = table.metadata().id if table_id is None else table_id
        check_entry(address.uri, table.version(), self._table_id, table.metadata().id)
        if options.output == "rows":
            delta_schema(table, options, schema)
        self._address = address
        self._version = table.version()
        self._schema = schema
        self._options = options
        self._driver_zone = machine_zone()
        # One for all: the driver leaves out files by it, and tasks rows.
        self._clock = datetime.now(UTC)
        self._files: list[TableFile] = []
        self._sizes: list[int | None] = []
        self._changes = None if options.changes is None else version_range_of(table, options.changes, options.timezone)
        if self._changes is not None:
            return
        snapshot, store = table._snapshot, table._store
        known = TableScan.schema_of(snapshot)
        self._options = options = options.spelled(known.names, quotes_names=True)
        selection = snapshot.select(store, self._pruning(known))
        files = FileLocator(store, snapshot.root, dict(address.storage_options))
        self._reader = TableFileReader.of(store, snapshot, files)
        self._files = TableScan(store, snapshot, files, selection).table_files()
        self._sizes = pa.record_batch(selection.describe()).column("size_bytes").to_pylist()

    def _pruning(self, schema: pa.Schema) -> list[Predicate] | None:
        """What leaves out files: the filter, or as much of it as means the same in any zone."""
        sql = zoned_sql(self._options)
        if sql is None:
            return None
        if self._options.timezone is None and reads_times(columns_in_backticks(sql), schema):
            return whatever_the_zone(sql, schema) or None
        where = bind(sql, schema, session_timezone=self._options.timezone, clock=self._clock)
        return where.predicates if where is not None else None

    def by_spark(self, spark: SparkSession) -> DataFrame | None:
        """All rows of the files by Spark's own Parquet reader; None where it may not read the same values."""
        if self._address.storage_options:
            return None
        return frame_of_parquet(spark, self._reader, self._files, self._schema)

    @in_words_of_spark()
    def partitions(self) -> list[InputPartition]:
        """One partition for each large file, or for several small ones."""
        return self.planned(None)

    def planned(self, tasks: int | None) -> list[InputPartition]:
        """The partitions for so many tasks at once, where the options do not say how many."""
        if self._changes is not None:
            return [ChangesPartition(0)]
        options = replace(self._options, parallelism=self._options.parallelism or tasks)
        return [*plan_files(self._files, self._sizes, options)]

    def __getstate__(self) -> dict[str, object]:
        # Each task gets its own files; the list of all is the driver's.
        return {**self.__dict__, "_files": [], "_sizes": []}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; with the option `output=partitions` a row that describes it."""
        if self._options.output == "partitions":
            yield from described(partition)
            return
        with in_words_of_spark():
            yield from self.batches([partition])

    def batches(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """The rows of several partitions, one after the other, in the types that Spark exchanges."""
        wanted = exchange_schema(self._schema)
        for batch in self.rows(partitions):
            yield from exchanged(batch, wanted, truncate=self._options.truncate)

    def rows(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """The rows of several partitions in the types of the table, with the names of the schema."""
        for partition in partitions:
            if self._changes is not None:
                yield from self._read_changes(*self._changes)
            elif isinstance(partition, FilesPartition):
                for file in partition.files:
                    yield from self._rows(file)
            # A table without files has no partition, so that Spark makes one of its own.

    def _rows(self, file: TableFile) -> Iterator[pa.RecordBatch]:
        reader = self._reader
        where = self._where(reader.plain_schema())
        shown = list(self._schema.names)
        names = spelled_as(shown, reader.plain_schema().names)
        read = names + [name for name in (where.columns or [] if where else []) if name not in names]
        for batch in reader.read(file, read, where):
            yield batch.select(names).rename_columns(shown)

    def count(self, partitions: Iterable[InputPartition]) -> int:
        """The number of rows of several partitions. Only columns of the filter are read."""
        rows = 0
        for partition in partitions:
            for file in partition.files if isinstance(partition, FilesPartition) else ():
                reader = self._reader
                where = self._where(reader.plain_schema())
                columns = [] if where is None else where.columns
                names = reader.plain_schema().names if columns is None else columns
                rows += sum(batch.num_rows for batch in reader.read(file, names, where))
        return rows

    def _where(self, schema: pa.Schema) -> BoundFilter | None:
        return bind(zoned_sql(self._options), schema, session_timezone=self._zone(schema), clock=self._clock)

    def _zone(self, schema: pa.Schema) -> str | None:
        sql = zoned_sql(self._options)
        zone = session_zone(self._options.timezone, self._driver_zone)
        return told_zone(None if sql is None else columns_in_backticks(sql), schema, zone)

    def _read_changes(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        zone = session_zone(self._options.timezone, self._driver_zone)
        table = open_delta(self._address, replace(self._options, timezone=zone), self._version)
        check_entry(self._address.uri, self._version, self._table_id, table.metadata().id)
        known = [*TableScan.schema_of(table._snapshot).names, *(field.name for field in _FEED)]
        options, shown = self._options.spelled(known, quotes_names=True), list(self._schema.names)
        names = spelled_as(shown, known)
        for batch in table.load_cdf(start, end, None, None, names, zoned_sql(options)):
            yield batch.select(names).rename_columns(shown)


def plan_files(files: Sequence[TableFile], sizes: Sequence[int | None], options: ReadOptions) -> list[FilesPartition]:
    """The partitions of a read: files that are small share one, large ones are cut between row groups.

    Only a task that reads a file knows where its row groups begin: each gets those of some of its bytes.

    Example:
        `plan_files([file], [1024], ReadOptions())[0].files`
    """
    known = [size or 0 for size in sizes]
    most = target_bytes(known, max_bytes=options.bytes_per_partition, parallelism=options.parallelism)
    cut = [piece for file, size in zip(files, known, strict=True) for piece in _pieces(file, size, most)]
    groups = packed(cut, lambda each: (0, each[1]), max_bytes=most)
    return [FilesPartition(tuple(file for file, _ in group)) for group in groups]


def _pieces(file: TableFile, size: int, most: int) -> Iterator[tuple[TableFile, int]]:
    count = -(-size // max(most, _LEAST_PIECE_BYTES))
    if count < 2:
        yield file, size
        return
    ends = [size * number // count for number in range(1, count)]
    # A log may be wrong about a size: what begins anywhere is in one of them.
    for start, end in zip([0, *ends], [*ends, _BEHIND_ALL], strict=True):
        yield replace(file, span=(start, end)), size // count


def zoned_sql(options: ReadOptions) -> str | None:
    """The option `filter`, in which times that name their zone keep it."""
    return None if options.filter is None else instants_apart(options.filter)
