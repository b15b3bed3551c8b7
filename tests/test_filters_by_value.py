"""Conditions on columns of few values are asked of each value once; the rows are those of asking every row."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.file import LanceFileReader
from tests.rounds import rounds

ROWS = 40_000
WORDS = ["alpha", "beta", "gamma", "delta with a longer text than most", ""]
MANY = [f"item {number:04}" for number in range(300)]
NUMBERS = [10**15 + 7, -(10**12), 3, 2**62, -9]
FLOATS = [1.5, -0.0, math.inf, 1e300, math.pi]


def picked(values: list[Any], data_type: pa.DataType, seed: int, nulls: float = 0.1) -> pa.Array:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(values), ROWS)
    empty = rng.random(ROWS) < nulls
    drawn = [None if gone else values[at] for at, gone in zip(places, empty, strict=True)]
    return pa.array(drawn).cast(data_type) if pa.types.is_dictionary(data_type) else pa.array(drawn, data_type)


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "word": picked(WORDS, pa.string(), 1),
            "full": picked(WORDS, pa.string(), 2, nulls=0),
            "many": picked(MANY, pa.large_string(), 3),
            "bytes": picked([word.encode() for word in WORDS], pa.binary(), 4),
            "number": picked(NUMBERS, pa.int64(), 5),
            "float": picked(FLOATS, pa.float64(), 6),
            "keyed": picked(WORDS, pa.dictionary(pa.int8(), pa.string()), 10),
            "price": picked([decimal.Decimal("1.25"), decimal.Decimal("-7.50")], pa.decimal128(38, 2), 7),
            "day": picked([dt.date(2020, 1, 1), dt.date(1960, 7, 9)], pa.date32(), 8),
            "point": pa.StructArray.from_arrays([picked(WORDS, pa.string(), 9)], ["label"]),
        }
    )


TABLE = rows()
Answer = Callable[[dict[str, Any]], bool | None]


def unless_null(name: str, answer: Callable[[Any], bool]) -> Answer:
    return lambda row: None if row[name] is None else answer(row[name])


CONDITIONS: dict[str, Answer] = {
    "word = 'beta'": unless_null("word", lambda value: value == "beta"),
    "word <> 'beta'": unless_null("word", lambda value: value != "beta"),
    "word = 'of no row'": unless_null("word", lambda value: False),
    "word IS NULL": lambda row: row["word"] is None,
    "word IS NULL OR word = ''": lambda row: row["word"] in (None, ""),
    "word IS DISTINCT FROM 'alpha'": lambda row: row["word"] != "alpha",
    "NOT (word = 'alpha' OR word = 'gamma')": unless_null("word", lambda value: value not in ("alpha", "gamma")),
    "word LIKE '%ta'": unless_null("word", lambda value: value.endswith("ta")),
    "full IN ('alpha', 'gamma', 'x')": unless_null("full", lambda value: value in ("alpha", "gamma")),
    "full > 'b'": unless_null("full", lambda value: value > "b"),
    "full BETWEEN 'b' AND 'd'": unless_null("full", lambda value: "b" <= value <= "d"),
    "many < 'item 0007'": unless_null("many", lambda value: value < "item 0007"),
    "many = 'item 0123'": unless_null("many", lambda value: value == "item 0123"),
    "bytes = X'62657461'": unless_null("bytes", lambda value: value == b"beta"),
    "keyed = 'beta'": unless_null("keyed", lambda value: value == "beta"),
    "keyed IS NULL": lambda row: row["keyed"] is None,
    "number > 3": unless_null("number", lambda value: value > 3),
    "number IN (3, -9)": unless_null("number", lambda value: value in (3, -9)),
    "float = 0": unless_null("float", lambda value: value == 0),
    "float > 1.5": unless_null("float", lambda value: value > 1.5),
    "price < 0": unless_null("price", lambda value: value < 0),
    "day < date '1970-01-01'": unless_null("day", lambda value: value < dt.date(1970, 1, 1)),
    "point.label = 'beta'": lambda row: None if row["point"]["label"] is None else row["point"]["label"] == "beta",
    "id < 20000": lambda row: row["id"] < 20_000,
    "word = full": lambda row: None if row["word"] is None else row["word"] == row["full"],
}
ROWS_AS_DICTS = TABLE.to_pylist()
TRUE = {sql: frozenset(row["id"] for row in ROWS_AS_DICTS if answer(row)) for sql, answer in CONDITIONS.items()}
"""The rows for which each condition is true."""


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2", "pylance 2.1", "pylance 2.2"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> esker.LanceDataset:
    place = tmp_path_factory.mktemp("by_value") / "table"
    writer, _, version = request.param.rpartition(" ")
    if writer:
        lance.write_dataset(TABLE, place, data_storage_version=version, max_rows_per_file=15_000)
        made = esker.dataset(place)
    else:
        made = esker.write_dataset(TABLE, place, data_storage_version=version, max_rows_per_file=15_000, durable=False)
    made.delete("id % 10 = 3")
    return made


def test_the_columns_have_dictionaries(tmp_path: Path) -> None:
    """What this module is about is what esker writes: or the tests below would prove nothing."""
    made = esker.write_dataset(TABLE, tmp_path / "t", durable=False)
    path = made.get_fragments()[0].data_files()[0].path
    described = LanceFileReader(str(tmp_path / "t" / "data" / path)).metadata()
    with_items = [
        number
        for number, column in enumerate(described.columns)
        if any("ictionary" in page.encoding for page in column.pages)
    ]
    assert len(with_items) >= 5


def unkeyed(rows: pa.Table) -> pa.Table:
    """The rows without Arrow dictionaries: equal ones may differ in the order of their items."""
    plain = [field.with_type(pa.string()) if field.name == "keyed" else field for field in TABLE.schema]
    types = {field.name: field for field in plain}
    return rows.cast(pa.schema([types[name] for name in rows.column_names]))


@settings(max_examples=rounds(30), deadline=None)
@given(
    chosen=st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=3),
    size=st.sampled_from([None, 77, 5_000]),
    columns=st.sampled_from([["id"], ["id", "word"], ["many", "id", "word", "full"], None]),
)
def test_rows_are_those_for_which_it_is_true(
    table: esker.LanceDataset, chosen: list[str], size: int | None, columns: list[str] | None
) -> None:
    condition = " AND ".join(f"({part})" for part in chosen)
    true = set.intersection(*(set(TRUE[part]) for part in chosen))
    wanted = [number for number in sorted(true) if number % 10 != 3]
    assert table.count_rows(condition) == len(wanted)
    options: dict[str, Any] = {} if size is None else {"batch_size": size}
    found = table.to_table(columns, filter=condition, **options)
    assert found["id"].to_pylist() == wanted
    expected = TABLE.take(pa.array(wanted, pa.int64())).select(columns or TABLE.column_names)
    assert unkeyed(found).equals(unkeyed(expected))
    assert found.schema == table.to_table(columns, limit=0).schema


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_dictionaries_that_differ_from_page_to_page_and_file_to_file(tmp_path: Path, version: str) -> None:
    """Columns that turn plain, null, of one value and of others; some of them missing in some fragments."""
    rng = random.Random(3)
    place = tmp_path / "t"
    written = pa.table({"id": pa.array([], pa.int64()), "word": pa.array([], pa.string())})
    for part in range(12):
        kind = rng.choice(["few", "other", "null", "one", "unique"])
        count = rng.randint(1, 9_000)
        values = {
            "few": [rng.choice([*WORDS, None]) for _ in range(count)],
            "other": [rng.choice(["beta", "zeta", "eta"]) for _ in range(count)],
            "null": [None] * count,
            "one": ["beta"] * count,
            "unique": [f"unique {part} {number}" for number in range(count)],
        }[kind]
        ids = range(written.num_rows, written.num_rows + count)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "word": pa.array(values, pa.string())})
        esker.write_dataset(
            rows, place, mode="append" if part else "create", data_storage_version=version, durable=False
        )
        written = pa.concat_tables([written, rows])
    made = esker.dataset(place)
    made.optimize.compact_files(target_rows_per_fragment=30_000)
    made.add_columns({"twice": "concat(word, word)"})
    later = pa.table({"id": [-1, -2], "word": ["beta", None]})
    made = esker.write_dataset(later, place, mode="append", durable=False)
    written = pa.concat_tables([written, later])
    for condition, answer in CONDITIONS.items():
        if "word" not in condition or "full" in condition:
            continue
        wanted = {row["id"] for row in written.to_pylist() if answer(row)}
        assert set(made.to_table(["id"], filter=condition)["id"].to_pylist()) == wanted
        assert made.count_rows(condition) == len(wanted)
    doubled = made.to_table(filter="twice = 'betabeta'")
    assert set(doubled["word"].to_pylist()) == {"beta"}
    assert doubled.num_rows == written["word"].to_pylist().count("beta") - 1
    # `concat` of nulls is an empty text: null are only the rows that came after the column.
    assert made.count_rows("twice IS NULL") == later.num_rows
