"""Deletes of different rows of one fragment: the later one adapts its deletion files, whoever made the first."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import esker
from esker import LanceOperation
from esker.commit import commit
from esker.exceptions import CommitConflictError
from esker.fragment import write_fragments
from esker.lance import DeletionMerge, LanceCommit


def _prepared(uri: str, predicate: str) -> LanceOperation.Delete:
    """A delete that was computed from the newest version and not committed yet; its deletion files are there."""
    copy = f"{uri}-{abs(hash(predicate))}"
    shutil.copytree(uri, copy)
    lance.dataset(copy).delete(predicate)
    Path(uri, "_deletions").mkdir(exist_ok=True)
    for file in Path(copy, "_deletions").glob("*"):
        shutil.copy(file, Path(uri, "_deletions"))
    read = esker.dataset(copy).get_transactions(1)[0]
    shutil.rmtree(copy)
    assert read is not None
    assert isinstance(read.operation, LanceOperation.Delete)
    return read.operation


def _commit(uri: str, operation: LanceOperation.BaseOperation, version: int) -> int:
    base = esker.dataset(uri, version=version)
    transaction = operation.to_native(version, None)
    return commit(LanceCommit(base._log, transaction, reconcile=DeletionMerge(base._log, base._manifest)))


def _table(uri: str, rows: int = 20) -> None:
    esker.write_dataset(pa.table({"id": list(range(rows))}), uri, max_rows_per_file=max(rows // 2, 1), durable=False)


def _left(uri: str) -> list[int]:
    ours = sorted(esker.dataset(uri).to_table()["id"].to_pylist())
    assert ours == sorted(lance.dataset(uri).to_table()["id"].to_pylist())
    lance.dataset(uri).validate()
    return ours


def test_rows_that_both_deleted_apart_are_deleted_together(uri: str) -> None:
    _table(uri)
    ours, more = _prepared(uri, "id = 3 or id = 15"), _prepared(uri, "id in (0, 19)")
    lance.dataset(uri).delete("id = 4 or id = 5")
    assert _commit(uri, ours, 1) == 3
    assert _commit(uri, more, 1) == 4
    assert _left(uri) == [1, 2, *range(6, 15), 16, 17, 18]


def test_a_row_that_both_deleted_is_a_conflict(uri: str) -> None:
    _table(uri)
    ours = _prepared(uri, "id in (3, 4)")
    lance.dataset(uri).delete("id = 4")
    with pytest.raises(CommitConflictError) as caught:
        _commit(uri, ours, 1)
    assert (caught.value.retryable, caught.value.other_version) == (True, 2)
    assert _left(uri) == [n for n in range(20) if n != 4]


def test_a_fragment_that_both_emptied_together_leaves(uri: str) -> None:
    _table(uri)
    ours = _prepared(uri, "id < 5")
    lance.dataset(uri).delete("id >= 5 and id < 10")
    _commit(uri, ours, 1)
    assert _left(uri) == list(range(10, 20))
    assert esker.dataset(uri).fragment_ids() == [1]


def test_a_fragment_that_one_removed_as_a_whole_is_a_conflict_for_the_other(uri: str) -> None:
    _table(uri)
    ours, all_of_it = _prepared(uri, "id = 3"), _prepared(uri, "id < 10")
    lance.dataset(uri).delete("id = 7")
    with pytest.raises(CommitConflictError):
        _commit(uri, all_of_it, 1)
    lance.dataset(uri).delete("id < 10")
    with pytest.raises(CommitConflictError):
        _commit(uri, ours, 1)
    assert _left(uri) == list(range(10, 20))


def test_moved_rows_and_deleted_ones_go_together(uri: str) -> None:
    _table(uri)
    masked = _prepared(uri, "id = 3")
    lance.dataset(uri).delete("id = 4")
    new = write_fragments(pa.table({"id": [103]}), uri)
    _commit(uri, LanceOperation.Update([], list(masked.updated_fragments), new), 1)
    assert _left(uri) == [n for n in range(20) if n not in (3, 4)] + [103]


def test_a_row_that_was_moved_away_is_a_conflict(uri: str) -> None:
    _table(uri)
    ours = _prepared(uri, "id = 3")
    lance.dataset(uri).update({"id": "id + 100"}, where="id = 3")
    with pytest.raises(CommitConflictError):
        _commit(uri, ours, 1)


def test_many_rows_make_a_bitmap(uri: str) -> None:
    _table(uri, 20_000)
    ours = _prepared(uri, "id % 3 = 0")
    lance.dataset(uri).delete("id % 3 = 1")
    _commit(uri, ours, 1)
    assert _left(uri) == list(range(2, 20_000, 3))
    assert all(fragment.deletion_file().endswith(".bin") for fragment in esker.dataset(uri).get_fragments())  # type: ignore[union-attr]


@settings(max_examples=15)
@given(st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_any_share_of_rows_between_writers(tmp_path_factory: pytest.TempPathFactory, owners: list[int]) -> None:
    """Each of three writers deletes its own rows, all computed from the first version; those of nobody stay."""
    uri = str(tmp_path_factory.mktemp("share") / "table")
    _table(uri)
    wanted = [[n for n, owner in enumerate(owners) if owner == writer] for writer in (1, 2, 3)]
    prepared = [_prepared(uri, f"id in ({', '.join(map(str, rows))})") for rows in wanted if rows]
    # Whoever empties a fragment alone removes it, and that stands in the way of the others.
    assume(not any(operation.deleted_fragment_ids for operation in prepared))
    for operation in prepared:
        _commit(uri, operation, 1)
    assert _left(uri) == [n for n in range(20) if owners[n] == 0]
