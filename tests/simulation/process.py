"""One writer in a process of its own, on a real store: `python -m tests.simulation.process URI NUMBER SECONDS JOURNAL`.

It makes changes as the simulated writers do, until the time is over or somebody kills it. What it is about to do it
writes to its journal first, so that whoever checks the history knows what it may have done.
"""

from __future__ import annotations

import collections
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from esker._native.store import Store
from esker.store import stores
from tests.simulation.actor import Actor
from tests.simulation.adversity import Adversity, at_work
from tests.simulation.model import Change, Rows
from tests.simulation.writer import Branch, Writer

KINDS = [
    ("append", 4),
    ("delete", 3),
    ("update", 5),
    ("upsert", 4),
    ("overwrite", 1),
    ("config", 2),
    ("restore", 1),
    ("commit_append", 2),
    ("commit_delete", 1),
    ("numbered", 1),
    ("batch", 1),
    ("rewrite", 1),
    ("compact", 2),
    ("plan_and_compact", 1),
    ("detached", 1),
    ("read_rows", 2),
]


class Journal:
    """What a process is about to do and has done; it survives the process."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115

    def write(self, entry: tuple[Any, ...]) -> None:
        """Adds an entry, with one write."""
        self._file.write(pickle.dumps(entry))


class Transactions(set[str]):
    """The names of a change's transactions, each in the journal before it is in the store."""

    def __init__(self, journal: Journal, key: tuple[int, int]) -> None:
        super().__init__()
        self._journal, self._key = journal, key

    def add(self, name: str) -> None:
        """Notes a name."""
        self._journal.write(("transaction", self._key, name))
        super().add(name)


class _Turn:
    def pass_on(self, number: int) -> None:
        """Nobody waits: others run by themselves."""

    def rest(self, number: int, turns: int) -> None:
        """Likewise."""


class Process:
    """Stands where a simulation stands for its writers."""

    def __init__(self, uri: str, number: int, journal: Journal, options: dict[str, str]) -> None:
        self.seed = f"{number} {os.getpid()} {time.time_ns()}"
        self.name = "process"
        self.kinds = KINDS
        self.fault_rate = float(os.environ.get("ESKER_FAULT_RATE", "0.002"))
        self.has_cleaner = False
        self.is_over = False
        self.inner = Store(uri, storage_options=options, durable=False)
        self.faults: collections.Counter[str] = collections.Counter()
        self.changes: list[Change] = []
        self.seen: list[tuple[int, Rows]] = []
        self.trace: collections.deque[str] = collections.deque(maxlen=10)
        self.manifests: set[str] = set()
        self.branches: dict[str, Branch] = {}
        self.schedule = _Turn()
        self.adversity = Adversity(0, alone=True)
        self.journal = journal

    def plain(self, path: str) -> str:
        """A path as it is."""
        return path

    def archive(self, path: str) -> None:
        """What is removed was nobody's: a writer removes what it staged in vain."""

    def may_lag(self) -> bool:
        """Real stores tell by themselves."""
        return False

    def branch(self, folder: str) -> Store:
        """No kind of change makes a branch here."""
        raise AssertionError(f"nobody made {folder}")

    def missing(self, error: Exception) -> None:
        """Nothing may be missing: nobody cleans up."""
        raise AssertionError(f"nothing can be missing: {error!r}")


class Journaled(Actor):
    """A writer whose changes are in a journal."""

    def __init__(self, process: Process, number: int) -> None:
        super().__init__(process, number, 0)  # type: ignore[arg-type]
        self.journal = process.journal

    def started(self, change: Change) -> None:
        """Notes a change before it does anything."""
        key = (os.getpid(), change.number)
        change.transactions = Transactions(self.journal, key)
        self.journal.write(("start", key, change.writer, change.number, change.kind))

    def prepared(self, change: Change) -> None:
        """Notes what it will do to the rows."""
        self.journal.write(("expected", (os.getpid(), change.number), change.expected))

    def ended(self, change: Change) -> None:
        """Notes what became of it."""
        seen, self.simulation.seen = self.simulation.seen, []
        end = change.outcome, change.detached, seen, change.idle
        self.journal.write(("end", (os.getpid(), change.number), *end))


class ProcessWriter(Journaled, Writer):
    """A writer of a Lance table."""


def read_journals(folder: Path) -> tuple[list[Change], list[tuple[int, Rows]]]:
    """The changes of all processes, and what their readers saw. What came to no end is of unknown outcome."""
    changes: dict[tuple[int, int], Change] = {}
    seen: list[tuple[int, Rows]] = []
    for path in sorted(folder.glob("*.journal")):
        with path.open("rb") as file:
            while True:
                try:
                    kind, key, *rest = pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    break
                if kind == "start":
                    writer, number, change_kind = rest
                    changes[key] = Change(writer, number, change_kind, _unknown, outcome="unknown")
                elif kind == "expected":
                    changes[key].expected = rest[0]
                elif kind == "transaction":
                    changes[key].transactions.add(rest[0])
                else:
                    changes[key].outcome, changes[key].detached, _, changes[key].idle = rest
                    seen += rest[2]
    return list(changes.values()), seen


def _unknown(*_: object) -> Any:
    raise AssertionError("a change landed that was never prepared")


def main(
    kind: Callable[[Process, int], Journaled] = ProcessWriter, kinds: Sequence[tuple[str, int]] = tuple(KINDS)
) -> None:
    """Writes until the time is over.

    Args:
        kind: Makes the writer.
        kinds: Changes and how often each is drawn.
    """
    uri, number, seconds, path = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    options = {key[13:].lower(): value for key, value in os.environ.items() if key.startswith("ESKER_OPTION_")}
    process = Process(uri, number, Journal(path), options)
    process.kinds = list(kinds)
    writer = kind(process, number)
    at_work(writer)
    writer.application = f"w{number}-{os.getpid()}"
    # Keys that no other process has, nor an earlier one of this number.
    writer.next_key = 1000 + (time.time_ns() // 1000) % 10**12 * 10_000 + number * 100
    stores.register("sim", lambda uri, options, durable: writer.open(uri, options, durable))
    count, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        writer.work_at(count)
        count += 1


if __name__ == "__main__":
    main()
