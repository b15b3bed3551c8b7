"""Compaction beside other writers: what is carried, what costs a group, and what is left of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitConflictError
from esker.optimize import Compaction, CompactionMetrics, RewriteResult
from esker.store import stores
from tests.leftovers import check_leftovers

BY_PYLANCE = ("two deletes", "delete of theirs", "update of theirs", "compaction of theirs")
"""What takes pylance, whose transactions are not where ours are."""

Write = Callable[[str], object]


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([one * 10 for one in ids], pa.int64())})


def _table(uri: str, **options: Any) -> esker.LanceDataset:
    """Rows 0 to 39 in four fragments."""
    return esker.write_dataset(_rows(0, 40), uri, max_rows_per_file=10, durable=False, **options)


def _contents(uri: str) -> dict[int, int]:
    found = esker.dataset(uri).to_table()
    keys = found["id"].to_pylist()
    assert len(set(keys)) == len(keys)
    theirs = lance.dataset(uri).to_table(columns=["id", "n"])
    contents = dict(zip(keys, found["n"].to_pylist(), strict=True))
    assert dict(zip(theirs["id"].to_pylist(), theirs["n"].to_pylist(), strict=True)) == contents
    return contents


def _check_leftovers(uri: str, other: str) -> None:
    if other not in BY_PYLANCE:
        check_leftovers(uri)


def _merge(uri: str) -> object:
    new = pa.table({"id": pa.array([3, 12, 77], pa.int64()), "n": pa.array([1, 2, 3], pa.int64())})
    return esker.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


def _emptied(uri: str) -> object:
    """All rows of one fragment go, and so does the fragment."""
    return esker.dataset(uri).delete("id < 10")


CARRIED: dict[str, Write] = {
    "append": lambda uri: esker.write_dataset(_rows(40, 5), uri, mode="append"),
    "config": lambda uri: esker.dataset(uri).update_config({"a": "b"}),
    "tag": lambda uri: esker.dataset(uri).tags.create("then", 1),
    "delete": lambda uri: esker.dataset(uri).delete("id % 4 = 0"),
    "delete of theirs": lambda uri: lance.dataset(uri).delete("id % 4 = 0"),
    "two deletes": lambda uri: (esker.dataset(uri).delete("id = 1"), lance.dataset(uri).delete("id = 11 or id = 2")),
    "update": lambda uri: esker.dataset(uri).update({"n": "n + 1"}, where="id % 3 = 0"),
    "update of theirs": lambda uri: lance.dataset(uri).update({"n": "n + 1"}, where="id % 3 = 0"),
    "merge_insert": _merge,
    "delete of a fragment": _emptied,
    "delete of all": lambda uri: esker.dataset(uri).delete("id >= 0"),
    "compaction of others": lambda uri: esker.dataset(uri).optimize.compact_files(excluded_fragment_ids=[0, 1, 2, 3]),
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("other", CARRIED)
def test_a_compaction_lands_beside_what_changes_rows(other: str, stable: bool, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri, enable_stable_row_ids=stable)
    dataset.delete("id = 5")
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    CARRIED[other](uri)
    before, version = _contents(uri), esker.dataset(uri).version
    ids = _row_ids(uri) if stable else {}
    metrics = Compaction.commit(dataset, results)
    assert (metrics.fragments_removed, metrics.lost) == (4, ())
    assert dataset.version == version + 2
    assert _contents(uri) == before
    if stable:
        assert _row_ids(uri) == ids
    _check_leftovers(uri, other)
    esker.dataset(uri).optimize.compact_files()
    assert _contents(uri) == before


def _row_ids(uri: str) -> dict[int, int]:
    found = esker.dataset(uri).to_table(columns=["id"], with_row_id=True)
    theirs = lance.dataset(uri).scanner(columns=["id"], with_row_id=True).to_table()
    ids = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
    assert dict(zip(theirs["id"].to_pylist(), theirs["_rowid"].to_pylist(), strict=True)) == ids
    return ids


COSTLY: dict[str, Write] = {
    "add_columns": lambda uri: esker.dataset(uri).add_columns({"m": "n + 1"}),
    "overwrite": lambda uri: esker.write_dataset(_rows(100, 4), uri, mode="overwrite"),
    "restore": lambda uri: esker.dataset(uri, version=1).restore(),
    "compaction": lambda uri: esker.dataset(uri).optimize.compact_files(),
    "compaction of theirs": lambda uri: lance.dataset(uri).optimize.compact_files(),
    "cast": lambda uri: esker.dataset(uri).alter_columns({"path": "n", "data_type": pa.int32()}),
}


@pytest.mark.parametrize("other", COSTLY)
def test_what_rewrites_columns_or_fragments_costs_the_group(other: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    COSTLY[other](uri)
    before = _contents(uri)
    with pytest.raises(CommitConflictError, match="Rewrite"):
        Compaction.commit(dataset, results)
    assert _contents(uri) == before
    there = {meta.path for meta in Store(uri).list("data/")}
    assert not there & {place for result in results for place in result.files}
    _check_leftovers(uri, other)
    # Done anew it lands.
    esker.dataset(uri).optimize.compact_files()
    assert _contents(uri) == before


def test_lost_groups_are_left_out_and_named(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {"target_rows_per_fragment": 20}).tasks]
    assert len(results) == 2
    esker.dataset(uri).optimize.compact_files(excluded_fragment_ids=[2, 3])
    before = _contents(uri)
    metrics = Compaction.commit(dataset, results)
    assert metrics == CompactionMetrics(2, 1, 2, 1)
    (lost,) = metrics.lost
    assert lost.fragment_ids == (0, 1)
    assert isinstance(lost.error, CommitConflictError)
    assert _contents(uri) == before
    assert len(esker.dataset(uri).get_fragments()) == 2
    check_leftovers(uri)


def test_a_result_that_is_committed_twice_is_there_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri)
    first, second = (task.execute(dataset) for task in Compaction.plan(dataset, {"target_rows_per_fragment": 20}).tasks)
    assert Compaction.commit(dataset, [first, second]) == CompactionMetrics(4, 2, 4, 2)
    before = _contents(uri)
    for results in ([first, second], [second], [RewriteResult.from_json(first.json())]):
        # Somebody who did not see the reply commits it again, in whatever form.
        metrics = Compaction.commit(esker.dataset(uri), results)
        assert (metrics.fragments_removed, metrics.lost) == (2 * len(results), ())
        assert _contents(uri) == before
    check_leftovers(uri)
    assert _contents(uri) == before


def test_a_result_of_a_version_that_was_cleaned_up(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = _table(uri)
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    esker.dataset(uri).update_config({"a": "b"})
    esker.dataset(uri).cleanup_old_versions(retain_versions=1)
    before = _contents(uri)
    with pytest.raises(CommitConflictError, match="cleaned up"):
        Compaction.commit(dataset, results)
    assert _contents(uri) == before


class Meddling:
    """Answers to `meddle://` URIs: runs what others do at the first data file that is put, or at each."""

    def __init__(self, write: Write, times: int = 1) -> None:
        self.write = write
        self.left = times

    def __call__(self, uri: str, options: Mapping[str, str], durable: bool) -> Store:
        """The store at the rest of the URI."""
        place = uri.removeprefix("meddle://")
        return FaultStore(Store(place), watch=lambda verb, path: self._watch(place, verb, path)).store

    def _watch(self, place: str, verb: str, path: str) -> None:
        if self.left and path.startswith("data/") and verb == "writer":
            self.left -= 1
            thread = threading.Thread(target=self.write, args=(place,))
            thread.start()
            thread.join()


def _more_and_compacted(uri: str) -> None:
    esker.dataset(uri).optimize.compact_files()
    for _ in range(2):
        esker.write_dataset(_rows(esker.dataset(uri).count_rows(), 30), uri, mode="append")


def test_who_is_slower_than_other_compactors_has_not_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    meddling = Meddling(_more_and_compacted, 1000)
    monkeypatch.setitem(stores._factories, "meddle", meddling)
    metrics = esker.dataset(f"meddle://{uri}").optimize.compact_files()
    assert metrics.fragments_removed == 0
    assert metrics.lost
    assert meddling.left == 1000 - 5
    assert sorted(_contents(uri)) == list(range(40 + 5 * 60))
    check_leftovers(uri)


def test_columns_that_are_rewritten_again_and_again_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    types = iter([pa.int32(), pa.int64()] * 20)
    meddling = Meddling(lambda place: esker.dataset(place).alter_columns({"path": "n", "data_type": next(types)}), 1000)
    monkeypatch.setitem(stores._factories, "meddle", meddling)
    with pytest.raises(CommitConflictError, match="Rewrite"):
        esker.dataset(f"meddle://{uri}").optimize.compact_files()
    assert len(_contents(uri)) == 40
    check_leftovers(uri)


@pytest.mark.parametrize("other", [*CARRIED, *COSTLY])
def test_compact_files_ends_well_whatever_others_do(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    _table(uri)
    meddling = Meddling({**CARRIED, **COSTLY}[other])
    monkeypatch.setitem(stores._factories, "meddle", meddling)
    copy = str(tmp_path / "copy")
    _table(copy)
    {**CARRIED, **COSTLY}[other](copy)
    dataset = esker.dataset(f"meddle://{uri}")
    metrics = dataset.optimize.compact_files()
    assert not meddling.left
    assert metrics.lost == ()
    assert _contents(uri) == _contents(copy)
    _check_leftovers(uri, other)
    # A deletion file that was carried may be work for a second run.
    esker.dataset(uri).optimize.compact_files()
    adds = ("append", "update", "update of theirs", "merge_insert")
    assert len(esker.dataset(uri).get_fragments()) <= 1 or other in adds
    assert _contents(uri) == _contents(copy)
