"""Writers of one Delta table under random schedules and faults, and every version read after them.

By hand: `python -m tests.simulation.delta --schedules 20000 --first-seed 0`.
"""

from __future__ import annotations

import collections
import itertools
import random
import re
import threading
import warnings
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

from esker._native.store import ObjectMeta, Store
from esker.commit.loop import Backoff
from esker.delta import DeltaTable, Field, write_deltalake
from esker.delta.log.changes import read_change
from esker.delta.log.commit import DeltaCommit
from esker.store import stores
from tests.simulation import model
from tests.simulation.actor import Attempt
from tests.simulation.adversity import DELTA_CALLS, Adversity
from tests.simulation.delta_history import DeltaHistory, rows_of
from tests.simulation.delta_verbs import VERBS, DeltaVerbs
from tests.simulation.model import Change, Rows, State, Violation, require
from tests.simulation.schedule import Schedule
from tests.simulation.writer import Branch, table

KINDS = [
    ("append", 5),
    ("overwrite", 1),
    ("replace", 4),
    ("numbered", 2),
    ("add_column", 2),
    ("property", 2),
    ("checkpoint", 2),
    ("clean_log", 3),
    ("read_rows", 3),
    *VERBS,
]
CLEANERS = ("clean_log", "vacuum")
_NAMES = itertools.count()
_ENTRY = re.compile(r"_delta_log/(\d{20})\.json$")
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\.tmp-[a-z0-9-]+|[0-9a-f]{32}")


class DeltaWriter(DeltaVerbs):
    """Makes changes to a Delta table."""

    commits: ClassVar[str] = "_delta_log/"
    may_lose: ClassVar[tuple[str, ...]] = ()

    def is_free(self, verb: str, path: str) -> bool:
        """What is done with all but the log, and what is read on other threads, several at once."""
        if not path.startswith("_delta_log/"):
            return verb not in ("list", "delete")
        return threading.get_ident() != self.thread

    def _keys(self, count: int) -> Rows:
        rows = {self.next_key + i: self.random.randrange(100) for i in range(count)}
        self.next_key += count
        return rows

    def _append(self, change: Change) -> Attempt:
        rows = self._keys(2)
        return partial(model.appended, rows), lambda: write_deltalake(
            self.uri, table(rows), mode="append", schema_mode="merge"
        )

    def _overwrite(self, change: Change) -> Attempt:
        rows = self._keys(2)
        return partial(_overwritten, rows), lambda: write_deltalake(
            self.uri, table(rows), mode="overwrite", schema_mode="merge"
        )

    def _replace(self, change: Change) -> Attempt:
        """New rows in the place of those of some keys."""
        low = self.random.choice([0, 2, 4])
        rows = {low: self.random.randrange(100)}

        def replace() -> None:
            where = f"id >= {low} and id < {low + 3}"
            write_deltalake(self.uri, table(rows), mode="overwrite", schema_mode="merge", predicate=where)

        return partial(_replaced, low, rows), replace

    def _numbered(self, change: Change) -> Attempt:
        rows, application = self._keys(1), (self.application, change.number)

        def write() -> None:
            write_deltalake(
                self.uri,
                table(rows),
                mode="append",
                schema_mode="merge",
                txn_app_id=application[0],
                txn_version=application[1],
            )

        return partial(model.appended, rows), write

    def _add_column(self, change: Change) -> Attempt:
        name = f"c{self.number}_{change.number}"
        return partial(model.with_column, name), lambda: DeltaTable(self.uri).alter.add_columns(Field(name, "long"))

    def _property(self, change: Change) -> Attempt:
        key, value = f"k{self.random.randrange(2)}", f"{self.number}.{change.number}"
        setting = {f"custom.{key}": value}
        return (
            partial(model.configured, f"custom.{key}", value),
            lambda: DeltaTable(self.uri).alter.set_table_properties(setting, raise_if_not_exists=False),
        )

    def _checkpoint(self, change: Change) -> Attempt:
        return model.same, lambda: DeltaTable(self.uri).create_checkpoint()

    def _clean_log(self, change: Change) -> Attempt:
        return model.same, lambda: DeltaTable(self.uri).cleanup_metadata()

    def _read_rows(self, change: Change) -> Attempt:
        def read() -> None:
            dataset = DeltaTable(self.uri)
            self.simulation.seen.append((dataset.version(), rows_of(dataset)))

        return model.same, read


def _overwritten(new: Rows, before: State, snapshot: State, history: model.History) -> State:
    require(before.rows == snapshot.rows, "rows that were not read were overwritten")
    return State(dict(new), before.columns, before.config)


