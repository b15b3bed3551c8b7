"""Random orders of rows, and what they mean, in plain Python."""

from __future__ import annotations

import functools
import random
import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance.dataset import ColumnOrdering as PeerOrdering

from esker.dataset import ColumnOrdering


@dataclass(frozen=True)
class Key:
    """A column, or a dotted path, to order by."""

    column: str
    ascending: bool
    nulls_first: bool

    @property
    def ours(self) -> ColumnOrdering:
        """The key for esker."""
        return ColumnOrdering(self.column, self.ascending, self.nulls_first)

    @property
    def theirs(self) -> PeerOrdering:
        """The key for pylance."""
        return PeerOrdering(self.column, self.ascending, self.nulls_first)


def random_keys(rng: random.Random, schema: pa.Schema) -> list[Key]:
    """One to three keys."""
    paths = leaf_paths(schema)
    chosen = rng.sample(paths, min(len(paths), rng.choice([1, 1, 2, 3])))
    return [Key(path, rng.random() < 0.5, rng.random() < 0.5) for path in chosen]


def leaf_paths(schema: pa.Schema) -> list[str]:
    """All columns, and the fields of structs within them."""
    paths = []
    for field in schema:
        paths.append(field.name)
        if pa.types.is_struct(field.type):
            paths += [f"{field.name}.{path}" for path in leaf_paths(pa.schema(list(field.type)))]
    return paths


def type_at(schema: pa.Schema, path: str) -> pa.DataType:
    """The type at a dotted path."""
    head, *rest = path.split(".")
    found = schema.field(head).type
    for name in rest:
        found = found.field(name).type
    return found


def value_at(row: dict[str, Any], path: str) -> Any:
    """The value at a dotted path of a row, None below a null."""
    value: Any = row
    for name in path.split("."):
        value = None if value is None else value[name]
    return value


def in_order(rows: list[dict[str, Any]], keys: list[Key]) -> list[dict[str, Any]]:
    """The rows in an order, rows with equal keys as they were."""

    def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
        for key in keys:
            found = _compare(value_at(one, key.column), value_at(other, key.column), key.ascending, key.nulls_first)
            if found:
                return found
        return 0

    return sorted(rows, key=functools.cmp_to_key(compare))


def shown_keys(rows: list[dict[str, Any]], keys: list[Key]) -> list[tuple[Any, ...]]:
    """The keys of rows: what an order fixes, where some have equal ones."""
    return [tuple(value_at(row, key.column) for key in keys) for row in rows]


def _compare(one: Any, other: Any, ascending: bool, nulls_first: bool) -> int:
    if one is None or other is None:
        return ((one is None) - (other is None)) * (-1 if nulls_first else 1)
    if isinstance(one, dict):
        for name in one:
            found = _compare(one[name], other[name], ascending, nulls_first)
            if found:
                return found
        return 0
    if isinstance(one, (list, tuple)):
        for left, right in zip(one, other, strict=False):
            found = _compare(left, right, ascending, nulls_first)
            if found:
                return found
        one, other = len(one), len(other)
    else:
        one, other = _comparable(one), _comparable(other)
    return ((one > other) - (one < other)) * (1 if ascending else -1)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        # The total order of IEEE 754: by its bits, turned round below zero.
        (bits,) = struct.unpack(">q", struct.pack(">d", value))
        return bits ^ 0x7FFF_FFFF_FFFF_FFFF if bits < 0 else bits
    return value.encode() if isinstance(value, str) else value
