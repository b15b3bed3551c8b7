"""Columns of every type that a file of version 2.0 holds, with and without nulls, for tests of all topics."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa

Draw = Callable[[random.Random], object]

_EPOCH = dt.datetime(1970, 1, 1)


def _text(rng: random.Random) -> str:
    return "".join(rng.choices("abcxyzäß漢😀 ", k=rng.randint(0, 12)))


def _bytes(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randint(0, 9))


def _integer(bits: int, *, signed: bool) -> Draw:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return lambda rng: rng.choice([low, high, 0, rng.randint(low, high)])


def _moment(rng: random.Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(seconds=rng.randint(-(10**9), 2 * 10**9))


def _decimal(precision: int, scale: int) -> Draw:
    limit = 10**precision - 1
    return lambda rng: decimal.Decimal(rng.randint(-limit, limit)).scaleb(-scale, decimal.Context(prec=80))


def _listed(draw: Draw, most: int = 4) -> Draw:
    return lambda rng: [draw(rng) for _ in range(rng.randint(0, most))]


def _float(rng: random.Random) -> float:
    return rng.choice([0.0, -0.0, 1.5, -2.25, float("inf"), float(rng.randint(-999, 999))])


TYPES: dict[str, tuple[pa.DataType, Draw]] = {
    "int8": (pa.int8(), _integer(8, signed=True)),
    "int16": (pa.int16(), _integer(16, signed=True)),
    "int32": (pa.int32(), _integer(32, signed=True)),
    "int64": (pa.int64(), _integer(64, signed=True)),
    "uint8": (pa.uint8(), _integer(8, signed=False)),
    "uint16": (pa.uint16(), _integer(16, signed=False)),
    "uint32": (pa.uint32(), _integer(32, signed=False)),
    "uint64": (pa.uint64(), _integer(64, signed=False)),
    "float16": (pa.float16(), lambda rng: np.float16(_float(rng))),
    "float32": (pa.float32(), _float),
    "float64": (pa.float64(), _float),
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "utf8": (pa.string(), _text),
    "large_utf8": (pa.large_string(), _text),
    "binary": (pa.binary(), _bytes),
    "large_binary": (pa.large_binary(), _bytes),
    "fixed_size_binary": (pa.binary(5), lambda rng: rng.randbytes(5)),
    "date32": (pa.date32(), lambda rng: _moment(rng).date()),
    "date64": (pa.date64(), lambda rng: _moment(rng).date()),
    "time32_s": (pa.time32("s"), lambda rng: _moment(rng).time()),
    "time32_ms": (pa.time32("ms"), lambda rng: _moment(rng).time()),
    "time64_us": (pa.time64("us"), lambda rng: _moment(rng).time()),
    "time64_ns": (pa.time64("ns"), lambda rng: _moment(rng).time()),
    "timestamp_s": (pa.timestamp("s"), _moment),
    "timestamp_ms": (pa.timestamp("ms"), _moment),
    "timestamp_us": (pa.timestamp("us"), _moment),
    "timestamp_ns": (pa.timestamp("ns"), _moment),
    "timestamp_utc": (pa.timestamp("us", "UTC"), lambda rng: _moment(rng).replace(tzinfo=dt.UTC)),
    "duration_s": (pa.duration("s"), lambda rng: dt.timedelta(seconds=rng.randint(-99, 99))),
    "duration_us": (pa.duration("us"), lambda rng: dt.timedelta(microseconds=rng.randint(-99, 99))),
    "decimal128": (pa.decimal128(20, 4), _decimal(20, 4)),
    "decimal256": (pa.decimal256(60, 7), _decimal(60, 7)),
    "vector": (pa.list_(pa.float32(), 6), lambda rng: [_float(rng) for _ in range(6)]),
    "int8_vector": (pa.list_(pa.int8(), 3), lambda rng: [rng.randint(-128, 127) for _ in range(3)]),
    "list_int": (pa.list_(pa.int32()), _listed(_integer(32, signed=True))),
    "list_utf8": (pa.list_(pa.string()), _listed(_text)),
    "large_list_int": (pa.large_list(pa.int64()), _listed(_integer(64, signed=True))),
    "list_list": (pa.list_(pa.list_(pa.int16())), _listed(_listed(_integer(16, signed=True)))),
}
"""Types by name, with what draws one value of each. A struct is not among them: 2.0 cannot hold a null one."""

PLACE = pa.struct([("city", pa.string()), ("zip", pa.int64())])
STRUCT = pa.struct([("x", pa.int32()), ("name", pa.string()), ("inner", pa.struct([("flag", pa.bool_())]))])


# What a fixed_size_list of version 2.0 may hold.
_FIXED = ["int8", "uint16", "int32", "float32", "float64", "bool", "fixed_size_binary", "date32", "decimal128"]


def nested_type(rng: random.Random, depth: int, *, nulls: float) -> tuple[pa.DataType, Draw]:
    """A random type of lists, structs and vectors in each other, with what draws a value of it."""
    kind = rng.choice(["leaf", "list", "large_list", "struct", "vector"]) if depth else "leaf"

    def maybe(draw: Draw) -> Draw:
        return lambda r: None if r.random() < nulls else draw(r)

    if kind == "leaf":
        return TYPES[rng.choice([name for name in TYPES if "list" not in name])]
    if kind == "vector":
        inner, draw = TYPES[rng.choice(_FIXED)]
        size = rng.randint(1, 5)
        return pa.list_(inner, size), lambda r: [maybe(draw)(r) for _ in range(size)]
    if kind == "struct":
        parts = [nested_type(rng, depth - 1, nulls=nulls) for _ in range(rng.randint(1, 3))]
        fields = [pa.field(f"f{i}", part[0]) for i, part in enumerate(parts)]
        # Version 2.0 has no null structs: a part that is one is never null.
        draws = [part[1] if pa.types.is_struct(part[0]) else maybe(part[1]) for part in parts]
        return pa.struct(fields), lambda r: {f"f{i}": draw(r) for i, draw in enumerate(draws)}
    inner, draw = nested_type(rng, depth - 1, nulls=nulls)
    item = draw if pa.types.is_struct(inner) else maybe(draw)
    return (pa.list_ if kind == "list" else pa.large_list)(inner), _listed(item)


def nested_column(length: int, *, nulls: float, seed: int) -> pa.Array:
    """Values of a random nested type."""
    rng = random.Random(seed)
    type_, draw = nested_type(rng, 3, nulls=nulls)
    nullable = not pa.types.is_struct(type_)
    return pa.array([None if nullable and rng.random() < nulls else draw(rng) for _ in range(length)], type_)


def column(name: str, length: int, *, nulls: float = 0.0, seed: int = 7) -> pa.Array:
    """Values of one of `TYPES`, each null with the probability `nulls`."""
    rng = random.Random(f"{name}-{seed}")
    type_, draw = TYPES[name]
    return pa.array([None if rng.random() < nulls else draw(rng) for _ in range(length)], type_)


def struct_column(length: int, *, nulls: float = 0.0, seed: int = 7) -> pa.Array:
    """Structs whose fields may be null; the structs themselves are not."""
    rng = random.Random(seed)

    def value(draw: Draw) -> object:
        return None if rng.random() < nulls else draw(rng)

    rows = [
        {
            "x": value(_integer(32, signed=True)),
            "name": value(_text),
            "inner": {"flag": value(lambda r: r.random() < 0.5)},
        }
        for _ in range(length)
    ]
    return pa.array(rows, STRUCT)


def people(rows: int = 1000, *, start: int = 0) -> pa.Table:
    """A plain table: a unique id, numbers and texts with nulls, a vector, a struct, a list."""
    numbers = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "score": pa.array([None if i % 7 == 0 else i / 4 for i in numbers], pa.float64()),
            "name": pa.array([None if i % 11 == 0 else f"name-{i % 97}" for i in numbers], pa.string()),
            "vector": pa.array([[float(i), float(-i), 0.5] for i in numbers], pa.list_(pa.float32(), 3)),
            "place": pa.array([{"city": f"c{i % 5}", "zip": i % 100} for i in numbers], PLACE),
            "tags": pa.array([["t"] * (i % 4) for i in numbers], pa.list_(pa.string())),
        }
    )


def same(left: pa.Table, right: pa.Table) -> None:
    """Asserts that two tables have the same columns, types, nullability, metadata, nulls and values."""
    assert left.schema.equals(right.schema, check_metadata=True), f"{left.schema}\n!=\n{right.schema}"
    assert left.num_rows == right.num_rows
    for name in left.column_names:
        expected, found = left[name].combine_chunks(), right[name].combine_chunks()
        # A dictionary may say null by its index or by its value: that is not a difference of rows.
        assert expected.null_count == found.null_count or pa.types.is_dictionary(found.type), name
        if not expected.equals(found):
            assert expected.to_pylist() == found.to_pylist(), name
