"""Compaction with two things wrong at once: results of other tables, damaged or cleaned up, committed again and again,
and random histories in which stores fail, others write, and clean-ups run in between."""

from __future__ import annotations

import json
import os
import pickle
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitConflictError, EskerError, InvalidArgumentError
from esker.lance.commit import LanceCommit
from esker.lance.history import versions as history
from esker.lance.log import LanceLog
from esker.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult
from esker.store import stores

OPTIONS = {"target_rows_per_fragment": 20}


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([one * 10 for one in ids], pa.int64())})


def _table(uri: str, first: int = 0, **options: Any) -> esker.LanceDataset:
    return esker.write_dataset(_rows(first, 40), uri, max_rows_per_file=10, durable=False, **options)


def _executed(uri: str) -> list[RewriteResult]:
    dataset = esker.dataset(uri)
    return [task.execute(dataset) for task in Compaction.plan(dataset, OPTIONS).tasks]


def _contents(uri: str) -> list[dict[str, int]]:
    found = sorted(esker.dataset(uri).to_table().to_pylist(), key=lambda row: int(row["id"]))
    assert sorted(lance.dataset(uri).to_table().to_pylist(), key=lambda row: int(row["id"])) == found
    return found


def test_results_whose_files_were_cleaned_up_are_lost(uri: str) -> None:
    _table(uri)
    results = _executed(uri)
    before = _contents(uri)
    esker.dataset(uri).cleanup_old_versions(retain_versions=1000, delete_unverified=True)
    with pytest.raises(CommitConflictError, match="clean-up took them"):
        Compaction.commit(esker.dataset(uri), results)
    assert _contents(uri) == before


def test_of_results_those_are_committed_whose_files_are_whole(uri: str) -> None:
    _table(uri)
    first, second = _executed(uri)
    before = _contents(uri)
    (gone,) = first.files
    Store(uri).delete(gone)
    metrics = Compaction.commit(esker.dataset(uri), [first, second])
    assert metrics.fragments_removed == 2
    assert [lost.fragment_ids for lost in metrics.lost] == [(0, 1)]
    assert _contents(uri) == before


def test_files_of_another_length_are_not_committed(uri: str) -> None:
    _table(uri)
    first, _ = _executed(uri)
    before = _contents(uri)
    (torn,) = first.files
    Store(uri).put(torn, b"LANC")
    with pytest.raises(CommitConflictError, match="as they were written"):
        Compaction.commit(esker.dataset(uri), [first])
    assert _contents(uri) == before


