"""Conflicts of commits that are made again, whatever the table's format."""

from __future__ import annotations

from ..exceptions import CommitConflictError


def application_conflict(uri: str, operation: str) -> CommitConflictError:
    """Others have committed the number of an application meanwhile: what was computed on top of ours is not theirs.

    Args:
        uri: The table's.
        operation: What ours does.
    """
    return CommitConflictError(
        f"our {operation} to {uri} has a number of an application that others have committed meanwhile; nothing of "
        "ours is visible: run the transaction again, which then leaves it out",
        uri=uri,
        operation=operation,
        retryable=True,
    )
