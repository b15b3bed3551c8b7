"""What deltalake 1.6 and pyarrow do wrong, by name: such cases are left out where it is they that read or write.

`tests/test_fuzz_delta.py` shows that they still do.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from tests.fuzzing.delta_conditions import Condition
from tests.fuzzing.delta_rows import Column


def peer_reads(columns: list[Column], partition_by: list[str], rows: list[dict[str, Any]]) -> bool:
    """Negative decimals as partition values: deltalake writes -1.50 as `-1.-50`, and reads no table that has one."""
    decimals = [c.name for c in columns if c.name in partition_by and pa.types.is_decimal(c.arrow)]
    return not any((row.get(name) or 0) < 0 for row in rows for name in decimals)


def peer_makes(columns: list[Column]) -> bool:
    """Times without a zone within lists, maps and structs: deltalake does not list the feature that they need."""
    return not any(column.plain is None and _holds_clock(column.arrow) for column in columns)


def _holds_clock(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_holds_clock(kind.field(i).type) for i in range(kind.num_fields))


def peer_replaces(condition: Condition, partition_by: list[str]) -> bool:
    """Two faults of conditions.

    Times without a zone: deltalake compares literals in nanoseconds with statistics in microseconds, and fails.
    Empty texts as partition values: null to readers, but deltalake's delete and overwrite take them for texts.
    """
    return not any(
        column.plain == "timestamp_ntz" or (column.plain == "string" and column.name in partition_by)
        for column in condition.columns
    )


def peer_partitions(table: pa.Table, partition_by: list[str]) -> bool:
    """Dictionaries: deltalake does not partition by them."""
    return not any(pa.types.is_dictionary(table.schema.field(name).type) for name in partition_by)


def pyarrow_misses_zero(condition: Condition) -> bool:
    """Zero in a list of floats: pyarrow rules out row groups of zeros, whose bounds are -0.0 and 0.0."""
    terms = [term for terms in condition.lists for term in terms]
    return any(
        term.operator in ("in", "not in") and pa.types.is_floating(term.column.arrow) and 0.0 in term.values
        for term in terms
    )


def pyarrow_misses_nan(condition: Condition, rows: list[dict[str, Any]]) -> bool:
    """NaN beside numbers: pyarrow rules out row groups as if it lay within their bounds, which it need not."""
    return any(
        isinstance(row.get(column.name), float) and math.isnan(row[column.name])
        for column in condition.columns
        for row in rows
    )
