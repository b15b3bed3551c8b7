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
    """Negative decimals as partition values: deltalake writes -1.50 as `-1.-50`, and reads neither that nor the table."""
    decimals = [c.name for c in columns if c.name in partition_by and pa.types.is_decimal(c.arrow)]
    return not any((row.get(name) or 0) < 0 for row in rows for name in decimals)


def peer_makes(columns: list[Column]) -> bool:
    """Times without a zone within lists, maps and structs: deltalake does not list the feature that they need."""
    return not any(column.plain is None and _holds_clock(column.arrow) for column in columns)


def _holds_clock(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_holds_clock(kind.field(i).type) for i in range(kind.num_fields))


def forms_of_the_peer(table: pa.Table) -> pa.Table:
    """Nanoseconds: deltalake writes them as they are, and its predicates stumble over such files."""
    fields = [
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def peer_replaces(condition: Condition) -> bool:
    """Times without a zone: deltalake compares the literal in nanoseconds with statistics in microseconds, and fails."""
    return not any(column.plain == "timestamp_ntz" for column in condition.columns)


def pyarrow_misses_nan(condition: Condition, rows: list[dict[str, Any]]) -> bool:
    """NaN beside numbers: pyarrow rules out row groups as if it lay within their bounds, which it need not."""
    return any(
        isinstance(row.get(column.name), float) and math.isnan(row[column.name])
        for column in condition.columns
        for row in rows
    )
