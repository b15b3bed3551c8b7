"""Repositories where a writer is asleep for hours, before its put or within it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker._native.store import Store
from esker.commit import clock as commit_clock
from esker.exceptions import CommitConflictError, NotFoundError
from esker.repo import Repository, repository
from esker.repo.refs import clock, packed_heads
from esker.repo.refs.atomic_objects import AtomicObjects
from esker.repo.refs.layout import head_folder
from esker.repo.refs.numbered_log import NumberedLog
from tests.ages import made_older

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


def asleep(monkeypatch: pytest.MonkeyPatch, repo: Repository, meanwhile: Callable[[], object], *, within: bool) -> None:
    """The next put of an entry is held up for 26 hours: before it is sent, or within the request."""
    real = NumberedLog.put
    done: list[int] = []

    def later(log: NumberedLog) -> None:
        made_older(repo.uri, 26 * HOUR)
        log._looked = (log._looked[0] - 26 * HOUR, log._looked[1] - 26 * HOUR)
        meanwhile()

    def put(log: NumberedLog, number: int, data: bytes) -> bool:
        if done or not log.folder.startswith("_esker/refs/heads/"):
            return real(log, number, data)
        done.append(1)
        if not within:
            later(log)
            return real(log, number, data)
        later(log)
        log._looked = clock.moment()
        slept = time.monotonic()
        real_since = commit_clock.seconds_since
        monkeypatch.setattr(
            clock, "seconds_since", lambda then, wall: real_since(then, wall) + 26 * HOUR * (then < slept)
        )
        return log.store.put_if_absent(log.path(number), data)

    monkeypatch.setattr(NumberedLog, "put", put)


def collect(repo: Repository) -> Callable[[], object]:
    return lambda: Repository(repo.uri).gc(dry_run=False)


def test_a_commit_that_slept_before_its_put_is_looked_at_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.change_settings(retention_days=0)
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    asleep(monkeypatch, repo, collect(repo), within=False)
    # Its staging is as old as the rest, but this machine's clocks have stood still.
    with pytest.raises((NotFoundError, CommitConflictError)):
        main.commit("late")
    monkeypatch.undo()
    assert [commit.message for commit in repository(repo.uri).ref("main").log()] == ["Repository created"]
    assert list(repository(repo.uri).fsck()) == []


@pytest.mark.parametrize("kind", ["commit", "merge", "create"])
def test_a_commit_that_slept_within_its_put_is_taken_back(
    kind: str, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.change_settings(retention_days=0)
    main = repo.branch("main")
    repo.branch("dev").create("main")
    repo.branch("dev").object("y").upload(b"of dev")
    lost = repo.branch("dev").commit("of dev").id
    if kind != "merge":
        repo.branch("dev").reset_to("dev~1")
    if kind == "commit":
        main.object("x").upload(b"bytes")

    def meanwhile() -> None:
        if kind == "merge":
            Repository(repo.uri).branch("dev").reset_to("dev~1")
            made_older(repo.uri, 26 * HOUR)
        collect(repo)()

    asleep(monkeypatch, repo, meanwhile, within=True)
    works: dict[str, Callable[[], object]] = {
        "commit": lambda: main.commit("late"),
        "merge": lambda: repo.branch("dev").merge_into("main"),
        "create": lambda: repo.branch("new").create(lost),
    }
    with pytest.raises(CommitConflictError, match="held up for so long"):
        works[kind]()
    monkeypatch.undo()
    found = repository(repo.uri)
    assert list(found.ref("main").objects()) == []
    assert sorted(branch.id for branch in found.branches()) == ["dev", "main"]
    assert list(found.fsck()) == []


def test_a_commit_that_slept_within_its_put_stays_where_nothing_was_taken(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.branch("main").object("x").upload(b"bytes")
    asleep(monkeypatch, repo, lambda: None, within=True)
    repo.branch("main").commit("late")
    monkeypatch.undo()
    assert repository(repo.uri).ref("main").object("x").reader().read() == b"bytes"
    assert list(repository(repo.uri).fsck()) == []


def test_an_entry_that_won_a_freed_number_is_taken_away_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = repo.branch("main")
    main.commit("first", allow_empty=True)
    other = Repository(repo.uri)

    def meanwhile() -> None:
        for n in range(20):
            other.branch("main").commit(f"other {n}", allow_empty=True)
        made_older(repo.uri, 8 * DAY)
        other._core.log("main").compact(keep=2)

    asleep(monkeypatch, repo, meanwhile, within=True)
    with pytest.raises(CommitConflictError, match="held up for more than an hour") as error:
        main.commit("late", allow_empty=True)
    assert error.value.retryable
    monkeypatch.undo()
    found = repository(repo.uri)
    assert found.ref("main").get_commit().message == "other 19"
    assert list(found.fsck()) == []
    main.commit("now", allow_empty=True)
    assert [commit.message for commit in repository(repo.uri).ref("main").log(2)] == ["now", "other 19"]


def test_packed_heads_that_slept_before_their_put_are_not_used(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = packed_heads.write

    def write(*args: Any) -> None:
        other = Repository(repo.uri)
        for n in range(3):
            other.branch("main").object("a").upload(str(n))
            other.branch("main").commit(str(n))
        NumberedLog(AtomicObjects(Store(repo.uri)), head_folder("main")).compact(keep=1, younger_than_s=-DAY)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + 8 * DAY)
        real(*args)

    monkeypatch.setattr(packed_heads, "write", write)
    repo.pack_refs()
    assert [branch.get_commit().message for branch in Repository(repo.uri).branches()] == ["2"]
