"""`CommitProtocol`: what a table format implements for the commit loop (docs/commit-protocol.md).

All commits rest on one primitive: put-if-absent of one object. A Lance manifest is such an object, so are an entry of a
Delta log and the ref of a branch. `loop.commit` is written once; each format implements `CommitProtocol`, which says
what to write and how to judge the changes of other writers.

A change that lost the race for a version goes on in one of three ways:

- It is committed on top, as it is or rebased (`Verdict.KEEP`, `Verdict.REBASE`): an append after other appends.
- It is computed again (`Verdict.RERUN`): the caller passes `loop.commit` a callable that takes the newest version as
  the new base version and returns the change computed from it. `update` and `merge_insert` do so; they spool a source
  that can be read only once. Without the callable the verdict ends in a conflict that the caller may retry.
- It is reconciled where both changes touch the same fragment, without being computed again:
  `LanceCommit(reconcile=DeletionMerge(...))` merges the deletion vectors if the rows differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol, TypeAlias, runtime_checkable

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[None]]
"""Takes the version to commit and returns a context manager: a lock against other writers of a store without
put-if-absent."""


class Verdict(Enum):
    """What a change that another writer committed means for ours."""

    KEEP = "keep"
    """No conflict: ours is committed on top as it is."""
    REBASE = "rebase"
    """Ours is committed on top after `CommitProtocol.rebase` has adapted it."""
    RERUN = "rerun"
    """Ours was computed from data that have changed: it must be computed again."""
    REFUSE = "refuse"
    """A conflict that computing ours again does not solve."""


class CommittedChange(Protocol):
    """A version that somebody committed."""

    @property
    def version(self) -> int:
        """The version that it made."""

    @property
    def write_id(self) -> str | None:
        """The random id that its writer gave it, None if it cannot be found."""


class CommitProtocol(Protocol):
    """One change that is to be committed to one table."""

    @property
    def write_id(self) -> str:
        """Our own id. Every object that we put holds it, so that a read-back after a lost reply can tell it is ours."""

    @property
    def read_version(self) -> int:
        """The base version: the one that the change was computed from; 0 for a table that did not exist."""

    def latest(self) -> int:
        """The newest version, 0 if there is none."""

    def changes_since(self, version: int, latest: int) -> Iterable[CommittedChange]:
        """The changes that made the versions after `version` up to `latest`, oldest first."""

    def applied(self, latest: int) -> bool:
        """Whether the change has landed by version `latest` under another write id: in an earlier run of a job that
        numbers its commits. Only the newest version is looked at, since the commit itself may be cleaned up already."""

    def judge(self, change: CommittedChange) -> Verdict:
        """What `change` means for ours."""

    def rebase(self, change: CommittedChange) -> None:
        """Adapts ours to `change`, for which `judge` returned `Verdict.REBASE`."""

    def next_bytes(self, version: int) -> bytes:
        """The bytes of the object that commits our change as `version`, on top of the version before."""

    def put(self, version: int, data: bytes) -> bool:
        """Puts the object of `version` if absent; False if there is one already."""

    def write_id_at(self, version: int) -> str | None:
        """The write id in the object of `version`, None if there is no object or no id in it."""

    def landed(self, version: int) -> None:
        """Called after our commit of `version` has landed. A failure in here does not undo it."""

    def conflict(self, change: CommittedChange, *, retryable: bool) -> Exception:
        """The error that says that ours conflicts with `change`."""

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """The error that says that other writers won every race."""


class NothingPut(Exception):
    """Raised by `CommitProtocol.put` if nothing was sent to the store; the loop raises `reason` in its place."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@runtime_checkable
class PutsUnderLock(Protocol):
    """A change that is put under a lock of the caller's."""

    unreleased: dict[int, Exception]
    """Versions that were put, and the error of the lock that was not released after it."""


@runtime_checkable
class LeavesTraces(Protocol):
    """A change that can be recognised in later versions after its own version was cleaned up."""

    def is_part_of(self, version: int) -> bool:
        """Whether `version` holds something that only our change can have added."""


@runtime_checkable
class KnowsItsPuts(Protocol):
    """A change to a store whose puts have ended when the call returns, well or ill: a local disk, not a network."""

    def was_put(self, version: int) -> bool | None:
        """Whether the object of `version` is there and ours, after a put without an error; None if nobody can tell."""


@runtime_checkable
class MayMissHistory(Protocol):
    """A change to a log whose old version numbers become free again when a clean-up removes the versions.

    A writer that was paused for long can win such a number: its version is older than the newest one, and no reader
    sees it.
    """

    def is_in_history(self, version: int) -> bool:
        """Whether `version`, which we have just put, is the newest version or one that the newest was built on.

        If it is not, the object has been removed on return.

        Raises:
            CommitStateUnknownError: It cannot be told, or the object could not be removed.
        """
