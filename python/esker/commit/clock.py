"""How long something took, on a machine that may have slept."""

from __future__ import annotations

import time


def seconds_since(monotonic: float, wall: float) -> float:
    """Seconds since a moment, by the clock that says more.

    The monotonic clock stands still while a machine sleeps, and the wall clock may be set back: a pause shows on one of
    them.

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
