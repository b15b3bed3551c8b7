"""Nobody knows whether a Delta commit landed: replies that are lost twice, Ctrl-C at any moment, logs cleaned up.

Whatever comes: the table opens, its rows are those of before or of after, no file of a version is gone, a write that
was reported as done is there, and one that was reported as refused is not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker._native.delta import Snapshot
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from esker.exceptions import (
    CommitConflictError,
    CommitStateUnknownError,
    EskerError,
    IOFailedError,
    SchemaMismatchError,
)
from esker.store import stores

pytestmark = pytest.mark.filterwarnings("ignore:version .* is committed")

FEED = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "3"}
ENTRY = f"_delta_log/{3:020}.json"


def _rows(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "p": [i % 2 for i in range(count)]})


def _prepare(uri: str) -> None:
    """Versions 0 to 2; the next one has a checkpoint."""
    write_deltalake(uri, _rows(0, 6), partition_by=["p"], configuration=FEED)
    write_deltalake(uri, _rows(6, 2), mode="append")
    write_deltalake(uri, _rows(8, 2), mode="append")


def _ids(uri: str) -> list[int]:
    return sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())


OLD = list(range(10))
CHANGES: dict[str, tuple[Callable[[str], object], list[int]]] = {
    "append": (lambda uri: write_deltalake(uri, _rows(100, 4), mode="append"), [*OLD, *range(100, 104)]),
    "overwrite": (lambda uri: write_deltalake(uri, _rows(100, 4), mode="overwrite"), list(range(100, 104))),
    "partial overwrite": (
        lambda uri: write_deltalake(uri, _rows(4, 3), mode="overwrite", predicate="id >= 3"),
        [0, 1, 2, 4, 5, 6],
    ),
    "numbered append": (
        lambda uri: write_deltalake(uri, _rows(100, 4), mode="append", txn_app_id="a", txn_version=1),
        [*OLD, *range(100, 104)],
    ),
    "delete": (lambda uri: DeltaTable(uri).delete("id % 3 = 1"), [n for n in OLD if n % 3 != 1]),
    "update": (lambda uri: DeltaTable(uri).update({"id": "id + 100"}, predicate="id > 7"), [*OLD[:8], 108, 109]),
    "alter": (lambda uri: DeltaTable(uri).alter.add_columns(Field("x", "long")), OLD),
    "replace": (
        lambda uri: DeltaTable.create(uri, Schema([Field("id", "long"), Field("p", "long")]), mode="overwrite"),
        [],
    ),
}


def _check(uri: str, after: list[int], raised: BaseException | None, case: str) -> None:
    version = DeltaTable(uri).version()
    assert version in (2, 3), case
    assert _ids(uri) == (after if version == 3 else OLD), case
    assert all(Path(file).exists() for file in DeltaTable(uri).file_uris()), case
    assert sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist()) == _ids(uri), case
    if raised is None:
        assert version == 3, case
    if isinstance(raised, CommitConflictError):
        assert version == 2, case
    if version == 3 and DeltaTable(uri).metadata().configuration:
        # Files of changes, too.
        assert DeltaTable(uri).load_cdf(starting_version=3).read_all().num_rows >= 0, case
    # The next writer knows nothing of it.
    write_deltalake(uri, _rows(900, 1), mode="append", schema_mode="merge")
    assert 900 in _ids(uri), case


class _Interrupts:
    """Ctrl-C at one of the operations that Python asks a store for, before or after it is done."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.count, self._at, self._after = 0, at, after

    def wrap(self, done: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            is_now = self.count == self._at
            if is_now and not self._after:
                raise KeyboardInterrupt
            found = done(*args, **kwargs)
            if is_now:
                raise KeyboardInterrupt
            return found

        return operation


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., _Interrupts]]:
    """Has the operations of stores interrupted."""

    def at(number: int, *, after: bool = False) -> _Interrupts:
        monkeypatch.undo()
        made = _Interrupts(number, after=after)
        for name in ("put", "put_if_absent", "get", "get_ranges", "head", "list", "list_paths", "delete"):
            monkeypatch.setattr(Store, name, made.wrap(getattr(Store, name)))
        for name in ("select", "refresh", "write_checkpoint"):
            monkeypatch.setattr(Snapshot, name, made.wrap(getattr(Snapshot, name)))
        monkeypatch.setattr(Snapshot, "load", staticmethod(made.wrap(Snapshot.load)))
        return made

    yield at
    monkeypatch.undo()


