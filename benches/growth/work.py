"""What is measured on each table, with a bound on the time that it may take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benches import page_cache
from benches.cases import SELECTIVE, count_batches
from benches.growth.tables import Shape
from benches.measure import Operation, once
from benches.peers.peer import Peer, Range

LEAST = 2
MOST = 7
"""Runs of one kind of work that an engine has."""


@dataclass(frozen=True)
class Subject:
    """A table that an engine has written."""

    peer: Peer
    shape: Shape
    path: Path
    seed: int


@dataclass(frozen=True)
class Work:
    """One kind of work.

    Attributes:
        name: in the saved results.
        title: in the report.
        prepare: makes the operation that is timed.
        limit: `memcpy` or `disk` where one of them bounds it, for all bytes of the table.
    """

    name: str
    title: str
    prepare: Callable[[Subject], Operation]
    limit: str = ""


def scan(subject: Subject) -> Operation:
    return Operation(lambda: count_batches(subject.peer.open(subject.path).stream()))


def scan_cold(subject: Subject) -> Operation:
    return Operation(
        lambda: count_batches(subject.peer.open(subject.path).stream()), before=lambda: page_cache.drop(subject.path)
    )


def one_column(subject: Subject) -> Operation:
    return Operation(lambda: subject.peer.open(subject.path).scan(["score"]))


def filter_unsorted(subject: Subject) -> Operation:
    return Operation(lambda: subject.peer.open(subject.path).scan(["id", "score"], SELECTIVE))


def filter_sorted(subject: Subject) -> Operation:
    rows = subject.shape.rows
    where = Range("id", rows // 2, rows // 2 + max(1, rows // 1000))
    return Operation(lambda: subject.peer.open(subject.path).scan(["id", "score"], where))


def take(subject: Subject) -> Operation:
    rng = np.random.default_rng(subject.seed)
    reader = subject.peer.open(subject.path)
    count = min(1000, subject.shape.rows // 10)
    return Operation(lambda: reader.take(pa.array(rng.integers(0, subject.shape.rows, count), pa.uint64())))


def opening(subject: Subject) -> Operation:
    return Operation(lambda: subject.peer.open(subject.path).count())


WORK = [
    Work("scan", "full scan", scan, "memcpy"),
    Work("scan-cold", "full scan, cold", scan_cold, "disk"),
    Work("column", "one column", one_column),
    Work("filter", "filter of 0.1 %, unsorted key", filter_unsorted),
    Work("filter-sorted", "filter of 0.1 %, sorted key", filter_sorted),
    Work("take", "take 1,000 rows", take),
    Work("open", "open and count", opening),
]


def medians(work: Work, subjects: dict[str, Subject], seconds: float) -> dict[str, float]:
    """Median seconds of each engine, their runs in turns, which end after so many seconds for each of them."""
    operations = {name: work.prepare(subject) for name, subject in subjects.items()}
    for operation in operations.values():
        once(operation)
    samples: dict[str, list[float]] = {name: [] for name in operations}
    began = time.perf_counter()
    for number in range(MOST):
        if number >= LEAST and time.perf_counter() - began > seconds * len(operations):
            break
        for name in sorted(operations, reverse=bool(number % 2)):
            samples[name].append(once(operations[name])[0])
    return {name: statistics.median(found) for name, found in samples.items()}
