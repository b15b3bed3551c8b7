"""A null where a field is declared not null is refused at every depth and on every way in, before a reader meets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset
from esker.exceptions import SchemaMismatchError
from esker.file import LanceFileWriter
from esker.fragment import write_fragments

INT = pa.field("a", pa.int64(), nullable=False)
STRUCT = pa.struct([INT])
ITEM = pa.field("item", pa.int64(), nullable=False)
VALUE = pa.field("value", pa.int64(), nullable=False)
KEY = pa.field("key", pa.string(), nullable=False)
WORDS = pa.field("a", pa.dictionary(pa.int32(), pa.string()), nullable=False)


def _i32(*values: int) -> pa.Array:
    return pa.array(values, pa.int32())


def _words(*indices: int) -> pa.Array:
    """Strings of which one is null in the dictionary, and no index is."""
    return pa.DictionaryArray.from_arrays(_i32(*indices), pa.array(["x", None]))


def _struct(values: pa.Array, field: pa.Field = INT, mask: list[bool] | None = None) -> pa.Array:
    nulls = None if mask is None else pa.array(mask)
    return pa.StructArray.from_arrays([values], fields=[field], mask=nulls)


def _list(offsets: list[int], values: pa.Array, field: pa.Field = ITEM, mask: list[bool] | None = None) -> pa.Array:
    nulls = None if mask is None else pa.array(mask)
    return pa.ListArray.from_arrays(_i32(*offsets), values, type=pa.list_(field), mask=nulls)


SOME = pa.array([1, None, 3])
"""A value, a null, a value."""

UNSOUND: dict[str, tuple[pa.Array, str]] = {
    "struct": (_struct(SOME), "c.a"),
    "struct in a struct": (_struct(_struct(SOME), pa.field("s", STRUCT)), "c.s.a"),
    "null struct in a struct": (_struct(_struct(SOME, mask=[False, True, False]), pa.field("s", STRUCT, False)), "c.s"),
    "list": (_list([0, 2, 2, 3], SOME), "c.item"),
    "large list": (
        pa.LargeListArray.from_arrays(pa.array([0, 3, 3, 3], pa.int64()), SOME, type=pa.large_list(ITEM)),
        "c.item",
    ),
    "list of structs": (_list([0, 2, 2, 3], _struct(SOME), pa.field("item", STRUCT)), "c.item.a"),
    "struct of a list": (_struct(_list([0, 2, 2, 3], SOME), pa.field("l", pa.list_(ITEM))), "c.l.item"),
    "map": (
        pa.MapArray.from_arrays(_i32(0, 1, 2, 3), pa.array(["x", "y", "z"]), SOME, type=pa.map_(KEY, VALUE)),
        "c.entries.value",
    ),
    "vector of structs": (
        pa.FixedSizeListArray.from_arrays(_struct(SOME), type=pa.list_(pa.field("item", STRUCT), 1)),
        "c.item.a",
    ),
    "word that is null": (_struct(_words(0, 1, 0), WORDS), "c.a"),
    "items that are null words": (_list([0, 1, 2, 3], _words(0, 1, 0), WORDS), "c.a"),
}

SOUND: dict[str, pa.Array] = {
    "null struct": _struct(SOME, mask=[False, True, False]),
    "null struct around a struct": _struct(_struct(SOME), pa.field("s", STRUCT, False), mask=[False, True, False]),
    "null list": _list([0, 1, 2, 3], SOME, mask=[False, True, False]),
    "item that no list has": _list([0, 1, 1, 1], SOME),
    "null list of structs": _list([0, 1, 2, 3], _struct(SOME), pa.field("item", STRUCT), mask=[False, True, False]),
    "slice": _struct(pa.array([None, 1, 2, 3, None])).slice(1, 3),
    "slice of lists": _list([0, 1, 2, 3, 4], pa.array([None, 1, 2, 3])).slice(1, 3),
    "word that nobody uses": _struct(_words(0, 0, 0), WORDS),
    "null struct of a null word": _struct(_words(0, 1, 0), WORDS, mask=[False, True, False]),
}


def _table(column: pa.Array, nullable: bool = True) -> pa.Table:
    return pa.table(
        [pa.array([1, 2, 3]), column], schema=pa.schema([("id", pa.int64()), pa.field("c", column.type, nullable)])
    )


def _empty(uri: str, column: pa.Array, nullable: bool = True) -> LanceDataset:
    """A table with the columns, and rows 1 to 3 of which none is in the column's way."""
    return esker.write_dataset(_table(column, nullable).schema.empty_table(), uri, data_storage_version="2.2")


def _create(uri: str, rows: pa.Table) -> None:
    esker.write_dataset(rows, uri, data_storage_version="2.2")


def _append(uri: str, rows: pa.Table) -> None:
    esker.write_dataset(rows, uri, mode="append")


def _overwrite(uri: str, rows: pa.Table) -> None:
    esker.write_dataset(rows, uri, mode="overwrite")


