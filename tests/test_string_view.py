"""`string_view=True`: the texts of a scan as Arrow's views, whatever holds them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import esker

WORDS = ["", "short", None, "a text of more than twelve bytes", "Grüße aus Köln und anderswo"]
COUNT = 6_000


def rows() -> pa.Table:
    words = [WORDS[number % 5] for number in range(COUNT)]
    unique = [None if number % 11 == 0 else f"the text of the row {number}" for number in range(COUNT)]
    return pa.table(
        {
            "id": pa.array(range(COUNT), pa.int64()),
            "word": pa.array(words, pa.string()),
            "unique": pa.array(unique, pa.large_string()),
            "words": pa.array([[word, "x"] if word is not None else None for word in words], pa.list_(pa.string())),
            "pair": pa.StructArray.from_arrays([pa.array(words), pa.array(range(COUNT))], ["text", "number"]),
            "map": pa.array([[(f"k{n % 3}", words[n])] for n in range(COUNT)], pa.map_(pa.string(), pa.string())),
            "bytes": pa.array([b"x" * (n % 20) for n in range(COUNT)], pa.binary()),
            "keyed": pa.array(words).dictionary_encode(),
            "json": pa.array([f'{{"a":{n}}}' for n in range(COUNT)], pa.json_()),
        }
    )


TABLE = rows()
VIEW = pa.string_view()
TYPES = {
    "word": VIEW,
    "unique": VIEW,
    "words": pa.list_(pa.field("item", VIEW)),
    "pair": pa.struct([("text", VIEW), ("number", pa.int64())]),
    "map": pa.map_(VIEW, VIEW),
}


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2", "legacy"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> esker.LanceDataset:
    written = TABLE
    if request.param == "legacy":
        written = TABLE.select(["id", "word", "unique", "bytes"])
    if request.param in ("2.0", "2.1"):
        written = TABLE.drop_columns(["map"])
    place = tmp_path_factory.mktemp("views") / "t"
    options: dict[str, Any] = {"data_storage_version": request.param, "max_rows_per_file": 2_500, "durable": False}
    if request.param == "legacy":
        options["allow_null_loss"] = True
    made = esker.write_dataset(written, place, **options)
    made.delete("id % 7 = 3")
    return made


def plain(found: pa.Table) -> list[dict[str, Any]]:
    return found.to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter": "word = 'short'"},
        {"filter": "unique LIKE '%9' AND word IS NOT NULL"},
        {"limit": 10, "offset": 2_000},
        {"batch_size": 333},
        {"batch_size": 333, "strict_batch_size": True},
        {"batch_size_bytes": 10_000},
        {"order_by": ["unique", "id"]},
        {"with_row_id": True},
        {"columns": ["unique", "word"]},
        {"columns": ["id"]},
        {"columns": {"w": "word", "both": "concat(word, unique)", "n": "id * 2"}},
        {"columns": {"other": "word"}},
        {"filter": "word = 'of no row'"},
    ],
    ids=str,
)
def test_values_are_those_of_plain_texts(table: esker.LanceDataset, options: dict[str, Any]) -> None:
    expected = table.to_table(**options)
    found = table.to_table(string_view=True, **options)
    found.validate(full=True)
    assert plain(found) == plain(expected)
    assert found.column_names == expected.column_names
    for field, was in zip(found.schema, expected.schema, strict=True):
        if pa.types.is_string(was.type) or pa.types.is_large_string(was.type):
            assert field.type == VIEW
        assert (field.name, field.nullable, field.metadata) == (was.name, was.nullable, was.metadata)
    scanner = table.scanner(string_view=True, **options)
    assert scanner.projected_schema == found.schema
    assert scanner.to_reader().schema == found.schema
    assert all(batch.schema == found.schema for batch in scanner.to_batches())


def test_types(table: esker.LanceDataset) -> None:
    found = table.to_table(string_view=True).schema
    expected = table.to_table().schema
    for field in found:
        assert field.type == TYPES.get(field.name, expected.field(field.name).type)


def test_a_count_and_a_plain_scan_are_as_before(table: esker.LanceDataset) -> None:
    scanner = table.scanner(string_view=True, filter="word = 'short'")
    assert scanner.count_rows() == table.count_rows("word = 'short'")
    assert table.to_table(string_view=False).schema == table.to_table().schema
    assert table.get_fragments()[1].to_table(columns=["word"], string_view=True).schema.field("word").type == VIEW


def test_polars_takes_the_views_as_they_are(tmp_path: Path) -> None:
    made = esker.write_dataset(pa.table({"word": WORDS, "day": [dt.date(2020, 1, 1)] * 5}), tmp_path / "t")
    frame = pl.DataFrame(made.to_table(string_view=True))
    assert frame["word"].to_list() == WORDS
    assert frame.schema["word"] == pl.String
