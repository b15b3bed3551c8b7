"""Repositories where clocks are wrong: nothing that is reported as done is ever collected."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from esker._native.store import Store
from esker.commit import clock as commit_clock
from esker.exceptions import CommitConflictError, InvalidArgumentError, IOFailedError, NotFoundError
from esker.repo import Branch, Repository, repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.refs import clock, gc_runs
from esker.repo.refs.layout import DATA
from esker.repo.refs.numbered_log import LogEntry
from esker.store import stores
from tests.ages import made_older
from tests.watched_stores import Watched, in_another_thread

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched()
    monkeypatch.setitem(stores._factories, "watched", cast(Any, found))
    return found


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets this machine's clock; its monotonic one goes on."""

    def to(seconds: float) -> None:
        wrong = SimpleNamespace(time=lambda: time.time() + seconds, monotonic=time.monotonic)
        monkeypatch.setattr(clock, "time", wrong)
        monkeypatch.setattr(commit_clock, "time", wrong)
        monkeypatch.setattr(gc_runs, "time", wrong)

    return to


@pytest.mark.parametrize("hours", [-1000.0, -25, -0.9, 0.9, 25, 1000])
def test_a_collector_with_a_wrong_clock_takes_nothing_that_was_staged_a_moment_ago(
    hours: float, repo: Repository, jump: Callable[[float], None]
) -> None:
    repo.change_settings(grace_s=HOUR / 2)
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    jump(hours * HOUR)
    collector = Repository(repo.uri)
    # A dry run says the same.
    assert collector.gc().objects == 0
    if abs(hours) > 1:
        with pytest.raises(IOFailedError, match=f"{abs(hours):.1f} hours {'ahead of' if hours > 0 else 'behind'}"):
            collector.gc(dry_run=False)
    else:
        assert collector.gc(dry_run=False).objects == 0
    jump(0)
    main.commit("staged a second ago")
    assert Repository(repo.uri).ref("main").object("x").reader().read() == b"bytes"


