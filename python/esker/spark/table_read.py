"""`read`: a table on its way to become a DataFrame, of which columns and rows are chosen before that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.cached import cached_property
from esker.spark.options import checked_mapping
from esker.spark.partitions import descriptions, from_descriptions
from esker.spark.planned_read import PartitionReader, PlannedRead, plan_read
from esker.spark.session import frame_of_bytes, parallelism_of, register
from esker.spark.session_settings import ZONE
from esker.spark.source import EskerSource
from esker.spark.spelling import list_of_names
from esker.spark.width import warn_of_width
from esker.spark.wording import as_raised_by_esker
from esker.spark.worker_tables import check_entry
from esker.spark.worker_task import WorkerTask

__all__ = ["TableRead", "partitions_of", "read"]


class TableRead:
    """A table on its way to become a DataFrame, in one version.

    `columns` and `where` choose what is read; Spark cannot tell a Python data source that later. Whatever else one asks
    of it (`join`, `groupBy`, `collect`...) is asked of the DataFrame, which `to_df` makes; `count` reads metadata.

    Args:
        spark: A session.
        options: As for the format, with the path.
        broadcast: Whether the DataFrame is small enough to be sent to all tasks of a join.

    Example:
        `esker.spark.read(spark, "flights.lance").columns("carrier").where("month = 1").groupBy("carrier").count()`
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str], *, broadcast: bool = False) -> None:
        self._spark = spark
        self._broadcast = broadcast
        self._plan = plan_read(options)

    @property
    def schema(self) -> StructType:
        """The schema of the DataFrame."""
        return self._plan.schema

    @property
    def version(self) -> int | None:
        """The version that is read; None for a change data feed."""
        found = self._plan.options.get("version")
        return None if found is None else int(found)

    def columns(self, *names: str | Sequence[str]) -> TableRead:
        """Chooses the columns that are read.

        Args:
            names: Their names, or a list of them as `select` of Spark takes, in the order of the result; case does not
                tell them apart, as in Spark by default.

        Returns:
            The same table with fewer columns.

        Raises:
            InvalidArgumentError: One does not exist.

        Example:
            `esker.spark.read(spark, "flights.lance").columns("id", "month")`
        """
        listed = [name for given in names for name in list_of_names(given)]
        return self._but(columns=json.dumps(listed))

    def where(self, condition: str | Column) -> Any:
        """Chooses the rows that are read.

        Args:
            condition: The text of an SQL WHERE clause; a second one is joined with AND. A Column of Spark is for the
                DataFrame: all rows are read, and Spark filters them.

        Returns:
            The same table with fewer rows; a DataFrame for a Column.

        Raises:
            InvalidArgumentError: It does not parse, or names no column.

        Example:
            `esker.spark.read(spark, "flights.lance").where("month = 1").count()`
        """
        if not isinstance(condition, str):
            return self.to_df().where(condition)
        given = self._plan.options.get("filter")
        zone = self._plan.options.get("timezone") or self._spark.conf.get(ZONE)
        # A comment at the end of one must not reach over the parenthesis behind it.
        both = condition if given is None else " AND ".join(f"({_closed(each)})" for each in (given, condition))
        return self._but(filter=both, **({} if zone is None else {"timezone": zone}))

    filter = where

    def count(self) -> int:
        """The number of rows. No column is read, or those of the filter only: by metadata where there is none.

        Example:
            `esker.spark.read(spark, "flights.lance").count()`
        """
        plan = self._plan
        if plan.num_rows is not None:
            return plan.num_rows
        if plan.parsed.changes is not None:
            return self.to_df().count()
        with as_raised_by_esker():
            parts = partitions_of(self._spark, plan).mapInArrow(WorkerTask(_counted, plan.reader), "rows bigint")
            found = parts.agg(F.sum("rows")).collect()[0][0]
        return int(found or 0)

    def to_df(self) -> DataFrame:
        """The DataFrame: by Spark's own Parquet reader for plain files of Delta tables, by esker for all others.

        Spark never broadcasts the latter into a join by itself, since their size is unknown to Spark.

        Example:
            `esker.spark.read(spark, "flights.lance").columns("id").to_df()`
        """
        return self._frame

    @cached_property
    def _frame(self) -> DataFrame:
        plan = self._plan
        frame = plan.by_spark(self._spark)
        if frame is None:
            warn_of_width(plan.options["path"], plan.schema, plan.parsed, plan.bytes_per_row)
            frame = partitions_of(self._spark, plan).mapInArrow(WorkerTask(_scanned, plan.reader), plan.schema)
        return F.broadcast(frame) if self._broadcast else frame

    def _but(self, **options: str) -> TableRead:
        made = TableRead(self._spark, {**self._plan.options, **options}, broadcast=self._broadcast)
        # It is planned anew: another table may be there by now, which has a version of that number.
        check_entry(made._plan.options["path"], self.version, self._plan.entry, made._plan.entry)
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_frame", "_plan", "_spark"):
            raise AttributeError(name)
        return getattr(self.to_df(), name)

    def __getitem__(self, item: Any) -> Any:
        return self.to_df()[item]

    def __repr__(self) -> str:
        return f"TableRead({self._plan.options['path']}, version={self.version}, {self.schema.simpleString()})"


