"""The errors of a change that other writers' changes keep from being committed."""

from __future__ import annotations

from ..commit.protocol import CommittedChange
from ..exceptions import AlreadyExistsError, CommitConflictError
from .committed_change import LanceChange
from .log import LanceLog


def made_meanwhile(log: LanceLog, version: int) -> Exception:
    """The error of a creation that found `version` of another writer's table."""
    return AlreadyExistsError(
        f"a table at {log.uri} exists already (created by another writer meanwhile); "
        'use mode="append" or mode="overwrite"',
        uri=log.uri,
        version=version,
    )


def conflict_with(
    log: LanceLog, operation: str, version: int, change: CommittedChange, *, retryable: bool
) -> CommitConflictError:
    """The conflict of a change with another writer's.

    Args:
        log: The table's log.
        operation: The operation of ours.
        version: Its read version.
        change: The other writer's.
        retryable: Whether ours can be computed again on the newest version.
    """
    theirs = change.operation if isinstance(change, LanceChange) else "unknown"
    if isinstance(change, LanceChange) and change.manifest is None:
        found = (
            f"it was cleaned up before our {operation} of version {version} of {log.uri} could be compared with it; "
            "nothing of ours is visible, run it again on the newest version"
        )
        retryable = True
    else:
        advice = "run it again on the newest version" if retryable else "look at that version before you write again"
        found = (
            f"our {operation} of version {version} of {log.uri} conflicts with the {theirs} that another writer "
            f"committed, by which it was preempted; nothing of ours is visible, {advice}"
        )
    return CommitConflictError(
        f"Commit conflict for version {change.version}: {found}",
        uri=log.uri,
        operation=operation,
        version=version,
        other_operation=theirs,
        other_version=change.version,
        retryable=retryable,
    )


def races_lost(log: LanceLog, operation: str, version: int, attempts: int, seconds: float) -> CommitConflictError:
    """The error of a change whose every attempt another writer won."""
    return CommitConflictError(
        f"our {operation} to {log.uri} lost the race {attempts} times in {seconds:.1f} s; "
        "nothing of ours is visible, try again or raise max_retries",
        uri=log.uri,
        operation=operation,
        version=version,
        retryable=True,
    )
