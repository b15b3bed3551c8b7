"""Random histories of two queries that write one table, beside others, with up to two faults at once.

A batch is run again with its number until it has ended, and sometimes once more, as Spark does whose checkpoint lacks
the note of the batch. Between the work of tasks and the commit others write, compact and clean up. In the end each row
is there once. By hand: `python -m tests.spark.stream_histories FIRST_SEED COUNT`.
"""

from __future__ import annotations

import _thread
import random
import shutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
import lance
import pyarrow as pa
from pyspark.sql import types as T

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import EskerError
from esker.spark.options import TableAddress
from esker.spark.streaming import sink
from esker.spark.streaming.upsert import _Upsert
from esker.store.stores import register
from tests.spark.streams import Batch

SCHEMA = T.StructType().add("id", T.LongType()).add("by", T.StringType())
BATCHES = 4
SCHEME = "historyfault"
_LOGS = ("_versions/", "_delta_log/", "_esker/refs/")
Strikes = Mapping[tuple[str, int], str]
FAULTS = ("fail", "lose_reply", "die")
CTRL_C = "interrupt"
"""Strikes at any moment, so that its histories are not the same twice: by hand alone."""


class Weather:
    """What happens to operations of the store of a batch."""

    def __init__(self) -> None:
        self.strikes: Strikes = {}
        self.seen = Counter[str]()
        self.is_dead = False
        self.hits = Counter[str]()
        self.timers: list[threading.Timer] = []

    def set(self, strikes: Strikes) -> None:
        """Faults by the kind of operation and its number from now on."""
        self.strikes, self.seen, self.is_dead = dict(strikes), Counter(), False

    def settle(self) -> None:
        """Waits for each Ctrl-C that is under way; raises it."""
        came = False
        while self.timers:
            try:
                self.timers[-1].join()
                self.timers.pop()
            except KeyboardInterrupt:
                came = True
        if came:
            raise KeyboardInterrupt

    def __call__(self, verb: str, path: str) -> str | None:
        if self.is_dead:
            return "fail"
        kind = "entry" if "put" in verb and path.startswith(_LOGS) else "write" if "put" in verb else "any"
        fault = None
        for each in {kind, "any"}:
            fault = fault or self.strikes.get((each, self.seen[each]))
            self.seen[each] += 1
        if fault is None:
            return None
        self.hits[f"{fault} of {kind}"] += 1
        if fault == CTRL_C:
            # Ctrl-C, a moment later.
            timer = threading.Timer(random.random() * 0.004, _thread.interrupt_main)
            self.timers.append(timer)
            timer.start()
            return None
        kind = fault
        if kind == "die":
            # Nothing that the process would do afterwards reaches the store.
            self.is_dead = True
            return random.choice(("fail", "lose_reply"))
        return kind


WEATHER = Weather()


