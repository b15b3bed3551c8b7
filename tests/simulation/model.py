"""What each change does to the rows, in plain Python: a version must be the one before plus exactly its own change.

A change is computed from a snapshot, the version that its transaction read. Under snapshot isolation it does to the
version before its own what it would have done to the snapshot, and none of the rows that it changes may differ between
the two: else the change of another writer would be lost. What it did not see, as a row that was appended meanwhile and
fits its condition, stays as it is: that is write skew, and allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_COMPUTED = re.compile(r"i\d+_\d+x\d+")
Rows = dict[int, int]
"""Values of column `n` by key."""


@dataclass(frozen=True)
class State:
    """One version, as a reader sees it."""

    rows: Rows
    columns: tuple[str, ...]
    config: dict[str, str]


History: TypeAlias = dict[int, State]
Expected: TypeAlias = Callable[[State, State, History], State]


@dataclass
class Change:
    """One change that a writer tried to make."""

    writer: int
    number: int
    kind: str
    expected: Expected
    """Given the version before, the snapshot that it read, and all versions so far: the version that it makes."""
    transactions: set[str] = field(default_factory=set)
    """The names of the transactions that it staged."""
    outcome: str = "under way"
    """"done", "refused" (nothing may be visible), "unknown" (an error of the store, or a crash)."""
    detached: tuple[int, Rows] | None = None
    idle: tuple[int, int] | None = None
    """The versions from which, at least and at most, it was found that there is nothing to do."""
    branch: str | None = None
    """The branch that it was made on; None is the table itself."""

    def __str__(self) -> str:
        place = f" on {self.branch}" if self.branch else ""
        return f"change {self.number} of writer {self.writer} ({self.kind}{place}, {self.outcome})"


def computed(names: Iterable[str]) -> list[str]:
    """The columns among these whose names say what their values are."""
    return [name for name in names if _COMPUTED.fullmatch(name)]


def factor(name: str) -> int:
    """What such a column has in a row, divided by the row's key."""
    return int(name.rpartition("x")[2])


class Violation(AssertionError):
    """A history that must not be."""


def require(holds: bool, message: str) -> None:
    """Raises `Violation` unless `holds`."""
    if not holds:
        raise Violation(message)


def _untouched(before: State, snapshot: State, keys: set[int]) -> None:
    for key in keys:
        require(
            before.rows.get(key) == snapshot.rows.get(key),
            f"row {key} was {snapshot.rows.get(key)} when it was read and {before.rows.get(key)} when it was changed: "
            "a change of another writer is lost",
        )


@dataclass(frozen=True)
class Condition:
    """A condition on rows, as SQL and as itself. It pickles, as all that says what a change does."""

    sql: str
    kind: str
    number: int = 0
    part: int = 0

    def __call__(self, key: int, value: int) -> bool:
        """Whether it holds for a row."""
        match self.kind:
            case "modulo":
                return key % self.number == self.part
            case "two":
                return key in (self.part, 5)
            case "large":
                return value > 60
            case _:
                return key >= 1000 and value < 50


def appended(new: Rows, before: State, snapshot: State, history: History) -> State:
    """New rows."""
    require(not set(new) & set(before.rows), f"rows {sorted(new)} are there twice")
    return State({**before.rows, **new}, before.columns, before.config)


def overwritten(new: Rows, before: State, snapshot: State, history: History) -> State:
    """New rows instead of all others."""
    return State(dict(new), ("id", "n"), before.config)


def deleted(holds: Condition, before: State, snapshot: State, history: History) -> State:
    """Rows gone that a condition on key and value holds for."""
    return deleted_keys({key for key, value in snapshot.rows.items() if holds(key, value)}, before, snapshot, history)


def deleted_keys(keys: set[int], before: State, snapshot: State, history: History) -> State:
    """Rows gone that were found before."""
    _untouched(before, snapshot, keys)
    return State({k: v for k, v in before.rows.items() if k not in keys}, before.columns, before.config)


def updated(holds: Condition, step: int, before: State, snapshot: State, history: History) -> State:
    """`n + step` in rows that a condition holds for."""
    changed = {key: value + step for key, value in snapshot.rows.items() if holds(key, value)}
    _untouched(before, snapshot, set(changed))
    return State({**before.rows, **changed}, before.columns, before.config)


def upserted(source: Rows, before: State, snapshot: State, history: History) -> State:
    """Rows updated by key, or inserted."""
    _untouched(before, snapshot, set(source))
    return State({**before.rows, **source}, before.columns, before.config)


def restored(version: int, before: State, snapshot: State, history: History) -> State:
    """An old version's contents. What applications have committed stays committed."""
    old = history[version]
    config = {key: value for key, value in old.config.items() if not key.startswith("esker.application.")}
    config |= {key: value for key, value in before.config.items() if key.startswith("esker.application.")}
    return State(old.rows, old.columns, config)


def configured(key: str, value: str, before: State, snapshot: State, history: History) -> State:
    """A setting."""
    return State(before.rows, before.columns, {**before.config, key: value})


def numbered(new: Rows, application: str, number: int, before: State, snapshot: State, history: History) -> State:
    """New rows, of a commit that an application numbers."""
    made = appended(new, before, snapshot, history)
    return State(made.rows, made.columns, {**made.config, f"esker.application.{application}": str(number)})


def with_column(name: str, before: State, snapshot: State, history: History) -> State:
    """One more column."""
    return State(before.rows, (*before.columns, name), before.config)


def without_column(name: str, before: State, snapshot: State, history: History) -> State:
    """One column less."""
    return State(before.rows, tuple(column for column in before.columns if column != name), before.config)


def same(before: State, snapshot: State, history: History) -> State:
    """Nothing that a reader sees."""
    return before


def shown(state: State) -> dict[str, Any]:
    """A state, for a message."""
    return {"rows": dict(sorted(state.rows.items())), "columns": state.columns, "config": state.config}