def _stage(uri: str, rows: pa.Table) -> None:
    write_fragments(rows, uri)


def _upsert(uri: str, rows: pa.Table) -> None:
    merge = esker.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows)


def _file(uri: str, rows: pa.Table) -> None:
    with LanceFileWriter(uri + "/f.lance", rows.schema, version="2.2") as writer:
        writer.write_batch(rows)


WAYS: dict[str, Callable[[str, pa.Table], None]] = {
    "append": _append,
    "overwrite": _overwrite,
    "fragments": _stage,
    "upsert": _upsert,
    "file": _file,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", UNSOUND)
def test_it_is_refused_and_nothing_is_left(kind: str, way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    column, path = UNSOUND[kind]
    _empty(uri, column)
    before = {file for file in tmp_path.rglob("*") if "_transactions" not in str(file)}
    with pytest.raises(SchemaMismatchError, match="expected no nulls") as refused:
        WAYS[way](uri, _table(column))
    assert refused.value.column == path
    after = {file for file in tmp_path.rglob("*") if "_transactions" not in str(file)}
    assert {file for file in after - before if file.is_file()} == set()
    assert esker.dataset(uri).count_rows() == lance.dataset(uri).count_rows() == 0


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", UNSOUND)
def test_it_is_refused_in_every_version(kind: str, version: str, tmp_path: Path) -> None:
    column, _ = UNSOUND[kind]
    with pytest.raises(esker.exceptions.EskerError):
        esker.write_dataset(_table(column), str(tmp_path / "t"), data_storage_version=version)
    assert not list(tmp_path.rglob("*.manifest"))


def _new_values(dataset: LanceDataset, column: pa.Table) -> None:
    dataset.add_columns(column)


def _new_by_function(dataset: LanceDataset, column: pa.Table) -> None:
    dataset.add_columns(lambda batch: column.to_batches()[0])


def _new_by_join(dataset: LanceDataset, column: pa.Table) -> None:
    dataset.merge(column.add_column(0, "id", [[1, 2, 3]]), "id")


def _new_of_a_fragment(dataset: LanceDataset, column: pa.Table) -> None:
    dataset.get_fragments()[0].merge_columns(lambda batch: column.to_batches()[0])


@pytest.mark.parametrize("kind", UNSOUND)
@pytest.mark.parametrize("way", [_new_values, _new_by_function, _new_by_join, _new_of_a_fragment])
def test_it_is_refused_in_new_columns(kind: str, way: Callable[[LanceDataset, pa.Table], None], tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    column, path = UNSOUND[kind]
    rows = _table(column)
    dataset = esker.write_dataset(rows.select(["id"]), uri, data_storage_version="2.2")
    files = list((tmp_path / "t" / "data").iterdir())
    with pytest.raises(SchemaMismatchError, match="expected no nulls") as refused:
        way(dataset, rows.select(["c"]))
    assert refused.value.column == path
    assert esker.dataset(uri).schema.names == ["id"]
    assert list((tmp_path / "t" / "data").iterdir()) == files


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("kind", SOUND)
def test_what_is_below_a_null_or_outside_does_not_count(kind: str, version: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    column = SOUND[kind]
    esker.write_dataset(_table(column), uri, data_storage_version=version)
    expected = _table(column).to_pylist()
    assert esker.dataset(uri).to_table().to_pylist() == expected
    assert lance.dataset(uri).to_table().to_pylist() == expected
    assert esker.dataset(uri).take([1, 2]).to_pylist() == expected[1:]


def test_nullable_fields_fill_required_ones_where_no_null_is(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for column in (_struct(pa.array([1, 2, 3])), _list([0, 1, 1, 3], pa.array([1, 2, 3]))):
        esker.write_dataset(_table(column), uri, mode="overwrite")
        loose = pa.array(column.to_pylist())
        esker.write_dataset(_table(loose), uri, mode="append")
        assert esker.dataset(uri).to_table()["c"].to_pylist() == column.to_pylist() * 2
    with pytest.raises(SchemaMismatchError):
        esker.write_dataset(_table(pa.array([[1], [None], []])), uri, mode="append")


def test_a_required_column_of_words_has_no_null_word(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    with pytest.raises(SchemaMismatchError, match="found 1 nulls"):
        esker.write_dataset(_table(_words(0, 1, 0), nullable=False), uri)
    esker.write_dataset(_table(_words(0, 0, 0), nullable=False), uri)
    assert esker.dataset(uri).to_table()["c"].to_pylist() == ["x"] * 3


def test_a_null_in_a_later_batch_leaves_no_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    good, bad = _struct(pa.array([1, 2, 3])), _struct(SOME)
    batches = [*_table(good).to_batches() * 50, *_table(bad).to_batches()]
    with pytest.raises(SchemaMismatchError):
        esker.write_dataset(iter(batches), uri, schema=_table(good).schema, max_rows_per_file=10)
    assert not [file for file in tmp_path.rglob("*.lance") if file.is_file()]
