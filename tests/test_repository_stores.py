"""Repositories on object stores: S3 and Azure as real servers play them, and what reads of them cost."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from esker.repo import MergeConflictError, Repository
from tests.servers import Azurite, S3Server


@pytest.fixture(params=["s3", "azure"])
def repo(request: pytest.FixtureRequest) -> Repository:
    server: Any = request.getfixturevalue(request.param)
    if isinstance(server, S3Server):
        return Repository.create(f"s3://{server.bucket()}/lake", storage_options=server.storage_options)
    assert isinstance(server, Azurite)
    return Repository.create(f"az://{server.container()}/lake", storage_options=server.storage_options)


def again(repo: Repository) -> Repository:
    return cast(Repository, pickle.loads(pickle.dumps(repo)))


def test_a_repository_lives_its_life_on_an_object_store(repo: Repository) -> None:
    main = repo.branch("main")
    for n in range(20):
        main.object(f"a/{n:02}").upload(f"text {n}")
    main.commit("first")
    repo.branch("dev/x-1").create("main")
    with repo.branch("dev/x-1").transact("second") as tx:
        tx.object("a/03").upload("other")
        tx.object("b/1").upload("new")
        tx.delete_objects(["a/19"])
    main.object("a/07").upload("mine")
    main.commit("third")
    repo.tag("v/1").create("main~1")
    repo.branch("dev/x-1").merge_into("main")
    other = again(repo)
    paths = [o.path for o in other.ref("main").objects()]
    texts = {path: str(other.ref("main").object(path).reader("r").read()) for path in paths}
    assert (texts["a/03"], texts["a/07"], texts["b/1"], len(texts)) == ("other", "mine", "new", 20)
    assert len(list(other.ref("v/1").objects())) == 20
    assert [branch.id for branch in other.branches()] == ["dev/x-1", "main"]
    assert list(other.fsck()) == []
    assert other.gc().objects == 0


def test_of_writers_at_once_all_land_where_paths_differ_and_one_where_they_do_not(repo: Repository) -> None:
    def work(n: int) -> bool:
        mine = again(repo)
        mine.branch("main").object(f"own/{n}").upload(str(n))
        mine.branch("main").commit(f"own {n}")
        mine.branch("main").object("same").upload(str(n))
        try:
            mine.branch("main").commit(f"same {n}")
        except MergeConflictError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        won = list(threads.map(work, range(4)))
    assert any(won)
    paths = [o.path for o in again(repo).ref("main").objects()]
    assert paths == ["own/0", "own/1", "own/2", "own/3", "same"]
    assert len(list(again(repo).ref("main").log())) == 1 + 4 + sum(won)


def test_a_cold_look_up_takes_few_requests(repo: Repository) -> None:
    main = repo.branch("main")
    for n in range(200):
        main.object(f"a/{n:03}").upload(b"x")
    main.commit("first")
    other = again(repo)
    other._core.store.io_stats()
    assert other.ref("main").object("a/123").stat().size_bytes == 1
    # The branch's hint, its listing and last entries, then a metarange and a range.
    stats = other._core.store.io_stats()
    assert stats.read_iops <= 8, stats
    assert other.ref("main").object("a/124").exists()
    assert other._core.store.io_stats().read_iops <= 2


def test_a_history_and_a_list_of_branches_take_few_requests(repo: Repository) -> None:
    main = repo.branch("main")
    for n in range(40):
        main.commit(f"commit {n}", allow_empty=True)
    for n in range(8):
        repo.branch(f"b/{n}").create("main")
    other = again(repo)
    other._core.store.io_stats()
    assert len(list(other.ref("main").log())) == 41
    # The hint, the entries from there on, a listing of packs and what it tells of.
    assert other._core.store.io_stats().read_iops <= 12
    repo.pack_refs()
    other = again(repo)
    other._core.store.io_stats()
    assert len(list(other.branches())) == 9
    assert other._core.store.io_stats().read_iops <= 2 + 9
    # What was listed is known.
    assert other.branch("b/3").get_commit().message == "commit 39"
    assert other._core.store.io_stats().read_iops <= 1
