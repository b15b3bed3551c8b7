"""The inputs: seven tables, made from a seed, so that two runs with the same arguments compare the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

KEYS = 1_000_000
"""The column ``key`` of every table is uniform in [0, KEYS) and unsorted: no statistics can skip a part of the file.
The column ``id`` counts the rows."""

WIDTH = 4000
"""Columns of the table "wide"."""

SIZES = {"tiny": 20_000, "small": 1_000_000, "medium": 4_000_000, "large": 20_000_000}
"""Rows of the table of numbers; the wider tables have fewer, see `TABLES`."""


@dataclass(frozen=True)
class Input:
    """One table to be written and read.

    Attributes:
        name: what the table is called in reports.
        about: its columns, for the report.
        table: the rows, in one contiguous chunk.
        column: the column that the one-column scan reads.
    """

    name: str
    about: str
    table: pa.Table
    column: str


def with_nulls(rng: np.random.Generator, values: pa.Array, share: float) -> pa.Array:
    """Make a share of the values null."""
    return pa.compute.if_else(pa.array(rng.random(len(values)) < share), pa.scalar(None, values.type), values)


def keys(rng: np.random.Generator, rows: int) -> pa.Array:
    """The column that filters look at."""
    return pa.array(rng.integers(0, KEYS, rows))


def strings_of(words: pa.Array, counts: np.ndarray[tuple[int], np.dtype[np.int64]], picks: pa.Array) -> pa.Array:
    """Join picked words with blanks: ``counts[i]`` words for the string ``i``."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, words.take(picks))
    return pa.compute.binary_join(lists, " ")


def vocabulary(rng: np.random.Generator, words: int) -> pa.Array:
    """Made-up words of 2 to 12 letters."""
    letters = np.frombuffer(b"eeeeeaaaaiiiooouuttttnnnssrrlldhcmpgbfvwykxz", dtype="S1")
    return pa.array([b"".join(rng.choice(letters, rng.integers(2, 13))).decode() for _ in range(words)])


def make_numbers(rng: np.random.Generator, rows: int) -> Input:
    """Integers, floats, a timestamp and a flag, some with nulls."""
    moments = 1_700_000_000_000_000 + np.cumsum(rng.integers(0, 2_000_000, rows))
    columns = {
        "key": keys(rng, rows),
        "count": with_nulls(rng, pa.array(rng.poisson(20, rows).astype(np.int32)), 0.1),
        "score": pa.array(rng.normal(size=rows)),
        "price": with_nulls(rng, pa.array(np.round(rng.lognormal(3, 1, rows), 2)), 0.05),
        "weight": pa.array(rng.random(rows, dtype=np.float32)),
        "moment": pa.array(moments, pa.timestamp("us", "UTC")),
        "flag": with_nulls(rng, pa.array(rng.random(rows) < 0.3), 0.02),
    }
    return Input("numbers", "int64, int32, float64, float32, timestamp, bool; some nulls", pa.table(columns), "score")


def make_strings(rng: np.random.Generator, rows: int) -> Input:
    """A category, a URL and a few words, with nulls."""
    words = vocabulary(rng, 5_000)
    categories = pa.array([f"category-{number:02}" for number in range(40)])
    counts = rng.integers(3, 20, rows)
    picks = pa.array(np.minimum(rng.zipf(1.3, int(counts.sum())) - 1, len(words) - 1))
    hosts = words.take(pa.array(rng.integers(0, 300, rows)))
    pages = words.take(pa.array(rng.integers(0, len(words), rows)))
    numbers = pa.array(rng.integers(0, 10_000_000, rows)).cast(pa.string())
    urls = pa.compute.binary_join_element_wise("https://", hosts, ".example.org/", pages, "/", numbers, "")
    columns = {
        "key": keys(rng, rows),
        "category": categories.take(pa.array(np.minimum(rng.geometric(0.15, rows) - 1, 39))),
        "url": urls,
        "words": with_nulls(rng, strings_of(words, counts, picks), 0.05),
    }
    return Input("strings", "a category of 40, a URL, 3 to 19 words; some nulls", pa.table(columns), "words")


def make_vectors(rng: np.random.Generator, rows: int) -> Input:
    """Embeddings of 768 float32."""
    values = pa.array(rng.standard_normal(rows * 768, dtype=np.float32))
    columns = {"key": keys(rng, rows), "vector": pa.FixedSizeListArray.from_arrays(values, 768)}
    return Input("vectors", "768 float32 a row", pa.table(columns), "vector")


def make_nested(rng: np.random.Generator, rows: int) -> Input:
    """Lists of integers and a struct."""
    lengths = rng.integers(0, 12, rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    items = pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 50_000, int(lengths.sum()))))
    fields = [
        with_nulls(rng, pa.array(rng.integers(0, 1_000, rows).astype(np.int32)), 0.05),
        pa.array(rng.normal(size=rows)),
        vocabulary(rng, 500).take(pa.array(rng.integers(0, 500, rows))),
    ]
    columns = {
        "key": keys(rng, rows),
        "items": with_nulls(rng, items, 0.03),
        "point": pa.StructArray.from_arrays(fields, names=["group", "value", "label"]),
    }
    return Input("nested", "a list of 0 to 11 int64 and a struct; some nulls", pa.table(columns), "items")


def make_blobs(rng: np.random.Generator, rows: int) -> Input:
    """Values of 100 kB that do not compress."""
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * 100_000)
    blobs = pa.Array.from_buffers(pa.large_binary(), rows, [None, offsets, pa.py_buffer(rng.bytes(rows * 100_000))])
    return Input("blobs", "100 kB of large_binary a row", pa.table({"key": keys(rng, rows), "blob": blobs}), "blob")


def make_lists(rng: np.random.Generator, rows: int) -> Input:
    """Lists of large values: up to four texts of 2 kB."""
    lengths = rng.integers(0, 5, rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    words = vocabulary(rng, 2_000)
    count = int(lengths.sum())
    texts = strings_of(words, np.full(count, 280), pa.array(rng.integers(0, len(words), count * 280)))
    columns = {"key": keys(rng, rows), "texts": pa.ListArray.from_arrays(offsets, texts)}
    return Input("lists", "a list of 0 to 4 texts of 2 kB", pa.table(columns), "texts")


def make_wide(rng: np.random.Generator, rows: int) -> Input:
    """4,000 columns of integers."""
    columns = {f"c{number}": pa.array(rng.integers(0, 1000, rows)) for number in range(WIDTH)}
    return Input("wide", f"{WIDTH:,} columns of int64", pa.table({"key": keys(rng, rows), **columns}), "c77")


TABLES: dict[str, tuple[Callable[[np.random.Generator, int], Input], int]] = {
    "numbers": (make_numbers, 1),
    "strings": (make_strings, 2),
    "nested": (make_nested, 2),
    "vectors": (make_vectors, 20),
    "blobs": (make_blobs, 1000),
    "lists": (make_lists, 50),
    "wide": (make_wide, 1000),
}
"""Each table's maker, and by what its rows are fewer than those of the table of numbers."""


def make_input(name: str, rows: int, seed: int) -> Input:
    """Make one table.

    Args:
        name: a key of `TABLES`.
        rows: the rows of the table of numbers; the others follow from it.
        seed: two calls with the same seed make the same table.
    """
    make, fewer = TABLES[name]
    made = make(np.random.default_rng([seed, list(TABLES).index(name)]), max(rows // fewer, 100))
    numbers = pa.array(np.arange(made.table.num_rows))
    return replace(made, table=made.table.add_column(1, "id", numbers))
