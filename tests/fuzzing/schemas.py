"""Random schemas, and tables of them: types in each other, nullable or not at each level, with values that meet again.

Few different values, so that filters match, keys are equal and dictionaries repeat.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from typing import Any

import numpy as np
import pyarrow as pa

VERSIONS = ("0.1", "2.0", "2.1", "2.2")
"""Those of data files."""

LEAVES: list[pa.DataType] = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")),
    *(pa.duration("s"), pa.duration("us"), pa.decimal128(9, 2), pa.decimal256(40, 3)),
]
DICTIONARIES = [
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint16(), pa.large_string()),
    pa.dictionary(pa.int32(), pa.string()),
]
VIEWS = [pa.string_view(), pa.binary_view()]
"""Given to a write, which stores them as the types of the same values."""
_ITEMS = [pa.int32(), pa.float32(), pa.float64(), pa.int8(), pa.bool_()]
_WORDS = ["", "a", "ab", "b", "B", "zz", "é", "漢", "a longer text than the others", "100%", "it's"]
_EPOCH = dt.datetime(1970, 1, 1)


def random_type(rng: random.Random, version: str, depth: int) -> pa.DataType:
    """A type of at most `depth` levels below it that files of `version` hold."""
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        if rng.random() < 0.12 and version != "0.1":
            return rng.choice(DICTIONARIES)
        return rng.choice(LEAVES)
    if kind < 0.72:
        fields = [random_field(rng, name, version, depth - 1) for name in "xyz"[: rng.randint(1, 3)]]
        return pa.struct(fields)
    if kind < 0.86 and version != "0.1":
        make = pa.list_ if rng.random() < 0.7 else pa.large_list
        return make(random_field(rng, "item", version, depth - 1))
    if kind < 0.94 or version != "2.2":
        return pa.list_(rng.choice(_ITEMS), rng.randint(1, 4))
    return pa.map_(pa.string(), random_type(rng, version, 0))


def random_field(rng: random.Random, name: str, version: str, depth: int) -> pa.Field:
    """A field of such a type, nullable or not. Files of version 0.1 hold hardly any null."""
    return pa.field(name, random_type(rng, version, depth), nullable=version != "0.1" and rng.random() < 0.7)


def random_schema(rng: random.Random, version: str, *, columns: int = 4, depth: int = 2) -> pa.Schema:
    """Columns `id` (int64, unique in the tables below), `c0`, `c1`, ...; one of these may be a view or an extension."""
    fields = [random_field(rng, f"c{number}", version, depth) for number in range(columns)]
    if fields and rng.random() < 0.15:
        fields[0] = fields[0].with_type(rng.choice([*VIEWS, pa.uuid()]))
    return pa.schema([pa.field("id", pa.int64(), nullable=False), *fields])


def random_table(rng: random.Random, schema: pa.Schema, rows: int, version: str, *, first_id: int = 0) -> pa.Table:
    """Rows of a schema, with ids from `first_id` on in some order."""
    ids = list(range(first_id, first_id + rows))
    rng.shuffle(ids)
    columns = [pa.array(ids, pa.int64())]
    for field in list(schema)[1:]:
        few = rng.random() < 0.3
        pool = [draw(rng, field, version) for _ in range(3 if few else rows)]
        columns.append(build([rng.choice(pool) if few else pool[row] for row in range(rows)], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def draw(rng: random.Random, field: pa.Field, version: str) -> Any:
    """A value of a field, None at times where it may be."""
    # Files of version 2.0 have no null structs.
    may_be_null = field.nullable and not (version == "2.0" and pa.types.is_struct(field.type))
    return None if may_be_null and rng.random() < 0.25 else _value(rng, field.type, version)


def build(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """Values as an array, of an extension type too."""
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, pa.array(values, data_type.storage_type))
    return pa.array(values, data_type)


def _value(rng: random.Random, data_type: pa.DataType, version: str) -> Any:
    if isinstance(data_type, pa.BaseExtensionType):
        return uuid.UUID(int=rng.randrange(3)).bytes
    if pa.types.is_struct(data_type):
        return {field.name: draw(rng, field, version) for field in data_type}
    if pa.types.is_fixed_size_list(data_type):
        return [_value(rng, data_type.value_type, version) for _ in range(data_type.list_size)]
    if pa.types.is_map(data_type):
        keys = rng.sample(_WORDS, rng.randint(0, 3))
        return [(key, draw(rng, data_type.item_field, version)) for key in keys]
    if pa.types.is_nested(data_type):
        return [draw(rng, data_type.value_field, version) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return _leaf(rng, data_type.value_type if pa.types.is_dictionary(data_type) else data_type)


def _leaf(rng: random.Random, data_type: pa.DataType) -> Any:
    if pa.types.is_integer(data_type):
        bits, signed = data_type.bit_width, pa.types.is_signed_integer(data_type)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return rng.choice([low, high, 0, 1, 2, 3, 7, rng.randint(low, high)])
    if pa.types.is_floating(data_type):
        number = rng.choice([0.0, -0.0, 1.5, 1.5, -2.25, 3.0, float("inf"), float("-inf"), float("nan")])
        return np.float16(number) if data_type.bit_width == 16 else number
    if pa.types.is_boolean(data_type):
        return rng.random() < 0.5
    if pa.types.is_decimal(data_type):
        return decimal.Decimal(rng.choice([0, 1, -1, 250, rng.randint(-99_999, 99_999)])).scaleb(-data_type.scale)
    if pa.types.is_fixed_size_binary(data_type):
        return rng.choice([b"abc", b"\0\0\0", b"\xff\xfe\xfd", rng.randbytes(3)])
    if _is_text(data_type):
        return rng.choice(_WORDS)
    if pa.types.is_temporal(data_type):
        return _moment(rng, data_type)
    return rng.choice(_WORDS).encode() + rng.choice([b"", b"\0", b"\xff"])


def _is_text(data_type: pa.DataType) -> bool:
    return any(test(data_type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _moment(rng: random.Random, data_type: pa.DataType) -> Any:
    seconds = rng.choice([0, 1, 86_399, 5 * 86_400, rng.randint(-(10**8), 10**9)])
    if pa.types.is_duration(data_type):
        return dt.timedelta(seconds=seconds)
    moment = _EPOCH + dt.timedelta(seconds=seconds)
    if pa.types.is_date(data_type):
        return moment.date()
    if pa.types.is_time(data_type):
        return moment.time()
    return moment.replace(tzinfo=dt.UTC) if data_type.tz else moment
