"""A whole simulation: a table, some writers, their schedule, and the check of the history that they made.

By hand: `python -m tests.simulation.run --schedules 100000 --first-seed 0`. A seed that fails is printed, and
`--first-seed SEED --schedules 1 --verbose` runs it again and prints its course.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import random
import re
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import esker
from esker._native.store import ObjectMeta, Store
from esker._native.table import Manifest
from esker.commit.loop import Backoff
from esker.exceptions import NotFoundError
from esker.lance.compaction import run as compaction
from esker.store import stores
from tests.leftovers import leftovers, named
from tests.simulation.adversity import Adversity, WritersChance
from tests.simulation.history import TableHistory
from tests.simulation.model import Change, Rows, Violation, require
from tests.simulation.schedule import Schedule
from tests.simulation.writer import Branch, Writer, table

KINDS = [
    ("append", 3),
    ("delete", 3),
    ("update", 4),
    ("upsert", 4),
    ("overwrite", 1),
    ("config", 2),
    ("restore", 2),
    ("commit_append", 1),
    ("commit_delete", 1),
    ("numbered", 1),
    ("batch", 1),
    ("rewrite", 1),
    ("reserve", 1),
    ("detached", 1),
    ("read_rows", 2),
]
COLUMNS = [
    ("add_column", 2),
    ("drop_column", 3),
    ("add_computed", 4),
    ("cast", 2),
    ("replace", 2),
    ("commit_append", 2),
]
INDICES = [("index", 2)]
COMPACTION = [("compact", 4), ("plan_and_compact", 4), ("tag", 2)]
BRANCHES = [("branch", 8), ("on_branch", 40), ("delete_branch", 3)]
CLEANUP = [("cleanup", 9), ("restore", 8), ("detached", 4), ("overwrite", 3)]
"""Beside a clean-up, more of what brings old versions back."""
_NAMES = itertools.count()
_RANDOM_NAME = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|d\d{10,}|\.tmp-[a-z0-9-]+|[01]{24}[0-9a-f]{26}|[0-9a-f]{32}|(?<=-)\d+(?=\.arrow)"
)


class Simulation:
    """One schedule of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"sim-{next(_NAMES)}"
        chance = random.Random(f"{seed} shape")
        self.stable = chance.random() < 0.3
        self.fault_rate = chance.choice([0.0, 0.0, 0.01, 0.03, 0.1])
        self.has_cleaner = chance.random() < 0.3
        columns = chance.random() < 0.25
        # Rows that an upsert inserts, and fragments that a rewrite makes, need all columns and the ids of their rows.
        left_out = {*(["upsert", "rewrite"] if columns else []), *(["rewrite"] if self.stable else [])}
        kinds = KINDS + (COLUMNS if columns else []) + (CLEANUP if self.has_cleaner else [])
        kinds = kinds + (INDICES if chance.random() < 0.2 else [])
        # Of its own: what seeds did before there was this goes on as it did.
        if random.Random(f"{seed} compaction").random() < 0.4:
            kinds = kinds + COMPACTION
        if random.Random(f"{seed} of branches").random() < 0.3:
            kinds = kinds + BRANCHES
        self.kinds = [(name, weight) for name, weight in kinds if name not in left_out]
        self.legacy_copy = chance.random() < 0.15
        self.version = chance.choice(["2.0", "2.1"])
        self.inner = Store(f"memory://{self.name}")
        self.archived: dict[str, bytes] = {}
        self.branches: dict[str, Branch] = {}
        self.changes: list[Change] = []
        self.seen: list[tuple[int, Rows]] = []
        self.trace: list[str] = []
        self.manifests: set[str] = set()
        self.faults: collections.Counter[str] = collections.Counter()
        self.schedule = Schedule(seed)
        self.is_over = False
        """Whether all writers came to their ends: what is checked then meets no faults."""
        self.adversity = Adversity(seed, alone=chance.random() < 0.3)
        # A clean-up has more to do in a longer history.
        longest = 8 if self.has_cleaner else 4
        self.writers = [Writer(self, number, chance.randrange(1, longest)) for number in range(chance.randrange(2, 5))]

    def run(self) -> None:
        """Runs the writers and checks what they made.

        Raises:
            Violation: The history must not be.
        """
        uri = f"memory://{self.name}"
        esker.write_dataset(
            table({key: key * 10 for key in range(6)}),
            uri,
            max_rows_per_file=3,
            enable_stable_row_ids=self.stable,
            data_storage_version=self.version,
            enable_v2_manifest_paths=not self.legacy_copy,
        )
        if self.legacy_copy:
            self.inner.put("_latest.manifest", self.inner.get("_versions/1.manifest"))
        try:
            with self.adversity:
                self.schedule.run([writer.work for writer in self.writers])
            self.is_over = True
            self.check(uri)
        finally:
            for meta in self.inner.list():
                self.inner.delete(meta.path)

    def check(self, uri: str) -> None:
        """Checks the history."""
        self._remove_strays()
        history = TableHistory(uri, has_holes=self.has_cleaner)
        history.read()
        history.check_tags()
        for change in self.changes:
            if change.detached is not None:
                require(history.state(change.detached[0]).rows == change.detached[1], f"{change}: other rows")
        # A dry run only: what a clean-up that crashed left of versions that are gone is needed for the check below.
        found, left = named(esker.dataset(uri))[0], leftovers(self.inner)
        require(found == left, f"a dry run names {found}, expected {left}")
        latest = esker.write_dataset(table({-1: 0}), uri, mode="append")
        require(latest.version == history.latest + 1, "the next writer goes on from there")
        # What is read of branches needs nothing that a clean-up took.
        lines = self._branches(uri)
        # What a clean-up has removed is needed for the check of what came after it.
        for path, data in self.archived.items():
            self.inner.put_if_absent(path, data)
        history.check([change for change in self.changes if change.branch is None], self.seen)
        for name, line in lines.items():
            first = line.first
            require(line.states[first] == history.states[first], f"branch {name} does not start as version {first}")
            line.check([change for change in self.changes if change.branch == name], [])

    def _branches(self, uri: str) -> dict[str, TableHistory]:
        """The branches that nobody tried to delete, each read whole."""
        there = esker.dataset(uri).branches.list()
        found = {}
        for name, branch in self.branches.items():
            made = branch.made_by
            require(name not in there or made.outcome != "refused", f"{made} was refused, and {name} is there")
            if branch.is_deleted:
                continue
            require(name in there or made.outcome != "done", f"{made} is done, and {name} is not there")
            if name in there:
                require(there[name]["parent_version"] == branch.version, f"branch {name} starts from another version")
                found[name] = TableHistory(f"{uri}/tree/{name}", first=branch.version)
                found[name].read()
        require(set(there) <= set(self.branches), f"branches {set(there)} of nobody")
        return found

    def _remove_strays(self) -> None:
        """Removes versions under numbers that came free, each put by a writer that slept and died before it looked.

        They are of nobody's history: later versions were not built on them, files that they name may be gone, and the
        next clean-up takes them. Their writers must not have told anything else.
        """
        for path, data in self.archived.items():
            if not path.endswith(".manifest"):
                continue
            try:
                there = self.inner.get(path)
            except NotFoundError:
                continue
            if there != data:
                manifest = Manifest.decode(there, path)
                makers = [change for change in self.changes if manifest.transaction_file in change.transactions]
                require(len(makers) == 1 and makers[0].outcome == "unknown", f"{path} is a stray of {makers}")
                self.inner.delete(path)

    def branch(self, folder: str) -> Store:
        """The store of a branch's tree."""
        return Store(f"memory://{self.name}/{folder}")

    def archive(self, path: str) -> None:
        """Keeps what a clean-up removes, for the check."""
        self.adversity.archive(self.inner, path, self.archived)

    def listed(self, prefix: str) -> list[ObjectMeta]:
        """Objects, from within a store operation."""
        return _ARCHIVIST.submit(self.inner.list, prefix).result()

    def may_lag(self) -> bool:
        """Whether a listing may lag behind: never so far that a table looks as if there were none, and not where a
        clean-up relies on it."""
        return not self.has_cleaner and len(self.manifests) >= 3

    def missing(self, error: Exception) -> None:
        """Whether something may be missing: only where a clean-up runs, or a listing lags behind."""
        require(self.has_cleaner or self.fault_rate > 0, f"nothing can be missing: {error!r}")

    def plain(self, path: str) -> str:
        """A path without what is drawn anew each time."""
        return _RANDOM_NAME.sub("*", path)


