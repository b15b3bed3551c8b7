"""Deletes, updates and merges of which nobody knows whether they landed, that lose a race besides, or that are killed.

The table has vectors in files, a feed and checkpoints. Whatever comes, in whichever attempt: rows are those of before
or of after, on top of what others did; a verb that was told as done is there, and nobody's rows are there twice.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from esker._native.delta import Snapshot
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import CommitProperties, DeltaTable, write_deltalake
from esker.delta.log.commit import DeltaCommit
from esker.exceptions import CommitConflictError, CommitStateUnknownError, EskerError
from esker.repo import Repository
from esker.store import stores
from tests.faulty import Faulty
from tests.test_delta_delete import read_by_theirs
from tests.test_delta_verb_double_faults import OTHERS, VERBS, Rows

pytestmark = pytest.mark.filterwarnings("ignore:version .* is committed")
COUNT = 900
ON: dict[str, str | None] = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": "3",
}


def prepare(uri: str) -> Rows:
    """Versions 0 and 1; the file has a vector, and the version after the next one has a checkpoint."""
    write_deltalake(uri, pa.table({"id": range(COUNT), "n": range(COUNT)}), configuration=ON)
    DeltaTable(uri).delete("id % 7 = 5")
    return {key: key for key in range(COUNT) if key % 7 != 5}


def state(uri: str | Path) -> Rows:
    table = DeltaTable(uri).to_pyarrow_table()
    found = dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert len(found) == table.num_rows, "no row is there twice"
    return found


def check(path: Path, old: Rows, new: Rows, told: BaseException | None, what: str) -> None:
    found = state(path)
    assert found in (old, new), what
    if told is None:
        assert found == new, what
    if isinstance(told, CommitConflictError):
        assert found == old, what
    table = DeltaTable(path)
    assert pa.table(table.load_cdf(1)).num_rows, what
    table.delete("id = 4", commit_properties=CommitProperties(max_commit_retries=0))
    left = {key: value for key, value in found.items() if key != 4}
    assert state(path) == left, what
    theirs = read_by_theirs(path)
    assert dict(zip(theirs["id"].to_pylist(), theirs["n"].to_pylist(), strict=True)) == left, what


class Race:
    """Has another writer land before the first entry of ours is put."""

    def __init__(self, patch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
        self.raced = False
        entry = DeltaCommit.next_bytes

        def after_others(commit: DeltaCommit, version: int) -> bytes:
            if not self.raced:
                self.raced = True
                with pytest.MonkeyPatch.context() as alone:
                    alone.setattr(DeltaCommit, "next_bytes", entry)
                    other()
            return entry(commit, version)

        patch.setattr(DeltaCommit, "next_bytes", after_others)


class Interrupts:
    """Ctrl-C at one of the operations that Python asks of a store, before it or after it."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
        self.count, self._at, self._after = 0, at, after
        for name in ("put", "put_if_absent", "get", "get_ranges", "head", "list", "list_paths", "delete"):
            patch.setattr(Store, name, self._wrap(getattr(Store, name)))
        for name in ("select", "refresh"):
            patch.setattr(Snapshot, name, self._wrap(getattr(Snapshot, name)))

    def _wrap(self, done: Callable[..., object]) -> Callable[..., object]:
        def operation(*args: object, **kwargs: object) -> object:
            self.count += 1
            is_now = self.count == self._at
            if is_now and not self._after:
                raise KeyboardInterrupt
            found = done(*args, **kwargs)
            if is_now:
                raise KeyboardInterrupt
            return found

        return operation


@pytest.mark.parametrize(
    ("verb", "other"), [("delete", "append"), ("update", "delete"), ("merge", "delete"), ("replace", "delete")]
)
def test_ctrl_c_may_come_at_any_operation_of_a_verb_that_loses_a_race(verb: str, other: str, tmp_path: Path) -> None:
    template = tmp_path / "template"
    before = prepare(str(template))
    count = None
    for number in range(400):
        for is_after in (False, True) if number else (False,):
            path = tmp_path / f"{number}-{is_after}"
            shutil.copytree(template, path)
            told: BaseException | None = None
            with pytest.MonkeyPatch.context() as patch:
                race = Race(patch, lambda path=path: OTHERS[other][0](path))  # type: ignore[misc]
                found = Interrupts(patch, number, after=is_after)
                try:
                    VERBS[verb][0](DeltaTable(path))
                except (KeyboardInterrupt, EskerError) as error:
                    told = error
            if number == 0:
                assert told is None
                count = found.count
                assert count > 12
            # The other writer's operations are counted too: it may be the one that is interrupted.
            others = OTHERS[other][1](before)
            old = others if race.raced and state_has(path, others, before) else before
            check(path, old, VERBS[verb][1](old), told, f"operation {number} of {count}, after: {is_after}")
            shutil.rmtree(path)
        if number == count:
            return
    raise AssertionError("expected an end of operations")


