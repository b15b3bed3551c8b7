"""Random tables: types in each other, nullable or not at each level, with values that hide below null structs."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa

TEXTS = ["", "a", "b", "x'y", "é", "long " * 12]
NUMBERS = [-1, 0, 1, 2, 3, 5, 100]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0]
PLAIN = [
    *(pa.int64(), pa.int64(), pa.int32(), pa.int8(), pa.uint8(), pa.uint64(), pa.string(), pa.string(), pa.bool_()),
    *(
        pa.float64(),
        pa.float32(),
        pa.binary(),
        pa.large_string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("s", "UTC"),
    ),
    *(pa.decimal128(10, 2), pa.binary(3), pa.duration("ms"), pa.time64("us")),
]
OTHERS = [pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string()), pa.uuid(), pa.float16()]
LEGACY = [pa.int64(), pa.int32(), pa.uint8(), pa.string(), pa.float64(), pa.binary(), pa.date32(), pa.bool_()]


class RandomRows:
    """Random schemas and values, the same for the same seed.

    Args:
        seed: Where they come from.
        version: The file version, which limits what there may be: 2.0 knows no null structs, 0.1 hardly any nulls.
    """

    def __init__(self, seed: int | str, version: str) -> None:
        self.random = random.Random(seed)
        self.version = version
        self.nulls = version != "0.1"
        self.null_structs = version not in ("0.1", "2.0")

    def schema(self, columns: int) -> pa.Schema:
        """A schema whose first column is `k`, a key that may be null."""
        key = self.random.choice([pa.int64(), pa.int64(), pa.int32(), pa.string(), pa.timestamp("us"), pa.float64()])
        fields = [pa.field("k", pa.int64() if self.version == "0.1" else key)]
        fields += [self.field(f"c{n}", 2) for n in range(columns)]
        return pa.schema(fields)

    def field(self, name: str, depth: int) -> pa.Field:
        """A field of any type."""
        return pa.field(name, self.type(depth), nullable=self.random.random() < 0.7 or not self.nulls)

    def new_field(self, name: str) -> pa.Field:
        """A field that may be null in rows that are there already."""
        type_ = self.type(1)
        while pa.types.is_struct(type_) and not self.null_structs:
            type_ = self.type(1)
        return pa.field(name, type_)

    def type(self, depth: int) -> pa.DataType:
        """A type of at most `depth` levels of nesting."""
        drawn = self.random.random()
        if self.version == "0.1":
            return self.random.choice(LEGACY)
        if depth == 0 or drawn < 0.55:
            return self.random.choice(PLAIN if self.random.random() < 0.8 else OTHERS)
        if drawn < 0.85:
            return pa.struct([self.field(f"f{n}", depth - 1) for n in range(self.random.randint(1, 3))])
        # Items of lists are nullable: pylance reads no others back as they were.
        item = pa.field("item", self.type(depth - 1))
        if drawn < 0.95 or not pa.types.is_primitive(item.type) or pa.types.is_boolean(item.type):
            return pa.list_(item)
        return pa.list_(pa.field("item", self.random.choice([pa.float32(), pa.int8()])), 2)

    def value(self, field: pa.Field) -> Any:
        """A value, null where it may be and chance has it."""
        may_be_null = self.nulls and (self.null_structs or not pa.types.is_struct(field.type))
        if field.nullable and may_be_null and self.random.random() < 0.2:
            return None
        return self.some(field.type)

    def some(self, type_: pa.DataType) -> Any:
        """A value that is not null."""
        choose = self.random.choice
        if isinstance(type_, pa.BaseExtensionType):
            return bytes([choose(range(4))]) * 16
        if pa.types.is_struct(type_):
            return {field.name: self.value(field) for field in type_}
        if pa.types.is_fixed_size_list(type_):
            return [self.some(type_.value_type) for _ in range(type_.list_size)]
        if pa.types.is_list(type_):
            return [self.value(type_.value_field) for _ in range(choose([0, 1, 1, 2, 3]))]
        if pa.types.is_dictionary(type_):
            return choose(TEXTS)
        if pa.types.is_boolean(type_):
            return choose([True, False])
        if pa.types.is_unsigned_integer(type_):
            return choose([0, 1, 2, 3, 2**type_.bit_width - 1])
        if pa.types.is_integer(type_):
            return choose([*NUMBERS, 2 ** (type_.bit_width - 1) - 1, -(2 ** (type_.bit_width - 1))])
        if pa.types.is_floating(type_):
            return choose(FLOATS)
        if pa.types.is_decimal(type_):
            return decimal.Decimal(choose(NUMBERS)) / 4
        if pa.types.is_date(type_):
            return datetime.date(2020, 1, choose(range(1, 6)))
        if pa.types.is_timestamp(type_):
            return datetime.datetime(2020, 1, 1, 0, 0, choose(range(5)))
        if pa.types.is_time(type_):
            return datetime.time(1, choose(range(5)))
        if pa.types.is_duration(type_):
            return datetime.timedelta(milliseconds=choose(NUMBERS))
        if pa.types.is_fixed_size_binary(type_):
            return choose([b"abc", b"\0\0\0", b"xyz"])
        # Files of version 0.1 read "" back as null.
        text = choose(TEXTS if self.nulls else TEXTS[1:])
        return text.encode() if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else text

    def key(self, type_: pa.DataType, most: int) -> Any:
        """A value of a key column: few of them, so that keys meet."""
        if self.nulls and self.random.random() < 0.05:
            return None
        number = self.random.randrange(most)
        if pa.types.is_integer(type_):
            return number
        if pa.types.is_floating(type_):
            return [-0.0, 0.0, float("nan")][number] if number < 3 else number / 2
        if pa.types.is_timestamp(type_):
            return datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=number)
        return f"key {number}"

    def rows(self, schema: pa.Schema, count: int, *, distinct: bool = False, most: int = 24) -> pa.Table:
        """Rows of a schema; with `distinct` keys that are not null come once."""
        rows: list[dict[str, Any]] = []
        seen = set()
        for _ in range(count):
            row = {f.name: self.key(f.type, most) if f.name == "k" else self.value(f) for f in schema}
            if distinct and row.get("k") is not None and repr(row["k"]) in seen:
                continue
            seen.add(repr(row.get("k")))
            rows.append(row)
        arrays = [self.array([row[f.name] for row in rows], f) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def array(self, values: list[Any], field: pa.Field) -> pa.Array:
        """The values as an array, with others below null structs."""
        type_ = field.type
        if isinstance(type_, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
        if pa.types.is_struct(type_):
            hidden = [self.some(type_) if value is None else value for value in values]
            children = [self.array([value[child.name] for value in hidden], child) for child in type_]
            mask = pa.array([value is None for value in values], pa.bool_())
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
        if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
            return self._lists(values, type_)
        return pa.array(values, type_)

    def _lists(self, values: list[Any], type_: pa.DataType) -> pa.Array:
        mask = pa.array([value is None for value in values], pa.bool_())
        if pa.types.is_fixed_size_list(type_):
            items = [item for value in values for item in (value or [0] * type_.list_size)]
            return pa.FixedSizeListArray.from_arrays(pa.array(items, type_.value_type), type=type_, mask=mask)
        items = self.array([item for value in values for item in (value or [])], type_.value_field)
        offsets = [0]
        for value in values:
            offsets.append(offsets[-1] + len(value or []))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=type_, mask=mask)
