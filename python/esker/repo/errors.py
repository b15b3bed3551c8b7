"""The errors that only repositories have."""

from __future__ import annotations

from typing import Any

from ..exceptions import CommitConflictError, InvalidArgumentError, NotCommittedError, NotFoundError
from .objects.object_info import Conflict


class MergeConflictError(CommitConflictError):
    """Both sides changed the same paths, each in its way. Nothing was merged.

    Attributes:
        conflicts: The first of them, with all three sides.
        count: How many there are.
    """

    conflicts: list[Conflict]
    count: int

    def __init__(self, message: str = "", /, **facts: Any) -> None:
        super().__init__(message, **{"conflicts": [], "count": 0, "retryable": False, **facts})


class ExpiredError(NotFoundError):
    """A commit has expired: garbage collection has deleted its content, or is about to, since no ref led to it."""


class InvalidSeekError(InvalidArgumentError, OSError):
    """A file was to be read from before its start."""


class NoChangesError(NotCommittedError, InvalidArgumentError):
    """There is nothing to commit, or nothing to merge. `allow_empty=True` commits nevertheless."""


class ProtectedBranchError(InvalidArgumentError):
    """The settings protect the branch: changes reach it by merges only."""
