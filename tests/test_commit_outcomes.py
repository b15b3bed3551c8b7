"""A commit ends landed, refused or unknown: with two and three faults at once, Ctrl-C, pauses, clean-ups beside it."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.commit.loop import Backoff
from esker.commit.orphans import Outcome, StagedFiles
from esker.exceptions import (
    CommitConflictError,
    CommitStateUnknownError,
    EskerError,
    IOFailedError,
    NotFoundError,
)
from esker.fragment import write_fragments
from esker.lance.commit import STAGED_TIME_S, LanceCommit
from esker.lance.log import LanceLog, NamingScheme
from esker.store import stores
from tests.another_writer import meanwhile
from tests.interrupts import Interrupt
from tests.leftovers import leftovers

Watch = Callable[[str, str], str | None]

VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "append": lambda it: esker.write_dataset(_rows(50, 2), it, mode="append"),
    "overwrite": lambda it: esker.write_dataset(_rows(60, 2), it, mode="overwrite"),
    "delete": lambda it: it.delete("id = 3 or id >= 8"),
    "update": lambda it: it.update({"t": "'new'"}, where="id in (2, 7)"),
    "upsert": lambda it: (
        it.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(9, 3, "new"))
    ),
    "upsert of columns": lambda it: (
        it.merge_insert("id").write_mode("rewrite_columns").when_matched_update_all().execute(_partial())
    ),
    "add columns": lambda it: it.add_columns({"twice": "id * 2"}),
    "merge": lambda it: it.merge(pa.table({"id": [2], "name": ["b"]}), "id"),
    "cast": lambda it: it.alter_columns({"path": "id", "data_type": pa.int32()}),
    "drop": lambda it: it.drop_columns(["t"]),
    "restore": lambda it: it.checkout_version(1).restore(),
    "config": lambda it: it.update_config({"k": "v"}),
}


def _rows(start: int, count: int, text: str = "x") -> pa.Table:
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.table({"id": ids, "t": [text] * count, "u": [text] * count})


def _partial() -> pa.Table:
    return pa.table({"id": pa.array([2, 7], pa.int64()), "t": ["new", "new"]})


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    """`watched["f"]` sees each operation of `fault://` stores, and may name a fault."""
    watch: dict[str, Watch] = {}

    def open_(uri: str, options: object, durable: bool) -> Store:
        inner = Store(uri.removeprefix("fault://"), durable=False)
        return FaultStore(inner, "", watch=lambda verb, path: watch["f"](verb, path) if "f" in watch else None).store

    stores.register("fault", open_)
    yield watch
    del stores._factories["fault"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda self, attempt: 0.0)


def _seed(uri: str) -> None:
    esker.write_dataset(_rows(0, 10), uri, max_rows_per_file=5, durable=False)
    esker.write_dataset(_rows(10, 2), uri, mode="append", durable=False)


def _state(uri: str) -> tuple[object, ...]:
    dataset = esker.dataset(uri)
    rows = dataset.to_table()
    assert rows.equals(lance.dataset(uri).to_table())
    return rows.schema, rows.sort_by("id").to_pydict(), dataset.config()


def _failure(work: Callable[[], object]) -> EskerError | None:
    try:
        work()
    except (IOFailedError, CommitConflictError) as error:
        return error
    return None


@pytest.mark.parametrize("verb", list(VERBS))
def test_ctrl_c_at_any_call_of_the_store_leaves_the_version_before_or_after(verb: str, tmp_path: Path) -> None:
    seed, sound = str(tmp_path / "seed"), str(tmp_path / "sound")
    _seed(seed)
    shutil.copytree(seed, sound)
    before = _state(sound)
    table = esker.dataset(sound)
    with Interrupt() as counted:
        VERBS[verb](table)
    after = _state(sound)
    puts = [number for number, event in enumerate(counted.events) if event == "c_return Store.put_if_absent"]
    assert len(puts) == 1, counted.events
    for number, event in enumerate(counted.events):
        uri = str(tmp_path / str(number))
        shutil.copytree(seed, uri)
        table = esker.dataset(uri)
        with pytest.raises(KeyboardInterrupt), Interrupt(number):
            VERBS[verb](table)
        assert _state(uri) == (after if number >= puts[0] else before), event
        leftovers(Store(uri))
        shutil.rmtree(uri)


@pytest.mark.parametrize("first", ["lose_reply", "fail"])
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_lost_reply_and_reads_that_fail_after_it_never_cost_a_file(
    verb: str, first: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    """The put's reply is lost, or the put; then each choice of the next reads of versions fails; or the writer dies."""
    seed, sound = str(tmp_path / "seed"), str(tmp_path / "sound")
    _seed(seed)
    shutil.copytree(seed, sound)
    before = _state(sound)
    VERBS[verb](esker.dataset(sound))
    after = _state(sound)
    for pattern in ["", "f", ".f", "ff", "f.f", "fff", "ffffffff", "c", "fc", "ffc"]:
        uri = str(tmp_path / f"t{pattern.replace('.', '-')}")
        shutil.copytree(seed, uri)
        left: list[str] | None = None

        def watch(verb: str, path: str, pattern: str = pattern) -> str | None:
            nonlocal left
            if left is None:
                if verb == "put_if_absent" and path.startswith("_versions/"):
                    left = list(pattern)
                    return first
                return None
            if not path.startswith("_versions/") or not left:
                return None
            return {"f": "fail", "c": "crash_before", ".": None}[left.pop(0)]

        table = esker.dataset(f"fault://{uri}")
        watched["f"] = watch
        failure = _failure(partial(VERBS[verb], table))
        del watched["f"]
        leftovers(Store(uri))
        assert _state(uri) in ([after] if failure is None else [before, after]), (pattern, failure)
        if isinstance(failure, CommitStateUnknownError) and "c" not in pattern:
            assert f'find_transaction("uuid", "{failure.transaction}")' in str(failure)
            found = esker.dataset(uri).find_transaction("uuid", failure.transaction)
            assert (found is not None) == (_state(uri) == after)
        # What was not refused is not called so, and nobody gives up for one error that passes.
        assert not isinstance(failure, CommitConflictError), pattern
        assert failure is None or len(pattern) > 2 or "c" in pattern, pattern
        shutil.rmtree(uri)


