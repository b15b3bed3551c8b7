"""Merges whose clauses and keys meet: expressions of words, fields of structs, partitions, NOT NULL, copied files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.delta.change import column_copies
from esker.exceptions import InvalidArgumentError

COUNT = 2_000


@pytest.fixture(params=["copied", "written"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files that are copied column by column, of whatever size, and files that are written anew."""
    if request.param == "copied":
        monkeypatch.setattr(column_copies, "LEAST_COPIED", 0)
    return str(request.param)


def both(
    folder: Path, rows: pa.Table, change: Callable[[Any], Any], **how: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """The rows of a table that both libraries changed, and what they told."""
    found: list[Any] = []
    told: list[Any] = []
    for name, library in (("ours", DeltaTable), ("theirs", deltalake.DeltaTable)):
        write_deltalake(folder / name, rows, **how)
        metrics = change(library(folder / name)).execute()
        told.append({key: value for key, value in metrics.items() if "rows" in key and "copied" not in key})
        made = DeltaTable(folder / name).to_pyarrow_table()
        found.append(sorted(made.to_pylist(), key=str))
        if name == "ours":
            assert sorted(deltalake.DeltaTable(folder / name).to_pyarrow_table().to_pylist(), key=str) == found[-1]
    return found[0], found[1], told[0], told[1]


WORDS = [
    "not s.b",
    "s.b is null",
    "s.b is not null",
    "case when s.b then false else true end",
    "s.b is true",
    "s.b and false",
    "s.b",
    "`s`.`b`",
]


@pytest.mark.parametrize("value", WORDS)
def test_a_value_of_words_alone_is_no_column(tmp_path: Path, way: str, value: str) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "b": pa.array([True, True, True])})
    source = pa.table({"id": pa.array([1, 2, 3, 9], pa.int64()), "b": pa.array([True, False, None, True])})

    def change(table: Any) -> Any:
        merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"b": value})
        return merger.when_not_matched_insert({"id": "s.id", "b": value})

    ours, theirs, told, expected = both(tmp_path, rows, change)
    assert (ours, told) == (theirs, expected)


@pytest.mark.parametrize(
    "key",
    [
        "t.id = s.id and t.b = case when s.b then false else true end",
        "t.id = s.id and t.b = (s.b is null)",
        "(t.b is not null) = s.b and t.id = s.id",
    ],
)
def test_a_key_of_words_alone_is_no_column(tmp_path: Path, way: str, key: str) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "b": pa.array([True, False, None])})
    source = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "b": pa.array([True, False, None])})

    def change(table: Any) -> Any:
        return table.merge(source, key, "s", "t").when_matched_update({"id": "s.id + 100"})

    ours, theirs, told, expected = both(tmp_path, rows, change)
    assert (ours, told) == (theirs, expected)


def points(ids: Any, text: str, numbers: Any) -> pa.Table:
    structs = pa.StructArray.from_arrays([pa.array(ids, pa.int64()), pa.array([text] * len(ids))], ["a", "u"])
    return pa.table({"st": structs, "x": pa.array(numbers, pa.float64())})


def test_a_key_that_is_a_field_is_not_its_struct(tmp_path: Path, way: str) -> None:
    write_deltalake(tmp_path, points(range(COUNT), "old", [0.5] * COUNT))
    source = points([1, 2], "new", [1.0, 2.0])
    told = DeltaTable(tmp_path).merge(source, "t.st.a = s.st.a", "s", "t").when_matched_update_all().execute()
    assert told["num_target_rows_updated"] == 2
    found = {row["st"]["a"]: (row["st"]["u"], row["x"]) for row in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()}
    assert found == dict.fromkeys(range(COUNT), ("old", 0.5)) | {1: ("new", 1.0), 2: ("new", 2.0)}


