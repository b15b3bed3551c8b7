"""Merges that leave rows where they are: new files of the columns of the source, as those of pylance write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CommitConflictError, InvalidArgumentError
from tests.merging import pair, same_rows

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, None],
        "v": [10, 20, 30, 40, 50, 60],
        "st": [{"a": n, "b": [n]} for n in range(6)],
        "s": ["a", "b", "c", "d", "e", "f"],
    }
)
SOURCE = pa.table({"id": [4, 2, 9, None], "v": [400, 200, 900, 600]})


def _in_place(dataset: Any, condition: str | None = None) -> Any:
    return dataset.merge_insert("id").when_matched_update_all(condition).write_mode("rewrite_columns")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("condition", [None, "source.v > 300", "target.v > 1000"])
@pytest.mark.parametrize("deleted", [False, True], ids=["whole", "deletions"])
def test_changed_columns_are_those_of_pylance(uri: str, stable: bool, condition: str | None, deleted: bool) -> None:
    ours, theirs = pair(uri, ROWS, max_rows_per_file=2, enable_stable_row_ids=stable)
    for dataset in (ours, theirs):
        if deleted:
            dataset.delete("id in (1, 4)")
    results = [tuple(_in_place(dataset, condition).execute(SOURCE).values()) for dataset in (ours, theirs)]
    assert results[0] == results[1]
    same_rows(ours, theirs)
    assert ours.to_table().to_pydict() == theirs.to_table().to_pydict()
    own, other = (lance.dataset(d.uri).read_transaction(d.version).operation for d in (ours, theirs))
    assert own.update_mode == other.update_mode == "rewrite_columns"
    assert sorted(own.fields_modified) == sorted(other.fields_modified)
    assert (own.updated_fragment_offsets or {}) == (other.updated_fragment_offsets or {})
    assert own.new_fragments == own.removed_fragment_ids == []
    columns = [[sorted(file.fields) for file in f.files] for f in own.updated_fragments]
    assert columns == [[sorted(file.fields) for file in f.files] for f in other.updated_fragments]


def test_nested_columns_change_in_place(uri: str) -> None:
    ours, theirs = pair(uri, ROWS, max_rows_per_file=4)
    source = pa.table({"st": [{"a": 7, "b": [8, 9]}, None], "id": [5, 1]})
    for dataset in (ours, theirs):
        _in_place(dataset).execute(source)
    same_rows(ours, theirs)


def test_what_rows_must_move_for_is_refused(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    theirs = lance.dataset(uri)
    sources = [ROWS, SOURCE.select(["id"])]
    for source in sources:
        with pytest.raises(InvalidArgumentError, match="for write_mode 'rewrite_columns'"):
            _in_place(dataset).execute(source)
        with pytest.raises(OSError, match="RewriteColumns cannot express this"):
            _in_place(theirs).execute(source)
    with pytest.raises(InvalidArgumentError, match="only updates rows that match"):
        _in_place(dataset).when_not_matched_insert_all().execute(SOURCE)
    assert esker.dataset(uri).version == 1


def test_a_column_merge_is_computed_again_where_others_changed_the_fragment(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    stale = esker.dataset(uri)
    transaction, _ = _in_place(stale).execute_uncommitted(SOURCE)
    dataset.update({"s": "'x'"}, where="id = 2")
    with pytest.raises(CommitConflictError):
        esker.LanceDataset.commit(uri, transaction)
    assert _in_place(stale).execute(iter(SOURCE.to_batches()), schema=SOURCE.schema)["num_updated_rows"] == 2
    found = {row["id"]: (row["v"], row["s"]) for row in stale.to_table(columns=["id", "v", "s"]).to_pylist()}
    assert (found[2], found[4], found[5]) == ((200, "x"), (400, "d"), (50, "e"))


@pytest.mark.parametrize("both", [False, True])
def test_a_merge_that_only_deletes_takes_a_source_with_any_columns(both: bool, tmp_path: Path) -> None:
    # With both clauses pylance fails with an internal error of its own.
    for library in (esker,) if both else (esker, lance):
        uri = str(tmp_path / library.__name__)
        dataset: Any = library.write_dataset(pa.table({"k": [1, 2, 3], "n": [0, 0, 0]}), uri)
        upsert = dataset.merge_insert("k").when_matched_delete()
        if both:
            upsert = upsert.when_not_matched_by_source_delete("k = 3")
        upsert.execute(pa.table({"zzz": ["x"], "k": [1], "n": [5]}))
        assert lance.dataset(uri).to_table()["k"].to_pylist() == ([2] if both else [2, 3])
