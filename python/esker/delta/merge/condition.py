"""The condition of a merge: equalities by which rows are looked up, and the rest, which is asked of the pairs found."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..read.sql_names import columns_in_backticks, in_own_words
from ..write.conformed_values import is_text
from .joined import JoinedColumns, JoinedExpression
from .sql_parts import conjuncts, sides


@dataclass(frozen=True)
class JoinKey:
    """An equality of the two sides.

    Args:
        target: Its side of the table.
        source: Its side of the source.
        kind: The type that both are compared in.
        column: The table's column, if its side is a column as it is.
        source_column: The source's column, if its side is a column as it is.
    """

    target: JoinedExpression
    source: JoinedExpression
    kind: pa.DataType
    column: str | None
    source_column: str | None

    @property
    def is_same(self) -> bool:
        """Whether both columns have the same value where the key is equal, bit for bit."""
        kinds = {self.target.type, self.source.type, self.kind}
        return len(kinds) == 1 and not pa.types.is_floating(self.kind)

    def target_values(self, batch: pa.RecordBatch) -> pa.Array:
        """Its values in rows of the table."""
        known = _as_it_is(batch, self.column, self.kind)
        return known if known is not None else self.target.evaluate(batch.num_rows, target=batch, kind=self.kind)

    def source_values(self, batch: pa.RecordBatch) -> pa.Array:
        """Its values in rows of the source."""
        known = _as_it_is(batch, self.source_column, self.kind)
        return known if known is not None else self.source.evaluate(batch.num_rows, source=batch, kind=self.kind)


@dataclass(frozen=True)
class JoinCondition:
    """When a row of the source matches one of the table.

    Args:
        keys: All of them are equal.
        rest: And this is true; None if there is nothing else.
        target_only: What it says of the table's columns alone, as SQL.
    """

    keys: tuple[JoinKey, ...]
    rest: JoinedExpression | None
    target_only: tuple[str, ...]

    @property
    def target(self) -> list[str]:
        """The table's columns that it reads."""
        read = [key.target for key in self.keys] + ([self.rest] if self.rest is not None else [])
        return list(dict.fromkeys(name for part in read for name in part.target))

    @property
    def source(self) -> list[str]:
        """The source's columns that it reads."""
        read = [key.source for key in self.keys] + ([self.rest] if self.rest is not None else [])
        return list(dict.fromkeys(name for part in read for name in part.source))

    def same_as(self, column: str) -> set[str]:
        """The columns of the source that have the value of a column of the table in every row that matches."""
        return {key.source_column for key in self.keys if key.column == column and key.source_column and key.is_same}

    def target_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows of the table."""
        arrays = [_key(key.target_values(batch)) for key in self.keys]
        return pa.RecordBatch.from_arrays(arrays, schema=self.key_schema)

    def source_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows of the source."""
        arrays = [_key(key.source_values(batch)) for key in self.keys]
        return pa.RecordBatch.from_arrays(arrays, schema=self.key_schema)

    @property
    def key_schema(self) -> pa.Schema:
        """The columns of keys."""
        return pa.schema([(f"key{number}", key.kind) for number, key in enumerate(self.keys)])


def join_condition(sql: str, columns: JoinedColumns) -> JoinCondition:
    """Takes a condition apart.

    Raises:
        InvalidArgumentError: It does not parse, names no column, or is no condition.

    Example:
        `join_condition("t.id = s.id AND t.day > '2024-01-01'", columns).keys[0].column`
    """
    columns.condition(sql, "the predicate of a merge")
    prepared = columns_in_backticks(sql)
    keys, rest, target_only = [], [], []
    with in_own_words(sql, prepared):
        for part in conjuncts(prepared):
            key = _join_key(part, columns)
            if key is not None:
                keys.append(key)
                continue
            rest.append(part)
            read = columns.parse(part)
            if read.target and not read.source:
                target_only.append(part)
        joined = columns.condition(" AND ".join(f"({part})" for part in rest), "the predicate") if rest else None
    return JoinCondition(tuple(keys), joined, tuple(target_only))


def _join_key(sql: str, columns: JoinedColumns) -> JoinKey | None:
    both = sides(sql)
    if both is None:
        return None
    parts = [(text, columns.parse(text)) for text in both]
    for (text, target), (other, source) in (parts, reversed(parts)):
        if target.target and not target.source and source.source and not source.target:
            kind = key_type(target.type, source.type)
            if kind is None:
                return None
            names = [
                None if pa.types.is_nested(found.type) else found.is_column(part)
                for part, found in ((text, target), (other, source))
            ]
            return JoinKey(target, source, kind, *names)
    return None


def key_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type in which values of two types are equal if SQL has them equal; None if lookups do not know.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.merge.condition import key_type
        >>> key_type(pa.int32(), pa.int64()), key_type(pa.int32(), pa.string())
        (DataType(int64), None)
    """
    types = pa.types
    pair = [_plain(kind) for kind in (one, other)]
    first, second = pair
    if all(is_text(kind) for kind in pair):
        return pa.string()
    if all(types.is_integer(kind) for kind in pair):
        return pa.decimal128(38, 0) if pa.uint64() in pair and first != second else _integer(first, second)
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in pair):
        return pa.float64()
    if all(types.is_decimal(kind) or types.is_integer(kind) for kind in pair):
        scales = [kind.scale if types.is_decimal(kind) else 0 for kind in pair]
        digits = [kind.precision - kind.scale if types.is_decimal(kind) else 20 for kind in pair]
        fits = max(digits) + max(scales) <= 38
        return pa.decimal128(max(digits) + max(scales), max(scales)) if fits else None
    if all(types.is_timestamp(kind) for kind in pair):
        if (first.tz is None) != (second.tz is None):
            return None
        unit = "ns" if "ns" in (first.unit, second.unit) else "us"
        return pa.timestamp(unit, None if first.tz is None else "UTC")
    if first == second and not types.is_null(first) and not types.is_nested(first):
        return first
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def _integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return one if one == other else pa.int64()


def _as_it_is(batch: pa.RecordBatch, column: str | None, kind: pa.DataType) -> pa.Array | None:
    """The values of a column that is a key without any change, None if something happens to them."""
    if column is None or batch.schema.field(column).type != kind or pa.types.is_timestamp(kind):
        return None
    return batch.column(column)


def _key(values: pa.Array) -> pa.Array:
    """Values of which equal ones have the same bits."""
    if not pa.types.is_floating(values.type):
        return values
    nan = pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0.0, values.type)))
