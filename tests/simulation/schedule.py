"""Threads of which exactly one runs: which one goes on is drawn whenever the running one comes to a store operation."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable


class Schedule:
    """Hands the turn from thread to thread, as a seed says.

    A thread that has the turn calls `pass_on` where another one may go on. Nothing runs between two turns, so the same
    seed and the same work make the same course.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # How often the running one just goes on: the longer the others wait, the older is what they know.
        self._stays = self._random.choice([0.0, 0.5, 0.8, 0.9, 0.95])
        self._turns: dict[int, threading.Lock] = {}
        self._alive: list[int] = []
        self._done = threading.Lock()
        self._done.acquire()
        self.failures: list[BaseException] = []

    def run(self, works: list[Callable[[], None]]) -> None:
        """Runs all works to their ends, each on a thread of its own."""
        for number in range(len(works)):
            self._turns[number] = threading.Lock()
            self._turns[number].acquire()
            self._alive.append(number)
        threads = [
            threading.Thread(target=self._work, args=(number, work), daemon=True) for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        self._turns[self._random.choice(self._alive)].release()
        self._done.acquire()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def pass_on(self, number: int) -> None:
        """Lets another one go on, or this one."""
        if self._random.random() >= self._stays:
            self._hand_on(number)

    def rest(self, number: int, turns: int) -> None:
        """Lets others go on for about so many turns, where nothing holds them up."""
        for _ in range(turns):
            self._hand_on(number)

    def _hand_on(self, number: int) -> None:
        following = self._random.choice(self._alive)
        if following != number:
            self._turns[following].release()
            self._turns[number].acquire()

    def _work(self, number: int, work: Callable[[], None]) -> None:
        self._turns[number].acquire()
        try:
            work()
        except BaseException as error:  # A failed check is told by the thread that waits for all.
            self.failures.append(error)
        self._alive.remove(number)
        if self._alive:
            self._turns[self._random.choice(self._alive)].release()
        else:
            self._done.release()
