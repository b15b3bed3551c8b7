"""`register`, `read` and `write`: registration by hand, a faster read, and all save modes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from esker.exceptions import InvalidArgumentError
from esker.lance.write.compression import Compression
from esker.spark.delta_reader import delta_schema, is_delta, open_delta
from esker.spark.delta_writer import DeltaWriter, writes_delta
from esker.spark.options import ReadOptions, TableAddress, WriteOptions, read_address, write_address
from esker.spark.reader import SlicePartition, SliceScan, lance_version, read_schema
from esker.spark.session_settings import ZONE
from esker.spark.source import EskerSource
from esker.spark.table import PinnedTable
from esker.spark.writer import plan_write

__all__ = ["read", "register", "write"]


def register(spark: SparkSession) -> None:
    """Registers the format `esker` in a session.

    Spark finds the format by itself if the package `pyspark_esker` is on the driver's path. Call this if it is not, or
    if another package of that kind is broken, which hides all of them. Spark looks for formats in the session of the
    calling thread: a thread of your own must call this, too, before it writes.

    Args:
        spark: A session, classic or Connect.

    Example:
        `esker.spark.register(spark)`
    """
    spark.dataSource.register(EskerSource)
    java = getattr(spark, "_jvm", None)
    if java is not None:
        # As Spark does in `createDataFrame`: a new thread of Java has no active session before this.
        java.SparkSession.setActiveSession(spark._jsparkSession)


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    version: int | None = None,
    nanoseconds: str = "error",
    rows_per_partition: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    timezone: str | None = None,
) -> DataFrame:
    """Reads a table as a DataFrame, by `mapInArrow`: faster than the format, and with esker's own errors.

    A Delta table is read by the format, after a check that raises esker's own errors.

    Args:
        spark: A session, classic or Connect.
        uri: The table.
        columns: Columns to read, in this order; None for all.
        filter: The text of an SQL WHERE clause; only rows for which it is true are read.
        version: The version, None for the newest; it is pinned now.
        nanoseconds: "truncate" truncates times finer than Spark's microseconds, "error" refuses them.
        rows_per_partition: The maximum number of rows per Spark partition.
        storage_options: Options of the store.
        timezone: The zone of times without one in the filter; by default the zone of the session.

    Returns:
        A DataFrame that Spark never broadcasts into a join by itself, since its size is unknown to Spark. Use
        `pyspark.sql.functions.broadcast` for a small table.

    Raises:
        NotFoundError: There is no table, or no such version.
        InvalidArgumentError: A column does not exist, or the filter does not parse.
        UnsupportedError: Spark has no type for that of a column.

    Example:
        `esker.spark.read(spark, "flights.lance", columns=["carrier"], filter="month = 1")`
    """
    given = {
        "columns": None if columns is None else json.dumps(list(columns)),
        "filter": filter,
        "version": version,
        "nanoseconds": None if nanoseconds == "error" else nanoseconds,
        "rows_per_partition": rows_per_partition,
        "storage_options": json.dumps(dict(storage_options)) if storage_options else None,
        "timezone": None if filter is None else timezone or spark.conf.get(ZONE),
    }
    options = {"path": os.fspath(uri), **{name: str(value) for name, value in given.items() if value is not None}}
    address, parsed = read_address(options), ReadOptions.parse(options)
    if is_delta(address):
        parsed.check_format("delta", address.uri)
        delta_schema(open_delta(address, parsed), parsed)
        register(spark)
        return spark.read.format(EskerSource.name()).options(**{**options, "path": address.uri}).load()
    snapshot = PinnedTable(address, lance_version(parsed))
    schema = read_schema(snapshot, parsed)
    task = SliceScan(address, snapshot.version, schema, parsed)
    register(spark)
    # The slices come from a Python data source and not from `range`: Spark takes a DataFrame made of a range for as
    # small as the range, a few bytes, and would broadcast it into any join.
    slices = {**options, "path": address.uri, "version": str(snapshot.version), "output": "slices"}
    described = spark.read.format(EskerSource.name()).options(**slices).load()

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = (SlicePartition(**row) for batch in batches for row in batch.to_pylist())
        return task.batches(parts)

    return described.mapInArrow(scan, schema)


def write(
    frame: DataFrame,
    uri: str | os.PathLike[str],
    *,
    mode: str = "error",
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    data_storage_version: str | None = None,
    compression: Compression | None = None,
    vectors: Mapping[str, int] | None = None,
    overwrite_schema: bool = False,
    storage_options: Mapping[str, str] | None = None,
    table_format: str | None = None,
) -> None:
    """Writes a DataFrame as a table, in any save mode.

    Args:
        frame: The rows.
        uri: The table.
        mode: "append", "overwrite", "error" (also "errorifexists", "create") or "ignore".
        max_rows_per_file: The maximum number of rows per data file.
        max_bytes_per_file: The approximate number of bytes per data file.
        data_storage_version: The file version; None for that of the table.
        compression: How small the files are to be, as for `write_dataset`; None for what the table has.
        vectors: The length of each array column that becomes a fixed_size_list.
        overwrite_schema: Whether an overwrite takes all types from the DataFrame, and none from the old table.
        storage_options: Options of the store.
        table_format: The format of a new table: "lance" (the default) or "delta". An existing table keeps its format.

    Raises:
        AlreadyExistsError: The mode is "error", and there is a table.
        SchemaMismatchError: The DataFrame does not fit the table that it is appended to.
        InvalidArgumentError: The mode is unknown.

    Example:
        `esker.spark.write(df, "flights.lance", mode="ignore")`
    """
    modes = {"errorifexists": "error", "create": "error"}
    chosen = modes.get(mode.lower(), mode.lower())
    if chosen not in ("append", "overwrite", "error", "ignore"):
        raise InvalidArgumentError(f"expected a mode of append, overwrite, error, ignore, found {mode!r}")
    given = {
        "save_mode": None if chosen == "overwrite" else chosen,
        "max_rows_per_file": max_rows_per_file,
        "max_bytes_per_file": max_bytes_per_file,
        "data_storage_version": data_storage_version,
        "compression": compression,
        "vectors": ",".join(f"{column}={size}" for column, size in vectors.items()) if vectors else None,
        "overwrite_schema": "true" if overwrite_schema else None,
        "storage_options": json.dumps(dict(storage_options)) if storage_options else None,
        "table_format": table_format,
    }
    options = {"path": os.fspath(uri), **{name: str(value) for name, value in given.items() if value is not None}}
    address: TableAddress = write_address(options)
    parsed = WriteOptions.parse(options, overwrite=chosen == "overwrite")
    # Planned here to raise esker's errors early, and so that "ignore" does not compute the DataFrame for nothing. The
    # write itself uses the plan that Spark asks for later.
    if writes_delta(address, parsed):
        if DeltaWriter(address, frame.schema, chosen == "overwrite", parsed).skips:
            return
    elif plan_write(address, frame.schema, chosen == "overwrite", parsed) is None:
        return
    register(frame.sparkSession)
    spark_mode = "overwrite" if chosen == "overwrite" else "append"
    writer = frame.write.format(EskerSource.name()).mode(spark_mode)
    writer.options(**{name: value for name, value in options.items() if name != "path"}).save(address.uri)
