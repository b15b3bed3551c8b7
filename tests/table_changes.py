"""What is done to tables on branches, step by step: on stores, and in the model beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import esker
from esker.delta import DeltaTable, write_deltalake
from tests.table_histories import CONFLICT, Becomes, Format, Log, Rows, relation, rows_of, write

VERBS = ["append", "append", "append", "overwrite", "delete", "restore", "clean", "drop"]
FORMATS: tuple[Format, ...] = ("lance", "delta")
_IDS = itertools.count(1)
# Clean-ups of logs take what is older than now.
_CONFIGURATION = {"delta.logRetentionDuration": "interval 0 days", "delta.enableExpiredLogCleanup": "false"}


@dataclass(frozen=True)
class Step:
    """One thing that is done to a table; `choice` decides what is left open."""

    verb: str
    path: str
    choice: int


@dataclass
class TableChange:
    """What becomes of one table, while a transaction or a commit changes it.

    Attributes:
        before: Its log at the start.
        start: Its rows at the start.
        format: Of the table that there is now; None while there is none.
        versions: The rows of versions that can be read, by number.
        steps: What each new version makes of the rows of the one before.
        is_cleaned: Whether old versions were cleaned up.
        is_replaced: Whether the table that was there is gone.
    """

    before: Log | None
    start: Rows = ()
    format: Format | None = None
    versions: dict[int, Rows] = field(default_factory=dict)
    steps: list[Callable[[Rows], Rows]] = field(default_factory=list)
    is_cleaned: bool = False
    is_replaced: bool = False

    @classmethod
    def of(cls, log: Log | None, rows: Mapping[str, Rows]) -> TableChange:
        """The start of a change of a table."""
        if log is None:
            return cls(None)
        readable = {version: rows[sum] for version, sum in log.entries.items() if sum in log.readable}
        return cls(log, rows[log.newest], log.format, dict(sorted(readable.items())))

    @property
    def current(self) -> Rows:
        """The rows of the newest version."""
        return self.versions[max(self.versions)]

    def becomes(self) -> Becomes:
        """What comes of it where nobody else has changed the table."""
        if self.format is None:
            return Becomes(None)
        log = self.before if self.before is not None and not self.is_replaced else Log(self.format)
        start = self.start if log is self.before else ()
        return Becomes(log, replayed(self.steps, start), self.is_cleaned)

    def over(self, dest: Log | None, rows: Mapping[str, Rows], *, is_alone: bool) -> list[Becomes | None]:
        """What may come of it where the table has this log by now."""
        if not self.steps and not self.is_cleaned and not self.is_replaced:
            return [Becomes(dest)]
        if self.before == dest:
            # Others may have written a checkpoint, which a drop takes for a change.
            return [self.becomes(), CONFLICT] if self.is_replaced and not is_alone else [self.becomes()]
        if not self.steps and not self.is_replaced:
            # A clean-up, which may have found nothing to do.
            return [Becomes(dest), Becomes(dest, (), True), CONFLICT]
        if dest is None and self.is_replaced:
            # Others dropped it too.
            return [self.becomes(), CONFLICT]
        if self.before is None or dest is None:
            # What was made and dropped again in between is nothing.
            return [Becomes(dest), CONFLICT] if self.format is None else [CONFLICT]
        found = relation(dest, self.before)
        if self.is_replaced or found not in ("same", "extends"):
            return [CONFLICT]
        return [Becomes(dest, replayed(self.steps, rows[dest.newest]), self.is_cleaned), CONFLICT]


def replayed(steps: list[Callable[[Rows], Rows]], start: Rows) -> tuple[Rows, ...]:
    """The rows of each version that steps make, one after the other."""
    return tuple(itertools.accumulate(steps, lambda rows, step: step(rows), initial=start))[1:]


def do(step: Step, uri: str, change: TableChange, drop: Callable[[], None]) -> bool:
    """Does a step on a table of a store, and notes it in the change; False if there is nothing to do."""
    if change.format is None:
        if step.verb not in ("append", "overwrite"):
            return False
        _create(uri, change, FORMATS[step.choice % 2], step.choice)
        return True
    return {
        "append": _append,
        "overwrite": _overwrite,
        "delete": _delete,
        "restore": _restore,
        "clean": _clean,
        "drop": _drop,
    }[step.verb](uri, change, step.choice, drop)


def _note(change: TableChange, step: Callable[[Rows], Rows], *, first: int | None = None) -> None:
    number = max(change.versions) + 1 if first is None else first
    change.versions[number] = step(change.current if first is None else ())
    change.steps.append(step)


def fresh_ids(count: int) -> Rows:
    """Ids of rows that no table has."""
    return tuple(next(_IDS) for _ in range(count))


def _ids(choice: int) -> Rows:
    return fresh_ids(1 + choice % 3)


def _added(ids: Rows) -> Callable[[Rows], Rows]:
    return lambda rows: tuple(sorted(rows + ids))


def _without(ids: Rows) -> Callable[[Rows], Rows]:
    return lambda rows: tuple(id for id in rows if id not in ids)


def _create(uri: str, change: TableChange, format: Format, choice: int) -> None:
    ids = _ids(choice)
    if format == "lance":
        write(uri, format, ids, "create")
    else:
        write_deltalake(uri, rows_of(ids), mode="error", configuration=_CONFIGURATION)
    change.format = format
    _note(change, _added(ids), first=1 if format == "lance" else 0)


def _append(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    assert change.format is not None
    ids = _ids(choice)
    write(uri, change.format, ids, "append")
    _note(change, _added(ids))
    return True


def _overwrite(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    assert change.format is not None
    ids = _ids(choice)
    write(uri, change.format, ids, "overwrite")
    _note(change, lambda rows: ids)
    return True


def _delete(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    there = sorted(set(change.current))
    ids = tuple(there[choice % 3 :: 2])
    if not ids:
        return False
    predicate = f"id in ({', '.join(map(str, ids))})"
    if change.format == "lance":
        esker.dataset(uri).delete(predicate)
    else:
        write_deltalake(uri, rows_of(()), mode="overwrite", predicate=predicate)
    _note(change, _without(ids))
    return True


def _restore(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    older = sorted(change.versions)[:-1]
    if change.format != "lance" or not older:
        return False
    version = older[choice % len(older)]
    rows = change.versions[version]
    esker.dataset(uri, version=version).restore()
    _note(change, lambda _: rows)
    return True


def _clean(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    if change.format == "lance":
        esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    else:
        table = DeltaTable(uri)
        table.create_checkpoint()
        table.cleanup_metadata()
    newest = max(change.versions)
    change.versions = {newest: change.versions[newest]}
    change.is_cleaned = True
    return True


def _drop(uri: str, change: TableChange, choice: int, drop: Callable[[], None]) -> bool:
    drop()
    change.is_replaced = change.before is not None
    change.format, change.is_cleaned = None, False
    change.versions.clear()
    change.steps.clear()
    return True
