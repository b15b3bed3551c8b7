"""Garbage collections that are held up, and several at once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, cast

import pytest

from esker._native import graveler
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitConflictError, IOFailedError, NotFoundError
from esker.repo import Commit, Repository, repository
from esker.repo.refs import gc_runs
from esker.repo.refs.expired import expired_ids
from esker.repo.refs.layout import DATA, EXPIRED, RUNS
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
            monkeypatch.setattr(gc_runs, "elapsed_s", lambda then: 2 * HOUR)

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
    monkeypatch.setattr(gc_runs, "RENEWED_S", 0.0)
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


@pytest.mark.parametrize("what", ["tag", "branch", "reset"])
def test_a_ref_to_old_content_that_a_collection_without_a_grace_period_missed_is_taken_back(
    repo: Repository, watched: Watched, what: str
) -> None:
    """The commit's object was put before the collection began, and the ref is put after it has looked."""
    repo._core.change_settings(retention_days=0)
    main = repo.branch("main")
    main.object("a").upload("old")
    old = main.commit("old").id
    main.object("a").upload("new")
    main.commit("new")
    repo.branch("b").create("main")
    held = Repository(f"watched://{repo.uri}")
    part = {"tag": "refs/tags/v1", "branch": "heads/made/", "reset": "heads/b/"}[what]
    found: list[int] = []

    def collect() -> None:
        made_older(repo.uri, HOUR)
        found.append(Repository(repo.uri).gc(dry_run=False, grace_s=0).objects)

    def watch(verb: str, path: str) -> None:
        if verb == "put_if_absent" and part in path and not found:
            found.append(0)
            in_another_thread(collect)

    watched.watch = watch
    makes = {
        "tag": lambda: held.tag("v1").create(old),
        "branch": lambda: held.branch("made").create(old),
        "reset": lambda: held.branch("b").reset_to(old),
    }
    with pytest.raises((NotFoundError, CommitConflictError), match="garbage collection has given up"):
        makes[what]()
    assert found == [0, 1]
    assert not list(repo.tags())
    assert [branch.id for branch in repo.branches()] == ["b", "main"]
    assert repo.ref("b").object("a").reader().read() == b"new"
    assert not list(repo.fsck())


def test_the_content_that_a_merge_of_an_early_server_was_made_into_is_kept(repo: Repository) -> None:
    main, side = repo.branch("main"), repo.branch("side").create("main")
    for branch in (main, side):
        branch.object("x").upload(branch.id)
        branch.commit(f"of {branch.id}", date=int(time.time() - 9 * DAY))
    before, merged = main.get_commit(), side.get_commit()
    side.delete()
    # Version 0 has the branch that was merged first.
    record = graveler.Commit(
        committer="me",
        message="merge",
        metarange_id=merged.meta_range_id,
        creation_date=int(time.time()),
        metadata={},
        parents=[merged.id, before.id],
        generation=3,
        version=0,
    )
    made = Commit.of_record(record)
    repo._core.commits.add(made)
    main.reset_to(made.id)
    made_older(repo.uri, 3 * DAY)
    repo.change_settings(retention_days=1)
    assert repo.gc(dry_run=False).expired == 2
    assert repo.ref(before.id).object("x").reader().read() == b"main"


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_ref_that_a_collection_missed_which_died_then_keeps_its_content(
    repo: Repository, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = repo.branch("main")
    for n in range(3):
        main.object("x").upload(str(n))
        main.commit(str(n), date=int(time.time() - 9 * DAY))
    old = repo.ref("main~2").get_commit().id
    repo.change_settings(retention_days=1)
    made_older(repo.uri, 5 * DAY)

    def watch(verb: str, path: str) -> str | None:
        if verb == "put" and path.startswith(EXPIRED):
            in_another_thread(lambda: getattr(repository(repo.uri), kind)("kept").create(old))
        return "fail" if path.startswith(RUNS) and verb == "put" else None

    def opened(uri: str, options: object, durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("watched://"), durable=False), watch=watch).store

    monkeypatch.setitem(stores._factories, "watched", opened)
    with pytest.raises(IOFailedError):
        repository(f"watched://{repo.uri}").gc(dry_run=False)
    made_older(repo.uri, 5 * DAY)
    assert repository(repo.uri).gc(dry_run=False).objects == 1
    kept = repository(repo.uri).ref("kept").object("x")
    assert kept.reader().read() == b"0"
    Path(repo.uri, kept.stat().physical_address).unlink()
    assert any(kept.stat().physical_address in found for found in repository(repo.uri).fsck())
