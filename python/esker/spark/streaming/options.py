"""The options of streams, beside those that they share with reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import datasource

from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.spark.option_names import Given
from esker.spark.options import WriteOptions

__all__ = ["check_arrow_streams", "stream_write_options"]

_NOT_STREAMED = {
    "txnAppId": "leave it out: a stream numbers its batches by its checkpoint",
    "txnVersion": "leave it out: a stream numbers its batches by its checkpoint",
    "saveMode": 'leave it out: say outputMode("append") or outputMode("complete")',
    "replaceWhere": "leave it out: a batch in output mode complete replaces all rows",
    "partitionOverwriteMode": "leave it out: a batch in output mode complete replaces all rows",
}


def check_arrow_streams() -> None:
    """Refuses releases of Spark whose streams hand no Arrow batches to a Python sink.

    Raises:
        UnsupportedError: Spark is older than 4.1.

    Example:
        `check_arrow_streams()`
    """
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise UnsupportedError("expected Spark 4.1 or newer for a stream sink, found an older one")


def stream_write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """The options of `writeStream`.

    Args:
        options: The options from Spark.
        overwrite: Whether the output mode is complete.

    Raises:
        InvalidArgumentError: A name is unknown, an option is for reads or for writes of a DataFrame, or a value does
            not parse.

    Example:
        >>> from esker.spark.streaming.options import stream_write_options
        >>> stream_write_options({"maxRowsPerFile": "10"}, overwrite=False).max_rows_per_file
        10
    """
    given = Given(options, "write")
    for name, instead in _NOT_STREAMED.items():
        if name in given:
            raise InvalidArgumentError(f"option {given.shown(name)} is for writes of a DataFrame, found it on a stream: {instead}")
    parsed = WriteOptions.parse(options, overwrite=overwrite)
    # What the session says of overwritten partitions is for DataFrames.
    return replace(parsed, delta=replace(parsed.delta, partition_overwrite_mode="static"))
