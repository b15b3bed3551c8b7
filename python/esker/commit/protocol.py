"""What the commit loop asks of the thing that it commits to.

One primitive commits everything: put-if-absent of one object that must not exist yet. A Lance manifest is such an
object, so are an entry of a Delta log and the ref of a branch. `loop.commit` is written once; each kind of table brings
one implementation of `CommitProtocol` that says what to write and what the changes of others mean for ours.

A change that others were faster with has three ways on:

- It goes on top as it is, or adapted (`Verdict.KEEP`, `Verdict.REBASE`): an append behind other appends.
- It is computed again (`Verdict.RERUN`): whoever commits hands `loop.commit` a callable that, given the newest version,
  reads what it needs there and returns the change made from it. `update` and `merge_insert` do so; what they read only
  once they spool. Without the callable the verdict ends in a conflict that says it can be tried again.
- It is adapted where both touched a fragment, without being computed again: `LanceCommit(reconcile=DeletionMerge(...))`
  merges deletion vectors where the rows are different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol, TypeAlias, runtime_checkable

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[None]]
"""Given the version to commit, a context manager that holds off the other writers of a store without put-if-absent."""


class Verdict(Enum):
    """What a change that another writer committed means for ours."""

    KEEP = "keep"
    """Nothing: ours goes on top as it is."""
    REBASE = "rebase"
    """Ours goes on top once `CommitProtocol.rebase` has adapted it."""
    RERUN = "rerun"
    """Ours was computed from what is no longer there: it must be computed again."""
    REFUSE = "refuse"
    """Ours makes no sense any more, however often it is computed."""


class Change(Protocol):
    """A version that somebody committed."""

    @property
    def version(self) -> int:
        """The version that it made."""

    @property
    def write_id(self) -> str | None:
        """The id that its writer drew for it, if it can be found."""


class CommitProtocol(Protocol):
    """One change on its way into one table."""

    @property
    def write_id(self) -> str:
        """Our own id, in every object that we put: it tells our commit from another's after a lost reply."""

    @property
    def read_version(self) -> int:
        """The version that the change was computed from; 0 for a table that did not exist."""

    def latest(self) -> int:
        """The newest version, 0 if there is none."""

    def changes_since(self, version: int, latest: int) -> Iterable[Change]:
        """The changes that made the versions after `version` up to `latest`, oldest first."""

    def applied(self, latest: int) -> bool:
        """Whether the same change has landed by version `latest` under another write id: an earlier run of a job that
        numbers its commits. Judged by what the newest version says: the change may be older than all that is kept."""

    def judge(self, change: Change) -> Verdict:
        """What `change` means for ours."""

    def rebase(self, change: Change) -> None:
        """Adapts ours to `change`, which was judged `Verdict.REBASE`."""

    def next_bytes(self, version: int) -> bytes:
        """The object that makes `version` out of the one before it, with our change."""

    def put(self, version: int, data: bytes) -> bool:
        """Puts the object of `version` if there is none; False says that there is one."""

    def write_id_at(self, version: int) -> str | None:
        """The write id in the object of `version`, None if there is no object or no id in it."""

    def landed(self, version: int) -> None:
        """Called once the object of `version` is there and ours. What fails here does not undo the commit."""

    def conflict(self, change: Change, *, retryable: bool) -> Exception:
        """The error that says that `change` leaves no room for ours."""

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """The error that says that others were faster every time."""


class NothingPut(Exception):
    """Raised by `CommitProtocol.put` where nothing was sent to the store: what to raise in its place."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@runtime_checkable
class LeavesTraces(Protocol):
    """A change of which later versions may show that it was made, when its own version is gone."""

    def is_part_of(self, version: int) -> bool:
        """Whether `version` holds something that only our change can have brought there."""


@runtime_checkable
class MayMissHistory(Protocol):
    """A change of a log whose numbers may come free again, when old versions are cleaned up.

    A writer that was held up for long can win such a number: its version lies below later ones, and nobody sees it.
    """

    def is_in_history(self, version: int) -> bool:
        """Whether `version`, which we have just put, is the newest one or one that the newest was built on.

        Where it is not, what was put has been removed on return.

        Raises:
            CommitStateUnknownError: Nobody can tell, or it could not be removed.
        """
