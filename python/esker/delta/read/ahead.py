"""Reads several files ahead: they are handed out in their order, while threads decode what comes next."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from ...store.stores import is_behind_network

T = TypeVar("T")

_THREADS = 4


def threads_for(uri: str) -> int:
    """How many files of a table are read at once: one for each processor, four at most; four behind a network.

    More would take memory, and wait for processors.

    Args:
        uri: The table's.

    Example:
        >>> from esker.delta.read.ahead import threads_for
        >>> threads_for("s3://bucket/table")
        4
    """
    return _THREADS if is_behind_network(uri) else min(_THREADS, os.cpu_count() or 1)


def read_ahead(
    readers: Sequence[Callable[[], Iterator[T]]], size: Callable[[T], int], *, limit: int, threads: int | None = None
) -> Generator[T, None, None]:
    """What readers hand out, reader by reader, while the next ones run; its threads end with it, so close it.

    Args:
        readers: What makes each of them; it is called, and its iterator runs, in a thread.
        size: How many bytes one item holds.
        limit: Bytes of items that wait; a single larger one waits alone.
        threads: How many readers run at once; one for each processor, four at most, if not given.

    Raises:
        Exception: What a reader raised, after the items of those before it.

    Example:
        >>> from esker.delta.read.ahead import read_ahead
        >>> list(read_ahead([lambda: iter([1, 2]), lambda: iter([3])], lambda item: 8, limit=64))
        [1, 2, 3]
    """
    ahead = _Ahead(readers, size, limit)
    count = min(len(readers), threads or min(_THREADS, os.cpu_count() or 1))
    workers = [threading.Thread(target=ahead.work, name=f"esker-delta-ahead-{n}") for n in range(count)]
    started: list[threading.Thread] = []
    try:
        for worker in workers:
            worker.start()
            started.append(worker)
        yield from ahead.items()
    finally:
        # One whose start Ctrl-C broke off cannot be joined; it ends as the others do.
        ahead.stop()
        for worker in started:
            worker.join()


class _Ahead(Generic[T]):
    """What threads have read, and nobody took yet."""

    def __init__(self, readers: Sequence[Callable[[], Iterator[T]]], size: Callable[[T], int], limit: int) -> None:
        self._readers = readers
        self._size = size
        self._limit = limit
        self._items: list[deque[tuple[T, int]]] = [deque() for _ in readers]
        self._ends: dict[int, BaseException | None] = {}
        self._held = self._next = self._current = 0
        self._is_stopped = False
        self._change = threading.Condition()

    def items(self) -> Iterator[T]:
        """All items in their order."""
        for number, items in enumerate(self._items):
            with self._change:
                self._current = number
                self._change.notify_all()
            while True:
                with self._change:
                    self._change.wait_for(partial(self._is_known, number))
                    if not items:
                        break
                    item, size = items.popleft()
                    self._held -= size
                    self._change.notify_all()
                yield item
                # Not kept alive while the next one is waited for.
                del item
            error = self._ends[number]
            if error is not None:
                raise error

    def _is_known(self, number: int) -> bool:
        """Whether an item of a reader is there, or its end."""
        return bool(self._items[number]) or number in self._ends

    def work(self) -> None:
        """Runs one reader after the other, in a thread."""
        while True:
            with self._change:
                if self._is_stopped or self._next == len(self._readers):
                    return
                number, self._next = self._next, self._next + 1
            error: BaseException | None = None
            try:
                for item in self._readers[number]():
                    if not self._put(number, item):
                        return
            except BaseException as raised:
                error = raised
            with self._change:
                self._ends[number] = error
                self._change.notify_all()

    def _put(self, number: int, item: T) -> bool:
        """Has an item wait, once there is room; whether anybody waits for it."""
        size = self._size(item)

        def has_room() -> bool:
            is_wanted = number == self._current and not self._items[number]
            return self._is_stopped or is_wanted or self._held + size <= self._limit

        with self._change:
            self._change.wait_for(has_room)
            if self._is_stopped:
                return False
            self._items[number].append((item, size))
            self._held += size
            self._change.notify_all()
        return True

    def stop(self) -> None:
        """Has all readers end soon."""
        with self._change:
            self._is_stopped = True
            self._change.notify_all()
