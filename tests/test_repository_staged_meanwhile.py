"""What is staged on a handle while the same handle commits: it is neither part of that commit nor lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitStateUnknownError, UnsupportedError
from esker.repo import HookEvent, MergeConflictError, NoChangesError, Repository
from esker.repo.filesystem import RepositoryFileSystem
from esker.repo.writeable_reference import WriteableReference
from esker.store import stores


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "repo", committer="me")
    made.branch("main").object("old").upload("0")
    made.branch("main").commit("old")
    return made


def stage(branch: WriteableReference, path: str) -> None:
    branch.object(path).upload("m")


def staged(repo: Repository) -> dict[str, str]:
    return {change.path: change.type for change in repo.branch("main").uncommitted()}


def committed(repo: Repository) -> dict[str, str]:
    ref = Repository(repo.uri).ref("main")
    return {found.path: ref.object(found.path).reader("r").read() for found in ref.objects()}


def test_what_a_hook_stages_is_staged_for_the_next_commit(repo: Repository) -> None:
    main, calls = repo.branch("main"), []

    def audit(event: HookEvent) -> None:
        calls.append(event.commit.message)
        repo.branch("main").object("audit").upload(event.commit.message)
        repo.branch("main").object("a").upload("of the hook")
        repo.branch("main").object("old").delete()

    repo.add_hook("pre-commit", audit)
    main.object("a").upload("1")
    main.object("b").upload("2")
    main.commit("one")
    assert committed(repo) == {"old": "0", "a": "1", "b": "2"}
    assert staged(repo) == {"a": "changed", "audit": "added", "old": "removed"}
    main.commit("two")
    assert committed(repo) == {"a": "of the hook", "audit": "one", "b": "2"}
    assert calls == ["one", "two"]


@pytest.mark.parametrize("way", ["objects", "files"])
def test_threads_that_stage_beside_commits_lose_nothing(way: str, repo: Repository) -> None:
    main, fs, failed = repo.branch("main"), RepositoryFileSystem(repo), threading.Event()

    def write() -> None:
        try:
            for n in range(60):
                if way == "objects":
                    repo.branch("main").object(f"p{n % 40}").upload(str(n))
                else:
                    fs.pipe(f"main/p{n % 40}", str(n).encode())
        except BaseException:
            failed.set()
            raise

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        with suppress(NoChangesError):
            main.commit("beside")
    writer.join()
    if staged(repo):
        main.commit("the rest")
    assert not failed.is_set()
    last = {f"p{n % 40}": str(n) for n in range(60)}
    assert committed(repo) == {"old": "0", **last}


def test_a_commit_that_is_refused_leaves_all_of_it_staged(repo: Repository) -> None:
    main = repo.branch("main")

    def refuse(event: HookEvent) -> None:
        main.object("meanwhile").upload("m")
        main.object("a").upload("2")
        raise ZeroDivisionError

    repo.add_hook("pre-commit", refuse)
    main.object("a").upload("1")
    main.object("b").upload("1")
    with pytest.raises(ZeroDivisionError):
        main.commit("refused")
    assert staged(repo) == {"a": "added", "b": "added", "meanwhile": "added"}
    assert main.object("a").reader("r").read() == "2"


def test_what_is_staged_meanwhile_does_not_go_over_what_others_have_committed(repo: Repository) -> None:
    main, calls = repo.branch("main"), []

    def meet(event: HookEvent) -> None:
        calls.append(event)
        if len(calls) > 1:
            return
        main.object("old").upload("mine")
        others = Repository(repo.uri).branch("main")
        others.object("old").upload("theirs")
        others.commit("theirs")

    repo.add_hook("pre-commit", meet)
    main.object("a").upload("1")
    main.commit("mine")
    assert committed(repo) == {"a": "1", "old": "theirs"}
    with pytest.raises(MergeConflictError, match="old"):
        main.commit("again")
    assert staged(repo) == {"old": "changed"}


def test_the_age_of_what_is_left_is_that_of_its_own_bytes(repo: Repository) -> None:
    main = repo.branch("main")
    repo.add_hook("pre-commit", lambda event: stage(main, "later"))
    main.object("a").upload("1")
    main._staging.age_like(3600.0)
    main.commit("one")
    assert staged(repo) == {"later": "added"}
    assert main._staging.age_s < 1000


def test_a_block_commits_at_its_end_what_was_staged_while_it_committed(repo: Repository) -> None:
    with repo.branch("main").transact("end") as tx:
        seen: list[HookEvent] = []

        def stage(event: HookEvent) -> None:
            if not seen:
                tx.object("meanwhile").upload("m")
            seen.append(event)

        repo.add_hook("pre-commit", stage)
        tx.object("a").upload("1")
        tx.commit("within")
        assert [change.path for change in tx.uncommitted()] == ["meanwhile"]
    assert committed(repo) == {"old": "0", "a": "1", "meanwhile": "m"}
    assert [event.commit.message for event in seen] == ["within", "end"]


def test_a_table_that_is_written_in_a_block_while_it_commits_is_committed_at_its_end(repo: Repository) -> None:
    calls: list[HookEvent] = []
    with repo.branch("main").transact("end") as tx:

        def append(event: HookEvent) -> None:
            calls.append(event)
            if len(calls) == 1:
                esker.write_dataset(pa.table({"n": [2]}), tx.store_uri("t"), mode="append")
                # The block is brought onto what others have committed, and the table is not.
                others = Repository(repo.uri).branch("main")
                others.object("theirs").upload("1")
                others.commit("theirs")

        esker.write_dataset(pa.table({"n": [1]}), tx.store_uri("t"))
        repo.add_hook("pre-commit", append)
        tx.commit("within")
        assert esker.dataset(tx.store_uri("t")).count_rows() == 2
        assert esker.dataset(repo.branch("main").store_uri("t")).count_rows() == 1
    assert esker.dataset(repo.branch("main").store_uri("t")).to_table() == pa.table({"n": [1, 2]})
    assert tx.versions == {"t": (2,)}
    assert list(repo.fsck(tables=True)) == []


def test_a_block_that_ends_takes_nothing_more_from_hooks(repo: Repository) -> None:
    def end() -> None:
        with repo.branch("main").transact("end") as tx:
            repo.add_hook("pre-commit", lambda event: stage(tx, "too late"))
            tx.object("a").upload("1")

    with pytest.raises(UnsupportedError, match="ended"):
        end()
    assert committed(repo) == {"old": "0"}


def test_a_listing_goes_on_as_it_began_while_a_commit_lands(repo: Repository) -> None:
    main = repo.branch("main")
    for n in range(200):
        main.object(f"n{n:03}").upload("1")
    listed: Iterator[object] = main.objects()
    next(listed)
    main.commit("beside")
    assert len(list(listed)) == 200


def unknown(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A handle whose commit of `a` has landed, which it does not know; a hook has staged `meanwhile`."""
    monkeypatch.setattr("esker.commit.loop.Backoff.pause", lambda *_: 0.0)
    lost: list[str] = []

    def lose(verb: str, path: str) -> str | None:
        if not armed:
            return None
        if verb == "put_if_absent" and "refs/heads" in path and not lost:
            lost.append(path)
            return "lose_reply"
        return "fail" if lost and verb in ("get", "list", "head") else None

    def opened(uri: str, options: object, durable: bool) -> Store:
        return FaultStore(Store(uri.removeprefix("lost://"), durable=False), "", watch=lose).store

    armed: list[int] = []
    stores.register("lost", opened)
    handle = Repository("lost://" + repo.uri)
    main = handle.branch("main")

    def hook(event: HookEvent) -> None:
        if armed:
            stage(main, "meanwhile")

    handle.add_hook("pre-commit", hook)
    main.object("a").upload("1")
    armed.append(1)
    with pytest.raises(CommitStateUnknownError):
        main.commit("unknown")
    armed.clear()
    return handle


