"""Merges that only delete, by keys that are integers or texts of another width than the table's, beside pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import SchemaMismatchError


@pytest.mark.parametrize("given", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64()], ids=str)
@pytest.mark.parametrize("stored", [pa.int64(), pa.int16(), pa.uint32()], ids=str)
@pytest.mark.parametrize("by_source", [False, True])
def test_rows_are_found_by_keys_of_any_width(
    tmp_path: Path, stored: pa.DataType, given: pa.DataType, by_source: bool
) -> None:
    kept = []
    for library in (lance, esker):
        peer: Any = library
        rows = pa.table({"id": pa.array([1, 2, 3, None], stored), "s": ["a", "b", "c", "d"]})
        dataset = peer.write_dataset(rows, str(tmp_path / peer.__name__))
        merge = dataset.merge_insert("id")
        merge = merge.when_not_matched_by_source_delete() if by_source else merge.when_matched_delete()
        merge.execute(pa.table({"id": pa.array([3, 100, None], given)}))
        kept.append(sorted(dataset.to_table()["s"].to_pylist()))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("given", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@pytest.mark.parametrize("stored", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("by_source", [False, True])
def test_rows_are_found_by_texts_of_any_layout(
    tmp_path: Path, stored: pa.DataType, given: pa.DataType, by_source: bool
) -> None:
    kept = []
    for library in (lance, esker):
        peer: Any = library
        rows = pa.table({"id": pa.array(["a", "b", "", None], stored), "n": [1, 2, 3, 4]})
        dataset = peer.write_dataset(rows, str(tmp_path / peer.__name__))
        merge = dataset.merge_insert("id")
        merge = merge.when_not_matched_by_source_delete() if by_source else merge.when_matched_delete()
        merge.execute(pa.table({"id": pa.array(["b", "z", "", None], given)}))
        kept.append(sorted(dataset.to_table()["n"].to_pylist()))
    assert kept[0] == kept[1]


def test_bytes_are_no_texts(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"id": pa.array([b"a", b"b"], pa.large_binary())}), str(tmp_path / "t"))
    merge = dataset.merge_insert("id").when_matched_delete()
    with pytest.raises(SchemaMismatchError, match="another type"):
        merge.execute(pa.table({"id": ["a"]}))
    with pytest.raises(SchemaMismatchError, match="but type was json"):
        merge.execute(pa.table({"id": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["1"]))}))
    assert merge.execute(pa.table({"id": pa.array([b"a"], pa.binary())}))["num_deleted_rows"] == 1


def test_keys_that_do_not_fit_are_those_of_no_row(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"id": pa.array([-1, 0, 127], pa.int8())}), str(tmp_path / "t"))
    keys = pa.table({"id": pa.array([2**64 - 1, 255, 127], pa.uint64())})
    assert dataset.merge_insert("id").when_matched_delete().execute(keys)["num_deleted_rows"] == 1
    assert dataset.to_table()["id"].to_pylist() == [-1, 0]
    with pytest.raises(SchemaMismatchError, match="another type"):
        dataset.merge_insert("id").when_matched_update_all().execute(keys)
