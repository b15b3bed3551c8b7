"""Random columns and rows of Delta tables, in every Arrow type that a caller may give them in."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC
PLAIN: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
}
PARTITIONS = ["integer", "long", "boolean", "string", "date", "timestamp", "timestamp_ntz", "decimal(9,2)"]
TEXTS = ["", "a", "b", "ab", "it's", "é", "x/y=z%", "A", "zz", "a" * 40]
FORMS: dict[str, list[pa.DataType]] = {
    "string": [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    "binary": [pa.large_binary(), pa.binary_view()],
    "timestamp": [pa.timestamp("us", "America/New_York"), pa.timestamp("ns", "UTC")],
    "timestamp_ntz": [pa.timestamp("ns")],
    "long": [pa.int32(), pa.int8()],
    "decimal(38,10)": [pa.decimal128(20, 10)],
}
"""Arrow types in which the values of a column may be given as well."""


@dataclass(frozen=True)
class Column:
    """A column: its type in the protocol if it has a plain one, and in Arrow."""

    name: str
    plain: str | None
    arrow: pa.DataType


class RandomRows:
    """A source of columns and rows, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._next_id = 0

    def columns(self) -> tuple[list[Column], list[str]]:
        """The columns of a table, `id` first, and by which of them it is partitioned."""
        found = [Column("id", "long", pa.int64())]
        partitions = []
        for number in range(self.random.choice([0, 0, 1, 1, 2])):
            kind = self.random.choice(PARTITIONS)
            found.append(Column(f"p{number}", kind, PLAIN[kind]))
            partitions.append(f"p{number}")
        for number in range(self.random.randint(1, 5)):
            found.append(self.column(f"c {number}" if self.random.random() < 0.2 else f"c{number}"))
        return found, partitions

    def column(self, name: str) -> Column:
        """A column, nested in one of three."""
        if self.random.random() < 0.3:
            return Column(name, None, self._nested(2))
        kind = self.random.choice(list(PLAIN))
        return Column(name, kind, PLAIN[kind])

    def _nested(self, depth: int) -> pa.DataType:
        if depth == 0:
            return PLAIN[self.random.choice(list(PLAIN))]
        inner = self._nested(depth - 1)
        kind = self.random.random()
        if kind < 0.4:
            return pa.struct([("a", inner), ("b", self._nested(0))])
        if kind < 0.75:
            return pa.list_(pa.field("element", inner))
        return pa.map_(pa.string(), pa.field("value", inner))

    def rows(self, columns: list[Column]) -> list[dict[str, Any]]:
        """A few rows; each has an `id` of its own."""
        found = []
        for _ in range(self.random.choice([0, 1, 2, 5, 9])):
            row = {column.name: self.value(column.arrow) for column in columns}
            row["id"] = self._next_id
            self._next_id += 1
            found.append(row)
        return found

    def value(self, kind: pa.DataType, nulls: float = 0.2) -> Any:
        """A value of a type, out of few, so that rows are alike."""
        draw, types = self.random, pa.types
        if draw.random() < nulls:
            return None
        if types.is_struct(kind):
            return {kind.field(i).name: self.value(kind.field(i).type) for i in range(kind.num_fields)}
        if types.is_list(kind):
            return [self.value(kind.value_type) for _ in range(draw.randint(0, 3))]
        if types.is_map(kind):
            return [(key, self.value(kind.item_type)) for key in draw.sample(["k", "l", "m"], draw.randint(0, 2))]
        if types.is_boolean(kind):
            return draw.random() < 0.5
        if types.is_integer(kind):
            most = 2 ** (kind.bit_width - 1)
            return draw.choice([0, 1, 2, 3, -1, draw.randint(-100, 100), most - 1, -most])
        if types.is_floating(kind):
            return draw.choice([0.0, 1.5, -2.25, 3.0, 2.0**100, math.inf, -math.inf, math.nan])
        if types.is_string(kind):
            return draw.choice(TEXTS)
        if types.is_binary(kind):
            return draw.choice([b"", b"\x00", b"a", b"\xff\xfe", b"long" * 12])
        if types.is_date(kind):
            return draw.choice([dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)])
        if types.is_timestamp(kind):
            moment = draw.choice(
                [
                    dt.datetime(1970, 1, 1),
                    dt.datetime(2024, 3, 10, 2, 30, 0, 123456),
                    dt.datetime(2024, 3, 10, 2, 30, 1),
                    dt.datetime(1900, 1, 1, 0, 0, 0, 1),
                ]
            )
            return moment if kind.tz is None else moment.replace(tzinfo=UTC)
        scale = Decimal(1).scaleb(-kind.scale)
        return (Decimal(draw.choice([0, 1, -1, 150, -150, 9_999_999])) * scale).quantize(scale)

    def table(self, columns: list[Column], rows: list[dict[str, Any]], *, is_new: bool, forms: bool) -> pa.Table:
        """The rows in Arrow, columns in any of the types that they may be given in."""
        arrays = []
        for column in columns:
            values = pa.array([row[column.name] for row in rows], column.arrow)
            given = FORMS.get(column.plain or "", [])
            if is_new:
                # A narrower type would make a narrower column.
                given = [kind for kind in given if not pa.types.is_integer(kind) and not pa.types.is_decimal(kind)]
            if forms and given and self.random.random() < 0.4:
                values = _in_form(values, self.random.choice(given))
            arrays.append(values)
        return pa.table(arrays, names=[column.name for column in columns])


def _in_form(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else values.cast(kind)
    except pa.ArrowInvalid:
        # Not all values fit into a narrower type.
        return values


def plainly(value: Any) -> Any:
    """A value in a form that compares: NaN is NaN, a time is of UTC."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dt.datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo is not None else value.isoformat()
    if isinstance(value, dict):
        return {key: plainly(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plainly(inner) for inner in value]
    return value