@pytest.mark.parametrize("kind", CHANGES)
def test_ctrl_c_may_come_at_any_operation(
    kind: str, interrupted: Callable[..., _Interrupts], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change, after = CHANGES[kind]
    seed = tmp_path / "seed"
    _prepare(str(seed))
    shutil.copytree(seed, tmp_path / "sound")
    count = interrupted(-1)
    change(str(tmp_path / "sound"))
    monkeypatch.undo()
    operations = count.count
    assert operations >= 5
    for number in range(1, operations + 1):
        for is_after in (False, True):
            uri = tmp_path / f"{number}-{is_after}"
            shutil.copytree(seed, uri)
            interrupted(number, after=is_after)
            raised: BaseException | None = None
            try:
                change(str(uri))
            except (KeyboardInterrupt, EskerError) as error:
                raised = error
            monkeypatch.undo()
            _check(str(uri), after, raised, f"operation {number} of {operations}, after: {is_after}")
            shutil.rmtree(uri)


class _Watched:
    """A store whose operations a callable sees, and says what is to fail."""

    def __init__(self) -> None:
        self.said: Callable[[str, str], str | None] = lambda verb, path: None

    def __call__(self, uri: str, options: Any, durable: bool) -> Store:
        inner = Store(uri.removeprefix("watched://"), durable=False)
        return FaultStore(inner, "", watch=lambda verb, path: self.said(verb, path)).store


@pytest.fixture
def watched() -> Iterator[_Watched]:
    """Behind `watched://` URIs."""
    found = _Watched()
    stores.register("watched", found)
    yield found
    del stores._factories["watched"]


def _meanwhile(work: Callable[[], object]) -> None:
    """Work of another writer, while ours waits for the store."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _raised(work: Callable[[], object]) -> BaseException | None:
    try:
        work()
    except EskerError as error:
        return error
    return None


QUICK = CommitProperties(max_commit_retries=2)


@pytest.mark.parametrize("first", ["lose_reply", "fail", "crash_after", "crash_before"])
@pytest.mark.parametrize("then", ["get", "list", "head", "every"])
@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("kind", ["append", "partial overwrite", "alter"])
def test_a_lost_reply_and_then_more_that_fails(
    first: str, then: str, times: int, kind: str, watched: _Watched, tmp_path: Path
) -> None:
    """The read-back fails, or the listing, once or for good."""
    change, after = CHANGES[kind]
    uri = str(tmp_path)
    _prepare(uri)
    state = {"put": False, "left": times}

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path == ENTRY and not state["put"]:
            state["put"] = True
            return first
        if state["put"] and state["left"] and (then == "every" or verb.startswith(then)):
            state["left"] -= 1
            return "fail"
        return None

    watched.said = said
    raised = _raised(lambda: change(f"watched://{uri}"))
    assert state["put"]
    if isinstance(raised, CommitStateUnknownError):
        assert raised.facts["version"] == 3
        assert "txnId" in str(raised)
    else:
        assert raised is None
    _check(uri, after, raised, "")


def test_an_entry_that_landed_and_was_cleaned_up_is_ours_by_its_files(watched: _Watched, tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, _rows(0, 2), configuration={"delta.logRetentionDuration": "interval 0 seconds"})

    def others() -> None:
        for number in range(12):
            write_deltalake(uri, _rows(10 + number, 1), mode="append")
        assert not Path(uri, f"_delta_log/{1:020}.json").exists()

    state = {"lost": False}

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and not state["lost"]:
            state["lost"] = True
            return "lose_reply"
        if verb == "get" and path == f"_delta_log/{1:020}.json":
            _meanwhile(others)
            watched.said = lambda verb, path: None
        return None

    watched.said = said
    write_deltalake(f"watched://{uri}", _rows(100, 2), mode="append")
    assert _ids(uri) == [0, 1, *range(10, 22), 100, 101]


def test_what_nobody_can_tell_any_more_is_unknown_and_keeps_its_files(watched: _Watched, tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, _rows(0, 2), configuration={"delta.logRetentionDuration": "interval 0 seconds"})

    def others() -> None:
        write_deltalake(uri, _rows(0, 2), mode="overwrite")
        for number in range(12):
            write_deltalake(uri, _rows(10 + number, 1), mode="append")

    state = {"lost": False}

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and not state["lost"]:
            state["lost"] = True
            return "lose_reply"
        if verb == "get" and path == f"_delta_log/{1:020}.json":
            _meanwhile(others)
            watched.said = lambda verb, path: None
        return None

    watched.said = said
    files = set(tmp_path.glob("*.parquet"))
    with pytest.raises(CommitStateUnknownError, match="txnId"):
        write_deltalake(f"watched://{uri}", _rows(100, 2), mode="append")
    ours = [file for file in set(tmp_path.glob("*.parquet")) - files if file.stat().st_size]
    assert len(ours) == 1 + 1 + 12
    assert DeltaTable(uri).version() == 14


@pytest.mark.parametrize("failing", [None, 0, 1, 2])
def test_a_number_that_came_free_is_given_back(failing: int | None, watched: _Watched, tmp_path: Path) -> None:
    """A writer sleeps between the listing and the put; when it wakes its number is nobody's, and below the others.

    Its reply comes, or is lost, and so are as many of the reads after it.
    """
    uri = str(tmp_path)
    left = failing or 0
    write_deltalake(uri, _rows(0, 2), configuration={"delta.logRetentionDuration": "interval 0 seconds"})

    def others() -> None:
        for number in range(12):
            write_deltalake(uri, _rows(10 + number, 1), mode="append")

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent":
            watched.said = fails
            _meanwhile(others)
            return None if failing is None else "lose_reply"
        return None

    def fails(verb: str, path: str) -> str | None:
        nonlocal left
        if left and verb == "get":
            left -= 1
            return "fail"
        return None

    watched.said = said
    with pytest.raises(CommitConflictError):
        write_deltalake(f"watched://{uri}", _rows(100, 2), mode="append")
    assert _ids(uri) == [0, 1, *range(10, 22)]
    assert not Path(uri, f"_delta_log/{1:020}.json").exists()
    named = {Path(file).name for file in DeltaTable(uri).file_uris()}
    left_over = {file.name for file in tmp_path.glob("*.parquet")} - named
    assert len(left_over) == 1, "others may have seen the entry, and have built on its file: it is left to a vacuum"


def test_a_clock_that_is_set_back_between_two_commits_costs_neither(watched: _Watched, tmp_path: Path) -> None:
    """The next entry seems older than ours, as that of one who took our number before: the table holds our files."""
    uri = str(tmp_path)
    write_deltalake(uri, _rows(0, 2), configuration={"delta.logRetentionDuration": "interval 0 seconds"})
    done: list[str] = []

    def others() -> None:
        write_deltalake(uri, _rows(10, 1), mode="append")
        entry = Path(uri, f"_delta_log/{2:020}.json")
        os.utime(entry, (entry.stat().st_mtime - 50,) * 2)

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent":
            done.append(path)
        elif verb == "list" and len(done) == 1:
            done.append("others")
            _meanwhile(others)
        return None

    watched.said = said
    write_deltalake(f"watched://{uri}", _rows(100, 2), mode="append")
    assert done == [f"_delta_log/{1:020}.json", "others"]
    assert _ids(uri) == [0, 1, 10, 100, 101]


def test_a_refused_write_leaves_no_file(tmp_path: Path) -> None:
    uri = str(tmp_path)
    _prepare(uri)
    stale = DeltaTable(uri)
    DeltaTable(uri).alter.add_columns(Field("x", "long"))
    before = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(CommitConflictError):
        write_deltalake(stale, _rows(100, 4), mode="append")
    # It is run again on the table that has the column by now.
    with pytest.raises(SchemaMismatchError):
        write_deltalake(stale, _rows(4, 3), mode="overwrite", predicate="id >= 3")
    assert set(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("versions", [0, 2])
def test_a_write_does_not_go_into_another_table_that_took_the_place(versions: int, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    _prepare(str(uri))
    stale = DeltaTable(uri)
    shutil.rmtree(uri)
    for number in range(versions):
        write_deltalake(uri, _rows(number, 1), mode="append")
    with pytest.raises(CommitConflictError, match="deleted or replaced"):
        write_deltalake(stale, _rows(100, 4), mode="append")
    if versions:
        assert _ids(str(uri)) == [0, 1]
    else:
        assert not list(uri.rglob("*.json"))


def test_an_entry_of_a_writer_that_draws_no_ids_is_another_s(watched: _Watched, tmp_path: Path) -> None:
    """A lost race over a lost reply: what stands there is known not to be ours."""
    uri = str(tmp_path)
    _prepare(uri)
    added = '{"commitInfo":{"operation":"WRITE","isBlindAppend":true}}\n'

    def said(verb: str, path: str) -> str | None:
        if verb == "put_if_absent" and path == ENTRY:
            watched.said = lambda verb, path: None
            Path(uri, ENTRY).write_text(added)
            return "fail"
        return None

    watched.said = said
    write_deltalake(f"watched://{uri}", _rows(100, 4), mode="append", commit_properties=QUICK)
    assert DeltaTable(uri).version() == 4
    assert _ids(uri) == [*OLD, *range(100, 104)]


@pytest.mark.parametrize("mode", ["error", "overwrite", "ignore"])
def test_a_table_that_is_created_and_cannot_be_opened_is_told_to_be_there(tmp_path: Path, mode: Any) -> None:
    uri = str(tmp_path / "t")
    if mode == "overwrite":
        _prepare(uri)
    put = []

    def watch(verb: str, path: str) -> str | None:
        if verb == "put_if_absent":
            put.append(path)
        return "fail" if put and verb != "put_if_absent" else None

    inner = Store(uri, durable=False)
    stores.register("opening", lambda *_: FaultStore(inner, watch=watch).store)
    with pytest.raises(CommitStateUnknownError, match="was created, but could not be opened.*do not create it again"):
        DeltaTable.create(f"opening://{uri}", pa.schema([("n", pa.int64())]), mode=mode)
    assert [field.name for field in DeltaTable(uri).schema().fields] == ["n"]
    if mode == "ignore":
        # Here it is another one's.
        with pytest.raises(IOFailedError) as told:
            DeltaTable.create(f"opening://{uri}", pa.schema([("n", pa.int64())]), mode=mode)
        assert not isinstance(told.value, CommitStateUnknownError)
