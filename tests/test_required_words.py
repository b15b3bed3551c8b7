"""Dictionary fields without nulls, in structs without nulls, below a null: nothing is there, so nothing is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

_WORDS = pa.dictionary(pa.int8(), pa.string())
_INNER = pa.field("i", pa.struct([pa.field("d", _WORDS, nullable=False)]), nullable=False)


def _compacted(dataset: esker.LanceDataset, rows: pa.Table) -> None:
    dataset.insert(rows)
    dataset.optimize.compact_files()


_VERBS: dict[str, Callable[[esker.LanceDataset, pa.Table], object]] = {
    "append": lambda ds, rows: ds.insert(rows),
    "update": lambda ds, rows: ds.update({"id": "id + 10"}, where="id > 1"),
    "merge": lambda ds, rows: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    ),
    "compact": lambda ds, rows: _compacted(ds, rows),
    "add columns": lambda ds, rows: ds.add_columns(lambda batch: batch.rename_columns(["o2"]), read_columns=["o"]),
}


def _rows(words: list[str | None], valid: list[bool]) -> pa.Table:
    keys = pa.array(words).dictionary_encode().cast(_WORDS)
    mask = pa.array([not there for there in valid])
    inner = pa.StructArray.from_arrays([keys], fields=[_INNER.type.field(0)], mask=mask)
    outer = pa.StructArray.from_arrays([inner], fields=[_INNER], mask=mask)
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("o", outer.type)])
    return pa.Table.from_arrays([pa.array(range(len(words)), pa.int64()), outer], schema=schema)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("verb", _VERBS)
@pytest.mark.parametrize("words", [["a", "b", None, "a"], [None, None, None]], ids=["some", "none"])
def test_words_below_null_structs(tmp_path: Path, words: list[str | None], verb: str, version: str) -> None:
    rows = _rows(words, [word is not None for word in words])
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(rows, uri, data_storage_version=version)
    _VERBS[verb](dataset, rows)
    found = esker.dataset(uri).to_table()
    expected = [None if word is None else {"i": {"d": word}} for word in words]
    shown: list[Any] = found.sort_by("id")["o"].to_pylist()
    assert {str(it) for it in shown} == {str(it) for it in expected}
    assert lance.dataset(uri).to_table()["o"].to_pylist() == found["o"].to_pylist()
    if verb == "add columns":
        assert found["o2"].to_pylist() == expected
