"""Says once that a read takes all columns of a wide table: Spark asks a Python data source for all of them, always."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from pyspark.sql.types import StructType

from esker.spark.options import ReadOptions

__all__ = ["WIDE_BYTES", "WIDE_COLUMNS", "warn_of_width"]

WIDE_COLUMNS = 50
"""From so many columns on a table is wide."""
WIDE_BYTES = 2048
"""From so many bytes of a row on a table is wide, if it has a column that could be left out."""

_told: set[str] = set()


def warn_of_width(
    uri: str, schema: StructType, options: ReadOptions, bytes_per_row: Callable[[], float] | None = None
) -> None:
    """Warns of a read of all columns of a wide table, once in a process for each table.

    Args:
        uri: The table.
        schema: What will be read.
        options: Whether columns were named.
        bytes_per_row: How many bytes a row has, if that is known.

    Example:
        `warn_of_width("t.lance", schema, options)`
    """
    if options.columns is not None or uri in _told:
        return
    count = len(schema.fields)
    reason = f"{count} columns" if count >= WIDE_COLUMNS else ""
    if not reason and count > 1 and bytes_per_row is not None and (size := bytes_per_row()) >= WIDE_BYTES:
        reason = f"{count} columns, {size:,.0f} bytes a row"
    if not reason:
        return
    _told.add(uri)
    warnings.warn(
        f"reads all of {uri} ({reason}), whatever the query needs: Spark tells a Python data source neither which "
        'columns nor that it only counts; name them, option("columns", "a,b") or esker.spark.read(spark, '
        'uri).columns("a", "b")',
        UserWarning,
        stacklevel=3,
    )
