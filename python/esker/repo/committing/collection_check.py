"""Checks a commit against garbage collections: whether one deletes what the commit needs, or has done so.

Called after the commit's object is stored; see `refs.gc_runs` for why this order is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..._native.store import Store
from ...exceptions import CommitConflictError, NotFoundError
from ..core.repository_core import RepositoryCore
from ..errors import ExpiredError
from ..objects.batches import table
from ..refs.clock import elapsed_s, store_time
from ..refs.commits import Commit
from ..refs.expired import expired_ids
from ..refs.gc_runs import DEAD_S, Condemned, put_time, read_run
from ..refs.layout import COMMITS, RUNS, TABLES
from .needs import Needs, check_bytes


def _runs(core: RepositoryCore, now_of: Callable[[], float]) -> list[tuple[Condemned, bool]]:
    """What runs have announced, and whether each may still delete, given the store's time."""
    found: list[tuple[Condemned, bool]] = []
    now: float | None = None
    for meta in core.store.list(RUNS):
        run = core.ended_runs.get(meta.path) or read_run(core.store, meta.path)
        if run is None:
            continue
        lives = not run.ended
        if lives:
            if now is None:
                now = now_of()
            # One that is silent for so long has deleted nothing for half of it. By the store's clock, which both share.
            lives = not now - put_time(meta) > 2 * DEAD_S
        if not lives:
            core.ended_runs[meta.path] = run
        found.append((run, lives))
    return found


def reach_of_living(core: RepositoryCore, commit: Commit) -> float:
    """Up to when objects were put that collections at work may yet delete. The commit's object was put just now."""
    return max((run.before for run, lives in _runs(core, partial(_put, core, commit)) if lives), default=float("-inf"))


def goes(core: RepositoryCore, tables: set[str]) -> bool:
    """Whether a collection at work may yet delete some of these tables."""
    return any(lives and tables & run.tables for run, lives in _runs(core, partial(store_time, core.store)))


def _put(core: RepositoryCore, commit: Commit) -> float:
    return put_time(core.store.head(COMMITS + commit.id))


def check_not_condemned(core: RepositoryCore, commit: Commit, needs: Needs) -> None:
    """Looks whether anybody is about to delete what a commit needs, or has done so. The commit's object was put before.

    Args:
        core: The repository.
        commit: What a ref is about to lead to.
        needs: What it takes that the ref has not led to so far.

    Raises:
        ExpiredError: A source has expired.
        NotFoundError: It has deleted what is staged.
        CommitConflictError: A table of the commit is being deleted, or may have been; it can be tried again.
    """
    if needs.began is not None and elapsed_s(needs.began) > DEAD_S:
        raise CommitConflictError("the commit was held up for more than an hour; try again", retryable=True)
    # Runs are read first: what a run expires is in the list before it is announced.
    runs = _runs(core, partial(_put, core, commit))
    expired = needs.sources & expired_ids(core.store) if needs.sources else frozenset()
    for run, lives in runs:
        if lives:
            expired |= needs.sources & run.commits
    if expired:
        raise ExpiredError(
            f"garbage collection has given up the content of the commit {min(expired)}; no ref can lead to it again",
            path=min(expired),
        )
    check_bytes(core, commit, needs, [(run.before, lives) for run, lives in runs])
    if not commit.meta_range_id or not any(run.tables for run, _ in runs):
        return
    ids = {commit.meta_range_id, *table(core.storage.ranges(commit.meta_range_id)).column("id").to_pylist()}
    for run, lives in runs:
        if any(lives or not is_there(core.store, id) for id in ids & run.tables):
            raise CommitConflictError(
                f"a garbage collection deletes tables that the commit {commit.id} needs; try again when it is done",
                retryable=True,
            )


def check_not_collected(core: RepositoryCore, commit: Commit) -> None:
    """Looks whether a collection has given up a commit since it was looked for, now that a ref leads to it.

    A collection that has not seen the ref has announced itself before: with a grace period that is shorter than a
    writer may be held up, the commit's object, which was put before the ref, was not young any more.

    Args:
        core: The repository.
        commit: The commit.

    Raises:
        ExpiredError: One has, or may have.
    """
    runs = [lives for run, lives in _runs(core, partial(_put, core, commit)) if commit.id in run.commits]
    if any(runs) or (runs and commit.id in expired_ids(core.store)):
        raise ExpiredError(
            f"garbage collection has given up the content of the commit {commit.id} while a ref was about to lead to "
            "it; no ref can lead to it again",
            path=commit.id,
        )


def is_there(store: Store, id: str) -> bool:
    """Whether a table is in the store, whatever is cached of it."""
    try:
        store.head(TABLES + id)
    except NotFoundError:
        return False
    return True
