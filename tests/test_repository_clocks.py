"""Repositories where clocks are wrong, and somebody was asleep: nothing that is reported as done is ever collected."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.commit import clock as commit_clock
from esker.exceptions import CommitConflictError, InvalidArgumentError, IOFailedError, NotFoundError
from esker.repo import Branch, Repository, clock, collecting, repository
from esker.repo.expired import expired_ids
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.layout import DATA
from esker.repo.numbered_log import LogEntry, NumberedLog
from esker.store import stores
from tests.ages import made_older

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


class Watched:
    """Stores behind `watched://` that tell of each request before it is made."""

    def __init__(self) -> None:
        self.watch: Callable[[str, str], None] = lambda verb, path: None

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        inner = Store(uri.removeprefix("watched://"), durable=False)

        def tell(verb: str, path: str) -> None:
            self.watch(verb, path)

        return FaultStore(inner, watch=tell).store


def in_another_thread(work: Callable[[], object]) -> None:
    """What a watch may do: its own thread is at work on a request."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


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
        monkeypatch.setattr(collecting, "time", wrong)

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


# Somebody is asleep.


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


# Collections that are held up, and several at once.


def test_a_collection_that_is_held_up_while_it_deletes_stops(
    repo: Repository, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = repo.branch("main")
    for n in range(100):
        main.object(str(n)).upload(str(n))
    main.reset_changes()
    made_older(repo.uri, 3 * DAY)
    deletions: list[str] = []

    def watch(verb: str, path: str) -> None:
        if verb.startswith("delete") and path.startswith(DATA):
            deletions.append(path)
            # The machine sleeps within the first request that deletes.
            monkeypatch.setattr(collecting, "elapsed_s", lambda then: 2 * HOUR)

    watched.watch = watch
    with pytest.raises(IOFailedError, match="held up"):
        Repository(f"watched://{repo.uri}").gc(dry_run=False)
    left = len(Store(repo.uri).list_paths(DATA))
    assert 50 < left < 100
    assert deletions


def test_a_collection_says_that_it_lives_as_often_as_time_goes_by(
    repo: Repository, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = repo.branch("main")
    for n in range(60):
        main.object(str(n)).upload(str(n))
    main.reset_changes()
    made_older(repo.uri, 3 * DAY)
    monkeypatch.setattr(collecting, "RENEWED_S", 0.0)
    said: list[str] = []

    def watch(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("_esker/gc/"):
            said.append("lives")
        elif verb.startswith("delete") and path.startswith(DATA):
            said.append("deletes")

    watched.watch = watch
    assert Repository(f"watched://{repo.uri}").gc(dry_run=False).objects == 60
    assert said.count("lives") > 3
    assert said[0] == "lives"


def test_what_two_collections_give_up_at_once_is_all_remembered(repo: Repository, watched: Watched) -> None:
    repo.change_settings(retention_days=0)
    lost = []
    for name in ("one", "two"):
        repo.branch(name).create("main")
        repo.branch(name).object(name).upload(name)
        lost.append(repo.branch(name).commit(name).id)
    repo.branch("one").delete()
    made_older(repo.uri, 3 * DAY)
    done: list[int] = []

    def collect_two() -> None:
        other = Repository(repo.uri)
        other.branch("two").delete()
        made_older(repo.uri, 3 * DAY)
        other.gc(dry_run=False)

    def watch(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("_esker/expired/") and not done:
            done.append(1)
            in_another_thread(collect_two)

    watched.watch = watch
    Repository(f"watched://{repo.uri}").gc(dry_run=False)
    assert done
    assert set(lost) <= expired_ids(Store(repo.uri))
    for id in lost:
        with pytest.raises(NotFoundError, match="given up"):
            repository(repo.uri).branch("again").create(id)


def test_what_was_given_up_long_ago_is_joined_and_the_list_of_earlier_releases_counts(repo: Repository) -> None:
    folder = Path(repo.uri, "_esker/expired")
    folder.mkdir()
    for n in range(20):
        (folder / f"{n:032x}").write_text(json.dumps([f"{n:064x}"]))
    Path(repo.uri, "_esker/expired.json").write_text(json.dumps(["f" * 64]))
    expected = {f"{n:064x}" for n in range(20)} | {"f" * 64}
    assert expired_ids(Store(repo.uri)) == expected
    repo.gc(dry_run=False)
    assert len(list(folder.iterdir())) == 20
    made_older(folder, 3 * DAY)
    repo.gc(dry_run=False)
    assert len(list(folder.iterdir())) == 1
    assert expired_ids(Store(repo.uri)) == expected


def test_a_run_whose_collector_has_another_clock_is_alive_while_the_store_says_so(
    repo: Repository, watched: Watched
) -> None:
    # Its own time is days behind; the object was put a moment ago.
    Path(repo.uri, "_esker/gc").mkdir()
    lost = repo.ref("main").get_commit().id
    said = {"time": time.time() - 3 * DAY, "ended": False, "before": 0, "commits": [lost], "tables": []}
    run = Path(repo.uri, "_esker/gc", "0" * 32)
    run.write_text(json.dumps(said))
    with pytest.raises(NotFoundError, match="given up"):
        repo.branch("new").create(lost)
    made_older(run.parent, 3 * HOUR)
    repository(repo.uri).branch("new").create(lost)


def test_what_has_expired_says_so(repo: Repository) -> None:
    repo.change_settings(retention_days=0)
    main = repo.branch("main")
    for n in range(3):
        main.object("x").upload(str(n))
        main.commit(str(n))
    lost = repo.ref("main~1").get_commit().id
    repo.branch("side").create("main~2")
    repo.branch("side").object("y").upload("y")
    repo.branch("side").commit("of the side")
    reader = repository(repo.uri).ref(lost).object("x").reader()
    made_older(repo.uri, 3 * DAY)
    assert repo.gc(dry_run=False).expired == 3
    found = repository(repo.uri)
    for read in (
        lambda: found.ref("main~1").object("x").exists(),
        lambda: found.ref("main~1").object("x").reader().read(),
        lambda: list(found.ref("main~1").objects()),
        lambda: found.ref("main~1").export(f"{repo.uri}-out"),
        lambda: list(found.ref("main~1").diff("main")),
        lambda: list(found.ref("main").diff(lost, type="two_dot")),
        lambda: found.branch("side").cherry_pick("main~1"),
        lambda: found.branch("side").revert(lost),
        lambda: found.branch("main").revert("main"),
        lambda: reader.read(),
    ):
        with pytest.raises(NotFoundError, match="expired|given up"):
            read()
    assert [commit.message for commit in found.ref("main").log()] == ["2", "1", "0", "Repository created"]


def test_an_entry_is_the_same_whatever_it_was_made_at() -> None:
    first, second = (LogEntry(1, "commit", "w", 1.0) for _ in range(2))
    assert first == second
