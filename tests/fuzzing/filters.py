"""Random conditions: as SQL, as a pyarrow expression, and as what they mean for a row in plain Python."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.fuzzing.orders import leaf_paths, type_at, value_at

Holds = Callable[[dict[str, Any]], bool | None]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Condition:
    """A condition on rows, in its three forms. `holds` is None where SQL says unknown."""

    sql: str
    expression: pc.Expression
    holds: Holds
    portable: bool = True
    """Whether the expression means the same: pyarrow compares NaN with nothing."""


def random_condition(rng: random.Random, rows: pa.Table, depth: int = 2) -> Condition:
    """A condition over the columns of a table and the fields of structs in them."""
    kind = rng.random()
    if depth and kind < 0.4:
        left, right = random_condition(rng, rows, depth - 1), random_condition(rng, rows, depth - 1)
        if rng.random() < 0.15:
            # What stands there twice may fall away.
            right = _joined(right, left, both=rng.random() < 0.5)
        return _joined(left, right, both=rng.random() < 0.5)
    if depth and kind < 0.5:
        inner = random_condition(rng, rows, depth - 1)

        def negated(row: dict[str, Any]) -> bool | None:
            found = inner.holds(row)
            return None if found is None else not found

        return Condition(f"NOT ({inner.sql})", ~inner.expression, negated, inner.portable)
    path = rng.choice(leaf_paths(rows.schema))
    data_type = type_at(rows.schema, path)
    name, reference = ".".join(f"`{part}`" for part in path.split(".")), pc.field(*path.split("."))
    if rng.random() < 0.2 or not _has_literals(data_type):
        wanted = rng.random() < 0.5
        expression = reference.is_null() if wanted else reference.is_valid()
        sql = f"{name} IS {'' if wanted else 'NOT '}NULL"
        # Substrait has not all types, and pyarrow's own answer of a field of a null struct is another one.
        return Condition(sql, expression, lambda row: (value_at(row, path) is None) == wanted, portable=False)
    values = [value for value in (value_at(row, path) for row in rows.to_pylist()) if _is_plain(value)]
    if not values:
        return Condition(
            f"{name} IS NOT NULL", reference.is_valid(), lambda row: value_at(row, path) is not None, False
        )
    return _comparison(rng, name, reference, path, data_type, values)


def _comparison(
    rng: random.Random, name: str, reference: pc.Expression, path: str, data_type: pa.DataType, values: list[Any]
) -> Condition:
    # Of moments Substrait has microseconds only; what lies below a null struct pyarrow sees.
    odd = pa.types.is_floating(data_type) or pa.types.is_dictionary(data_type) or pa.types.is_timestamp(data_type)
    portable = not odd and "." not in path
    kind = rng.random()
    if kind < 0.2:
        some = [rng.choice(values) for _ in range(rng.randint(1, 4))]
        inside = [_key(value) for value in some]
        sql = f"{name} IN ({', '.join(_literal(value, data_type) for value in some)})"
        expression = reference.isin(pa.array(some, _value_type(data_type)))
        return Condition(sql, expression, _known(path, lambda value: _key(value) in inside), False)
    if kind < 0.35:
        low, high = sorted((rng.choice(values), rng.choice(values)), key=_key)
        sql = f"{name} BETWEEN {_literal(low, data_type)} AND {_literal(high, data_type)}"
        expression = (reference >= _scalar(low, data_type)) & (reference <= _scalar(high, data_type))
        return Condition(sql, expression, _known(path, lambda value: _key(low) <= _key(value) <= _key(high)), portable)
    sign, bound = rng.choice(sorted(_COMPARE)), rng.choice(values)
    compare = _COMPARE[sign]
    expression = {
        "=": pc.Expression.__eq__,
        "!=": pc.Expression.__ne__,
        "<": pc.Expression.__lt__,
        "<=": pc.Expression.__le__,
        ">": pc.Expression.__gt__,
        ">=": pc.Expression.__ge__,
    }[sign](reference, _scalar(bound, data_type))
    holds = _known(path, lambda value: compare(_key(value), _key(bound)))
    return Condition(f"{name} {sign} {_literal(bound, data_type)}", expression, holds, portable)


def _joined(left: Condition, right: Condition, *, both: bool) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        found = (left.holds(row), right.holds(row))
        if (not both) in found:
            return not both
        return None if None in found else both

    sign = "AND" if both else "OR"
    expression = left.expression & right.expression if both else left.expression | right.expression
    return Condition(f"({left.sql}) {sign} ({right.sql})", expression, holds, left.portable and right.portable)


def _known(path: str, holds: Callable[[Any], bool]) -> Holds:
    def told(row: dict[str, Any]) -> bool | None:
        value = value_at(row, path)
        return None if value is None else holds(value)

    return told


def _key(value: Any) -> Any:
    """A value as conditions compare it: NaN equals itself and is the greatest number, texts go by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def _value_type(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, _value_type(data_type))


def _has_literals(data_type: pa.DataType) -> bool:
    value = _value_type(data_type)
    tests = [pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string, pa.types.is_date32]
    floats = pa.types.is_float32(value) or pa.types.is_float64(value)
    moments = pa.types.is_timestamp(value) and value.tz is None
    return floats or moments or pa.types.is_decimal128(value) or any(test(value) for test in tests)


def _is_plain(value: Any) -> bool:
    """Whether it can be written in SQL, and compares without doubt."""
    return value is not None and not (
        isinstance(value, float) and (math.isnan(value) or math.isinf(value) or not value)
    )


def _literal(value: Any, data_type: pa.DataType) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, decimal.Decimal):
        return f"CAST('{value}' AS DECIMAL({data_type.precision}, {data_type.scale}))"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
