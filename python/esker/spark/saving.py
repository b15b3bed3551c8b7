"""`write`: all save modes, the options of a write as arguments, and esker's own errors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from esker.exceptions import InvalidArgumentError
from esker.lance.write.compression import Compression
from esker.spark.options import WriteOptions, checked_mapping, write_address
from esker.spark.session import register
from esker.spark.session_settings import ZONE
from esker.spark.source import EskerSource
from esker.spark.table_format import writes_delta
from esker.spark.table_read import TableRead
from esker.spark.wording import as_raised_by_esker
from esker.spark.writer import plan_write

__all__ = ["write"]

_MODES = {"errorifexists": "error", "create": "error"}


def write(
    frame: DataFrame | TableRead,
    uri: str | os.PathLike[str],
    *,
    mode: str = "error",
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    data_storage_version: str | None = None,
    compression: Compression | None = None,
    vectors: Mapping[str, int] | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    replace_where: str | None = None,
    partition_overwrite_mode: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    user_metadata: str | None = None,
    configuration: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    table_format: str | None = None,
    timezone: str | None = None,
) -> None:
    """Writes a DataFrame as a table, in any save mode.

    Args:
        frame: The rows.
        uri: The table.
        mode: "append", "overwrite", "error" (also "errorifexists", "create") or "ignore".
        max_rows_per_file: The maximum number of rows per data file.
        max_bytes_per_file: The approximate number of bytes per data file.
        data_storage_version: For Lance tables: the file version; None for that of the table.
        compression: For Lance tables: how small the files are to be, as for `write_dataset`; None for what the table
            has.
        vectors: For Lance tables: the length of each array column that becomes a fixed_size_list.
        merge_schema: For Delta tables: whether columns that only the DataFrame has are added, and those that it lacks
            are null.
        overwrite_schema: Whether an overwrite takes all types from the DataFrame, and none from the old table.
        replace_where: For Delta tables, with mode "overwrite": only rows for which this SQL is true are replaced.
        partition_overwrite_mode: For Delta tables, with mode "overwrite": "dynamic" replaces the partitions that the
            DataFrame has rows of; None takes the mode of the session.
        partition_by: For Delta tables: the partition columns of a new table. With `overwrite_schema` also those of one
            that is there, which keeps its own by default; `[]` for none.
        txn_app_id: For Delta tables: the id of an application that numbers its writes.
        txn_version: The number of this write: if the table has it already, or a higher one, nothing is written.
        user_metadata: For Delta tables: a text for the log entry.
        configuration: For Delta tables: the properties of a new table.
        storage_options: Options of the store.
        table_format: The format of a new table: "lance" (the default) or "delta". An existing table keeps its format.
        timezone: The zone of times without one in `replace_where`; by default the zone of the session.

    Raises:
        AlreadyExistsError: The mode is "error", and there is a table.
        SchemaMismatchError: The DataFrame does not fit the table that it is appended to, or a value its column.
        InvalidArgumentError: The mode is unknown, or options do not go together.
        CommitConflictError: Others' commits leave no room for it; nothing was written.
        CommitStateUnknownError: It is not known whether it was committed.

    Example:
        `esker.spark.write(df, "flights.lance", mode="ignore")`
    """
    chosen = _MODES.get(mode.lower(), mode.lower()) if isinstance(mode, str) else mode
    if chosen not in ("append", "overwrite", "error", "ignore"):
        raise InvalidArgumentError(f"expected a mode of append, overwrite, error, ignore, found {mode!r}")
    if isinstance(frame, TableRead):
        frame = frame.to_df()
    if not isinstance(frame, DataFrame):
        raise InvalidArgumentError(
            f"expected a DataFrame of Spark, found a {type(frame).__name__}; esker.write_dataset and write_deltalake "
            "write Arrow data and pandas' DataFrames"
        )
    lengths = checked_mapping("vectors", vectors, '{"embedding": 256}')
    store = checked_mapping("storage_options", storage_options, '{"aws_region": "eu-central-1"}')
    properties = checked_mapping("configuration", configuration, '{"delta.enableChangeDataFeed": "true"}')
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by or ())
    frees = overwrite_schema and partition_by is not None
    given = {
        "saveMode": None if chosen == "overwrite" else chosen,
        "max_rows_per_file": max_rows_per_file,
        "max_bytes_per_file": max_bytes_per_file,
        "data_storage_version": data_storage_version,
        "compression": compression,
        "vectors": ",".join(f"{column}={size}" for column, size in lengths.items()) if lengths else None,
        "merge_schema": "true" if merge_schema else None,
        "overwrite_schema": "true" if overwrite_schema else None,
        "replace_where": replace_where,
        "partition_overwrite_mode": partition_overwrite_mode,
        "partition_columns": json.dumps(columns) if columns or frees else None,
        "txn_app_id": txn_app_id,
        "txn_version": txn_version,
        "user_metadata": user_metadata,
        "storage_options": json.dumps(store) if store else None,
        "table_format": table_format,
        "timezone": timezone if replace_where is None else timezone or frame.sparkSession.conf.get(ZONE),
        **properties,
    }
    options = {"path": os.fspath(uri), **{name: str(value) for name, value in given.items() if value is not None}}
    address = write_address(options)
    parsed = WriteOptions.parse(options, overwrite=chosen == "overwrite")
    # Planned here to raise esker's errors early, and so that "ignore" does not compute the DataFrame for nothing. The
    # write itself uses the plan that Spark asks for later.
    if writes_delta(address, parsed):
        from esker.spark.delta_writer import DeltaWriter

        if DeltaWriter(address, frame.schema, chosen == "overwrite", parsed).skips:
            return
    elif plan_write(address, frame.schema, chosen == "overwrite", parsed) is None:
        return
    register(frame.sparkSession)
    spark_mode = "overwrite" if chosen == "overwrite" else "append"
    writer = frame.write.format(EskerSource.name()).mode(spark_mode)
    with as_raised_by_esker():
        writer.options(**{name: value for name, value in options.items() if name != "path"}).save(address.uri)
