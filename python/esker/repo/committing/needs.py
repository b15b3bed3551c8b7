"""What a commit needs: the commits and staged objects that its branch did not lead to before.

Staged objects are young, and a garbage collection deletes none that are younger than the grace period. A collection
may run with a shorter grace period, or with settings from before a change: so it announces the time, by the store's
clock, before which it deletes objects. A commit whose staging began before that time checks that its objects exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from ...exceptions import CommitConflictError, NotFoundError
from ..core.repository_core import RepositoryCore
from ..objects.address import own_path
from ..objects.batches import info, rows
from ..objects.staging import Staging
from ..refs.clock import Moment
from ..refs.commits import Commit
from ..refs.layout import COMMITS, DATA

ROUGH_S = 2.0
"""By how much a time may be off that a store tells in whole seconds, or that was computed from a duration."""
_THREADS = 16
_BATCH = 1024


@dataclass(frozen=True)
class Needs:
    """What a commit takes that its branch has not led to so far.

    Attributes:
        sources: Ids of the commits out of which it takes content.
        began: When the first of its tables may have been put.
        staging: What is staged and becomes part of it.
    """

    sources: frozenset[str] = frozenset()
    began: Moment | None = None
    staging: Staging | None = None


def check_bytes(core: RepositoryCore, commit: Commit, needs: Needs, runs: list[tuple[float, bool]]) -> None:
    """Looks whether what is staged is there, if a collection may have deleted it or may be about to.

    Args:
        core: The repository.
        commit: The commit, whose object was put just now.
        needs: What it takes.
        runs: Of each collection, up to when it deletes objects, and whether it still may.

    Raises:
        NotFoundError: It is gone.
        CommitConflictError: It may go; it can be tried again.
    """
    staging = needs.staging
    if staging is None:
        return
    addresses = _staged(staging)
    if staging.own_imports:
        before = core.commits.get(commit.parents[0]).meta_range_id if commit.parents else ""
        addresses = new_objects(core, before, commit.meta_range_id)
    elif not runs:
        return
    else:
        now_us = core.store.head(COMMITS + commit.id).last_modified_us
        since = float("-inf") if now_us is None else now_us / 1e6 - staging.age_s - ROUGH_S
        if all(before < since for before, _ in runs):
            return
    check_there(core, addresses, max((before for before, lives in runs if lives), default=float("-inf")))


def check_there(core: RepositoryCore, addresses: Iterator[str], going_before: float = float("-inf")) -> None:
    """Looks for objects of the repository, with a request each.

    Args:
        core: The repository.
        addresses: Where they are, below the repository's root.
        going_before: What was put by then may be about to go, by the store's clock.

    Raises:
        NotFoundError: One is not there.
        CommitConflictError: One may go.
    """

    def look(address: str) -> None:
        try:
            put_us = core.store.head(address).last_modified_us
        except NotFoundError as error:
            raise NotFoundError(
                f"garbage collection has deleted {address}, which was to be committed, since it was left uncommitted "
                "for too long: reset the changes and write them again",
                path=address,
            ) from error
        if put_us is not None and put_us <= going_before * 1e6:
            raise CommitConflictError(
                f"a garbage collection may be about to delete {address}, which was to be committed; try again when it "
                "is done",
                retryable=True,
            )

    with ThreadPoolExecutor(_THREADS) as threads:
        while batch := list(islice(addresses, _BATCH)):
            list(threads.map(look, batch))


def _staged(staging: Staging) -> Iterator[str]:
    for _, staged in staging.within(""):
        if staged is not None and staged.address_type != "full" and staged.physical_address.startswith(DATA):
            yield staged.physical_address


def new_objects(core: RepositoryCore, before: str, content: str) -> Iterator[str]:
    """Where the objects are that one content has and another had not, as far as they are the repository's own."""
    for row in rows(core.storage.diff(before, content)):
        there = info(row["path"], row["right"])
        if there is None:
            continue
        address = there.physical_address
        own = own_path(core.uri, address) if there.address_type == "full" or "://" in address else address
        if own is not None and own.startswith(DATA):
            yield own
