"""Rows of Delta tables in a form that can be compared: their order means nothing."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa


def rows(table: pa.Table) -> list[str]:
    """All rows, each as a text, sorted."""
    names = sorted(table.column_names)
    return sorted(repr([(name, _plain(row[name])) for name in names]) for row in _rows(table))


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    # Python has no dates before year 1 and no nanoseconds: numbers are compared in their place.
    columns = [_numbers(column) for column in table.columns]
    return pa.table(columns, names=table.column_names).to_pylist()


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return sorted((key, _plain(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