def _closed(condition: str) -> str:
    return f"{condition}\n" if "--" in condition.rpartition("\n")[2] else condition


def _scanned(reader: PartitionReader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return reader.batches(from_descriptions(batches))


def _counted(reader: PartitionReader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = reader.count(from_descriptions(batches))
    yield pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], names=["rows"])


def partitions_of(spark: SparkSession, plan: PlannedRead) -> DataFrame:
    """A DataFrame of one row for each partition of a read, which describes it. Spark does not know its size.

    Example:
        `partitions_of(spark, plan).mapInArrow(scan, plan.schema)`
    """
    cores = parallelism_of(spark)
    if cores is not None:
        # The driver has planned, and nothing is to be read to tell what there is.
        found = [value for part in plan.partitions(cores) for value in descriptions(part)]
        made = frame_of_bytes(spark, found)
        if made is not None:
            return made
    register(spark)
    given = {**plan.options, "output": "partitions"}
    if cores is not None and plan.parsed.parallelism is None:
        given["parallelism"] = str(cores)
    return spark.read.format(EskerSource.name()).options(**given).load()


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: str | Sequence[str] | None = None,
    filter: str | None = None,
    version: int | None = None,
    nanoseconds: str = "error",
    rows_per_partition: int | None = None,
    bytes_per_partition: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    timezone: str | None = None,
    broadcast: bool = False,
) -> TableRead:
    """Reads a table, of which columns and rows are chosen before it becomes a DataFrame; with esker's own errors.

    Args:
        spark: A session, classic or Connect.
        uri: The table, of either format.
        columns: Columns to read, in this order, or the name of one; None for all.
        filter: The text of an SQL WHERE clause; only rows for which it is true are read.
        version: The version, None for the newest; it is pinned now.
        nanoseconds: "truncate" truncates times finer than Spark's microseconds, "error" refuses them.
        rows_per_partition: The maximum number of rows per Spark partition.
        bytes_per_partition: The maximum number of bytes of data files per Spark partition, 128 MiB by default.
        storage_options: Options of the store.
        timezone: The zone of times without one in the filter; by default the zone of the session.
        broadcast: Whether the table is small enough to be sent to all tasks of a join: Spark does not know its size.

    Returns:
        The table, which is used as the DataFrame that it becomes.

    Raises:
        NotFoundError: There is no table, or no such version.
        InvalidArgumentError: A column does not exist, or the filter does not parse.
        UnsupportedError: Spark has no type for that of a column.

    Example:
        `esker.spark.read(spark, "flights.lance").columns("carrier").where("month = 1").distinct().collect()`
    """
    store = checked_mapping("storage_options", storage_options, '{"aws_region": "eu-central-1"}')
    given = {
        "columns": None if columns is None else json.dumps(list_of_names(columns)),
        "filter": filter,
        "version": version,
        "nanoseconds": None if nanoseconds == "error" else nanoseconds,
        "rows_per_partition": rows_per_partition,
        "bytes_per_partition": bytes_per_partition,
        "storage_options": json.dumps(store) if store else None,
        "timezone": None if filter is None else timezone or spark.conf.get(ZONE),
    }
    options = {"path": os.fspath(uri), **{name: str(value) for name, value in given.items() if value is not None}}
    return TableRead(spark, options, broadcast=broadcast)
