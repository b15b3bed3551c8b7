"""Random conditions and new values: their SQL, and what they are by a plain evaluator with SQL's three truths."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


class DoesNotFit(Exception):
    """A value that its column cannot hold."""


@dataclass(frozen=True)
class Sql:
    """An expression: its text, and its value for a row."""

    text: str
    of: Callable[[Row], Any]


def at(row: Any, path: tuple[str, ...]) -> Any:
    """A value by the names that lead to it; null below a null."""
    for name in path:
        row = None if row is None else row[name]
    return row


def paths(
    schema: pa.Schema, wanted: Callable[[pa.DataType], bool], *, nested: bool = True
) -> list[tuple[tuple[str, ...], pa.Field]]:
    """The plain columns, and fields of structs, of some types."""
    found = []

    def walk(fields: Any, parents: tuple[str, ...]) -> None:
        for field in fields:
            if wanted(field.type):
                found.append(((*parents, field.name), field))
            if nested and pa.types.is_struct(field.type):
                walk(field.type, (*parents, field.name))

    walk(schema, ())
    return found


def condition(rng: random.Random, schema: pa.Schema, *, prefix: tuple[str, ...] = (), depth: int = 1) -> Sql:
    """A condition over columns of a schema."""
    drawn = rng.random()
    if depth and drawn < 0.35:
        left, right = (condition(rng, schema, prefix=prefix, depth=depth - 1) for _ in range(2))
        if drawn < 0.15:
            return Sql(f"({left.text}) AND ({right.text})", lambda row: _and(left.of(row), right.of(row)))
        if drawn < 0.28:
            return Sql(
                f"({left.text}) OR ({right.text})", lambda row: _not(_and(_not(left.of(row)), _not(right.of(row))))
            )
        return Sql(f"NOT ({left.text})", lambda row: _not(left.of(row)))
    found = paths(schema, lambda it: pa.types.is_integer(it) or pa.types.is_string(it) or pa.types.is_boolean(it))
    some = paths(schema, lambda it: not pa.types.is_nested(it) and not isinstance(it, pa.BaseExtensionType))
    if not found or rng.random() < 0.2:
        if not some:
            return Sql("true", lambda row: True)
        path, _ = rng.choice(some)
        name, whole = ".".join((*prefix, *path)), (*prefix, *path)
        if rng.random() < 0.5:
            return Sql(f"{name} IS NULL", lambda row: at(row, whole) is None)
        return Sql(f"{name} IS NOT NULL", lambda row: at(row, whole) is not None)
    path, field = rng.choice(found)
    whole = (*prefix, *path)
    return _comparison(rng, ".".join(whole), field.type, lambda row: at(row, whole))


def _comparison(rng: random.Random, name: str, type_: pa.DataType, value: Callable[[Row], Any]) -> Sql:
    if pa.types.is_boolean(type_):
        return Sql(name, value)
    if pa.types.is_string(type_):
        literals: list[Any] = ["", "a", "b", "key 3", "key 11"]
    else:
        literals = [0, 1, 2, 3, 7, 12, 100]
    shown = {literal: f"'{literal}'" if isinstance(literal, str) else str(literal) for literal in literals}
    if rng.random() < 0.3:
        chosen = rng.sample(literals, 2)
        text = f"{name} IN ({', '.join(shown[one] for one in chosen)})"
        return Sql(text, lambda row: None if value(row) is None else value(row) in chosen)
    op = rng.choice(["=", "!=", "<", ">=", ">"])
    literal = rng.choice(literals)
    holds: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        ">=": lambda a, b: a >= b,
        ">": lambda a, b: a > b,
    }
    return Sql(
        f"{name} {op} {shown[literal]}",
        lambda row: None if value(row) is None else holds[op](_ordered(value(row)), _ordered(literal)),
    )


def _ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def new_value(rng: random.Random, schema: pa.Schema, field: pa.Field, *, nulls: bool) -> Sql | None:
    """A new value for a column, computed from the row; None for types that there is none for."""
    type_, name = field.type, field.name
    same = [other.name for other in schema if other.type == type_ and other.name != name]
    if same and rng.random() < 0.3:
        other = rng.choice(same)
        return Sql(other, lambda row: row[other])
    if nulls and rng.random() < 0.1:
        return Sql("NULL", lambda row: None)
    if pa.types.is_integer(type_):
        low, high = bounds(type_)
        wide = high if high > 2**62 else 2**63 - 1
        number = rng.choice([1, 2, 7])
        if rng.random() < 0.3 and type_ != pa.uint64():
            return Sql(f"{name} - {number}", lambda row: _fits(_plus(row[name], -number, -(2**63), wide), low, high))
        if rng.random() < 0.5 and type_ != pa.uint64():
            return Sql(f"{name} + {number}", lambda row: _fits(_plus(row[name], number, -(2**63), wide), low, high))
        return Sql(str(number), lambda row: number)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        if rng.random() < 0.5:
            return Sql(f"concat({name}, '!')", lambda row: (row[name] or "") + "!")
        return Sql("'new'", lambda row: "new")
    if pa.types.is_boolean(type_):
        return Sql(f"NOT {name}", lambda row: _not(row[name]))
    if pa.types.is_float64(type_):
        return Sql("2.5", lambda row: 2.5)
    return None


def bounds(type_: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if pa.types.is_unsigned_integer(type_):
        return 0, 2**type_.bit_width - 1
    return -(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1


def _plus(value: int | None, number: int, low: int, high: int) -> int | None:
    return None if value is None else _fits(value + number, low, high)


def _fits(value: int | None, low: int, high: int) -> int | None:
    if value is not None and not low <= value <= high:
        raise DoesNotFit(f"{value} is outside of {low}..{high}")
    return value
