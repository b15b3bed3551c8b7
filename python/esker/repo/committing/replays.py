"""Staged commits of tables, made again by each format's own rules."""

from __future__ import annotations

from collections.abc import Callable

from ...delta.log.commit import DeltaCommit
from ...delta.log.replay import DeltaReplay
from ...exceptions import CommitConflictError
from ...lance.commit import LanceCommit
from ...lance.log import LanceLog
from ...lance.replay import LanceReplay
from ..objects.staging import StagedEntry
from ..tables.workspace import TableWorkspace


def replay_of(first: StagedEntry, workspace: TableWorkspace, common: int | None) -> Callable[[StagedEntry], int]:
    """Takes the staged commits of one table in their order, and returns the version that each is now.

    Args:
        first: One of them.
        workspace: Has the others' commits.
        common: The newest version that both have; None for a table that there was not.
    """
    store = workspace.store(first.folder)
    if first.format == "lance":
        lance = LanceReplay(LanceLog(store, workspace.uri_of(first.folder)), common or 0)

        def again_in_lance(entry: StagedEntry) -> int:
            if not isinstance(entry.change, LanceCommit):
                raise _nothing_to_repeat(entry)
            return lance.again(entry.number, entry.change)

        return again_in_lance
    delta = DeltaReplay(store, -1 if common is None else common)

    def again_in_delta(entry: StagedEntry) -> int:
        if not isinstance(entry.change, DeltaCommit):
            raise _nothing_to_repeat(entry)
        return delta.again(entry.number, entry.change)

    return again_in_delta


def _nothing_to_repeat(entry: StagedEntry) -> CommitConflictError:
    return CommitConflictError(f"version {entry.number} was put without a commit that can be made again")
