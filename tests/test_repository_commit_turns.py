"""Threads and hooks that commit on one handle: each change is committed once, and no commit undoes another."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from esker.repo import HookEvent, NoChangesError, Reference, Repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


def messages(repo: Repository) -> list[str]:
    return [commit.message for commit in repo.branch("main").log()][:-1]


def committed(repo: Repository) -> dict[str, str]:
    ref = Repository(repo.uri).ref("main")
    return {found.path: ref.object(found.path).reader("r").read() for found in ref.objects()}


def slow_commit(repo: Repository, between: Callable[[], object]) -> Reference | Exception:
    """The end of a commit in a thread, beside whose hook something happens in this one."""
    held, go = threading.Event(), threading.Event()
    ended: list[Reference | Exception] = []

    def hook(event: HookEvent) -> None:
        if event.commit.message == "slow":
            held.set()
            go.wait(60)

    def commit() -> None:
        try:
            ended.append(repo.branch("main").commit("slow"))
        except Exception as error:
            ended.append(error)

    repo.add_hook("pre-commit", hook)
    thread = threading.Thread(target=commit)
    thread.start()
    assert held.wait(60)
    try:
        between()
    finally:
        go.set()
        thread.join()
    return ended[0]


def test_a_slow_commit_does_not_bring_back_what_was_deleted_after_a_faster_one(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("p").upload("1")

    def between() -> None:
        main.commit("fast")
        main.object("p").delete()
        main.commit("deleted")

    assert isinstance(slow_commit(repo, between), NoChangesError)
    assert committed(repo) == {}
    assert messages(repo) == ["deleted", "fast"]


def test_a_slow_commit_is_in_no_conflict_with_faster_ones_of_its_handle(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("p").upload("1")

    def between() -> None:
        main.commit("fast")
        main.object("p").upload("2")
        main.commit("p2")
        main.object("p").upload("3")

    # It takes what is left.
    assert isinstance(slow_commit(repo, between), Reference)
    assert messages(repo) == ["slow", "p2", "fast"]
    main.object("p").upload("4")
    main.commit("goes on")
    assert committed(repo) == {"p": "4"}


def test_what_is_staged_after_a_reset_keeps_the_commit_that_it_saw(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("p").upload("1")

    def between() -> None:
        main.reset_changes()
        others = Repository(repo.uri).branch("main")
        others.object("q").upload("theirs")
        others.commit("theirs")
        main.object("q").upload("mine")

    # What a commit has taken it commits, though it is reset meanwhile.
    assert isinstance(slow_commit(repo, between), Reference)
    main.commit("mine")
    assert committed(repo) == {"p": "1", "q": "mine"}


@pytest.mark.parametrize("event", ["pre-commit", "post-commit"])
def test_a_hook_may_commit_on_its_handle(event: str, repo: Repository) -> None:
    main = repo.branch("main")

    def hook(at: HookEvent) -> None:
        if at.commit.message == "outer":
            main.object("h").upload("h")
            main.commit("inner")

    repo.add_hook(event, hook)  # type: ignore[arg-type]
    main.object("a").upload("1")
    if event == "pre-commit":
        with pytest.raises(NoChangesError):
            main.commit("outer")
        assert messages(repo) == ["inner"]
    else:
        main.commit("outer")
        assert messages(repo) == ["inner", "outer"]
    main.object("a").upload("2")
    main.commit("on")
    assert committed(repo) == {"a": "2", "h": "h"}


def test_a_hook_may_wait_for_a_thread_that_commits(repo: Repository) -> None:
    main = repo.branch("main")

    def hook(at: HookEvent) -> None:
        if at.commit.message == "outer":
            thread = threading.Thread(target=main.commit, args=("inner",))
            thread.start()
            thread.join(60)
            assert not thread.is_alive()

    repo.add_hook("pre-commit", hook)
    main.object("a").upload("1")
    with pytest.raises(NoChangesError):
        main.commit("outer")
    assert messages(repo) == ["inner"]


def test_a_hook_that_always_commits_something_ends(repo: Repository) -> None:
    main = repo.branch("main")

    def hook(at: HookEvent) -> None:
        if at.commit.message == "outer":
            main.commit("inner")
            main.object("more").upload(at.commit.id)

    repo.add_hook("pre-commit", hook)
    main.object("a").upload("1")
    with pytest.raises(Exception, match="commit to main: each time, hooks or other threads of this handle committed"):
        main.commit("outer")


def test_an_interrupt_lets_the_next_commit_go(repo: Repository) -> None:
    main, calls = repo.branch("main"), []

    def hook(at: HookEvent) -> None:
        calls.append(at)
        if len(calls) == 1:
            raise KeyboardInterrupt

    repo.add_hook("pre-commit", hook)
    main.object("a").upload("1")
    with pytest.raises(KeyboardInterrupt):
        main.commit("interrupted")
    thread = threading.Thread(target=main.commit, args=("again",))
    thread.start()
    thread.join(60)
    assert messages(repo) == ["again"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_does_not_wait_for_its_parents_threads(repo: Repository) -> None:
    staging = repo.branch("main")._staging
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with staging.turn():
            held.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with staging.turn():
            os._exit(0)
    go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("seed", range(4))
def test_threads_that_all_commit_lose_and_undo_nothing(seed: int, repo: Repository) -> None:
    model: list[dict[str, str]] = [{}, {}, {}]
    failed: list[BaseException] = []

    def work(k: int) -> None:
        rng, branch = random.Random(10 * seed + k), repo.branch("main")
        try:
            for n in range(30):
                path = f"t{k}/{rng.randrange(4)}"
                do = rng.random()
                if do < 0.4:
                    branch.object(path).upload(f"{n}")
                    model[k][path] = f"{n}"
                elif do < 0.6:
                    branch.object(path).delete()
                    model[k].pop(path, None)
                else:
                    with suppress(NoChangesError):
                        branch.commit(f"{k}-{n}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with suppress(NoChangesError):
        repo.branch("main").commit("the rest")
    assert committed(repo) == model[0] | model[1] | model[2]
