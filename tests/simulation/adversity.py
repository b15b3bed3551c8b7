"""What goes wrong beside single faults: several in a row, Ctrl-C at any call of a commit, sleep, clocks that differ."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any

import esker.commit.clock
import esker.lance.cleanup.run
import esker.lance.commit
from esker._native.store import Store
from esker.exceptions import NotFoundError
from esker.lance.cleanup.inspection import Inspection
from esker.lance.cleanup.policy import UNDER_WAY_AGE
from esker.lance.commit import LanceCommit

if TYPE_CHECKING:
    from tests.simulation.actor import Actor

CALLS = ("latest", "next_bytes", "put", "write_id_at", "is_in_history", "landed")
"""The calls of a commit at which Ctrl-C may arrive: before one, or as it returns."""
DELTA_CALLS = ("latest", "next_bytes", "put", "write_id_at", "is_in_history", "landed")
NIGHT_S = 86_400.0
_CLOCKS = (esker.commit.clock, esker.lance.commit, esker.lance.cleanup.run)
_thread = threading.local()
_ARCHIVIST = ThreadPoolExecutor(1)


def at_work(writer: Actor) -> None:
    """Says whose thread this is."""
    _thread.writer = writer


def _writer() -> Actor | None:
    return getattr(_thread, "writer", None)


class Adversity:
    """What a seed adds to the faults of a simulation. While it is entered, clocks and commits are the seed's.

    Args:
        seed: The simulation's.
        alone: Whether there is nothing but single faults.
        owner: The class of commits.
        calls: Those of its methods at which Ctrl-C may arrive.
    """

    def __init__(
        self, seed: int, *, alone: bool, owner: type[Any] = LanceCommit, calls: tuple[str, ...] = CALLS
    ) -> None:
        self._owner, self._calls = owner, calls
        chance = random.Random(f"{seed} adversity")
        rates = (0.0, 0.0, 0.0) if alone else tuple(chance.choice([0.0, rate]) for rate in (0.6, 0.03, 0.04))
        self.burst_rate, self.cancel_rate, self.sleep_rate = rates
        self.crashes = alone or chance.random() < 0.5
        """Whether writers die: what a dead one has staged holds up clean-ups for an hour."""
        self.clocks = chance.choice([0.0, 0.0, 7200.0, 5 * NIGHT_S])
        """By how many seconds the writers' clocks may differ."""
        self.aged: set[int] = set()
        """When transactions were staged whose writers slept since."""
        self._undo: list[Callable[[], None]] = []

    def skew(self, number: int) -> float:
        """How far the clock of a writer is ahead, in seconds."""
        return random.Random(f"{self.clocks} {number}").uniform(-self.clocks, self.clocks)

    def __enter__(self) -> Adversity:
        for name in self._calls:
            self._replace(self._owner, name, _cancelled(getattr(self._owner, name)))
        for module in _CLOCKS:
            self._replace(module, "time", _Clock())
        self._replace(Inspection, "_is_older", self._is_older(Inspection._is_older))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    def archive(self, store: Store, path: str, archived: dict[str, bytes]) -> None:
        """Keeps an object that is about to be removed, from within a store operation: on another thread.

        Who takes back what he put under a number that came free removes something else: the first one counts.
        """
        with suppress(NotFoundError):
            archived.setdefault(path, _ARCHIVIST.submit(store.get, path).result())

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    def _is_older(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def is_older(found: Inspection, changed_us: int | None, age: timedelta) -> bool:
            return (age == UNDER_WAY_AGE and changed_us in self.aged) or real(found, changed_us, age)

        return is_older


class _Clock:
    """The time as the machine of the writer has it whose thread asks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        """Seconds since the epoch."""
        writer = _writer()
        return time.time() + (writer.ahead if writer else 0.0)

    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return int(self.time() * 1e9)

    def monotonic(self) -> float:
        """Seconds that the machine was awake, or that passed: machines differ."""
        writer = _writer()
        return time.monotonic() + (writer.slept if writer else 0.0)


class WritersChance:
    """The random numbers of the writer whose thread asks: a seed takes the same course again."""

    def __getattr__(self, name: str) -> Any:
        writer = _writer()
        return getattr(writer.random if writer else random, name)


def _cancelled(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def cancelled(self: Any, *args: Any) -> Any:
        writer = _writer()
        if writer is not None and writer.current is not None:
            writer.current.transactions.add(self.write_id)
        when = writer.cancelled() if writer else None
        if when == "before":
            raise KeyboardInterrupt
        result = call(self, *args)
        if when == "after":
            raise KeyboardInterrupt
        return result

    return cancelled
