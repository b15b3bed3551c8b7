"""Names that hold dots: in backticks, wherever a path is given; beside pylance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError

_STRUCT = pa.struct(
    [("a.b", pa.int64()), ("c", pa.int64()), ("x`y", pa.int64()), ("n", pa.struct([("p.q", pa.int64())]))]
)
ROWS = pa.table(
    {
        "id": [1, 2],
        "a b": [5, 6],
        "s": pa.array(
            [{"a.b": 1, "c": 2, "x`y": 3, "n": {"p.q": 4}}, {"a.b": None, "c": 7, "x`y": 8, "n": None}], _STRUCT
        ),
    }
)
PATHS = ["s.`a.b`", "`s`.`a.b`", "`s`.c", "`id`", "`a b`", "s.`x``y`", "s.n.`p.q`"]


def _twice(tmp_path: Path) -> list[tuple[Any, Any]]:
    """The rows in a table of each library, opened by it."""
    for library in (esker, lance):
        library.write_dataset(ROWS, str(tmp_path / library.__name__), data_storage_version="2.1")
    return [(library, library.dataset(str(tmp_path / library.__name__))) for library in (esker, lance)]


def _same(tmp_path: Path, ask: Callable[[Any], Any]) -> Any:
    (_, ours), (_, theirs) = _twice(tmp_path)
    found = ask(ours)
    assert found == ask(theirs)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_read(tmp_path: Path, path: str) -> None:
    found = _same(tmp_path, lambda dataset: dataset.to_table(columns=[path]))
    assert found.column_names == [path]
    ours = esker.dataset(str(tmp_path / "esker"))
    assert ours.take([1], columns=[path]).num_rows == 1
    assert ours.to_table(columns={"v": path})["v"] == found[path]
    assert ours.to_table(order_by=[path]).num_rows == 2
    assert ours.count_rows(f"{path} IS NULL") == found[path].null_count


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "change",
    [
        lambda ds, path: ds.drop_columns([path]),
        lambda ds, path: ds.alter_columns({"path": path, "name": "new"}),
        lambda ds, path: ds.alter_columns({"path": path, "data_type": pa.int32()}),
        lambda ds, path: ds.update_field_metadata({path: {"unit": "m"}}),
    ],
    ids=["drop", "rename", "cast", "describe"],
)
def test_paths_are_changed(tmp_path: Path, path: str, change: Callable[[Any, str], object]) -> None:
    def ask(dataset: Any) -> Any:
        change(dataset, path)
        table = dataset.to_table()
        return dataset.schema, table.to_pylist(), [field.metadata for field in dataset.schema]

    _same(tmp_path, ask)
    ours = str(tmp_path / "esker")
    assert lance.dataset(ours).to_table() == esker.dataset(ours).to_table()


def test_paths_are_updated(tmp_path: Path) -> None:
    """pylance updates no fields."""
    dataset = esker.write_dataset(ROWS, str(tmp_path / "t"), data_storage_version="2.1")
    dataset.update({"s.`a.b`": "id * 10", "`a b`": "0"})
    expected = [{**row, "a b": 0, "s": {**row["s"], "a.b": row["id"] * 10}} for row in ROWS.to_pylist()]
    assert dataset.to_table().sort_by("id").to_pylist() == expected
    field = dataset.lance_schema.field("s.`x``y`")
    assert field is not None
    assert field.name() == "x`y"
    assert dataset.lance_schema.field("s.x.y") is None
    insensitive = dataset.lance_schema.field_case_insensitive("S.`A.B`")
    assert insensitive is not None
    assert insensitive.name() == "a.b"
    assert dataset.lance_schema.field_case_insensitive("s.A.B") is None


def test_a_field_without_nulls_becomes_required(tmp_path: Path) -> None:
    dataset = esker.write_dataset(ROWS, str(tmp_path / "t"), data_storage_version="2.1")
    dataset.alter_columns({"path": "s.`x``y`", "nullable": False})
    with pytest.raises(EskerError, match="no nulls"):
        dataset.alter_columns({"path": "s.`a.b`", "nullable": False})


def test_a_star_is_all_columns(tmp_path: Path) -> None:
    assert _same(tmp_path, lambda dataset: dataset.to_table(columns=["*"])) == ROWS
    dataset = esker.dataset(str(tmp_path / "esker"))
    assert dataset.take([1], columns=["*"]) == ROWS.slice(1)
    with pytest.raises(EskerError, match="duplicate column name 'id'"):
        dataset.to_table(columns=["id", "*"])


@pytest.mark.parametrize("columns", [["`id`"], ["`a b`", "id"], ["`id`", "id"], ["`s`", "_rowid", "`a b`"]])
def test_a_take_names_columns_as_the_table_does(tmp_path: Path, columns: list[str]) -> None:
    def ask(dataset: Any) -> Any:
        return dataset.take([1, 0], columns=columns), dataset._take_rows([1, 0], columns=columns)

    taken, by_id = _same(tmp_path, ask)
    assert taken == by_id
    assert set(taken.column_names) <= {*ROWS.column_names, "_rowid"}
    fragment = esker.dataset(str(tmp_path / "esker")).get_fragments()[0]
    assert fragment.take([1, 0], columns=columns).column_names == taken.column_names


@pytest.mark.parametrize("key", ["`id`", ["`a b`"], ["id", "`a b`"]])
def test_keys_of_an_upsert_may_be_quoted(tmp_path: Path, key: Any) -> None:
    def ask(dataset: Any) -> Any:
        upsert = dataset.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
        counts = upsert.execute(pa.table({"id": [2, 3], "a b": [6, 9]}))
        return counts["num_updated_rows"], counts["num_inserted_rows"], dataset.to_table().sort_by("id").to_pylist()

    for library in (esker, lance):
        library.write_dataset(ROWS.drop_columns("s"), str(tmp_path / library.__name__))
    ours, theirs = (ask(library.dataset(str(tmp_path / library.__name__))) for library in (esker, lance))
    assert ours == theirs
    assert ours[:2] == (1, 1)
    with pytest.raises(EskerError, match="found '`nope`'"):
        esker.dataset(str(tmp_path / "esker")).merge_insert("`nope`")


def test_names_are_exchanged(tmp_path: Path) -> None:
    def ask(dataset: Any) -> Any:
        dataset.alter_columns({"path": "id", "name": "a b"}, {"path": "a b", "name": "id"})
        return dataset.to_table()

    assert _same(tmp_path, ask).column_names == ["a b", "id", "s"]
    dataset = esker.dataset(str(tmp_path / "esker"))
    dataset.alter_columns({"path": "s.c", "name": "a.b"}, {"path": "s.`a.b`", "name": "c"})
    assert dataset.to_table()["s"][0].as_py() == {"c": 1, "a.b": 2, "x`y": 3, "n": {"p.q": 4}}
    with pytest.raises(EskerError, match="different names"):
        dataset.alter_columns({"path": "id", "name": "a b"})


def test_expressions_name_row_ids(tmp_path: Path) -> None:
    def ask(dataset: Any) -> Any:
        return dataset.to_table(columns={"x": "_rowid + 1", "id": "id"}, with_row_id=True).to_pylist()

    assert _same(tmp_path, ask) == [{"x": 1, "id": 1, "_rowid": 0}, {"x": 2, "id": 2, "_rowid": 1}]
    dataset = esker.dataset(str(tmp_path / "esker"))
    assert dataset.to_table(columns={"x": "_rowaddr * 2"}, filter="id = 2")["x"].to_pylist() == [2]
