"""Several who create, repack and commit at once, where each other's steps fall between any two of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError
from esker.repo import Repository, repository
from esker.store import stores


class Between:
    """Stores behind `between://`, before whose request of some number another one does his work."""

    def __init__(self) -> None:
        self.number = -1
        self.work: Callable[[], object] = lambda: None
        self.made = 0

    def begin(self, number: int, work: Callable[[], object]) -> None:
        self.number, self.work, self.made = number, work, 0

    def __call__(self, uri: str, options: dict[str, str], durable: bool) -> Store:
        def watch(verb: str, path: str) -> None:
            self.made += 1
            if self.made - 1 == self.number:
                # Its own thread: this one is at work on a request.
                with ThreadPoolExecutor(1) as threads:
                    threads.submit(self.work).result()

        return FaultStore(Store(uri.removeprefix("between://"), durable=False), watch=watch).store


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    found = Between()
    monkeypatch.setitem(stores._factories, "between", cast(Any, found))
    return found


@pytest.mark.parametrize("branch", ["main", "trunk"])
@pytest.mark.parametrize("commits", [0, 1])
@pytest.mark.parametrize("exist_ok", [False, True])
def test_of_two_who_create_one_repository_one_has_created_it(
    exist_ok: bool, commits: int, branch: str, between: Between, tmp_path: Path
) -> None:
    outcomes = set()
    for number in itertools.count():
        place = tmp_path / str(number)
        made: list[str] = []

        def other(place: Path = place, made: list[str] = made) -> None:
            try:
                repo = Repository.create(place, default_branch=branch, metadata={"whose": "the other's"})
            except AlreadyExistsError:
                return
            made.append(repo.id)
            for n in range(commits):
                repo.branch(branch).object("x").upload(b"data")
                repo.branch(branch).commit(f"commit {n}")

        between.begin(number, other)
        try:
            ours = Repository.create(f"between://{place}", exist_ok=exist_ok, metadata={"whose": "ours"})
        except AlreadyExistsError:
            ours = None
        if between.made <= number:
            break
        found = Repository(place)
        is_others = found.metadata == {"whose": "the other's"}
        outcomes.add(is_others)
        # Who has not created it was told, or opens the one that there is.
        assert (ours is not None) == (exist_ok or not is_others)
        assert ours is None or ours.id == found.id
        assert made == ([found.id] if is_others else [])
        expected = branch if is_others else "main"
        assert [one.id for one in found.branches()] == [found.default_branch] == [expected]
        there = [entry.path for entry in found.ref(expected).objects()]
        assert there == (["x"] * commits if is_others else [])
        assert list(found.fsck()) == []
    assert True in outcomes


def test_many_who_create_one_repository_open_the_same(tmp_path: Path) -> None:
    def create(n: int) -> str:
        repo = Repository.create(tmp_path / "repo", exist_ok=True)
        repo.branch("main").object(str(n)).upload(str(n))
        repo.branch("main").commit(str(n))
        return repo.id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(create, range(8)))) == 1
    found = Repository(tmp_path / "repo")
    assert [entry.path for entry in found.ref("main").objects()] == [str(n) for n in range(8)]
    assert len(list(found.ref("main").log())) == 9


def test_a_repack_takes_nothing_back_that_others_commit_meanwhile(between: Between, tmp_path: Path) -> None:
    for number in itertools.count():
        repo = Repository.create(tmp_path / str(number))
        for n in range(4):
            repo.branch("main").object(f"{n}").upload(str(n))
            repo.branch("main").commit(str(n))

        def other(repo: Repository = repo) -> None:
            repo.branch("main").object("of the other").upload("x")
            repo.branch("main").commit("of the other")

        ours = Repository(f"between://{repo.uri}")
        between.begin(number, other)
        ours.branch("main").repack()
        if between.made <= number:
            break
        paths = [entry.path for entry in repository(repo.uri).ref("main").objects()]
        assert paths == ["0", "1", "2", "3", "of the other"], number
    assert number > 5