@pytest.mark.parametrize("when", ["get", "list", "head"])
@pytest.mark.parametrize("retain", [1, 2])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "overwrite"])
def test_a_lost_reply_beside_an_append_and_a_clean_up_is_never_a_refusal(
    verb: str, retain: int, when: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    lost: list[str] = []
    done: list[str] = []

    def others() -> None:
        columns = esker.dataset(uri).schema
        new = pa.table({field.name: pa.array([99 if field.name == "id" else None], field.type) for field in columns})
        esker.write_dataset(new, uri, mode="append")
        # Who cleans up in this process knows of no commit whose reply was lost.
        esker.dataset(uri).cleanup_old_versions(retain_versions=retain)

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path.startswith("_versions/") and not lost:
            lost.append(path)
            return "lose_reply"
        if lost and not done and (verb == when or (when != "list" and verb == "get")):
            done.append(path)
            meanwhile(others)
        return None

    watched["f"] = watch
    VERBS[verb](table)
    del watched["f"]
    leftovers(Store(uri))
    if done:
        assert 99 in esker.dataset(uri).to_table()["id"].to_pylist()
    sound = str(tmp_path / "sound")
    _seed(sound)
    VERBS[verb](esker.dataset(sound))
    ours = esker.dataset(uri).to_table(filter="id < 99").sort_by("id")
    assert ours.equals(esker.dataset(sound).to_table().sort_by("id"))


def _cleaned_up_by_pylance_before_it_is_read_back(uri: str) -> Watch:
    """The reply of a commit is lost; when its writer reads it back, pylance has gone on and cleaned it up."""
    lost: list[str] = []

    def others() -> None:
        lance.write_dataset(_rows(90, 1), uri, mode="append")
        lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path.startswith("_versions/") and not lost:
            lost.append(path)
            return "lose_reply"
        if verb == "get" and len(lost) == 1 and path == lost[0]:
            lost.append("read back")
            meanwhile(others)
        return None

    return watch


def test_a_version_that_pylance_cleaned_up_before_its_writer_read_it_back_is_found_in_the_newest(
    watched: dict[str, Watch], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    watched["f"] = _cleaned_up_by_pylance_before_it_is_read_back(uri)
    VERBS["upsert"](table)
    del watched["f"]
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == [4]
    assert table.version == 4
    assert esker.dataset(uri).count_rows("t = 'new'") == 3


def test_a_change_that_leaves_no_trace_is_unknown_when_its_version_is_gone(
    watched: dict[str, Watch], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    watched["f"] = _cleaned_up_by_pylance_before_it_is_read_back(uri)
    with pytest.raises(CommitStateUnknownError, match="not known"):
        table.update_config({"k": "v"})
    del watched["f"]
    assert esker.dataset(uri).config()["k"] == "v"


@pytest.mark.parametrize("clock", ["monotonic", "time"])
def test_a_writer_that_slept_before_its_put_looks_again(
    clock: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One clock stands still while a machine sleeps, the other one may be set back: either shows the pause."""
    uri = str(tmp_path / "t")
    _seed(uri)
    stale = esker.dataset(uri)
    real = LanceCommit.put
    slept: list[int] = []
    told: list[tuple[bool, int]] = []

    def put(self: LanceCommit, version: int, data: bytes) -> bool:
        if not slept:
            slept.append(version)
            now = getattr(time, clock)
            monkeypatch.setattr(f"esker.commit.clock.time.{clock}", lambda: now() + 2 * STAGED_TIME_S)
            told.append((real(self, version, data), len(list(Path(uri, "_versions").iterdir()))))
            return told[0][0]
        return real(self, version, data)

    monkeypatch.setattr(LanceCommit, "put", put)
    stale.delete("id = 3")
    assert slept == [3]
    assert told == [(False, 2)], "nothing was put after the pause"
    assert esker.dataset(uri).version == 3


@pytest.mark.parametrize("reply", ["comes", "is lost", "is lost, and a read", "is lost, and two reads"])
@pytest.mark.parametrize("verb", ["append", "delete", "config", "merge"])
def test_a_number_that_came_free_while_a_writer_slept_in_its_put_is_given_back(
    verb: str, reply: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    failing = ["comes", "is lost", "is lost, and a read", "is lost, and two reads"].index(reply) - 1
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    slept: list[str] = []

    def pause() -> None:
        for start in (100, 110, 120):
            lance.write_dataset(_rows(start, 1), uri, mode="append")
        # It knows of no transaction that is under way.
        lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        time.sleep(0.02)

    def watch(verb: str, path: str) -> str | None:
        nonlocal failing
        if verb == "put_if_absent" and path.startswith("_versions/") and not slept:
            slept.append(path)
            meanwhile(pause)
            return None if reply == "comes" else "lose_reply"
        if slept and failing > 0 and path.startswith("_versions/"):
            failing -= 1
            return "fail"
        return None

    watched["f"] = watch
    # Settings are set again, on top of the newest version.
    refused = nullcontext() if verb == "config" else pytest.raises(CommitConflictError, match="cleaned up before")
    with refused:
        VERBS[verb](table)
    del watched["f"]
    kept = [5, 6] if verb == "config" else [5]
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == kept
    assert esker.dataset(uri).to_table().num_rows == 15
    assert lance.dataset(uri).to_table().num_rows == 15


def test_writers_that_come_right_after_another_are_not_taken_for_those_before_it(
    watched: dict[str, Watch], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    put: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path.startswith("_versions/"):
            put.append(path)
        elif verb == "list" and len(put) == 1:
            put.append("others")
            meanwhile(lambda: [esker.write_dataset(_rows(90 + i, 1), uri, mode="append") for i in range(3)])
        return None

    watched["f"] = watch
    made = esker.write_dataset(_rows(50, 1), table, mode="append")
    del watched["f"]
    assert made.version == 3
    assert esker.dataset(uri).version == 6
    assert esker.dataset(uri).count_rows() == 16


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "restore"])
def test_what_is_known_to_have_landed_need_not_be_read_again(
    verb: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    """The reply and the read-back are lost, then our transaction is found in the log, then no version can be read."""
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    calls: list[str] = []

    def watch(verb: str, path: str) -> str | None:
        if not path.startswith("_versions/") or (not calls and verb != "put_if_absent"):
            return None
        calls.append(verb)
        if len(calls) == 1:
            return "lose_reply"
        # After the read-back the listing and the version that it tells of are to be had, once.
        return None if len(calls) in (3, 4) else "fail"

    watched["f"] = watch
    VERBS[verb](table)
    del watched["f"]
    assert calls[:4] == ["put_if_absent", "get", "list", "get"]
    assert esker.dataset(uri).version == 3
    assert verb in ("append", "overwrite") or table.version == 3


@pytest.mark.parametrize("name", ["delete", "append"])
def test_a_version_that_landed_and_cannot_be_read_is_called_committed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    dataset = esker.dataset(uri)

    def unreadable(self: LanceLog, version: int, scheme: object) -> object:
        raise IOFailedError("injected: no version can be read")

    def landed(self: LanceCommit, version: int) -> None:
        monkeypatch.setattr(LanceLog, "manifest", unreadable)

    monkeypatch.setattr(LanceCommit, "landed", landed)
    if name == "delete":
        with pytest.warns(UserWarning, match="version 3 is committed, but .* no version can be read"):
            assert dataset.delete("id = 3") == {"num_deleted_rows": 1}
    else:
        with pytest.raises(CommitStateUnknownError, match="version 3 of .* is committed, but it could not be read"):
            VERBS[name](dataset)
    monkeypatch.undo()
    assert esker.dataset(uri).version == 3
    assert esker.dataset(uri).count_rows() == {"delete": 11, "append": 14}[name]


@pytest.mark.parametrize("verb", ["append", "delete", "update", "config", "add columns", "drop"])
def test_a_clock_that_is_set_back_between_two_commits_costs_neither(
    verb: str, watched: dict[str, Watch], tmp_path: Path
) -> None:
    """The next version seems older than ours, as that of one who took our number before: it holds what we brought."""
    uri, sound = str(tmp_path / "t"), str(tmp_path / "sound")
    _seed(uri)
    shutil.copytree(uri, sound)
    VERBS[verb](esker.dataset(sound))
    esker.dataset(sound).delete("id = 0")
    table = esker.dataset(f"fault://{uri}")
    put: list[str] = []

    def another() -> None:
        esker.dataset(uri).delete("id = 0")
        newest = max(Path(uri, "_versions").iterdir(), key=lambda path: path.stat().st_mtime)
        before = newest.stat().st_mtime - 5
        os.utime(newest, (before, before))

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path.startswith("_versions/"):
            put.append(path)
        elif verb == "list" and len(put) == 1:
            put.append("another's")
            meanwhile(another)
        return None

    watched["f"] = watch
    # A column that is dropped leaves nothing that the next version could show: nobody can tell.
    with pytest.raises(CommitStateUnknownError) if verb == "drop" else nullcontext():
        VERBS[verb](table)
    del watched["f"]
    assert put[1:] == ["another's"]
    assert [ref["version"] for ref in esker.dataset(uri).version_refs()] == [1, 2, 3, 4]
    assert _state(uri) == _state(sound)


def test_what_follows_a_commit_never_makes_it_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)

    def broken(self: LanceLog, version: int, scheme: object = None) -> None:
        raise RuntimeError("no copy today")

    monkeypatch.setattr(LanceLog, "landed", broken)
    with pytest.warns(UserWarning, match="version 3 is committed, but what follows a commit failed: no copy today"):
        esker.dataset(uri).update_config({"k": "v"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = esker.dataset(uri)
        dataset.update_config({"k": "w"})
    assert dataset.version == 4


@pytest.mark.parametrize("verb", ["append", "update", "delete", "upsert", "add columns"])
def test_files_of_a_refused_commit_go_and_all_others_stay(verb: str, tmp_path: Path) -> None:
    """Refused is what others leave no room for, known after reading what they did."""
    uri = str(tmp_path / "t")
    _seed(uri)
    stale = esker.dataset(uri)
    lance.write_dataset(pa.table({"other": [1.5]}), uri, mode="overwrite")
    there = {path for path in Path(uri).rglob("*") if path.is_file() and path.parent.name != "_transactions"}
    with pytest.raises(EskerError):
        VERBS[verb](stale)
    left = {path for path in Path(uri).rglob("*") if path.is_file() and path.parent.name != "_transactions"}
    assert left == there
    assert stale.to_table().num_rows == 12


def test_staged_files_go_only_while_nothing_was_put_or_when_it_was_refused() -> None:
    for outcome in Outcome:
        store = Store(f"memory://staged-{outcome.value}")
        store.put("data/a", b"")
        staged = StagedFiles([(store, "data/a")])
        staged.outcome = outcome
        with pytest.raises(KeyboardInterrupt), staged:
            raise KeyboardInterrupt
        kept = outcome in (Outcome.UNKNOWN, Outcome.LANDED)
        assert (store.list_paths("data/") == ["data/a"]) is kept


def test_an_earlier_try_that_lands_late_is_not_made_again_by_the_next(
    watched: dict[str, Watch], tmp_path: Path
) -> None:
    """Nobody reads back; the change is computed again, under another id; then the first put arrives."""
    uri = str(tmp_path / "t")
    _seed(uri)
    table = esker.dataset(f"fault://{uri}")
    kept: list[tuple[str, bytes]] = []
    real = LanceLog.put

    def put(
        self: LanceLog,
        version: int,
        scheme: NamingScheme,
        data: bytes,
        *,
        locked: bool = False,
        change: object = None,
    ) -> bool:
        path = self.path_of(version, scheme)
        if not kept:
            kept.append((path, data))
            raise IOFailedError("injected: timeout")
        if len(kept) == 1:
            kept.append((path, data))
            assert Store(uri).put_if_absent(*kept[0])
        return real(self, version, scheme, data, locked=locked, change=change)

    try:
        LanceLog.put = put  # type: ignore[method-assign]
        assert table.update({"id": "id + 100"}, where="id = 3") == {"num_rows_updated": 1}
    finally:
        LanceLog.put = real  # type: ignore[method-assign]
    assert table.version == 3
    assert sorted(esker.dataset(uri).to_table()["id"].to_pylist()) == [0, 1, 2, *range(4, 12), 103]


def test_a_commit_by_hand_whose_outcome_is_unknown_keeps_the_callers_files(
    watched: dict[str, Watch], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    fragments = write_fragments(_rows(50, 2), uri)
    table = esker.dataset(f"fault://{uri}")
    watched["f"] = lambda verb, path: "fail" if verb == "put_if_absent" and path.startswith("_versions/") else None
    with pytest.raises(CommitStateUnknownError):
        LanceDataset.commit(table, LanceOperation.Append(fragments), read_version=2)
    del watched["f"]
    assert LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=2).count_rows() == 14


def test_a_detached_commit_whose_reply_is_lost_is_unknown(watched: dict[str, Watch], tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _seed(uri)
    fragments = write_fragments(_rows(50, 2), uri)
    table = esker.dataset(f"fault://{uri}")
    watched["f"] = lambda verb, path: "lose_reply" if verb == "put_if_absent" and "/d" in path else None
    with pytest.raises(CommitStateUnknownError) as caught:
        LanceDataset.commit(table, LanceOperation.Append(fragments), read_version=2, detached=True)
    del watched["f"]
    assert esker.dataset(uri, version=caught.value.version).count_rows() == 14
    with pytest.raises(NotFoundError):
        esker.dataset(uri, version=77)
