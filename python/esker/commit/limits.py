"""When a commit gives up: its number of retries and its timeout, from the arguments of the public methods."""

from __future__ import annotations

from datetime import timedelta

from ..exceptions import InvalidArgumentError
from .loop import DEFAULT_MAX_RETRIES, Backoff, CommitLimits

DEFAULT_COMMIT_TIMEOUT = timedelta(minutes=30)
"""The time for all attempts of a commit together, as in pylance."""
CONFLICT_RETRIES = 10
"""How often a change of rows is computed again after a conflict, as in pylance."""
RETRY_TIMEOUT = timedelta(seconds=30)
"""The time after which a change of rows is not computed again, as in pylance."""


class CommitTimeoutError(InvalidArgumentError, OSError):
    """A timeout that leaves no time: pylance refuses it by an `OSError`."""


def commit_limits(max_retries: int, timeout: timedelta | None, backoff: Backoff | None = None) -> CommitLimits:
    """The limits of a commit.

    Args:
        max_retries: Attempts after the first.
        timeout: The time for all attempts together; None for no limit.
        backoff: The pauses between attempts.

    Raises:
        InvalidArgumentError: `max_retries` is negative, or `timeout` is not positive.

    Example:
        >>> from datetime import timedelta
        >>> from esker.commit.limits import commit_limits
        >>> commit_limits(3, timedelta(seconds=5)).timeout_s
        5.0
    """
    if max_retries < 0:
        raise InvalidArgumentError(f"expected max_retries >= 0, found {max_retries}")
    if timeout is not None and timeout <= timedelta(0):
        raise CommitTimeoutError(f"expected a positive, non-zero commit_timeout, found {timeout}")
    seconds = None if timeout is None else timeout.total_seconds()
    return CommitLimits(max_retries=max_retries, timeout_s=seconds, backoff=backoff or Backoff())


def retry_limits(conflict_retries: int, retry_timeout: timedelta) -> CommitLimits:
    """The limits of a change of rows (update, delete, upsert), from pylance's two arguments.

    Args:
        conflict_retries: How often the change is computed again after another writer changed the same rows.
        retry_timeout: After this time it is not retried; the first attempt may take longer.

    Raises:
        InvalidArgumentError: `conflict_retries` is negative, or `retry_timeout` is not positive.

    Example:
        >>> from datetime import timedelta
        >>> from esker.commit.limits import retry_limits
        >>> retry_limits(3, timedelta(seconds=5)).max_reruns
        3
    """
    if conflict_retries < 0:
        raise InvalidArgumentError(f"expected conflict_retries >= 0, found {conflict_retries}")
    if retry_timeout <= timedelta(0):
        raise InvalidArgumentError(f"expected a positive retry_timeout, found {retry_timeout}")
    return CommitLimits(
        # A lost race for the next version is retried at least as often as a conflict over the same rows.
        max_retries=max(DEFAULT_MAX_RETRIES, conflict_retries),
        max_reruns=conflict_retries,
        timeout_s=retry_timeout.total_seconds(),
    )