def test_results_and_tasks_of_another_table_are_refused(uri: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    _table(uri)
    _table(other, first=100)
    results, before = _executed(other), _contents(uri)
    with pytest.raises(InvalidArgumentError, match="other files or rows"):
        Compaction.commit(esker.dataset(uri), results)
    for task in Compaction.plan(esker.dataset(other), OPTIONS).tasks:
        with pytest.raises(InvalidArgumentError, match="other files or rows"):
            task.execute(esker.dataset(uri))
    assert _contents(uri) == before
    # Nothing of theirs is deleted for it.
    assert Compaction.commit(esker.dataset(other), results).fragments_removed == 4


def test_two_results_for_one_fragment_are_refused_and_one_handed_in_twice_is_one(uri: str) -> None:
    _table(uri)
    results, version = _executed(uri), esker.dataset(uri).version
    with pytest.raises(InvalidArgumentError, match="fragment 0 twice"):
        Compaction.commit(esker.dataset(uri), [*results, *_executed(uri)])
    assert esker.dataset(uri).version == version
    twice = [*results, *(RewriteResult.from_json(one.json()) for one in results)]
    assert Compaction.commit(esker.dataset(uri), twice).fragments_removed == 4


def test_files_that_another_driver_still_waits_to_commit_are_kept(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two drivers have one result. The first sleeps in its put, and the second is refused; a clean-up frees the number
    of that put, the first one wakes, and pylance restores what it left there."""
    _table(uri)
    first, _ = _executed(uri)
    puts = LanceLog.put
    slept: list[int] = []

    def put(self: LanceLog, version: int, *args: Any, **kwargs: Any) -> bool:
        change = kwargs.get("change")
        if slept or not isinstance(change, LanceCommit) or change.operation != "Rewrite":
            return puts(self, version, *args, **kwargs)
        slept.append(version)
        compacted = esker.dataset(uri).optimize.compact_files(target_rows_per_fragment=20, excluded_fragment_ids=[2, 3])
        assert compacted.fragments_removed == 2
        with pytest.raises(CommitConflictError):
            Compaction.commit(esker.dataset(uri), [first])
        esker.write_dataset(_rows(40, 1), uri, mode="append")
        long_ago = time.time() - 2 * 86_400
        for path in Path(uri, "_transactions").iterdir():
            os.utime(path, (long_ago, long_ago))
        esker.dataset(uri).cleanup_old_versions(retain_versions=1)
        landed = puts(self, version, *args, **kwargs)
        assert landed
        lance.dataset(uri, version=version).restore()
        return landed

    monkeypatch.setattr(LanceLog, "put", put)
    with pytest.raises(CommitConflictError):
        Compaction.commit(esker.dataset(uri), [first])
    assert slept
    assert slept[0] not in [one["version"] for one in esker.dataset(uri).versions()]
    # The restored version is whole: the rows of before the append.
    assert [row["id"] for row in _contents(uri)] == list(range(40))


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no version": lambda it: it.update(read_version=None),
    "a version as text": lambda it: it.update(read_version="2"),
    "version -1": lambda it: it.update(read_version=-1),
    "another version": lambda it: it.update(read_version=1),
    "no new fragments": lambda it: it.update(new_fragments=[], staged_files=[]),
    "new fragments twice": lambda it: it["new_fragments"].extend(it["new_fragments"]),
    "new fragments of nothing": lambda it: it.update(new_fragments=[None]),
    "new fragments are none": lambda it: it.update(new_fragments=7),
    "without a column": lambda it: it["new_fragments"][0]["files"][0].update(fields=[0], column_indices=[0]),
    "without files": lambda it: it["new_fragments"][0].update(files=[]),
    "a file that is there": lambda it: it["new_fragments"][0]["files"][0].update(
        path=it["original_fragments"][0]["files"][0]["path"]
    ),
    "a file above": lambda it: it["new_fragments"][0]["files"][0].update(path="../t.lance"),
    "more rows": lambda it: it["new_fragments"][0].update(physical_rows=99),
    "no old fragments": lambda it: it.update(original_fragments=[]),
    "some old fragments": lambda it: it["original_fragments"].pop(),
    "old fragments in another order": lambda it: it["original_fragments"].reverse(),
    "old fragments twice": lambda it: it["original_fragments"].extend(it["original_fragments"]),
    "old rows deleted": lambda it: it["original_fragments"][0].update(deletion_file=None),
    "staged files of others": lambda it: it.update(staged_files=["_versions/1.manifest"]),
    "staged files as text": lambda it: it.update(staged_files="data/"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_results_are_refused_and_change_nothing(damage: str, uri: str) -> None:
    _table(uri).delete("id = 3")
    values = json.loads(_executed(uri)[0].json())
    for fragment in values["new_fragments"] + values["original_fragments"]:
        # As pylance writes them.
        del fragment["encoded"]
    DAMAGE[damage](values)
    before, files = _contents(uri), {meta.path for meta in Store(uri).list()}
    with pytest.raises(InvalidArgumentError):
        Compaction.commit(esker.dataset(uri), [RewriteResult.from_json(json.dumps(values))])
    assert _contents(uri) == before
    assert files <= {meta.path for meta in Store(uri).list()}


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks":1,"task":1,"read_version":1,"options":{}}',
        '{"tasks":[1],"task":{},"read_version":1,"options":{}}',
        '{"tasks":[{"fragments":[{}]}],"task":{"fragments":[{}]},"read_version":1,"options":{}}',
        '{"tasks":[],"task":{"fragments":[]},"read_version":1.5,"options":{}}',
        '{"tasks":[],"task":{"fragments":[]},"read_version":1,"options":[]}',
        '{"tasks":[],"task":{"fragments":[]},"read_version":1,"options":{"memory_limit":"x"}}',
        '{"tasks":[],"task":{"fragments":[]},"read_version":1,"options":{"excluded_fragment_ids":7}}',
    ],
)
@pytest.mark.parametrize("kind", [CompactionPlan, CompactionTask])
def test_damaged_plans_and_tasks_are_refused(kind: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        kind.from_json(text)


def test_a_second_commit_leaves_the_transaction_of_the_first_as_it_is(uri: str) -> None:
    _table(uri)
    results = _executed(uri)
    esker.dataset(uri).optimize.compact_files(excluded_fragment_ids=[2, 3])
    Compaction.commit(esker.dataset(uri), results)
    version = esker.dataset(uri).version
    landed = lance.dataset(uri).read_transaction(version)
    for again in (results, results[1:]):
        Compaction.commit(esker.dataset(uri), again)
        assert lance.dataset(uri).read_transaction(version) == landed
        transaction = esker.dataset(uri).read_transaction(version)
        assert transaction is not None
        groups = transaction.operation.groups  # type: ignore[attr-defined]
        assert [[one.id for one in group.old_fragments] for group in groups] == [[2, 3]]


def test_a_read_version_that_the_clean_up_of_the_ids_takes_is_a_conflict(uri: str) -> None:
    dataset = _table(uri)
    keys = {"interval": "1", "older_than": "0s", "retain_versions": "1"}
    dataset.update_config({f"lance.auto_cleanup.{key}": value for key, value in keys.items()})
    dataset.delete("id in (1, 12, 23, 34)")
    results = _executed(uri)
    esker.dataset(uri).delete("id in (2, 11, 24, 35)")
    before = _contents(uri)
    with pytest.raises(CommitConflictError):
        Compaction.commit(esker.dataset(uri), results)
    assert _contents(uri) == before
    assert esker.dataset(uri).optimize.compact_files().fragments_removed == 4
    assert _contents(uri) == before


def test_a_delete_whose_read_version_was_cleaned_up_is_computed_again(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(uri).delete("id = 1")
    puts = LanceLog.put
    others: list[int] = []

    def put(self: LanceLog, version: int, *args: Any, **kwargs: Any) -> bool:
        if not others:
            others.append(version)
            lance.dataset(uri).delete("id = 2")
            # As another process cleans up that knows of no writer.
            for path in Store(uri).list_paths("_deletions/"):
                if path.startswith("_deletions/0-1-"):
                    Store(uri).delete(path)
        return puts(self, version, *args, **kwargs)

    monkeypatch.setattr(LanceLog, "put", put)
    esker.dataset(uri).delete("id = 3")
    assert others
    assert [row["id"] for row in _contents(uri)] == [0, *range(4, 40)]


def test_versions_that_are_cleaned_up_while_they_are_listed_are_left_out(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = _table(uri)
    dataset.update_config({"a": "b"})
    uuid = dataset.read_transaction(2).uuid  # type: ignore[union-attr]
    dataset.update_config({"a": "c"})
    listings = LanceLog.listing

    def listing(self: LanceLog) -> Any:
        found = listings(self)
        for path in Store(uri).list_paths("_versions/"):
            if "18446744073709551614" in path:
                Store(uri).delete(path)
        return found

    monkeypatch.setattr(LanceLog, "listing", listing)
    assert [version["version"] for version in history.versions(dataset._table)] == [2, 3]
    assert history.find_transaction(dataset._table, "uuid", uuid, 0) == 2


class _History:
    """A table and a plain model of it, through random operations over a store that fails."""

    def __init__(self, seed: int, uri: str) -> None:
        self.random = random.Random(seed)
        self.uri = uri
        self.plan = ""
        self.results: list[RewriteResult] = []
        self.stable = self.random.random() < 0.5
        self.version = self.random.choice(["2.0", "2.1", "2.2"])
        self.next = 40
        self.model = dict.fromkeys(range(40), 0)
        rows = pa.table({"id": pa.array(self.model, pa.int64()), "n": pa.array([0] * 40, pa.int64())})
        esker.write_dataset(
            rows,
            uri,
            max_rows_per_file=self.random.choice([3, 7]),
            data_storage_version=self.version,
            enable_stable_row_ids=self.stable,
            durable=False,
        )

    def store(self, uri: str, options: object, durable: bool) -> Store:
        """The store behind `fault://`."""
        return FaultStore(Store(uri.removeprefix("fault://"), durable=False), self.plan).store

    def dataset(self) -> esker.LanceDataset:
        """The table over a store that fails twice, in half of the cases."""
        draw = self.random
        self.plan = ""
        if draw.random() < 0.5:
            places = sorted(draw.sample(range(2, 45), 2))
            faults = ["lose_reply", "fail", "crash_before", "crash_after", "tear:40"]
            self.plan = ",".join(f"{draw.choice(faults)}@{place}" for place in places)
        return esker.dataset("fault://" + self.uri) if draw.random() < 0.9 else esker.dataset(self.uri)

    def step(self) -> str:
        """One operation; what it was."""
        draw, after = self.random, dict(self.model)
        verb = draw.choice(["append", "delete", "update", "plan", "plan", "commit", "commit", "compact", "clean up"])
        ids = draw.sample(sorted(after), min(3, len(after)))
        where = f"id in ({', '.join(map(str, ids))})"
        options: Any = {"target_rows_per_fragment": draw.choice([6, 20, 1000])}
        try:
            dataset = self.dataset()
            if verb == "append":
                new = dict.fromkeys(range(self.next, self.next + 4), 0)
                after.update(new)
                self.next += 4
                rows = pa.table({"id": pa.array(new, pa.int64()), "n": pa.array([0] * 4, pa.int64())})
                esker.write_dataset(rows, dataset.uri, mode="append")
            elif verb == "delete" and ids:
                after = {key: value for key, value in after.items() if key not in ids}
                dataset.delete(where)
            elif verb == "update" and ids:
                after.update({key: after[key] + 1 for key in ids})
                dataset.update({"n": "n + 1"}, where=where)
            elif verb == "plan":
                plan: CompactionPlan = pickle.loads(pickle.dumps(Compaction.plan(dataset, options)))
                self.results += [CompactionTask.from_json(task.json()).execute(dataset) for task in plan.tasks]
            elif verb == "commit" and self.results:
                chosen = draw.sample(self.results, draw.randint(1, len(self.results)))
                Compaction.commit(dataset, [RewriteResult.from_json(result.json()) for result in chosen])
            elif verb == "compact":
                dataset.optimize.compact_files(**options)
            elif verb == "clean up":
                dataset.cleanup_old_versions(retain_versions=2, delete_unverified=draw.random() < 0.5)
        except InvalidArgumentError as error:
            if "twice" not in str(error):
                raise
        except EskerError:
            self._settle(after)
        else:
            self.model = after
        return f"{verb} {self.plan}"

    def _settle(self, after: dict[int, int]) -> None:
        """Takes the model that the table shows: before or after, and nothing else."""
        found = esker.dataset(self.uri).to_table().to_pylist()
        there = {row["id"]: row["n"] for row in found}
        assert there in (self.model, after)
        self.model = there

    def check(self) -> None:
        """Both libraries read the rows of the model, under ids of their own."""
        for library in (esker, lance):
            dataset: Any = library.dataset(self.uri)
            rows = dataset.scanner(with_row_id=True).to_table()
            assert sorted(zip(*(rows[name].to_pylist() for name in ("id", "n")), strict=True)) == sorted(
                self.model.items()
            )
            assert len(set(rows["_rowid"].to_pylist())) == rows.num_rows
            dataset.validate()

    def end(self) -> None:
        """A second compaction finds nothing to do, and what is left over goes."""
        dataset = esker.dataset(self.uri)
        dataset.optimize.compact_files()
        version = dataset.version
        dataset.optimize.compact_files()
        assert dataset.version == version
        dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
        self.check()


@pytest.mark.filterwarnings("ignore:.*could not be removed")
@pytest.mark.parametrize("seeds", [range(start, start + 15) for start in range(0, 60, 15)], ids=str)
def test_random_histories_with_faults_keep_all_rows(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        table = _History(seed, str(tmp_path / str(seed)))
        monkeypatch.setitem(stores._factories, "fault", table.store)
        done: list[str] = []
        try:
            for _ in range(10):
                done.append(table.step())
                table.check()
            table.end()
        except Exception as error:
            raise AssertionError(f"seed {seed}, {done}: {error}") from error
