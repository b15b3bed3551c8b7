"""Repositories on real stores: many processes, writers that stop anywhere, lost replies, and what is asked for."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from esker._native.store import Store
from esker.exceptions import EskerError
from esker.repo import MergeConflictError, Repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs
from tests.faulty import Faulty
from tests.servers import Azurite, S3Server
from tests.servers.counting import CountingProxy
from tests.servers.faulty import FaultyProxy, Rule
from tests.test_repository_crash_points import (
    check_sound,
    collect,
    commit,
    create,
    fill,
    maintain,
    merge,
    revert,
    state,
)

PROCESSES = 16
COMMITS = 2
LONG_AFTER_S = 4e9
"""A time by which all is old."""


@pytest.fixture(params=["s3", "azure"])
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """An empty place, and the options that lead there."""
    server: Any = request.getfixturevalue(request.param)
    if isinstance(server, S3Server):
        return f"s3://{server.bucket()}/lake", server.storage_options
    assert isinstance(server, Azurite)
    return f"az://{server.container()}/lake", server.storage_options


def eager() -> None:
    """Every fourth commit packs and joins packs."""
    vars(ref_move).update(PACK_COMMITS=4, UPKEEP_EVERY=4)
    commit_packs.JOINED = 2


def to_one_branch(uri: str, options: dict[str, str], n: int) -> int:
    """Commits to main, where all change one path besides their own."""
    eager()
    repo = Repository(uri, storage_options=options)
    main = repo.branch("main")
    won = 0
    for k in range(COMMITS):
        main.object(f"{n:02}/{k}").upload(f"{n} {k}")
        main.object("contended").upload(f"{n} {k}")
        try:
            main.commit(f"both {n}/{k}")
            won += 1
        except MergeConflictError:
            main.reset_changes("object", "contended")
            main.commit(f"own {n}/{k}")
    return won


def to_own_branch(uri: str, options: dict[str, str], n: int) -> int:
    """Commits to a branch of its own, and merges it."""
    eager()
    repo = Repository(uri, storage_options=options)
    repo.branch(f"own/{n}").create("main")
    for k in range(COMMITS):
        with repo.branch(f"own/{n}").transact(f"{n}/{k}") as tx:
            tx.object(f"{n:02}/{k}").upload(f"{n} {k}")
    repo.branch(f"own/{n}").merge_into("main")
    repo.tag(f"tag-{n}").create("main")
    return 1


def run(work: Any, place: tuple[str, dict[str, str]]) -> list[int]:
    """Lets all processes work at once."""
    # From a process that has imported all and opened no store.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with context.Pool(PROCESSES) as pool:
        return pool.starmap(work, [(*place, n) for n in range(PROCESSES)], chunksize=1)


def test_sixteen_processes_commit_to_one_branch(place: tuple[str, dict[str, str]]) -> None:
    Repository.create(place[0], storage_options=place[1])
    won = sum(run(to_one_branch, place))
    repo = Repository(place[0], storage_options=place[1])
    own = [f"{n:02}/{k}" for n in range(PROCESSES) for k in range(COMMITS)]
    assert [entry.path for entry in repo.ref("main").objects()] == [*own, "contended"]
    messages = [commit.message for commit in repo.ref("main").log()]
    assert len(messages) == len(set(messages)) == PROCESSES * COMMITS + 1
    assert sum(message.startswith("both") for message in messages) == won >= 1
    assert list(repo.fsck()) == []
    # What lost is garbage, and nothing else.
    collected = repo.gc(dry_run=False, grace_s=-3600, now=LONG_AFTER_S)
    assert collected.objects >= PROCESSES * COMMITS - won
    assert list(repo.fsck()) == []
    assert len(list(repo.ref("main").objects())) == len(own) + 1


def test_sixteen_processes_commit_to_branches_of_their_own_and_merge_them(place: tuple[str, dict[str, str]]) -> None:
    Repository.create(place[0], storage_options=place[1])
    assert sum(run(to_own_branch, place)) == PROCESSES
    repo = Repository(place[0], storage_options=place[1])
    assert len(list(repo.ref("main").objects())) == PROCESSES * COMMITS
    assert len(list(repo.branches())) == PROCESSES + 1
    assert len(list(repo.tags())) == PROCESSES
    commits = list(repo.ref("main").log())
    assert sum(len(commit.parents) == 2 for commit in commits) == PROCESSES
    assert len(commits) == 1 + PROCESSES * (COMMITS + 1)
    assert list(repo.fsck()) == []


def copied(folder: Path, uri: str) -> None:
    """Puts a repository of this machine where a store has it."""
    store = Store(uri)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(folder)), path.read_bytes())


@pytest.mark.parametrize("work", [commit, merge, create, revert, collect, maintain], ids=lambda work: work.__name__)
def test_every_request_of_a_writer_may_be_the_last(work: Any, faulty: Faulty, bucket: str, tmp_path: Path) -> None:
    pristine = tmp_path / "pristine"
    fill(str(pristine))
    copied(pristine, f"{bucket}/sound")
    before = state(Repository(f"{bucket}/sound"))
    work(Repository(f"fault://{bucket}/sound", storage_options={"plan": ""}))
    after = state(Repository(f"{bucket}/sound"))
    operations = faulty.made[-1].operations
    assert len(operations) > 5
    everything = "ESKER_CRASH_S3" in os.environ
    for number, verb, path in operations:
        reads = verb in ("get", "get_ranges", "get_tail", "head", "list")
        faults = ["crash_after"] if reads and not everything else ["crash_after", "lose_reply"]
        for fault in [*faults, *(["crash_before", "fail"] if everything else [])]:
            uri, plan = f"{bucket}/{number}-{fault}", f"{fault}@{number} ({verb} {path})"
            copied(pristine, uri)
            with suppress(EskerError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work(Repository(f"fault://{uri}", storage_options={"plan": f"{fault}@{number}"}))
            check_sound(uri, before, after, plan)


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    """Between us and the server."""
    with FaultyProxy(s3.server.port) as proxy:
        yield proxy


STEPS = {
    "PUT object": ("PUT", "/data/"),
    "PUT table": ("PUT", "/_lakefs/"),
    "PUT commit": ("PUT", "/_esker/commits/"),
    "PUT head": ("PUT", "/_esker/refs/heads/"),
    "GET head": ("GET", "/_esker/refs/heads/"),
    "LIST collections": ("LIST", "_esker/gc"),
}
FAULTS = {
    "the reply is lost": ("drop", 503),
    "the request is lost": ("lose", 503),
    "503": ("refuse", 503),
    "500 after the effect": ("mask", 500),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", STEPS)
def test_a_commit_and_a_merge_land_once_whatever_happens_to_a_request(
    step: str, fault: str, proxy: FaultyProxy, s3: S3Server
) -> None:
    uri = f"s3://{s3.bucket()}/lake"
    Repository.create(uri, storage_options=s3.storage_options)
    direct = Repository(uri, storage_options=s3.storage_options)
    direct.branch("dev").create("main")
    direct.branch("dev").object("b").upload("b")
    direct.branch("dev").commit("on dev")
    proxy.plan()
    repo = Repository(uri, storage_options=proxy.through(s3.storage_options))
    main = repo.branch("main")
    (action, status), (method, match) = FAULTS[fault], STEPS[step]
    proxy.plan(Rule(action, method, match, times=1, status=status))
    main.object("a").upload("a")
    main.commit("on main")
    hits = proxy.hits()
    proxy.plan(Rule(action, method, match, times=1, status=status))
    repo.ref("dev").merge_into("main", message="merge")
    hits += proxy.hits()
    assert hits
    assert set(hits) == {f"{action} {method}"}
    proxy.plan()
    found = Repository(uri, storage_options=s3.storage_options)
    assert [one.message for one in found.ref("main").log(first_parent=True)] == [
        "merge",
        "on main",
        "Repository created",
    ]
    assert [one.path for one in found.ref("main").objects()] == ["a", "b"]
    assert list(found.fsck()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_collection_deletes_all_the_same_whatever_happens_to_a_request(
    fault: str, proxy: FaultyProxy, s3: S3Server
) -> None:
    uri = f"s3://{s3.bucket()}/lake"
    repo = Repository.create(uri, storage_options=s3.storage_options)
    for n in range(30):
        repo.branch("main").object("a").upload(str(n))
        repo.branch("main").commit(str(n))
    proxy.plan()
    through = Repository(uri, storage_options=proxy.through(s3.storage_options))
    action, status = FAULTS[fault]
    proxy.plan(Rule(action, "POST", "delete", times=1, status=status))
    collected = through.gc(dry_run=False, grace_s=-3600, now=LONG_AFTER_S)
    assert proxy.hits() == [f"{action} POST"]
    assert (collected.objects, collected.tables) == (29, 58)
    proxy.plan()
    paths = Store(uri, storage_options=s3.storage_options).list_paths()
    assert sum(path.startswith("data/") for path in paths) == 1
    assert sum(path.startswith("_lakefs/") for path in paths) == 2
    assert list(repo.fsck()) == []


def test_a_collection_deletes_a_thousand_objects_with_a_request(s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/lake"
    repo = Repository.create(uri, storage_options=s3.storage_options)
    main = repo.branch("main")
    main.object("kept").upload("kept")
    main.commit("first")
    store = Store(uri, storage_options=s3.storage_options)
    for n in range(1500):
        store.put(f"data/00000000/{n:032x}", b"x")
    with CountingProxy(s3.server.port) as counting:
        options = {**s3.storage_options, "aws_endpoint": counting.endpoint}
        collector = Repository(uri, storage_options=options)
        counting.take()
        assert collector.gc(dry_run=False, grace_s=-3600, now=LONG_AFTER_S).objects == 1500
        found = Counter(request.method for request in counting.take())
    assert found["POST"] == 2
    assert found["DELETE"] == 0
    # Listings of objects, tables, commits and refs, which are looked at twice, and what they lead to.
    assert found["GET"] + found["HEAD"] < 60, found
    assert [path for path in store.list_paths("data/00000000/") if path] == []
