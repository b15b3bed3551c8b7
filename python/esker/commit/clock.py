"""Elapsed time on a machine that may have slept meanwhile."""

from __future__ import annotations

import time


def seconds_since(monotonic: float, wall: float) -> float:
    """Seconds since a moment, by the clock that shows more of them.

    The monotonic clock stands still while a machine sleeps, and the wall clock may be set back: at least one of them
    shows a pause.

    Args:
        monotonic: `time.monotonic()` at that moment.
        wall: `time.time()` at that moment.

    Example:
        >>> import time
        >>> from esker.commit.clock import seconds_since
        >>> seconds_since(time.monotonic(), time.time() - 3600) >= 3599
        True
    """
    return max(time.monotonic() - monotonic, time.time() - wall)
