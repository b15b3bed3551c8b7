"""Reads a Lance table in Spark: the driver pins the version and plans partitions, tasks read slices of fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from esker.exceptions import InvalidArgumentError
from esker.spark.cast import cast_batch
from esker.spark.matching import check_read
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.session_settings import machine_zone, session_zone
from esker.spark.table import FragmentSize, PinnedTable
from esker.spark.types import exchange_schema, spark_schema

__all__ = ["SLICE_SCHEMA", "EskerReader", "SlicePartition", "SliceScan", "read_schema"]

# Batches of 8k to 64k rows went through Spark fastest; wide rows are bounded by their bytes.
_BATCH_ROWS = 32 * 1024
_BATCH_BYTES = 32 * 1024 * 1024

SLICE_SCHEMA = StructType(
    [
        StructField("fragment_id", LongType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("batch_rows", IntegerType()),
    ]
)
"""The Spark schema of the description of a partition, for the option `output=slices`."""


@dataclass(frozen=True)
class SlicePartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """A partition: a fragment or a slice of one.

    Args:
        fragment_id: The fragment.
        start: Its first physical row to read.
        end: The row after the last one.
        batch_rows: The maximum number of rows per batch.
    """

    fragment_id: int
    start: int
    end: int
    batch_rows: int


@dataclass(frozen=True)
class SliceScan:
    """Reads slices of one version of a table as batches of an exact Spark schema. Can be pickled.

    Args:
        address: The table.
        version: The version.
        schema: The Spark schema of the result: columns by name, types as in `exchange_schema`.
        options: The filter, and what to do with nanoseconds.
        driver_zone: The zone of times without one in the filter, if the session has no zone.
    """

    address: TableAddress
    version: int
    schema: StructType
    options: ReadOptions
    driver_zone: str | None = None

    def batches(self, slices: Iterator[SlicePartition]) -> Iterator[pa.RecordBatch]:
        """The rows of several slices, one after the other."""
        snapshot: PinnedTable | None = None
        wanted = exchange_schema(self.schema)
        zone = session_zone(self.options.timezone, self.driver_zone)
        for part in slices:
            snapshot = snapshot or PinnedTable(self.address, self.version)
            found = snapshot.scan(
                columns=self.schema.names,
                filter=self.options.filter,
                zone=zone,
                fragment_id=part.fragment_id,
                rows=(part.start, part.end),
                batch_rows=part.batch_rows,
            )
            for batch in found:
                if batch.num_rows > 0:
                    yield cast_batch(batch, wanted, truncate=self.options.truncate)


class EskerReader(DataSourceReader):
    """Reads one version of a table.

    It has no filter pushdown from Spark (`pushFilters`): Spark keeps pushed filters with the loaded DataFrame, and
    another query on the same DataFrame would miss rows. Use the option `filter` instead.

    Args:
        address: The table.
        version: The version, pinned when the DataFrame was loaded. None if the user gave a schema, so that Spark never
            called `EskerSource.schema`: then it is pinned here.
        schema: The Spark schema of the result.
        options: The other options.
    """

    def __init__(self, address: TableAddress, version: int | None, schema: StructType, options: ReadOptions) -> None:
        self._snapshot: PinnedTable | None = PinnedTable(address, version)
        if options.output == "rows":
            read_schema(self._snapshot, options, schema)
        self._options = options
        self._scan = SliceScan(address, self._snapshot.version, schema, options, machine_zone())

    def __getstate__(self) -> dict[str, object]:
        # Each task opens the version itself: an open one would send the whole manifest to every task.
        return {**self.__dict__, "_snapshot": None}

    def partitions(self) -> list[InputPartition]:
        """One partition for each fragment, or for each slice of a large one."""
        snapshot = self._snapshot or PinnedTable(self._scan.address, self._scan.version)
        return [part for fragment in snapshot.fragments() for part in _slices(fragment, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; with the option `output=slices` a row that describes it."""
        if not isinstance(partition, SlicePartition):
            # A table without rows has no partitions; Spark then passes one of its own.
            return
        if self._options.output == "slices":
            row = [partition.fragment_id, partition.start, partition.end, partition.batch_rows]
            arrays = [
                pa.array([value], field.type) for value, field in zip(row, exchange_schema(SLICE_SCHEMA), strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=exchange_schema(SLICE_SCHEMA))
            return
        yield from self._scan.batches(iter([partition]))


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
    names = options.columns or tuple(snapshot.schema.names)
    if wanted is None:
        return spark_schema(snapshot.projected_schema(names, options.filter))
    check_read(snapshot.projected_schema(wanted.names, options.filter), wanted)
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


def _slices(fragment: FragmentSize, options: ReadOptions) -> Iterator[SlicePartition]:
    rows, size = fragment.physical_rows, fragment.size_bytes or 0
    if rows == 0:
        return
    count = max(-(-rows // options.rows_per_partition), min(rows, -(-size // options.bytes_per_partition)))
    batch_rows = max(64, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))
    for index in range(count):
        start, end = rows * index // count, rows * (index + 1) // count
        yield SlicePartition(fragment_id=fragment.id, start=start, end=end, batch_rows=batch_rows)
