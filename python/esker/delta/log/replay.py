"""Commits that a table took provisionally, committed again on top of what others have committed meanwhile."""

from __future__ import annotations

from ..._native.store import Store
from ...commit.conflicts import application_conflict
from ...commit.loop import CommitLimits, commit
from .commit import DeltaCommit


class DeltaReplay:
    """The provisional commits of one table, committed again one after the other, by the rules of conflicts.

    Args:
        store: The table's, over the content that has the others' commits.
        common: The newest version that both have.

    Example:
        `[replay.again(5, first), replay.again(6, second)] == [7, 8]`
    """

    def __init__(self, store: Store, common: int) -> None:
        self._store = store
        self._common = common
        self._own: frozenset[str] = frozenset()

    def again(self, version: int, first: DeltaCommit) -> int:
        """Commits once more what was committed as `version`; the version that it is now.

        Raises:
            CommitConflictError: The others' changes conflict with it.
        """
        replayed = first.replayed(self._store, self._common, self._own)
        self._own |= {first.write_id}
        if replayed.applied(replayed.latest()):
            raise application_conflict(replayed.uri, replayed.operation)
        return commit(replayed, limits=CommitLimits(max_retries=0, max_reruns=0))
