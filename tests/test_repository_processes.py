"""Many processes at one repository: every commit that was said to be made is there, once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from esker.repo import MergeConflictError, Repository, repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs

PROCESSES = 16
COMMITS = 3


def _to_one_branch(uri: str, n: int) -> int:
    repo = repository(uri)
    won = 0
    for k in range(COMMITS):
        repo.branch("main").object(f"{n:02}/{k}").upload(f"{n} {k}")
        repo.branch("main").object("contended").upload(f"{n} {k}")
        try:
            repo.branch("main").commit(f"both {n}/{k}")
            won += 1
        except MergeConflictError:
            repo.branch("main").reset_changes("object", "contended")
            # What others did to it stays theirs; the rest is ours alone.
            repo.branch("main").commit(f"own {n}/{k}")
    return won


def _to_own_branch(uri: str, n: int) -> int:
    repo = repository(uri)
    repo.branch(f"own/{n}").create("main")
    for k in range(COMMITS):
        with repo.branch(f"own/{n}").transact(f"{n}/{k}") as tx:
            tx.object(f"{n:02}/{k}").upload(f"{n} {k}")
    repo.branch(f"own/{n}").merge_into("main")
    return 1


def _run(work: object, uri: str) -> list[int]:
    # Forked, as a data loader's workers are: imports are not what is tested.
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        return pool.starmap(work, [(uri, n) for n in range(PROCESSES)], chunksize=1)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth commit packs and joins packs: forked processes inherit it."""
    monkeypatch.setattr(ref_move, "PACK_COMMITS", 4)
    monkeypatch.setattr(ref_move, "UPKEEP_EVERY", 4)
    monkeypatch.setattr(commit_packs, "JOINED", 2)


def test_sixteen_processes_commit_to_one_branch(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    won = sum(_run(_to_one_branch, repo.uri))
    paths = [entry.path for entry in repo.ref("main").objects()]
    own = [f"{n:02}/{k}" for n in range(PROCESSES) for k in range(COMMITS)]
    assert paths == [*own, "contended"]
    messages = [commit.message for commit in repo.ref("main").log()]
    assert len(messages) == len(set(messages)) == PROCESSES * COMMITS + 1
    assert sum(message.startswith("both") for message in messages) == won >= 1
    assert list(repo.fsck()) == []


def test_sixteen_processes_commit_to_branches_of_their_own_and_merge_them(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    assert sum(_run(_to_own_branch, repo.uri)) == PROCESSES
    assert len(list(repo.ref("main").objects())) == PROCESSES * COMMITS
    assert len(list(repo.branches())) == PROCESSES + 1
    commits = list(repo.ref("main").log())
    assert sum(len(commit.parents) == 2 for commit in commits) == PROCESSES
    assert len(commits) == 1 + PROCESSES * (COMMITS + 1)
    assert list(repo.fsck()) == []
