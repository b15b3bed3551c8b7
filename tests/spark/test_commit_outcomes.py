"""What becomes of the files of tasks: they go when the commit is known to have failed, and stay when nobody can tell.

Spark calls `abort` after a commit that failed, in a process that knows nothing of what the commit went through.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import types as T

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, CommitConflictError, CommitStateUnknownError, IOFailedError
from esker.store.stores import register
from tests.spark.jobs import batches, planned, read, staged, wrote

FRAME = T.StructType().add("id", T.LongType())
LOGS = ("_versions/", "_delta_log/")
FORMATS = ["lance", "delta"]
Watch = Callable[[str, str], str | None]


class Faults:
    """What happens to operations of stores at `sparkfault://`, from the moment that it is set."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.seen: list[tuple[str, str]] = []

    def __call__(self, verb: str, path: str) -> str | None:
        self.seen.append((verb, path))
        return None if self.watch is None else self.watch(verb, path)

    def lose_the_commit(self) -> None:
        """The entry is put, its reply is lost, and nothing of the log can be read from then on."""
        lost: list[str] = []

        def watch(verb: str, path: str) -> str | None:
            if path.startswith(LOGS) and "put" in verb and not lost:
                lost.append(path)
                return "lose_reply"
            return "fail" if lost else None

        self.watch = watch


@pytest.fixture
def faults() -> Iterator[Faults]:
    made = Faults()

    def open_store(uri: str, options: Mapping[str, str], durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("sparkfault://"), durable=False), "", watch=made).store

    register("sparkfault", open_store)
    yield made
    made.watch = None


def _files(path: Path) -> set[str]:
    return {
        found.name
        for found in path.rglob("*")
        if found.suffix in (".lance", ".parquet") and "_delta_log" not in str(found)
    }


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path, faults: Faults) -> tuple[str, Path]:
    path = tmp_path / "t"
    wrote(str(path), FRAME, [{"id": 0}], tableFormat=request.param)
    return f"sparkfault://{path}", path


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_a_commit_in_doubt_stay(table: tuple[str, Path], faults: Faults, overwrite: bool) -> None:
    uri, path = table
    faults.lose_the_commit()
    with pytest.raises(CommitStateUnknownError):
        wrote(uri, FRAME, [{"id": 1}], overwrite=overwrite)
    faults.watch = None
    assert sorted(row["id"] for row in read(str(path))) == ([1] if overwrite else [0, 1])
    assert len(_files(path)) == 2


def test_files_of_a_commit_that_was_interrupted_stay(table: tuple[str, Path], faults: Faults) -> None:
    uri, path = table
    writer = planned(uri, FRAME)
    messages = staged(writer, [batches(FRAME, [{"id": 1}])])

    def interrupt(verb: str, path: str) -> str | None:
        if path.startswith(LOGS) and "put" in verb:
            raise KeyboardInterrupt
        return None

    faults.watch = interrupt
    with pytest.raises((KeyboardInterrupt, CommitStateUnknownError)):
        writer.commit(messages)
    writer.abort(messages)
    assert len(_files(path)) == 2


def test_files_go_when_nothing_was_put(table: tuple[str, Path], faults: Faults) -> None:
    uri, path = table
    writer = planned(uri, FRAME)
    messages = staged(writer, [batches(FRAME, [{"id": n}]) for n in (1, 2)])
    assert len(_files(path)) == 3
    faults.watch = lambda verb, path: "fail" if path.startswith(LOGS) and "delete" not in verb else None
    with pytest.raises(IOFailedError):
        writer.commit(messages)
    assert len(_files(path)) == 1
    writer.abort(messages)
    faults.watch = None
    assert [row["id"] for row in read(str(path))] == [0]


def test_files_go_when_a_task_failed_and_stay_when_only_the_reply_of_the_commit_is_missing(
    table: tuple[str, Path],
) -> None:
    uri, path = table
    writer = planned(uri, FRAME)
    messages = staged(writer, [batches(FRAME, [{"id": 1}])])
    # What Spark does when a commit raised: it may be there by now, or in a moment.
    writer.abort(messages)
    assert len(_files(path)) == 2
    writer.abort([*messages, None])
    assert len(_files(path)) == 1
    writer.abort([*messages, None])


def test_files_go_when_others_leave_no_room(table: tuple[str, Path]) -> None:
    uri, path = table
    writer = planned(uri, FRAME, overwrite=True)
    messages = staged(writer, [batches(FRAME, [{"id": 1}])])
    wrote(str(path), FRAME, [{"id": 2}], overwrite=True)
    try:
        writer.commit(messages)
    except CommitConflictError:
        writer.abort(messages)
        assert len(_files(path)) == 2
        assert [row["id"] for row in read(str(path))] == [2]
    else:
        # An overwrite of a Lance table goes on top of another one.
        assert [row["id"] for row in read(str(path))] == [1]


@pytest.mark.parametrize("table_format", FORMATS)
def test_files_go_when_another_writer_has_made_the_table(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    options = {"tableFormat": table_format, "saveMode": "error"}
    writer = planned(str(path), FRAME, **options)
    messages = staged(writer, [batches(FRAME, [{"id": 1}])])
    wrote(str(path), T.StructType().add("other", T.LongType()), [{"other": 2}], tableFormat=table_format)
    with pytest.raises((AlreadyExistsError, CommitConflictError)):
        writer.commit(messages)
    writer.abort(messages)
    assert len(_files(path)) == 1
    assert read(str(path)) == [{"other": 2}]


def test_what_follows_a_commit_never_makes_a_write_fail(table: tuple[str, Path], faults: Faults) -> None:
    uri, path = table
    landed: list[str] = []

    def fail_after(verb: str, path: str) -> str | None:
        if landed:
            return "fail"
        if path.startswith(LOGS) and "put" in verb:
            landed.append(path)
        return None

    faults.watch = fail_after
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrote(uri, FRAME, [{"id": 1}])
    faults.watch = None
    assert sorted(row["id"] for row in read(str(path))) == [0, 1]


def test_a_write_that_its_application_has_committed_stages_nothing(tmp_path: Path, faults: Faults) -> None:
    path = tmp_path / "t"
    numbered = {"tableFormat": "delta", "txnAppId": "job", "txnVersion": "3"}
    writer = planned(f"sparkfault://{path}", FRAME, **numbered)
    messages = staged(writer, [batches(FRAME, [{"id": 1}])])
    wrote(str(path), FRAME, [{"id": 1}], **numbered)
    before = _files(path)
    assert len(before) == 2
    for number in (3, 2):
        wrote(str(path), FRAME, [{"id": 9}], **{**numbered, "txnVersion": str(number)})
    assert _files(path) == before
    # One that was planned before goes the same way.
    assert len(_files(path)) == 2
    writer.commit(messages)
    assert len(_files(path)) == 1
    assert read(str(path)) == [{"id": 1}]