def open_store(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    """A store below which the weather is."""
    return FaultStore(Store(uri.removeprefix(f"{SCHEME}://"), durable=False), "", watch=WEATHER).store


class _Frame:
    """What an upsert asks of the DataFrame of a batch."""

    schema = SCHEMA
    columns = SCHEMA.names

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def toDF(self, *names: str) -> _Frame:
        return self

    def toArrow(self) -> pa.Table:
        return pa.Table.from_pylist(self._rows, pa.schema({"id": pa.int64(), "by": pa.string()}))


def upsert_of(
    uri: str, kind: str, query: str, compacts: int | None = None
) -> Callable[[list[dict[str, Any]], int], None]:
    """What `upsert_stream` does to the rows of a batch by its number."""
    upsert = _Upsert(TableAddress(uri, {}), ["id"], None, {}, query, kind == "delta", compacts)
    return lambda rows, number: upsert(_Frame(rows), number)  # type: ignore[arg-type]


class Course:
    """One history."""

    def __init__(self, seed: int, folder: Path, faults: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        self.faults = faults
        random.seed(seed)
        self.path = str(folder / "t")
        self.uri = f"{SCHEME}://{self.path}"
        self.kind = self.rng.choice(("lance", "delta"))
        self.mode = self.rng.choice(("append", "append", "upsert", "complete"))
        self.expected: Counter[tuple[int, str]] = Counter()
        self.others = 0
        self.runs = 0
        self.options: dict[str, Any] = {"tableFormat": self.kind}
        if self.mode != "upsert" and self.rng.random() < 0.4:
            self.options["maxFilesPerCommit"] = self.rng.choice((1, 2))
        self.compacts = self.rng.choice((None, 1, 2)) if self.kind == "lance" else None
        if self.compacts is not None:
            self.options["compactEvery"] = self.compacts
        self.small = self.rng.choice((0, 256 * 1024))

    def run(self) -> Counter[tuple[int, str]]:
        """Runs it; returns the rows that are there. The table may be made by the first batch."""
        WEATHER.set({})
        if self.rng.random() < 0.5:
            self._batch("maker", 0, self._rows("maker", 0), faults=False)
        queries = ["one"] if self.mode == "complete" else ["one", "two"]
        todo = [(query, number) for number in range(BATCHES) for query in queries]
        for query, number in todo:
            self._batch(query, number, self._rows(query, number), faults=True)
            if self.rng.random() < 0.4:
                self._other()
        return self.there()

    def there(self) -> Counter[tuple[int, str]]:
        """The rows, as the peer reads them."""
        if self.kind == "delta":
            table = deltalake.DeltaTable(self.path).to_pyarrow_table()
        else:
            table = lance.dataset(self.path).to_table()
        return Counter(zip(table["id"].to_pylist(), table["by"].to_pylist(), strict=True))

    def _rows(self, query: str, number: int) -> list[dict[str, Any]]:
        first = {"maker": 0, "one": 1000, "two": 2000}[query]
        if self.mode == "upsert":
            # Batches overlap, of both queries too.
            first = 0 if query == "maker" else number * 6
        ids = range(first + number * 12, first + number * 12 + self.rng.choice((0, 1, 12)))
        return [{"id": n, "by": f"{query} {number}"} for n in ids]

    def _batch(self, query: str, number: int, rows: list[dict[str, Any]], *, faults: bool) -> None:
        for attempt in range(20):
            strikes: dict[tuple[str, int], str] = {}
            if faults and attempt < 3:
                for _ in range(self.rng.choice((0, 1, 2))):
                    where = self.rng.choice((("any", 45), ("write", 4), ("entry", 2), ("entry", 1)))
                    strikes[where[0], self.rng.randrange(where[1])] = self.rng.choice(self.faults)
            ended = self._ends(query, number, rows, strikes)
            WEATHER.set({})
            if self.rng.random() < 0.3:
                self._other()
            if ended and self.rng.random() < 0.7:
                break
        if self.mode == "complete" and query != "maker":
            self.expected.clear()
        for row in rows:
            if self.mode == "upsert":
                for key in [key for key in self.expected if key[0] == row["id"]]:
                    del self.expected[key]
            self.expected[row["id"], row["by"]] += 1

    def _ends(self, query: str, number: int, rows: list[dict[str, Any]], strikes: Strikes) -> bool:
        """Runs a batch; whether Spark would note that it is done."""
        try:
            try:
                self._attempt(query, number, rows, strikes)
            finally:
                WEATHER.settle()
        except (EskerError, OSError, KeyboardInterrupt):
            if not strikes:
                raise
            return False
        return True

    def _attempt(self, query: str, number: int, rows: list[dict[str, Any]], strikes: Strikes) -> None:
        self.runs += 1
        if self.mode == "upsert":
            upsert = upsert_of(self.uri, self.kind, query, self.compacts)
            WEATHER.set(strikes)
            upsert(rows, number)
            return
        cut = sorted(self.rng.sample(range(len(rows) + 1), 2)) if len(rows) > 1 else [0, 0]
        with patch.object(sink, "SMALL_BYTES", self.small):
            early = self.rng.random() < 0.2
            if early:
                WEATHER.set(strikes)
            replaces = self.mode == "complete" and query != "maker"
            batch = Batch(self.uri, SCHEMA, query, number, complete=replaces, **self.options)
            messages = batch.staged([rows[: cut[0]], rows[cut[0] : cut[1]], rows[cut[1] :]])
            if self.rng.random() < 0.4:
                WEATHER.settle()
                self._other()
            if not early:
                WEATHER.set(strikes)
            batch.commit(messages)

    def _other(self) -> None:
        """Something that another one does: nothing of it is a row of the queries."""
        WEATHER.set({})
        if not Path(self.path).exists() or not any(
            Path(self.path, log).exists() for log in ("_versions", "_delta_log")
        ):
            return
        self.others += 1
        deeds = [self._compact, self._clean]
        if self.mode != "complete":
            # A batch in complete mode replaces the rows of others, or conflicts with them.
            deeds += [self._append]
        self.rng.choice(deeds)()

    def _append(self) -> None:
        rows = pa.table({"id": pa.array([-self.others], pa.int64()), "by": ["other"]})
        if self.kind == "lance":
            self.rng.choice((lance, esker)).write_dataset(rows, self.path, mode="append")
        else:
            deltalake.write_deltalake(self.path, rows, mode="append")
        self.expected[-self.others, "other"] += 1

    def _compact(self) -> None:
        if self.kind == "lance":
            # The peer's may have nothing to do, or lose to nobody: all is one process here.
            self.rng.choice((lance, esker)).dataset(self.path).optimize.compact_files()
        else:
            deltalake.DeltaTable(self.path).optimize.compact()

    def _clean(self) -> None:
        if self.kind == "lance":
            library: Any = self.rng.choice((lance, esker))
            library.dataset(self.path).cleanup_old_versions(older_than=timedelta(0))
        else:
            deltalake.DeltaTable(self.path).create_checkpoint()
            deltalake.DeltaTable(self.path).cleanup_metadata()
            deltalake.DeltaTable(self.path).vacuum(dry_run=False)


def course(seed: int, faults: Sequence[str] = FAULTS) -> Course:
    """Runs a history; what is wrong is an `AssertionError`."""
    with suppress(Exception):
        register(SCHEME, open_store)
    folder = Path(tempfile.mkdtemp())
    try:
        made = Course(seed, folder, faults)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = made.run()
        assert found == made.expected, (seed, made.kind, made.mode, made.expected - found, found - made.expected)
        return made
    finally:
        shutil.rmtree(folder)


def main(first: int, count: int, run: Callable[[int, Sequence[str]], Course] = course) -> None:
    """Runs histories, and prints figures."""
    done, wrong = Counter[str](), 0
    for seed in range(first, first + count):
        try:
            made = run(seed, (*FAULTS, CTRL_C))
            done[f"{made.kind} {made.mode}"] += 1
            done["runs"] += made.runs
        except Exception as error:
            wrong += 1
            print(seed, type(error).__name__, str(error)[:1500], flush=True)
    print(dict(done), dict(WEATHER.hits), f"{WEATHER.hits.total()} faults, {wrong} wrong", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
