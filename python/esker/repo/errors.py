"""The errors that only repositories have."""

from __future__ import annotations

from typing import Any

from ..exceptions import CommitConflictError, InvalidArgumentError, NotCommittedError, NotFoundError
from .objects.object_info import Conflict, TableConflict


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


class TableConflictError(MergeConflictError):
    """A table cannot take a change whole: its log went another way. Nothing was merged or committed.

    Attributes:
        tables: What is in the way, table by table.
        conflicts: Paths outside of tables that both sides changed as well.
    """

    tables: list[TableConflict]

    def __init__(self, message: str = "", /, **facts: Any) -> None:
        super().__init__(message, **{"tables": [], **facts})


def table_conflict(*tables: TableConflict, what: str, retryable: bool = False, **facts: Any) -> TableConflictError:
    """The error that names tables that are in the way.

    Args:
        tables: The tables.
        what: What was to be done.
        retryable: Whether doing all of it again may work.
        facts: Further attributes of the error.
    """
    first = tables[0]
    more = f" (and {len(tables) - 1} more tables)" if len(tables) > 1 else ""
    return TableConflictError(
        f"{what}: {first.explanation}{more}; nothing was changed: {first.advice}",
        tables=list(tables),
        count=len(tables) + facts.pop("count", 0),
        retryable=retryable,
        table=first.table,
        version=first.version,
        **facts,
    )


class ExpiredError(NotFoundError):
    """A commit has expired: garbage collection has deleted its content, or is about to, since no ref led to it."""


class InvalidSeekError(InvalidArgumentError, OSError):
    """A file was to be read from before its start."""


class NoChangesError(NotCommittedError, InvalidArgumentError):
    """There is nothing to commit, or nothing to merge. `allow_empty=True` commits nevertheless."""


class ProtectedBranchError(InvalidArgumentError):
    """The settings protect the branch: changes reach it by merges only."""


class HookRefusedError(NotCommittedError):
    """A hook has refused a commit or a merge: what hooks raise, with the reason. Nothing was committed.

    Whatever else a hook raises reaches the caller as well, as it is.
    """