def state_has(path: Path, others: Rows, before: Rows) -> bool:
    """Whether the other writer has landed: its entry is there."""
    return DeltaTable(path).version() > 1 and others != before


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("then", ["get", "list", "every"])
@pytest.mark.parametrize("first", ["lose_reply", "crash_after", "fail"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_reply_that_is_lost_after_a_lost_race_and_more_that_fails(
    verb: str, first: str, then: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second attempt's put has no reply, nor have the reads that would tell whether it landed, once or for good."""
    before = prepare(str(tmp_path))
    left = {"puts": 1, "faults": times}

    def said(operation: str, path: str) -> str | None:
        if operation == "put_if_absent" and path.startswith("_delta_log/") and race.raced and left["puts"]:
            left["puts"] -= 1
            # The first one meets the other's entry.
            return None if left["puts"] else first
        if race.raced and not left["puts"] and left["faults"] and (then == "every" or operation.startswith(then)):
            left["faults"] -= 1
            return "fail"
        return None

    left["puts"] = 2
    stores.register("watched", lambda uri, options, durable: FaultStore(Store(str(tmp_path)), "", watch=said).store)
    told: BaseException | None = None
    with monkeypatch.context() as patch:
        race = Race(patch, lambda: OTHERS["delete"][0](tmp_path))
        try:
            VERBS[verb][0](DeltaTable(f"watched://{tmp_path}"))
        except EskerError as error:
            told = error
    assert race.raced
    assert left["puts"] == 0
    assert told is None or isinstance(told, CommitStateUnknownError), told
    old = OTHERS["delete"][1](before)
    check(tmp_path, old, VERBS[verb][1](old), told, f"{told!r}")


KILLED = """
import sys
from esker.store import stores
from tests.faulty import Faulty
from tests.test_delta_verb_double_faults import VERBS
from esker.delta import DeltaTable
stores.register("fault", Faulty())
VERBS[sys.argv[2]][0](DeltaTable("fault://" + sys.argv[1], storage_options={"plan": sys.argv[3]}))
"""


def test_a_writer_may_be_killed_between_any_two_writes(faulty: Faulty, tmp_path: Path) -> None:
    template = tmp_path / "template"
    before = prepare(str(template))
    running = []
    for verb in VERBS:
        path = tmp_path / verb
        shutil.copytree(template, path)
        VERBS[verb][0](DeltaTable(f"fault://{path}", storage_options={"plan": ""}))
        operations = max((made.operations for made in faulty.made), key=len)
        faulty.made.clear()
        for number in [number for number, kind, _ in operations if kind in ("put", "put_if_absent")]:
            plan = f"kill_after@{number}"
            path = tmp_path / f"{verb}-{number}"
            shutil.copytree(template, path)
            command = [sys.executable, "-c", KILLED, str(path), verb, plan]
            running.append((path, verb, plan, subprocess.Popen(command)))
    assert len(running) > 6
    for path, verb, plan, process in running:
        assert process.wait(120) == -signal.SIGKILL
        check(path, before, VERBS[verb][1](before), KeyboardInterrupt(), f"{verb}, {plan}")


FAULTS = ["crash_before", "crash_after", "lose_reply", "fail", "disk_full"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", ["uri", "transaction"])
def test_a_verb_on_a_branch_that_loses_a_race_and_fails_at_any_write(
    way: str, fault: str, faulty: Faulty, tmp_path: Path
) -> None:
    """The other writer commits to the branch, beside which the table's own store fails."""
    template = tmp_path / "template"
    repo = Repository.create(str(template), committer="me")
    before = prepare(repo.branch("main").store_uri("d"))

    def merge(repo: Repository, other: Callable[[], object]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if way == "uri":
                Race(patch, other)
                VERBS["merge"][0](DeltaTable(repo.branch("main").store_uri("d")))
                return
            with repo.branch("main").transact("ours") as tx:
                VERBS["merge"][0](DeltaTable(tx.store_uri("d")))
                other()

    def work(uri: Path, plan: str) -> BaseException | None:
        def other() -> None:
            found = Repository(str(uri)).branch("main").store_uri("d")
            write_deltalake(found, pa.table({"id": [900_000], "n": [1]}), mode="append")

        try:
            merge(Repository(f"fault://{uri}", storage_options={"plan": plan}), other)
        except EskerError as error:
            return error
        return None

    shutil.copytree(template, tmp_path / "counted")
    assert work(tmp_path / "counted", "") is None
    operations = max((made.operations for made in faulty.made), key=len)
    writes = [number for number, kind, _ in operations if kind in ("put", "put_if_absent", "delete")]
    assert len(writes) > 4
    for number in writes:
        uri = tmp_path / f"{number}"
        shutil.copytree(template, uri)
        told = work(uri, f"{fault}@{number}")
        what = f"{way}, {fault}@{number}: {told!r}"
        there = Repository(str(uri))
        found = state(there.branch("main").store_uri("d"))
        others = {**before, 900_000: 1}
        wanted = [before, others, VERBS["merge"][1](dict(before)), VERBS["merge"][1](dict(others))]
        assert found in wanted, what
        if told is None:
            assert found == wanted[3], what
        if isinstance(told, CommitConflictError):
            assert found in wanted[:2], what
        assert list(there.fsck(tables=True)) == [], what
        DeltaTable(there.branch("main").store_uri("d")).delete("id = 4")
        assert 4 not in state(there.branch("main").store_uri("d")), what
        shutil.rmtree(uri)
