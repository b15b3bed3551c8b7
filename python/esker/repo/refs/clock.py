"""The age of objects, by the store's clock: a machine's own clock may be days off.

A machine measures durations well; what is old enough to be deleted is decided by the times that the store gives its
objects.
"""

from __future__ import annotations

import time
from typing import TypeAlias

from ..._native.store import Store
from ...commit.clock import seconds_since
from ...exceptions import IOFailedError
from .layout import CLOCK

Moment: TypeAlias = tuple[float, float]
"""A time by two clocks: one stands still while the machine sleeps, the other can be set."""

_LOOKS, _LOOK_S = 50, 0.1
CLOCKS_DIFFER_S = 3600.0
"""By how much the clocks of a machine and of its store may differ, if the machine is to delete something there."""


def moment() -> Moment:
    """Now."""
    return time.monotonic(), time.time()


def elapsed_s(then: Moment) -> float:
    """Seconds since then, by the clock that says more."""
    return seconds_since(*then)


def store_time(store: Store) -> float:
    """Seconds since the Unix epoch by the store's clock: the time of a small object that is put.

    Raises:
        IOFailedError: The store tells no times.

    Example:
        >>> import time
        >>> from esker.store.stores import resolve
        >>> from esker.repo.refs.clock import store_time
        >>> abs(store_time(resolve("memory://doc-clock")) - time.time()) < 5
        True
    """
    store.put(CLOCK, b"{}")
    put_us = store.head(CLOCK).last_modified_us
    if put_us is None:
        raise IOFailedError(f"the store at {store.uri} tells no times, so that nothing can be said of ages")
    return put_us / 1e6


def wait_until_after(store: Store, then: float) -> None:
    """Waits until the store's clock says more than it did then: some tell whole seconds."""
    for _ in range(_LOOKS):
        if store_time(store) > then:
            return
        time.sleep(_LOOK_S)
    raise IOFailedError(f"the clock of the store at {store.uri} stands still; nothing was deleted")


def collecting_time(store: Store) -> float:
    """The time for one who deletes what is old: the earlier one of the store's and this machine's.

    Raises:
        IOFailedError: They differ by more than an hour, or the store tells no times.
    """
    theirs, ours = store_time(store), time.time()
    if abs(theirs - ours) > CLOCKS_DIFFER_S:
        ahead = "ahead of" if ours > theirs else "behind"
        raise IOFailedError(
            f"this machine's clock is {abs(theirs - ours) / 3600:.1f} hours {ahead} that of the store at {store.uri}, "
            "expected an hour at most; nothing was deleted: set the clock first"
        )
    return min(theirs, ours)