def test_of_an_unknown_commit_all_stays_staged(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = unknown(repo, monkeypatch)
    assert sorted(staged(handle)) == ["a", "meanwhile"]
    handle.branch("main").commit("the rest")
    assert committed(repo) == {"old": "0", "a": "1", "meanwhile": "m"}


def test_a_change_that_the_branch_got_by_others_is_no_commit(repo: Repository) -> None:
    mine, theirs = repo.branch("main"), Repository(repo.uri).branch("main")
    for branch in (mine, theirs):
        branch.object("same").upload("1")
        branch.object("old").delete()
    last = theirs.commit("first").id
    with pytest.raises(NoChangesError, match=f"has all that is staged already, by the commit {last}"):
        mine.commit("second")
    assert mine.get_commit().id == last
    assert not staged(repo)
    mine.object("same").upload("2")
    mine.commit("third")
    theirs.object("same").upload("3")
    theirs.object("more").upload("3")
    mine.object("same").upload("3")
    theirs.commit("fourth")
    mine.commit("empty", allow_empty=True)
    assert [commit.message for commit in mine.log()][:3] == ["empty", "fourth", "third"]


def test_a_commit_that_had_landed_unknown_is_not_made_again(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = unknown(repo, monkeypatch)
    main = handle.branch("main")
    main.reset_changes("object", "meanwhile")
    with pytest.raises(NoChangesError, match=f"by the commit {repo.branch('main').get_commit().id}"):
        main.commit("again")
    main.object("a").upload("2")
    main.commit("goes on")
    assert committed(repo) == {"old": "0", "a": "2"}


def test_a_block_whose_changes_the_branch_got_by_others_is_not_tagged(repo: Repository) -> None:
    def run() -> None:
        with repo.branch("main").transact("mine", tag="v1") as tx:
            tx.object("a").upload("1")
            stage_and_commit(Repository(repo.uri))

    def stage_and_commit(others: Repository) -> None:
        others.branch("main").object("a").upload("1")
        others.branch("main").commit("theirs")

    with pytest.raises(NoChangesError, match="has all that is staged already"):
        run()
    assert list(repo.tags()) == []
