"""The cells of the version matrix: every leaf type, with some nulls, in every shape, as small columns made fast."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tests.samples import TYPES, column

ROWS = 1500
_POOL = 400


def _dictionary(index: pa.DataType, values: pa.DataType) -> Callable[[], pa.Array]:
    def make() -> pa.Array:
        items = pa.array(["", "a", "bb", "a longer item"]).cast(values)
        indices = pa.array([i % 4 for i in range(_POOL)], pa.int64()).cast(index)
        return pa.DictionaryArray.from_arrays(indices, items)

    return make


def _texts(words: int, length: int) -> Callable[[], pa.Array]:
    rng = random.Random(words)
    some = ["".join(rng.choice("abcdefgh ") for _ in range(length)) for _ in range(words)]
    return lambda: pa.array([some[i % words] for i in range(_POOL)])


def _maps() -> pa.Array:
    rows = [[(f"k{j}", None if j % 3 == 2 else i + j) for j in range(i % 4)] for i in range(_POOL)]
    return pa.array(rows, pa.map_(pa.string(), pa.int32()))


def _wide() -> pa.Array:
    numbers = np.random.default_rng(1).standard_normal(_POOL * 128).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), 128)


LEAVES: dict[str, Callable[[], pa.Array]] = {
    **{name: functools.partial(column, name, _POOL) for name in TYPES if "list" not in name},
    "null": lambda: pa.nulls(_POOL),
    "duration_ms": lambda: pa.array(range(_POOL), pa.duration("ms")),
    "duration_ns": lambda: pa.array(range(_POOL), pa.duration("ns")),
    "timestamp_zone": lambda: pa.array(range(_POOL), pa.timestamp("ms", "Europe/Paris")),
    "dictionary_i8": _dictionary(pa.int8(), pa.string()),
    "dictionary_u16_large": _dictionary(pa.uint16(), pa.large_string()),
    "dictionary_i32": _dictionary(pa.int32(), pa.string()),
    "dictionary_i64_binary": _dictionary(pa.int64(), pa.binary()),
    "dictionary_u64": _dictionary(pa.uint64(), pa.string()),
    "map": _maps,
    "empty_struct": lambda: pa.array([{}] * _POOL, pa.struct([])),
    # The same types with values that earn other encodings.
    "utf8_few": _texts(5, 9),
    "utf8_wide": _texts(_POOL, 600),
    "utf8_alike": _texts(_POOL, 60),
    "large_binary_wide": lambda: _texts(_POOL, 300)().cast(pa.large_binary()),
    "int64_constant": lambda: pa.array([7] * _POOL, pa.int64()),
    "int32_small": lambda: pa.array([i % 13 for i in range(_POOL)], pa.int32()),
    "uint64_few": lambda: pa.array([10**18 + i % 3 for i in range(_POOL)], pa.uint64()),
    "bool_constant": lambda: pa.array([True] * _POOL),
    "utf8_constant": lambda: pa.array(["same"] * _POOL),
    "vector_wide": _wide,
}
"""Values of each leaf type, none of them null but those of type null."""

SHAPES = ("flat", "list", "struct", "list_struct", "fixed", "list_list")
NULLS = ("none", "some", "all")


@functools.cache
def pool(name: str) -> pa.Array:
    """The values that columns of a leaf type are drawn from."""
    return LEAVES[name]()


def _mask(rng: np.random.Generator, size: int, nulls: str) -> np.ndarray:
    share = {"none": 0.0, "some": 0.3, "all": 1.0}[nulls]
    return rng.random(size) < share


def leaf(name: str, size: int, nulls: str, rng: np.random.Generator) -> pa.Array:
    """Some values of a type. Runs of one value appear among them, as in real columns."""
    values = pool(name)
    indices = np.repeat(rng.integers(0, len(values), size // 3 + 1), 3)[:size]
    if name.endswith("alike") or size % 2:
        indices = rng.integers(0, len(values), size)
    mask = _mask(rng, size, nulls)
    if pa.types.is_null(values.type):
        return pa.nulls(size)
    if pa.types.is_dictionary(values.type):
        inner = values.indices.take(pa.array(indices, mask=mask))
        return pa.DictionaryArray.from_arrays(inner, values.dictionary)
    return values.take(pa.array(indices, mask=mask))


def _lists(make: Callable[[int], pa.Array], rows: int, nulls: str, rng: np.random.Generator) -> pa.Array:
    sizes = rng.integers(0, 4, rows)
    mask = _mask(rng, rows, nulls)
    sizes[mask] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), make(int(offsets[-1])), mask=pa.array(mask))


def _struct(name: str, rows: int, nulls: str, rng: np.random.Generator, *, null_structs: bool) -> pa.Array:
    children = [leaf(name, rows, nulls, rng), leaf("int32", rows, nulls, rng)]
    fields = [pa.field("x", children[0].type), pa.field("n", pa.int32())]
    mask = pa.array(_mask(rng, rows, nulls)) if null_structs else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def shaped(name: str, shape: str, nulls: str, *, rows: int = ROWS, null_structs: bool = True) -> pa.Array:
    """A column of a leaf type in a shape, with no, some or only nulls at every level.

    Args:
        name: The leaf type, of `LEAVES`.
        shape: One of `SHAPES`.
        nulls: One of `NULLS`.
        rows: Its length.
        null_structs: Whether structs may be null: version 2.0 has no null structs.
    """
    rng = np.random.default_rng(zlib.crc32(f"{name} {shape} {nulls} {rows}".encode()))
    struct = functools.partial(_struct, name, nulls=nulls, rng=rng, null_structs=null_structs)
    # Where everything is null at the top, what lies below would never be looked at: nulls stand one level further in.
    outer = "some" if nulls == "all" and shape.startswith("list") else nulls
    match shape:
        case "flat":
            return leaf(name, rows, nulls, rng)
        case "struct":
            return struct(rows)
        case "list":
            return _lists(lambda n: leaf(name, n, nulls, rng), rows, outer, rng)
        case "list_struct":
            return _lists(struct, rows, outer, rng)
        case "fixed":
            mask = pa.array(_mask(rng, rows, nulls))
            return pa.FixedSizeListArray.from_arrays(leaf(name, rows * 3, nulls, rng), 3, mask=mask)
        case _:
            inner = functools.partial(_lists, lambda n: leaf(name, n, nulls, rng), nulls=outer, rng=rng)
            return _lists(lambda n: inner(n), rows, outer, rng)
