"""Fields within structs get new types: beside pylance, over null structs, deleted rows, several fields, appends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.blob import blob_array, blob_field
from esker.exceptions import EskerError, SchemaMismatchError, UnsupportedError
from esker.lance.change.columns import AlterColumn

INNER = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
TYPE = pa.struct([pa.field("b", pa.int32(), metadata={"k": "v"}), pa.field("c", pa.string()), pa.field("in", INNER)])
ROWS: list[dict[str, Any] | None] = [
    {"b": 1, "c": "7", "in": {"x": 1, "y": "p"}},
    None,
    {"b": None, "c": None, "in": None},
    {"b": 4, "c": "9", "in": {"x": None, "y": "q"}},
    {"b": 5, "c": "11", "in": {"x": 5, "y": None}},
]
NEW = pa.struct(
    [
        pa.field("b", pa.int64(), metadata={"k": "v"}),
        pa.field("c", pa.large_string()),
        pa.field("in", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.string())])),
    ]
)
CASTS: tuple[AlterColumn, ...] = (
    {"path": "s.b", "data_type": pa.int64()},
    {"path": "s.c", "data_type": pa.large_string()},
    {"path": "s.in.x", "data_type": pa.float64()},
)


def _table() -> pa.Table:
    return pa.table({"id": range(5), "s": pa.array(ROWS, TYPE)})


def _both(uri: str) -> list[dict[str, Any]]:
    ours, theirs = esker.dataset(uri), lance.dataset(uri)
    theirs.validate()
    assert ours.schema == theirs.schema
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    return ours.to_table().to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_fields_at_several_depths_at_once(tmp_path: Path, version: str, stable: bool) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(
        _table(), uri, data_storage_version=version, max_rows_per_file=3, enable_stable_row_ids=stable
    )
    dataset.delete("id = 0 OR id = 3")
    dataset.alter_columns(*CASTS)
    assert dataset.schema.field("s").type == NEW
    assert dataset.schema.field("s").type.field("b").metadata == {b"k": b"v"}
    assert _both(uri) == [{"id": i, "s": ROWS[i]} for i in (1, 2, 4)]
    # Both go on, ours with the new types' values.
    more = pa.table({"id": [7], "s": pa.array([{"b": 2**40, "c": "z", "in": {"x": 0.5, "y": "y"}}], NEW)})
    lance.write_dataset(more, uri, mode="append")
    esker.write_dataset(more, uri, mode="append")
    assert _both(uri)[3:] == more.to_pylist() * 2
    assert dataset.checkout_version(2).schema.field("s").type == TYPE


def test_the_files_hold_the_same_fields_as_those_of_pylance(tmp_path: Path) -> None:
    told: list[Any] = []
    for module in (esker, lance):
        dataset: Any = module.write_dataset(_table(), str(tmp_path / module.__name__))
        dataset.alter_columns({"path": "s.in.x", "data_type": pa.int64()})
        told.append(dataset.get_fragments()[0].metadata.files[1])
    assert (told[0].fields, told[0].column_indices) == (told[1].fields, told[1].column_indices) == ([7], [0])


def test_casts_of_both_in_turns_and_new_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(), uri).alter_columns({"path": "s.b", "data_type": pa.int64()})
    esker.dataset(uri).alter_columns({"path": "s.in.x", "data_type": pa.int16(), "name": "d"})
    lance.dataset(uri).alter_columns({"path": "s.c", "data_type": pa.large_string()})
    expected = [row and (row["b"], row["c"], row["in"] and row["in"]["x"]) for row in ROWS]
    found = [row["s"] for row in _both(uri)]
    assert [row and (row["b"], row["c"], row["in"] and row["in"]["d"]) for row in found] == expected


def test_a_value_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    dataset = esker.write_dataset(_table(), str(tmp_path / "t"))
    files = sorted((tmp_path / "t" / "data").iterdir())
    with pytest.raises(SchemaMismatchError, match="s.in.y"):
        dataset.alter_columns({"path": "s.in.y", "data_type": pa.int8()})
    assert sorted((tmp_path / "t" / "data").iterdir()) == files
    assert esker.dataset(dataset.uri).version == 1


def test_rows_that_are_appended_meanwhile_are_cast_too(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    stale = esker.write_dataset(_table(), uri)
    lance.write_dataset(_table(), uri, mode="append")
    stale.alter_columns(*CASTS)
    assert _both(uri) == _table().to_pylist() * 2
    assert stale.schema.field("s").type == NEW


def test_tables_of_2_0_cannot_and_say_so(tmp_path: Path) -> None:
    rows = pa.table({"s": pa.array([{"b": 1}])})
    dataset = esker.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.0")
    with pytest.raises(UnsupportedError, match="2.1 and later"):
        dataset.alter_columns({"path": "s.b", "data_type": pa.int8()})
    assert dataset.version == 1


LISTS = pa.table(
    {
        "id": [1, 2, 3],
        "l": pa.array(
            [[{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], [], [{"x": 3, "y": "c"}]],
            pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ),
        "li": pa.array([[1, 2], [], [3]], pa.list_(pa.int32())),
        "ll": pa.array([[1], [], [2]], pa.large_list(pa.int32())),
        "s": pa.array([{"li": [1], "a": 1}, {"li": [], "a": 2}, {"li": [2, 3], "a": 3}]),
    }
)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("path", ["l.item.x", "li.item", "ll.item", "s.li.item", "s.a"])
def test_fields_within_lists_are_cast_again_and_again(tmp_path: Path, path: str, version: str) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(LISTS, uri, data_storage_version=version)
    if version == "2.0" and path not in ("li.item", "ll.item"):
        with pytest.raises(UnsupportedError, match="2.1 and later"):
            dataset.alter_columns({"path": path, "data_type": pa.int16()})
        return
    for type_ in (pa.int64(), pa.int16(), pa.int8()):
        dataset.alter_columns({"path": path, "data_type": type_})
        lance.dataset(uri).validate()
        assert _both(uri) == LISTS.to_pylist()
    assert len(dataset.get_fragments()[0].data_files()) == 2


@pytest.mark.parametrize("cast", [esker, lance])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("path", ["l.item.x", "s.m.item.x"])
def test_fields_within_lists_are_cast_between_deleted_rows(tmp_path: Path, path: str, version: str, cast: Any) -> None:
    uri = str(tmp_path / "t")
    lists = [[{"x": i, "y": str(i)}] * (i % 4) if i % 7 else None for i in range(40)]
    rows = pa.table({"id": range(40), "l": lists, "s": [{"m": of_one, "b": True} for of_one in lists]})
    esker.write_dataset(rows, uri, data_storage_version=version).delete("id % 2 = 0 OR id > 30")
    cast.dataset(uri).alter_columns({"path": path, "data_type": pa.int32()})
    left = [row for row in rows.to_pylist() if row["id"] % 2 and row["id"] <= 30]
    assert _both(uri) == left
    dataset = esker.dataset(uri)
    assert dataset.to_table(filter="array_length(l) > 1").to_pylist() == [
        row for row in left if len(row["l"] or []) > 1
    ]
    dataset.optimize.compact_files()
    assert _both(uri) == left


@pytest.mark.parametrize("cast", [esker, lance])
@pytest.mark.parametrize("path", ["s.a", "s.b"])
def test_fields_beside_required_ones_are_cast_between_deleted_rows(tmp_path: Path, path: str, cast: Any) -> None:
    uri = str(tmp_path / "t")
    type_ = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    for live in (0, 1):
        structs = pa.array([{"a": i, "b": i} if i % 2 else None for i in range(40)], type_)
        rows = pa.table({"id": range(40), "s": structs})
        esker.write_dataset(rows, uri, mode="overwrite").delete(f"id % 2 <> {live}")
        cast.dataset(uri).alter_columns({"path": path, "data_type": pa.int32()})
        left = [row for row in rows.to_pylist() if row["id"] % 2 == live]
        assert _both(uri) == left
        esker.dataset(uri).optimize.compact_files()
        assert _both(uri) == left


def test_fields_within_lists_are_cast_beside_blobs_behind_deleted_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lists = pa.array([[{"x": i, "y": str(i)}] * (i % 4) for i in range(2000)])
    blobs = blob_array([b"%d" % i for i in range(2000)])
    schema = pa.schema([pa.field("l", lists.type), blob_field("b")])
    esker.write_dataset(pa.table([lists, blobs], schema=schema), uri).delete("_rowaddr < 1900")
    esker.dataset(uri).alter_columns({"path": "l.item.x", "data_type": pa.int32()})
    read = esker.dataset(uri).to_table(blob_handling="all_binary")
    assert read["l"].to_pylist() == lists[1900:].to_pylist()
    assert read["b"].to_pylist() == [b"%d" % i for i in range(1900, 2000)]


def test_fields_within_maps_and_fixed_size_lists_say_what_to_do(tmp_path: Path) -> None:
    rows = pa.table(
        {"f": pa.array([[1, 2]], pa.list_(pa.int32(), 2)), "m": pa.array([[("a", 1)]], pa.map_("str", "int32"))}
    )
    dataset = esker.write_dataset(rows, str(tmp_path / "t"))
    for path in ("f.item", "m.entries.value"):
        with pytest.raises(EskerError):
            dataset.alter_columns({"path": path, "data_type": pa.int64()})
    assert dataset.version == 1