def test_a_field_of_the_name_of_its_struct_is_not_the_struct(tmp_path: Path, way: str) -> None:
    """`a.a` could be column `a` of a side called `a`."""
    kind = pa.struct([("a", pa.int64()), ("u", pa.string())])
    rows = pa.table({"a": pa.array([{"a": n, "u": "old"} for n in range(5)], kind)})
    write_deltalake(tmp_path, rows)
    source = pa.table({"b": pa.array([{"a": 3, "u": "new"}], kind)})
    merger = DeltaTable(tmp_path).merge(source, "a.a = b.a", "s", "t").when_matched_update({"a": "s.b"})
    assert merger.execute()["num_target_rows_updated"] == 1
    assert DeltaTable(tmp_path).to_pyarrow_table()["a"].to_pylist()[3] == {"a": 3, "u": "new"}


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("by_source", [False, True])
def test_rows_move_to_the_partition_that_they_are_given(
    tmp_path: Path, way: str, deletes: bool, by_source: bool
) -> None:
    rows = pa.table({"p": ["a"] * COUNT, "id": pa.array(range(COUNT), pa.int64()), "x": [0.5] * COUNT})
    source = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["b", "gone"]})

    def change(table: Any) -> Any:
        merger = table.merge(source, "t.id = s.id", "s", "t")
        if deletes:
            merger = merger.when_matched_delete("s.p = 'gone'")
        merger = merger.when_matched_update({"p": "s.p"})
        return merger.when_not_matched_by_source_update({"p": "'c'"}, "t.id > 1990") if by_source else merger

    ours, theirs, told, expected = both(tmp_path, rows, change, partition_by=["p"])
    assert (ours, told) == (theirs, expected)


@pytest.mark.parametrize("deletes", [False, True])
def test_a_column_that_is_not_null_stays_where_no_clause_assigns_it(tmp_path: Path, way: str, deletes: bool) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("k", pa.int64(), False), ("x", pa.float64())])
    rows = pa.table({"id": range(COUNT), "k": range(COUNT), "x": [0.5] * COUNT}, schema=schema)
    source = pa.table({"id": pa.array([1, 2], pa.int64()), "x": [1.5, 2.5]})

    def change(table: Any) -> Any:
        merger = table.merge(source, "t.id = s.id", "s", "t")
        if deletes:
            merger = merger.when_matched_delete("s.x > 2")
        return merger.when_matched_update({"x": "s.x"})

    ours, theirs, told, expected = both(tmp_path, rows, change)
    assert (ours, told) == (theirs, expected)
    nothing = pa.table({"id": pa.array([1], pa.int64()), "k": pa.array([None], pa.int64())})
    merger = DeltaTable(tmp_path / "ours").merge(nothing, "t.id = s.id", "s", "t").when_matched_update_all()
    with pytest.raises(InvalidArgumentError, match="expected no nulls"):
        merger.execute()


NESTED = pa.struct([("x", pa.struct([("y", pa.int64())]))])


def nested(count: int) -> pa.Table:
    values = pa.array(range(count), pa.int64())
    inner = pa.StructArray.from_arrays([values], ["y"])
    return pa.table({"id": values, "s": pa.StructArray.from_arrays([inner], ["x"])})


@pytest.mark.parametrize("count", [3, 300_000], ids=["few", "several batches"])
def test_structs_within_structs_of_a_part_of_a_table(tmp_path: Path, way: str, count: int) -> None:
    """Parts of a table have an offset, which must not be counted twice."""
    rows = nested(count)
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    half = count // 2
    assert table.to_pyarrow_table(filters=f"s.x.y >= {half}")["id"].to_pylist() == list(range(half, count))
    merger = table.merge(rows.slice(1), "t.s.x.y = s.id", "s", "t")
    told = merger.when_matched_update({"id": "s.s.x.y * 3", "s": "s.s"}).execute()
    assert told["num_target_rows_updated"] == count - 1
    found = DeltaTable(tmp_path).to_pyarrow_table(filters="id = s.x.y * 3")
    assert found.num_rows == count
    told = DeltaTable(tmp_path).update({"id": "s.x.y + 1"}, predicate=f"s.x.y > {half}")
    assert told["num_updated_rows"] == count - half - 1
    assert DeltaTable(tmp_path).delete(f"s.x.y = {count - 1}")["num_deleted_rows"] == 1
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="id = s.x.y + 1").num_rows == count - half - 2
