"""Fault injection: a store that fails on purpose, for tests only."""

from collections.abc import Callable
from typing import final

from .store import Store

__all__ = ["FaultStore"]

@final
class FaultStore:
    """A store that fails as planned, around another one.

    Args:
        inner: The store that really holds the objects.
        plan: Which operation meets which fault, `FAULT@OPERATION` joined by commas: `crash_before@3`, `crash_after@3`,
            `kill_before@3`, `kill_after@3`, `tear:100@7`, `lose_reply@4`, `fail@4`, `disk_full@4`, `delay:MICROSECONDS@0`,
            `reorder@5`, `age:2@5`; or drawn, `seed:SEED:PER_MILLE:KIND+KIND`; or `disk:BYTES`. Empty: no faults.
        watch: Called with the verb and the path of each operation before it starts, on the thread that makes it. It may
            wait, and returns the operation's fault as text without a number (`lose_reply`), or None.

    Raises:
        InvalidArgumentError: The plan does not parse.
    """

    def __new__(
        cls, inner: Store, plan: str = "", *, watch: Callable[[str, str], str | None] | None = None
    ) -> FaultStore: ...
    @property
    def store(self) -> Store:
        """A handle to it, to be used wherever a store is."""

    @property
    def operations(self) -> list[tuple[int, str, str]]:
        """The operations so far: number, verb, path. Each is a place where a plan can strike."""

    @property
    def cause_of_death(self) -> str | None:
        """The crash that ended this writer's store, None while it lives."""

    @property
    def plan(self) -> str:
        """The plan as text, which replays it."""