def test_a_time_to_judge_by_makes_no_object_older(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    assert Repository(repo.uri).gc(dry_run=False, now=time.time() + 3 * DAY).objects == 0
    main.commit("staged a second ago")
    assert list(repo.fsck()) == []


def test_a_writer_whose_clock_jumped_is_told_to_write_again(repo: Repository, jump: Callable[[float], None]) -> None:
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    jump(3 * DAY)
    with pytest.raises(InvalidArgumentError, match="24 hours ago"):
        main.commit("late")
    jump(-3 * DAY)
    main.commit("the other clock has gone on as ever")


def test_a_date_that_a_writer_tells_makes_no_content_expire_early(repo: Repository) -> None:
    main = repo.branch("main")
    for n, date in enumerate([None, 7, None]):
        main.object("x").upload(str(n))
        main.commit(str(n), date=date)
    made_older(repo.uri, 2 * DAY)
    assert repo.gc(dry_run=False).expired == 0
    assert [repo.ref(f"main~{n}").object("x").reader("r").read() for n in range(3)] == ["2", "1", "0"]


def test_a_log_is_compacted_by_the_age_that_the_store_tells(repo: Repository, jump: Callable[[float], None]) -> None:
    for n in range(10):
        repo.branch("main").commit(str(n), allow_empty=True)
    log = repo._core.log("main")
    jump(30 * DAY)
    with pytest.raises(IOFailedError, match="set the clock"):
        log.compact(keep=2)
    jump(0)
    assert log.compact(keep=2) == 0
    made_older(repo.uri, 8 * DAY)
    assert log.compact(keep=2) == 9


def test_packed_heads_that_a_slow_clock_takes_for_new_win_no_freed_number(
    repo: Repository, jump: Callable[[float], None]
) -> None:
    for n in range(5):
        repo.branch("main").commit(str(n), allow_empty=True)
    repo.pack_refs()
    for n in range(20):
        repo.branch("main").commit(f"later {n}", allow_empty=True)
    made_older(repo.uri, 8 * DAY)
    assert repo._core.log("main").compact(keep=2) == 24
    slow = Repository(repo.uri)
    list(slow.branches())
    assert getattr(slow._core.log("main").head(), "number", None) == 6
    made = slow.branch("main").commit("on top", allow_empty=True)
    assert [commit.message for commit in repository(repo.uri).ref("main").log(2)] == ["on top", "later 19"]
    assert made.get_commit().parents == (repo.ref("main~1").get_commit().id,)
    assert list(repository(repo.uri).fsck()) == []


# What is staged, and where its bytes come from.


def old(repo: Repository, branch: str, seconds: float) -> None:
    """As if what is staged had been staged so long ago."""
    staging = repo.branch(branch)._staging
    staging._started = (staging._started[0] - seconds, staging._started[1] - seconds)
    made_older(repo.uri, seconds)


def by_copy(repo: Repository) -> Branch:
    repo.branch("main").object("x").copy("feature", "y")
    return repo.branch("feature")


def by_a_copy_of_a_copy(repo: Repository) -> Branch:
    repo.branch("main").object("x").copy("other", "y")
    repo.branch("other").object("y").copy("feature", "z")
    return repo.branch("feature")


def by_moving(repo: Repository) -> Branch:
    RepositoryFileSystem(repo).mv("main/x", "feature/y")
    return repo.branch("feature")


def by_moving_a_folder(repo: Repository) -> Branch:
    RepositoryFileSystem(repo).copy(["main/x"], "feature/below/", recursive=True)
    return repo.branch("feature")


WAYS = [by_copy, by_a_copy_of_a_copy, by_moving, by_moving_a_folder]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_staged_once_more_is_no_younger(way: Callable[[Repository], Branch], repo: Repository) -> None:
    repo.branch("feature").create("main")
    repo.branch("other").create("main")
    repo.branch("main").object("x").upload(b"bytes")
    old(repo, "main", 20 * HOUR)
    feature = way(repo)
    made_older(repo.uri, 6 * HOUR)
    started = feature._staging._started
    feature._staging._started = (started[0] - 6 * HOUR, started[1] - 6 * HOUR)
    assert Repository(repo.uri).gc(dry_run=False).objects == 1
    with pytest.raises(InvalidArgumentError, match="24 hours ago"):
        feature.commit("copied")
    assert list(repository(repo.uri).ref("feature").objects()) == []
    # And not older either.
    feature.reset_changes()
    repo.branch("main").reset_changes()
    repo.branch("main").object("x").upload(b"bytes")
    way(repo).commit("copied")
    assert list(repository(repo.uri).fsck()) == []


def test_a_copy_of_a_copy_remembers_the_commit_that_it_comes_from(repo: Repository) -> None:
    repo.change_settings(retention_days=0)
    for name in ("one", "two"):
        repo.branch(name).create("main")
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    main.commit("soon reset away")
    made_older(repo.uri, 3 * DAY)
    main.object("x").copy("one", "y")
    repo.branch("one").object("y").copy("two", "z")
    main.reset_to("main~1")
    assert Repository(repo.uri).gc(dry_run=False).objects == 1
    for name in ("one", "two"):
        with pytest.raises(NotFoundError, match="given up"):
            repo.branch(name).commit("copied")
    assert list(repository(repo.uri).fsck()) == []


def test_a_copy_out_of_a_transaction_comes_from_the_commit_that_it_reads(repo: Repository) -> None:
    repo.change_settings(retention_days=0)
    main = repo.branch("main")
    repo.branch("dev").create("main")
    main.object("x").upload(b"bytes")
    main.commit("soon reset away")
    made_older(repo.uri, 3 * DAY)
    with main.transact("copies") as tx:
        Repository(repo.uri).branch("main").reset_to("main~1")
        tx.object("x").copy("dev", "y")
    assert Repository(repo.uri).gc(dry_run=False).objects == 1
    with pytest.raises(NotFoundError, match="given up"):
        repo.branch("dev").commit("copied")


@pytest.mark.parametrize("spelled", ["{uri}/{path}", "file://{uri}/{path}", "{link}/{path}"])
def test_own_objects_that_are_imported_are_there_or_the_import_is_refused(
    spelled: str, repo: Repository, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(repo.uri)
    main = repo.branch("main")
    for name in ("x", "y"):
        main.object(name).upload(name)
    paths = [main.object(name).stat().physical_address for name in ("x", "y")]
    main.reset_changes()
    first, second = (spelled.format(uri=repo.uri, path=path, link=tmp_path / "link") for path in paths)
    main.import_data().object(first, "own").run()
    made_older(repo.uri, 3 * DAY)
    # What refs lead to by a URI is no garbage, however it is spelled.
    before = set(Store(repo.uri).list_paths(DATA))
    Repository(repo.uri).gc(dry_run=False)
    assert before - set(Store(repo.uri).list_paths(DATA)) == {paths[1]}
    assert repository(repo.uri).ref("main").object("own").reader().read() == b"x"
    with pytest.raises(NotFoundError):
        main.import_data().object(second, "gone").run()


def test_an_import_of_own_objects_that_go_meanwhile_is_refused(repo: Repository, watched: Watched) -> None:
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    path = main.object("x").stat().physical_address
    main.reset_changes()
    made_older(repo.uri, 3 * DAY)
    done: list[int] = []

    def watch(verb: str, path: str) -> None:
        # Between the listing and the commit's object.
        if verb == "put" and path.startswith("_esker/commits/") and not done:
            in_another_thread(lambda: done.append(Repository(repo.uri).gc(dry_run=False).objects))

    watched.watch = watch
    with pytest.raises(NotFoundError, match="has deleted"):
        Repository(f"watched://{repo.uri}").branch("main").import_data().object(
            f"watched://{repo.uri}/{path}", "own"
        ).run()
    assert done == [1]


# Collections that are asked for less than the grace period.


@pytest.mark.parametrize("grace_s", [0, 1e-9, -HOUR])
def test_what_a_hasty_collection_takes_is_committed_by_nobody(grace_s: float, repo: Repository) -> None:
    main, early = repo.branch("main"), Repository(repo.uri).branch("main")
    main.object("x").upload(b"bytes")
    early.object("y").upload(b"bytes")
    made_older(repo.uri, 10)
    assert Repository(repo.uri).gc(dry_run=False, grace_s=grace_s).objects == 2
    for handle in (main, early):
        with pytest.raises(NotFoundError, match="has deleted"):
            handle.commit("too late")
    main.reset_changes()
    main.object("x").upload(b"again")
    main.commit("written again")
    assert list(repository(repo.uri).fsck()) == []


def test_a_hasty_collection_at_work_lets_a_commit_wait(repo: Repository, watched: Watched) -> None:
    main = repo.branch("main")
    main.object("x").upload(b"bytes")
    told: list[Exception] = []

    def commit() -> None:
        with pytest.raises(CommitConflictError, match="may be about to delete") as error:
            main.commit("meanwhile")
        told.append(error.value)

    def watch(verb: str, path: str) -> None:
        if verb.startswith("delete") and path.startswith(DATA) and not told:
            in_another_thread(commit)

    watched.watch = watch
    Repository(f"watched://{repo.uri}").gc(dry_run=False, grace_s=-HOUR)
    assert told
    assert cast(CommitConflictError, told[0]).retryable
    with pytest.raises(NotFoundError):
        main.commit("then")


def test_a_repository_without_a_grace_period_can_be_committed_to(repo: Repository) -> None:
    repo.change_settings(grace_s=0)
    repo.branch("main").object("x").upload(b"bytes")
    repo.branch("main").commit("first")
    made_older(repo.uri, 10)
    repo.branch("main").object("x").upload(b"other bytes")
    repo.branch("main").reset_changes()
    made_older(repo.uri, 10)
    assert repo.gc(dry_run=False).objects == 1
    assert list(repo.fsck()) == []


def test_an_entry_is_the_same_whatever_it_was_made_at() -> None:
    first, second = (LogEntry(1, "commit", "w", 1.0) for _ in range(2))
    assert first == second
