"""A gate for the threads of a change: once it is closed none of them leaves a file.

A pool of threads does not know of a thread whose start Ctrl-C broke off: the thread runs, and a shutdown does not wait
for it. Files that were put after the staged ones were deleted would stay. And a second Ctrl-C ends the waiting for a
put that takes long: a thread that meets a closed gate after its put deletes what it has put.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from threading import Condition
from typing import TypeVar

T = TypeVar("T")


class Gate:
    """Lets threads work while it is open.

    Example:
        >>> from esker.commit.gate import Gate
        >>> gate = Gate()
        >>> gate.run(lambda: "put")
        'put'
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether nothing begins any more: what is put now is to be deleted by who puts it."""
        return self._is_closed

    def run(self, work: Callable[[], T]) -> T:
        """Does some work, and returns what comes of it.

        Raises:
            CancelledError: The gate is closed; nothing was done.
        """
        with self._changed:
            if self._is_closed:
                raise CancelledError
            self._inside += 1
        try:
            return work()
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Lets nothing begin any more, and returns once what was begun has ended, unless Ctrl-C comes before.

        Example:
            `gate.close()`
        """
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._inside)
