"""A read that the driver has planned: what it gives, and how tasks read a partition of it. Of either format.

A plan pins the version, and is checked against the table; what reads in tasks can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from esker.spark.options import ReadOptions, read_address
from esker.spark.reader import SliceScan, lance_version, plan_slices, read_schema
from esker.spark.session import parallelism_of
from esker.spark.session_settings import machine_zone
from esker.spark.table import PinnedTable
from esker.spark.table_format import is_delta

__all__ = ["PartitionReader", "PlannedRead", "plan_read"]


class PartitionReader(Protocol):
    """What reads partitions in a task."""

    def batches(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """Their rows, in the types that Spark exchanges."""

    def rows(self, partitions: Iterable[InputPartition]) -> Iterator[pa.RecordBatch]:
        """Their rows, in the types of the table."""

    def count(self, partitions: Iterable[InputPartition]) -> int:
        """How many rows they have. Only columns of the filter are read."""


@dataclass(frozen=True)
class PlannedRead:
    """A read of one version of a table.

    Args:
        options: What to say to the format for the same rows: the version is among it.
        parsed: The same, parsed.
        reader: What reads partitions in a task.
        schema: The Spark schema of the rows.
        entry: What tells the version from one with its number of another table.
        num_rows: How many rows there are, if the table's metadata tell.
        partitions: What there is to read, for so many tasks at once; None if nobody knows how many.
        bytes_per_row: How many bytes a row has, if that is known.
        frame_of_parquet: The rows by Spark's own reader, where all of them are in plain Parquet files.
    """

    options: Mapping[str, str]
    parsed: ReadOptions
    reader: PartitionReader
    schema: StructType
    entry: str
    num_rows: int | None
    partitions: Callable[[int | None], Sequence[InputPartition]]
    bytes_per_row: Callable[[], float] | None = None
    frame_of_parquet: Callable[[SparkSession], DataFrame | None] | None = None

    def by_spark(self, spark: SparkSession) -> DataFrame | None:
        """The rows by Spark's own Parquet reader, where it reads the same: plain files, of which all rows are read."""
        parsed, plain = self.parsed, ReadOptions()
        if self.frame_of_parquet is None or parallelism_of(spark) is None:
            return None
        for name in ("filter", "changes", "rows_per_partition", "bytes_per_partition", "parallelism"):
            if getattr(parsed, name) != getattr(plain, name):
                return None
        return self.frame_of_parquet(spark)


def plan_read(options: Mapping[str, str]) -> PlannedRead:
    """Plans a read on the driver.

    Args:
        options: As for `spark.read`, the path among them.

    Raises:
        NotFoundError: There is no table, or no such version.
        InvalidArgumentError: A column does not exist, or the filter does not parse.
        UnsupportedError: Spark has no type for that of a column.

    Example:
        `plan_read({"path": "t.lance"}).num_rows`
    """
    address, parsed = read_address(options), ReadOptions.parse(options)
    pinned = {**options, "path": address.uri}
    if is_delta(address):
        from esker.spark.delta_reader import DeltaReader, delta_schema, open_delta

        parsed.check_format("delta", address.uri)
        table = open_delta(address, parsed)
        schema = delta_schema(table, parsed)
        if parsed.changes is None:
            pinned["version"] = str(table.version())
        known = parsed.filter is None and parsed.changes is None
        table_id = table.metadata().id
        reader = DeltaReader(address, table.version(), schema, parsed, table_id)
        rows = table._rows_by_statistics() if known else None
        by_spark = reader.by_spark
        return PlannedRead(pinned, parsed, reader, schema, table_id, rows, reader.planned, frame_of_parquet=by_spark)
    parsed.check_format("lance", address.uri)
    snapshot = PinnedTable(address, lance_version(parsed))
    schema = read_schema(snapshot, parsed)
    spelled = parsed.spelled(snapshot.schema.names)
    scan = SliceScan(address, snapshot.version, schema, spelled, machine_zone(), snapshot.entry)
    pinned["version"] = str(snapshot.version)
    rows = snapshot.num_rows if parsed.filter is None else None

    def partitions(tasks: int | None) -> Sequence[InputPartition]:
        return plan_slices(snapshot.fragments(), replace(parsed, parallelism=parsed.parallelism or tasks))

    return PlannedRead(pinned, parsed, scan, schema, snapshot.entry, rows, partitions, snapshot.bytes_per_row)
