"""Who makes changes in a simulation: its store, which waits for its turn and fails now and then, and its outcomes."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import (
    CommitConflictError,
    CommitStateUnknownError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
)
from tests.simulation import model
from tests.simulation.adversity import NIGHT_S, at_work
from tests.simulation.model import Change, Expected

if TYPE_CHECKING:
    from tests.simulation.delta import DeltaSimulation
    from tests.simulation.run import Simulation

Attempt = tuple[Expected, Callable[[], object]]


class Actor:
    """Makes some changes to a table, one after the other, as a seed says."""

    commits: ClassVar[str] = "_versions/"
    """Below which the objects lie whose puts are commits."""
    may_lose: ClassVar[tuple[str, ...]] = ("drop_column", "cast")
    """Changes that make no sense any more where others were faster."""

    def __init__(self, simulation: Simulation | DeltaSimulation, number: int, changes: int) -> None:
        self.simulation = simulation
        self.number = number
        self.changes = changes
        self.random = random.Random(f"{simulation.seed} {number}")
        self.faults = random.Random(f"{simulation.seed} {number} faults")
        self.home = f"sim://{simulation.name}/{number}"
        self.uri = self.home
        """The table that it is at work on: its own view of the simulation's, or of one of its branches."""
        self.lives = 0
        self.dead = False
        self.staged: dict[str, int] = {}
        self.lock = threading.Lock()
        self.thread = 0
        self.current: Change | None = None
        self.next_key = 1000 * (number + 1)
        self.application = f"w{number}"
        self.burst = 0
        self.drowsy = False
        self.slept = 0.0
        """For how long its machine slept, as far as its monotonic clock knows."""
        self.ahead = simulation.adversity.skew(number)
        """How far its wall clock is ahead."""

    # The store.

    def is_free(self, verb: str, path: str) -> bool:
        """Whether no turn is passed on for an operation: on a file with a random name, which nobody meets before a
        commit names it, or one that is made beside others of the same actor."""
        raise NotImplementedError

    def open(self, uri: str, options: Mapping[str, str], durable: bool) -> Store:
        """The store of this life of the writer."""
        life, below = self.lives, uri.removeprefix(self.home).lstrip("/")
        inner, folder = (self.simulation.branch(below), f"{below}/") if below else (self.simulation.inner, "")
        return FaultStore(inner, watch=lambda verb, path: self._watch(life, verb, path, folder)).store

    def _watch(self, life: int, verb: str, path: str, folder: str) -> str | None:
        if self.simulation.is_over:
            # A branch names the table by its URI: who checks it reads by this store, too.
            return None
        if life != self.lives or self.dead:
            return "crash_before"
        fault = self._drawn_by_count(verb) if self.is_free(verb, path) else self._in_turn(verb, path, folder)
        if fault is not None:
            self.simulation.faults[fault.partition(":")[0]] += 1
            self.dead = fault.startswith("crash")
        return fault

    def _in_turn(self, verb: str, path: str, folder: str) -> str | None:
        self.simulation.schedule.pass_on(self.number)
        self.simulation.trace.append(f"{self.number} {verb} {self.simulation.plain(folder + path)}")
        self._sleep(verb, path)
        fault = self._drawn_in_a_row(verb, path, may_lag=not folder)
        if verb == "put" and path.startswith("_transactions/") and self.current and path.endswith(".txn"):
            self.current.transactions.add(path.removeprefix("_transactions/"))
        if verb == "put_if_absent" and not folder:
            self.simulation.manifests.add(path)
        if verb == "delete":
            self.simulation.archive(folder + path)
        return fault

    def _drawn_in_a_row(self, verb: str, path: str, *, may_lag: bool) -> str | None:
        """A fault; behind one of a version's put the next operations are more likely to fail, too."""
        adversity = self.simulation.adversity
        if self.drowsy:
            self.drowsy = False
            self.simulation.schedule.rest(self.number, self.faults.randrange(100))
        if self.burst:
            self.burst -= 1
            if self.faults.random() < 0.7:
                return self.faults.choice(
                    ["fail", "fail", "lose_reply", "crash_before" if adversity.crashes else "fail"]
                )
        fault = self._drawn(self.faults, verb, may_lag=may_lag)
        is_commit = verb == "put_if_absent" and path.startswith(self.commits)
        if is_commit and adversity.burst_rate and self.faults.random() < adversity.burst_rate / 4:
            fault = self.faults.choice(["lose_reply", "lose_reply", "fail"])
        if is_commit and fault in ("lose_reply", "fail") and self.faults.random() < adversity.burst_rate:
            self.burst = self.faults.randrange(6)
            # Others may do much before anybody reads back.
            self.drowsy = self.faults.random() < 0.5
        return fault

    def _sleep(self, verb: str, path: str) -> None:
        """Now and then the machine sleeps for a night within a request, while others go on."""
        adversity = self.simulation.adversity
        rate = adversity.sleep_rate * (3 if verb == "put_if_absent" and path.startswith(self.commits) else 1)
        if not rate or self.faults.random() >= rate or self.current is None:
            return
        self.simulation.faults["night"] += 1
        for meta in self.simulation.listed("_transactions/"):
            name = meta.path.removeprefix("_transactions/")
            if name in self.current.transactions and meta.last_modified_us is not None:
                adversity.aged.add(meta.last_modified_us)
        self.ahead += NIGHT_S
        self.slept += self.faults.choice([0.0, NIGHT_S])
        self.simulation.schedule.rest(self.number, self.faults.randrange(100))

    def cancelled(self) -> str | None:
        """Whether Ctrl-C is pressed at a call of the commit: before it, or as it returns."""
        rate = self.simulation.adversity.cancel_rate
        if not rate or self.dead or self.faults.random() >= rate:
            return None
        self.simulation.faults["Ctrl-C"] += 1
        return self.faults.choice(["before", "after"])

    def _drawn_by_count(self, verb: str) -> str | None:
        # Operations side by side start in any order: each draws by its number, not from one stream.
        with self.lock:
            count = self.staged[verb] = self.staged.get(verb, 0) + 1
        seed = zlib.crc32(f"{self.simulation.seed} {self.number} {self.lives} {verb} {count}".encode())
        return self._drawn(random.Random(seed), verb, may_lag=True)

    def _drawn(self, chance: random.Random, verb: str, *, may_lag: bool) -> str | None:
        if chance.random() >= self.simulation.fault_rate:
            return None
        kinds = ["lose_reply", "lose_reply", "fail", "fail"]
        if self.simulation.adversity.crashes:
            kinds += ["crash_before", "crash_after"]
        if verb == "list" and may_lag and self.simulation.may_lag():
            # A listing that lags behind: the newest objects are not in it yet.
            kinds += ["age:1", "age:2"] * 2
        return chance.choice(kinds)

    # The work.

    def work(self) -> None:
        """Makes all changes. One that crashes goes on with a new life."""
        at_work(self)
        self.thread = threading.get_ident()
        for number in range(self.changes):
            self.work_at(number)

    def work_at(self, number: int) -> None:
        """Makes the change of that number."""
        self._change(number)
        if self.dead:
            self.lives += 1
            self.dead = False

    def started(self, change: Change) -> None:
        """Called before a change does anything."""

    def prepared(self, change: Change) -> None:
        """Called when it is known what a change does to the rows, and before it does it."""

    def ended(self, change: Change) -> None:
        """Called when the outcome of a change is known."""

    def _change(self, number: int) -> None:
        kinds = self.simulation.kinds
        kind = self.random.choices([name for name, _ in kinds], [weight for _, weight in kinds])[0]
        change = Change(self.number, number, kind, model.same)
        self.current = change
        self.simulation.changes.append(change)
        self.started(change)
        self._attempt(change)
        self.ended(change)

    def _attempt(self, change: Change) -> None:
        try:
            prepared = getattr(self, "_" + change.kind)(change)
            if prepared is None:
                change.outcome = "nothing to do"
                return
            change.expected, attempt = prepared
            self.prepared(change)
            attempt()
            change.outcome = "done"
        except KeyboardInterrupt:
            change.outcome = "unknown"
        except CommitStateUnknownError:
            change.outcome = "unknown"
        except CommitConflictError:
            change.outcome = "refused"
        except InvalidArgumentError as error:
            # Computed again on a version that has lost the column.
            model.require(change.kind in self.may_lose, f"{change}: {error!r}")
            change.outcome = "refused"
        except NotFoundError as error:
            # A version, or a table of which an aged listing knows nothing.
            self.simulation.missing(error)
            change.outcome = "unknown" if self.dead else "refused"
        except OSError as error:
            model.require(isinstance(error, EskerError), f"{change}: not an error of ours: {error!r}")
            model.require("injected" in str(error), f"{change}: an error that nobody injected: {error!r}")
            change.outcome = "unknown"
