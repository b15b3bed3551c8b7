"""The last two steps of a commit: its object is stored, and a branch is moved to it.

The object is stored before the check against garbage collections and before the branch moves: either a collection sees
the commit, or the check finds the collection's announcement. See `refs.gc_runs`.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import NoReturn

from ...commit.loop import follow
from ...exceptions import CommitConflictError, CorruptFileError, NotFoundError
from ..core.repository_core import RepositoryCore
from ..objects.batches import table
from ..refs.clock import elapsed_s, moment
from ..refs.commit_entry import HIDDEN, is_hidden
from ..refs.commit_packs import PACK_COMMITS
from ..refs.commits import Commit
from ..refs.layout import TABLES
from ..refs.numbered_log import LogEntry
from ..refs.ref_commit import HELD_UP_S, Build, append
from .collection_check import check_not_collected, check_not_condemned, reach_of_living
from .needs import Needs, check_there, new_objects

PACK_BYTES = 64 << 10
"""Most bytes of commits in an entry; more than these become a pack."""
MOST_BEFORE = 4 * PACK_COMMITS
"""Most commits in an entry where no pack can be written."""
UPKEEP_EVERY = 64
"""At each multiple of this entry number, the writer joins packs and compacts the branch's log."""
_THREADS = 32
_NOTHING = Needs()


def store_commit(core: RepositoryCore, commit: Commit, needs: Needs = _NOTHING) -> None:
    """Puts a commit's object, and then makes sure that no garbage collection is about to delete what it needs.

    Args:
        core: The repository.
        commit: The commit.
        needs: What it takes that the ref has not led to so far.

    Raises:
        ExpiredError: A source has expired.
        NotFoundError: It has deleted what is staged.
        CommitConflictError: Something is being deleted, or may have been; it can be tried again.
    """
    core.commits.add(commit)
    check_not_condemned(core, commit, needs)


def entry_to(core: RepositoryCore, kind: str, commit: Commit, needs: Needs = _NOTHING) -> LogEntry:
    """An entry of a branch's log that leads to a commit, whose object is stored first.

    Args:
        core: The repository.
        kind: `create`, `commit`, `reset` or `delete`.
        commit: The commit.
        needs: What it takes that the branch has not led to so far.
    """
    looked = moment()
    if kind != "delete":
        store_commit(core, commit, needs)
    before = core.commits.before(commit)
    size = sum(len(json.dumps(one.to_json())) for one in before)
    if len(before) >= PACK_COMMITS or size > PACK_BYTES:
        try:
            core.commits.packs.put([one.to_json() for one in before])
            before = []
        except OSError:
            # A pack is a copy: what is not packed now is packed by the next commit.
            before = before[:MOST_BEFORE]
    core.commits.remember(commit, before)
    history = {"history": [one.to_json() for one in before]} if before else {}
    return LogEntry(0, kind, body={"commit_id": commit.id, "commit": commit.to_json(), **history}, made=looked)


def move_branch(core: RepositoryCore, branch: str, build: Build, what: str) -> LogEntry:
    """Appends to a branch's log the entry that `build` makes of its last one, and now and then looks after the log.

    Args:
        core: The repository.
        branch: The branch.
        build: Makes the entry; called again where another writer was faster.
        what: What is being done, for messages.

    Raises:
        CommitConflictError: Other writers were faster every time, or it was held up for so long that a garbage
            collection has taken some of its content; it can be tried again.
    """

    def build_again(head: LogEntry | None) -> LogEntry:
        entry = build(head)
        if head is not None and is_hidden(head) and head.kind != "delete":
            entry.body[HIDDEN] = True
        return entry

    entry = append(core.log(branch), build_again, what)
    if elapsed_s(entry.made) > HELD_UP_S or entry.kind in ("create", "reset"):
        _check_late(core, branch, entry, what)
    if entry.number % UPKEEP_EVERY == 0:
        # Packs are copies and old entries are unused: where this fails, a later writer does it.
        with suppress(OSError, CorruptFileError):
            core.commits.packs.join()
            core.log(branch).compact()
    return entry


def _check_late(core: RepositoryCore, branch: str, entry: LogEntry, what: str) -> None:
    """Looks whether all is there that an entry leads to whose put was held up, or that leads to old content: the
    commit's object may have grown old, and a garbage collection that read the refs before the put have taken its
    content."""
    if entry.kind == "delete":
        return
    commit = core.commit_of(entry, branch)
    try:
        if entry.kind == "commit":
            store_commit(core, commit)
            before = core.commits.get(commit.parents[0]).meta_range_id if commit.parents else ""
            _check_tables(core, commit.meta_range_id)
            check_there(core, new_objects(core, before, commit.meta_range_id), reach_of_living(core, commit))
        elif elapsed_s(entry.made) > HELD_UP_S:
            store_commit(core, commit, Needs(sources=frozenset((commit.id,))))
        else:
            check_not_collected(core, commit)
    except (NotFoundError, CommitConflictError) as error:
        _take_back(core, branch, entry, what)
        raise CommitConflictError(
            f"{what}: it was held up for so long that {error}; the branch is where it was before: do it again",
            retryable=True,
        ) from error
    except OSError as error:
        follow(partial(fail, error), what)


def _take_back(core: RepositoryCore, branch: str, late: LogEntry, what: str) -> None:
    """Moves a branch back to where it was before an entry, if that entry is the last one."""
    before = core.log(branch).entry(late.number - 1)

    def build(head: LogEntry | None) -> LogEntry:
        if head is None or head.write_id != late.write_id:
            raise NotFoundError(
                f"{what}: it was held up for so long that garbage collection has taken some of its content; it is "
                f"in the history of {branch!r} as entry {late.number}, and others have gone on from there: write "
                "again what it brought",
                path=core.log(branch).path(late.number),
            )
        if before is None or before.kind == "delete":
            return entry_to(core, "delete", core.commit_of(late, branch))
        return entry_to(core, "reset", core.commit_of(before, branch))

    append(core.log(branch), build, f"take back: {what}")


def _check_tables(core: RepositoryCore, metarange: str) -> None:
    """Looks for the tables of a content in the store, whatever is cached of them here.

    Raises:
        NotFoundError: One is not there.
    """
    if metarange:
        ids = [metarange, *table(core.storage.ranges(metarange)).column("id").to_pylist()]
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(lambda id: core.store.head(TABLES + id), ids))


def fail(error: OSError) -> NoReturn:
    """Raises an error, as the work that follows a commit.

    Example:
        `follow(partial(fail, error), "tag v1")`
    """
    raise error
