"""Dictionary columns of version 0.1, whose values the manifest holds: only writes that put them there bring files.

pylance refuses the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import UnsupportedError

_WORDS = pa.dictionary(pa.int16(), pa.string())


def _words(*values: str | None) -> pa.Array:
    return pa.array(values).dictionary_encode().cast(_WORDS)


def _nulls(dataset: esker.LanceDataset) -> esker.LanceDataset:
    """The table with a column of words of which nothing is there."""
    dataset.add_columns(pa.field("c", _WORDS))
    return dataset


_WAYS: dict[str, Callable[[esker.LanceDataset], object]] = {
    "cast": lambda ds: ds.alter_columns({"path": "t", "data_type": _WORDS}),
    "add from a reader": lambda ds: ds.add_columns(pa.table({"c": _words("a", "b", "c")}).to_reader()),
    "join": lambda ds: ds.merge(pa.table({"id": [1, 2, 3], "c": _words("a", "b", "c")}), "id"),
    "update": lambda ds: _nulls(ds).update({"c": "'w'"}),
    "update of another column": lambda ds: _nulls(ds).update({"id": "id + 1"}, where="id = 1"),
    "upsert": lambda ds: (
        _nulls(ds)
        .merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(pa.table({"id": [1, 9], "t": ["x", "y"], "c": _words("b", "q")}))
    ),
    "compaction": lambda ds: _compacted(_nulls(ds)),
}


def _compacted(dataset: esker.LanceDataset) -> object:
    esker.write_dataset(dataset.to_table(columns=["id", "t"]), dataset.uri, mode="append")
    return esker.dataset(dataset.uri).optimize.compact_files()


def _table(tmp_path: Path) -> esker.LanceDataset:
    rows = pa.table({"id": [1, 2, 3], "t": ["a", "b", "c"]})
    return esker.write_dataset(rows, str(tmp_path / "t"), data_storage_version="0.1")


@pytest.mark.parametrize("way", _WAYS)
def test_files_whose_words_the_manifest_would_not_hold_are_refused(tmp_path: Path, way: str) -> None:
    dataset = _table(tmp_path)
    with pytest.raises(UnsupportedError, match="holds the values of dictionary columns"):
        _WAYS[way](dataset)
    found = esker.dataset(dataset.uri)
    rows = found.to_table()
    assert rows["id"].to_pylist()[:3] == [1, 2, 3]
    assert lance.dataset(dataset.uri).to_table() == rows
    # An append brings words that the manifest holds from then on; what was there has none.
    if "c" in rows.column_names:
        more = pa.table({"id": [7], "t": ["z"], "c": _words("new")})
        esker.write_dataset(more, dataset.uri, mode="append")
        expected: list[Any] = [*[None] * rows.num_rows, "new"]
        assert esker.dataset(dataset.uri).to_table()["c"].to_pylist() == expected


def test_changes_that_bring_no_words_go_on(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "c": _words("a", "b", "a")})
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(rows, uri, data_storage_version="0.1")
    dataset.merge_insert("id").when_matched_delete().execute(pa.table({"id": [2]}))
    for library in (esker, lance):
        assert library.dataset(uri).to_table()["c"].to_pylist() == ["a", "a"]
    with pytest.raises(UnsupportedError, match="holds the values"):
        dataset.update({"id": "id + 1"})
