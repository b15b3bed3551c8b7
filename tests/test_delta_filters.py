"""What filters of Delta tables mean: quotes, and functions of other dialects."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker import exceptions
from esker.delta import DeltaTable, write_deltalake
from esker.delta.write.row_predicate import RowPredicate

ROWS = pa.table({"id": [1, 2, 3], "x": ["x", "a", "b"], "a": ["a", "x", "c"]})
MEANINGS = [
    # Of the row, whether it is kept: `x = ?` with the text x, with the column a.
    ("x = 'x'", [1], [1], [1]),
    ('x = "a"', [], [2], [2]),
    ("x = `a`", [], [], []),
    ("\"x\" = 'a'", [2], [], []),
    ("`x` = 'a'", [2], [2], [2]),
    ('"a" = "x"', [], [], []),
]


@pytest.mark.parametrize(("sql", "in_delta", "in_lance", "in_replace_where"), MEANINGS)
def test_quotes_mean_what_they_mean_to_the_peer(
    tmp_path: Path, sql: str, in_delta: list[int], in_lance: list[int], in_replace_where: list[int]
) -> None:
    write_deltalake(tmp_path / "delta", ROWS)
    table = DeltaTable(tmp_path / "delta")
    assert table.to_pyarrow_table(filters=sql)["id"].to_pylist() == in_delta
    assert table.scan(["id"], sql).read_all()["id"].to_pylist() == in_delta
    peer = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "delta"))
    if "`" not in sql:
        assert pa.table(peer.execute(f"select id from t where {sql}"))["id"].to_pylist() == in_delta
    dataset = esker.write_dataset(ROWS, tmp_path / "lance")
    assert dataset.to_table(filter=sql)["id"].to_pylist() == in_lance
    assert lance.dataset(str(tmp_path / "lance")).to_table(filter=sql)["id"].to_pylist() == in_lance
    mask = RowPredicate(sql, ROWS.schema).mask(ROWS.to_batches()[0])
    assert ROWS["id"].filter(mask).to_pylist() == in_replace_where
    new = pa.table({"id": [9], "x": ["a"], "a": ["a"]})
    kept = {1, 2, 3} - set(in_delta)
    if sql in ("\"x\" = 'a'", "`x` = 'a'", 'x = "a"'):
        write_deltalake(tmp_path / "delta", new, mode="overwrite", predicate=sql)
        assert set(DeltaTable(tmp_path / "delta").to_pyarrow_table()["id"].to_pylist()) == {9} | kept


def test_a_text_in_double_quotes_is_told_what_it_is(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    table = DeltaTable(tmp_path / "t")
    for act in (
        lambda: table.to_pyarrow_table(filters='x = "nobody"'),
        lambda: write_deltalake(tmp_path / "t", ROWS, mode="overwrite", predicate='x = "nobody"'),
        lambda: table.alter.add_constraint({"c": 'x = "nobody"'}),
    ):
        with pytest.raises(
            exceptions.InvalidArgumentError, match="\"nobody\" names a column here, write 'nobody' for the"
        ):
            act()


FUNCTIONS = [
    "regexp_like(s, 'a.*')",
    "starts_with(s, 'a')",
    "ends_with(s, 'b')",
    "contains(s, 'b')",
    "array_contains(l, 1)",
    "date_part('year', ts) = 2024",
    "date_part('hour', ts) = 5",
    "cast(ts as date) = date '2024-01-01'",
    "s like 'a%'",
    "coalesce(s, 'x') = 'ab'",
    "length(s) = 2",
]
DIALECTS = [
    "s rlike 'a.*'",
    "rlike(s, 'a.*')",
    "year(ts) = 2024",
    "hour(ts) = 5",
    "date(ts) = date '2024-01-01'",
    "startswith(s, 'a')",
    "endswith(s, 'b')",
    "size(l) = 2",
    "isnull(s) = false and id = 1",
    "len(s) = 2",
    "if(id = 1, true, false)",
]
"""Of Spark, BigQuery, DuckDB."""


@pytest.fixture
def typed(tmp_path: Path) -> DeltaTable:
    times = pa.array([dt.datetime(2024, 1, 1, 5), dt.datetime(2023, 6, 1)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2], "s": ["ab", "it's"], "ts": times, "l": [[1, 2], [3]]})
    write_deltalake(tmp_path / "t", rows)
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize("sql", FUNCTIONS)
def test_functions_are_evaluated(typed: DeltaTable, sql: str) -> None:
    assert typed.to_pyarrow_table(filters=sql)["id"].to_pylist() == [1]
    assert typed.scan(["id"], sql).read_all()["id"].to_pylist() == [1]


def _outcome(table: DeltaTable, sql: str) -> list[int] | str:
    try:
        found: list[int] = table.to_pyarrow_table(filters=sql)["id"].to_pylist()
    except (exceptions.InvalidArgumentError, exceptions.UnsupportedError) as error:
        return str(error)
    return found


@pytest.mark.parametrize("sql", DIALECTS)
def test_functions_of_other_dialects_work_or_are_refused_in_a_line(typed: DeltaTable, sql: str) -> None:
    found = _outcome(typed, sql)
    if isinstance(found, str):
        assert "\n" not in found
        assert sql in found
    else:
        assert found == [1]


LONG_TEXTS = ["ж" * 60, "x" + "ж" * 60, "日本語テキスト" * 6, "a" + "日本語テキスト" * 6, "ab" + "日本語テキスト" * 6]


@pytest.mark.parametrize("text", LONG_TEXTS)
def test_long_texts_of_other_alphabets(tmp_path: Path, text: str) -> None:
    """pyarrow's text of an expression is cut, in the middle of a character too."""
    rows = pa.table({"k": [text, "b"], "n": [1, 2], "x": [0.5, float("nan")]})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    for filters in ([("k", "in", [text])], [("k", "=", text)], pc.field("k").isin([text]), pc.field("k") == text):
        assert table.to_pyarrow_table(filters=filters)["n"].to_pylist() == [1]
    merger = table.merge(rows, "t.k = s.k", "s", "t").when_matched_update({"n": "s.n + 1"})
    assert merger.execute()["num_target_rows_updated"] == 2


@pytest.mark.parametrize("place", [0, 15, 29])
def test_nan_anywhere_in_a_long_list(tmp_path: Path, place: int) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1.0, 2.0, float("nan")], "i": range(3)}))
    values = [1000.0 + number for number in range(30)]
    values[place] = float("nan")
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table(filters=[("x", "in", values)])["i"].to_pylist() == [2]
    assert table.to_pyarrow_table(filters=pc.field("x").isin(values))["i"].to_pylist() == [2]


@pytest.mark.parametrize(
    "filters", [[["i", ">", 1]], [["i", ">", 1], ("s", "=", "c")], [[["i", "=", 1]], [["s", "=", "c"]]]], ids=str
)
def test_lists_of_three_are_tuples_as_to_pyarrow(tmp_path: Path, filters: Any) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1, 2, 3], "s": ["a", "b", "c"]}))
    theirs = deltalake.DeltaTable(tmp_path).to_pyarrow_table(filters=filters)
    assert DeltaTable(tmp_path).to_pyarrow_table(filters=filters).equals(theirs)
    assert DeltaTable(tmp_path).scan(predicate=filters).read_all().equals(theirs)
