"""When a commit gives up: how often and for how long it is tried."""

from __future__ import annotations

from datetime import timedelta

from ..exceptions import InvalidArgumentError
from .loop import DEFAULT_MAX_RETRIES, Backoff, CommitLimits

DEFAULT_COMMIT_TIMEOUT = timedelta(minutes=30)
"""For all attempts of a commit together, as in pylance."""
CONFLICT_RETRIES = 10
"""How often a change of rows is computed again, as in pylance."""
RETRY_TIMEOUT = timedelta(seconds=30)
"""The time after which it is not, as in pylance."""


def commit_limits(max_retries: int, timeout: timedelta | None, backoff: Backoff | None = None) -> CommitLimits:
    """When a commit gives up.

    Args:
        max_retries: Attempts after the first.
        timeout: For all attempts together; None for no limit.
        backoff: The pauses between them.

    Raises:
        InvalidArgumentError: A negative number, or no time at all.

    Example:
        >>> from datetime import timedelta
        >>> from esker.commit.limits import commit_limits
        >>> commit_limits(3, timedelta(seconds=5)).timeout_s
        5.0
    """
    if max_retries < 0:
        raise InvalidArgumentError(f"expected max_retries >= 0, found {max_retries}")
    if timeout is not None and timeout <= timedelta(0):
        raise InvalidArgumentError(f"expected a positive commit_timeout, found {timeout}")
    seconds = None if timeout is None else timeout.total_seconds()
    return CommitLimits(max_retries=max_retries, timeout_s=seconds, backoff=backoff or Backoff())


def retry_limits(conflict_retries: int, retry_timeout: timedelta) -> CommitLimits:
    """When a change of rows gives up, by pylance's two arguments.

    Args:
        conflict_retries: How often it is computed again, where others changed the same rows.
        retry_timeout: After this time it is not tried again, however long the first try takes.

    Raises:
        InvalidArgumentError: A negative number, or no time at all.

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
        # Who is patient about changes of the same rows is so about races for the next version.
        max_retries=max(DEFAULT_MAX_RETRIES, conflict_retries),
        max_reruns=conflict_retries,
        timeout_s=retry_timeout.total_seconds(),
    )