def _replaced(low: int, new: Rows, before: State, snapshot: State, history: model.History) -> State:
    old = {key: value for key, value in before.rows.items() if low <= key < low + 3}
    read = {key: value for key, value in snapshot.rows.items() if low <= key < low + 3}
    require(old == read, f"rows {sorted(old)} were replaced that were read as {sorted(read)}")
    return State({**{k: v for k, v in before.rows.items() if k not in old}, **new}, before.columns, before.config)


class DeltaSimulation:
    """One schedule of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"delta-sim-{next(_NAMES)}"
        chance = random.Random(f"{seed} shape")
        self.fault_rate = chance.choice([0.0, 0.01, 0.03, 0.1])
        self.has_cleaner = chance.random() < 0.5
        self.kinds = [(name, weight) for name, weight in KINDS if self.has_cleaner or name not in CLEANERS]
        self.inner = Store(f"memory://{self.name}")
        self.archived: dict[str, bytes] = {}
        self.changes: list[Change] = []
        self.seen: list[tuple[int, Rows]] = []
        self.trace: list[str] = []
        self.manifests: set[str] = set()
        self.faults: collections.Counter[str] = collections.Counter()
        self.schedule = Schedule(seed)
        self.is_over = False
        self.branches: dict[str, Branch] = {}
        self.adversity = Adversity(seed, alone=chance.random() < 0.3, owner=DeltaCommit, calls=DELTA_CALLS)
        self.configuration = {
            "delta.checkpointInterval": str(chance.choice([2, 3, 10])),
            "delta.logRetentionDuration": "interval 0 seconds",
            "delta.enableExpiredLogCleanup": "false",
            "delta.enableDeletionVectors": chance.choice(["true", "false"]),
            "delta.enableChangeDataFeed": chance.choice(["true", "false"]),
        }
        count = chance.randrange(2, 5)
        self.writers = [DeltaWriter(self, number, chance.randrange(1, 6)) for number in range(count)]

    def run(self) -> None:
        """Runs the writers and checks what they made.

        Raises:
            Violation: The history must not be.
        """
        uri = f"memory://{self.name}"
        write_deltalake(uri, table({key: key * 10 for key in range(5)}), configuration=self.configuration)
        try:
            with self.adversity:
                self.schedule.run([writer.work for writer in self.writers])
            self.check(uri)
        finally:
            for meta in self.inner.list():
                self.inner.delete(meta.path)

    def check(self, uri: str) -> None:
        """Checks every version."""
        history = DeltaHistory(uri, self.inner)
        newest = history.rows()
        for path, data in self.archived.items():
            # What was cleaned up is needed to read old versions; a stray is of a writer that slept and died.
            if not self.inner.put_if_absent(path, data) and self.inner.get(path) != data and _ENTRY.search(path):
                self._remove_stray(path)
                self.inner.put(path, data)
        history.read()
        history.check(self.changes, self.seen, newest)

    def _remove_stray(self, path: str) -> None:
        match = _ENTRY.search(path)
        assert match is not None
        write_id = read_change(self.inner, "", int(match.group(1))).write_id
        makers = [change for change in self.changes if write_id in change.transactions]
        require(len(makers) == 1 and makers[0].outcome == "unknown", f"{path} is a stray of {makers}")

    # What its actors ask of it.

    def branch(self, folder: str) -> Store:
        """A Delta table has no branches."""
        raise AssertionError(f"nobody made {folder}")

    def archive(self, path: str) -> None:
        """Keeps what a clean-up removes, for the check."""
        self.adversity.archive(self.inner, path, self.archived)

    def listed(self, prefix: str) -> list[ObjectMeta]:
        """Transactions have no files of their own here."""
        return []

    def may_lag(self) -> bool:
        """Delta's log is listed whole; a listing that lags is none that its stores give."""
        return False

    def missing(self, error: Exception) -> None:
        """Whether something may be missing: only where a clean-up of the log runs."""
        require(self.has_cleaner, f"nothing can be missing: {error!r}")

    def plain(self, path: str) -> str:
        """A path without what is drawn anew each time."""
        return _RANDOM.sub("*", path)


def simulate(seed: int) -> DeltaSimulation:
    """Runs and checks one seed.

    Raises:
        Violation: The history must not be.
    """
    simulation = DeltaSimulation(seed)
    writers = {writer.uri: writer for writer in simulation.writers}
    pause = Backoff.pause
    with ExitStack() as undo:
        stores.register("sim", lambda uri, options, durable: writers[uri].open(uri, options, durable))
        undo.callback(stores._factories.pop, "sim")
        undo.callback(setattr, Backoff, "pause", pause)
        Backoff.pause = lambda self, attempt: 0.0  # type: ignore[method-assign]
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            simulation.run()
        except Exception as error:
            course = "\n".join([*simulation.trace[-80:], *map(str, simulation.changes)])
            raise Violation(f"seed {seed}: {error}\n{course}") from error
    return simulation


if __name__ == "__main__":
    from tests.simulation.run import main

    main(simulate)