_ARCHIVIST = ThreadPoolExecutor(1)


def _home(uri: str) -> str:
    """The writer's view of the table, of whose branch this may be the URI: `sim://{simulation}/{writer}/tree/{branch}`."""
    return "/".join(uri.split("/")[:4])


def simulate(seed: int) -> Simulation:
    """Runs and checks one seed.

    Raises:
        Violation: The history must not be.
    """
    simulation = Simulation(seed)
    writers = {writer.home: writer for writer in simulation.writers}
    stores.register("sim", lambda uri, options, durable: writers[_home(uri)].open(uri, options, durable))
    pause, Backoff.pause = Backoff.pause, lambda self, attempt: 0.0  # type: ignore[method-assign]
    order = vars(compaction)
    chance, order["random"] = order["random"], WritersChance()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            simulation.run()
    except Exception as error:
        course = "\n".join([*simulation.trace[-80:], *map(str, simulation.changes)])
        raise Violation(f"seed {seed}: {error}\n{course}") from error
    finally:
        Backoff.pause = pause  # type: ignore[method-assign]
        order["random"] = chance
        del stores._factories["sim"]
    return simulation


def main(simulate: Callable[[int], Any] = simulate) -> None:
    """Runs many seeds, and prints counts."""
    parser = argparse.ArgumentParser(description="Simulate writers under random schedules and faults.")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--failures", default="", help="a file that seeds that fail are added to")
    parser.add_argument("--verbose", action="store_true", help="print the course of each seed")
    options = parser.parse_args()
    started = time.monotonic()
    faults: collections.Counter[str] = collections.Counter()
    outcomes: collections.Counter[str] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    operations = failed = 0
    for count, seed in enumerate(range(options.first_seed, options.first_seed + options.schedules), start=1):
        try:
            found = simulate(seed)
        except Violation as violation:
            failed += 1
            print(violation if options.verbose else str(violation).partition("\n")[0], flush=True)
            if options.failures:
                with open(options.failures, "a") as file:
                    file.write(f"{seed}\n")
            continue
        faults += found.faults
        outcomes += collections.Counter(change.outcome for change in found.changes)
        kinds += collections.Counter(change.kind for change in found.changes)
        operations += len(found.trace)
        if options.verbose:
            print("\n".join(found.trace))
            print("\n".join(str(change) for change in found.changes))
        if count % 1000 == 0 or count == options.schedules:
            print(
                f"{count} schedules, {time.monotonic() - started:.0f} s, {operations} turns, violations {failed}; "
                f"changes {dict(kinds)}; outcomes {dict(outcomes)}; faults {dict(faults)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
