"""What is measured: each case makes, for one engine and one input, the operation to be timed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benches import page_cache
from benches.data import KEYS, Input
from benches.measure import Operation
from benches.peers.peer import Peer, Range

SELECTIVE = Range("key", 500_000, 500_000 + KEYS // 1000)
BROAD = Range("key", 300_000, 300_000 + KEYS // 10)


def sorted_range(data: Input) -> Range:
    """A thousandth of the rows by the column `id`, which rises from row to row: statistics can rule out the others."""
    rows = data.table.num_rows
    return Range("id", rows // 2, rows // 2 + max(1, rows // 1000))


@dataclass(frozen=True)
class Subject:
    """One engine with one input: the table is at ``path``, and ``scratch`` is free to write to."""

    peer: Peer
    data: Input
    path: Path
    scratch: Path
    seed: int


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        name: its name on the command line and in the saved results.
        title: its name in reports.
        prepare: makes the operation.
        cold: whether it needs a page cache that can be dropped.
    """

    name: str
    title: str
    prepare: Callable[[Subject], Operation]
    cold: bool = False


def remove(path: Path) -> None:
    """Delete a table."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write(subject: Subject) -> Operation:
    """Write the whole table to a new place; deleting it again is not timed."""
    target = subject.scratch / "written"
    return Operation(
        run=lambda: subject.peer.write(subject.data.table, target),
        before=lambda: remove(target),
        after=lambda: remove(target),
    )


def count_batches(batches: Iterator[pa.RecordBatch]) -> int:
    """Read all batches and keep none."""
    return sum(batch.num_rows for batch in batches)


def typed(subject: Subject, found: pa.Table) -> pa.Table:
    """What was read, in the types that were written: what an engine leaves to its caller counts as well."""
    schema = subject.data.table.schema
    wanted = pa.schema([schema.field(name) for name in found.column_names])
    return found if found.schema.equals(wanted) else found.cast(wanted)


def opening(subject: Subject) -> Operation:
    """Open the table and count its rows."""
    return Operation(lambda: subject.peer.open(subject.path).count())


def scan(subject: Subject) -> Operation:
    """Open the table and read it all into memory."""
    return Operation(lambda: typed(subject, subject.peer.open(subject.path).scan()))


def stream(subject: Subject) -> Operation:
    """Open the table and read it batch by batch."""
    return Operation(lambda: count_batches(subject.peer.open(subject.path).stream()))


def one_column(subject: Subject) -> Operation:
    """Open the table and read one of its columns."""
    return Operation(lambda: typed(subject, subject.peer.open(subject.path).scan([subject.data.column])))


def filtered(where: Range) -> Callable[[Subject], Operation]:
    """Open the table and read the rows that a predicate keeps, all columns of them."""

    def prepare(subject: Subject) -> Operation:
        return Operation(lambda: typed(subject, subject.peer.open(subject.path).scan(where=where)))

    return prepare


def filtered_by_sorted_key(subject: Subject) -> Operation:
    """Open the table and read a thousandth of the rows, which lie together by the sorted column `id`."""
    where = sorted_range(subject.data)
    return Operation(lambda: typed(subject, subject.peer.open(subject.path).scan(where=where)))


def row_numbers(rng: np.random.Generator, data: Input, count: int) -> pa.Array:
    """Random row numbers, unsorted, some maybe twice; at most a tenth of the table, or what is large does not fit."""
    count = min(count, max(100, data.table.num_rows // 10))
    return pa.array(rng.integers(0, data.table.num_rows, count), pa.uint64())


def take(count: int) -> Callable[[Subject], Operation]:
    """Read random rows of a table that is already open, other rows each time; the same ones for each engine."""

    def prepare(subject: Subject) -> Operation:
        rng = np.random.default_rng(subject.seed)
        reader = subject.peer.open(subject.path)
        return Operation(lambda: typed(subject, reader.take(row_numbers(rng, subject.data, count))))

    return prepare


def take_cold(count: int) -> Callable[[Subject], Operation]:
    """Open the table and read random rows of it, with nothing of it in the page cache."""

    def prepare(subject: Subject) -> Operation:
        rng = np.random.default_rng(subject.seed)
        return Operation(
            run=lambda: typed(subject, subject.peer.open(subject.path).take(row_numbers(rng, subject.data, count))),
            before=lambda: page_cache.drop(subject.path),
        )

    return prepare


def scan_cold(subject: Subject) -> Operation:
    """Open the table and read it all, with nothing of it in the page cache."""
    return Operation(
        run=lambda: typed(subject, subject.peer.open(subject.path).scan()),
        before=lambda: page_cache.drop(subject.path),
    )


CASES = [
    Case("write", "write", write),
    Case("open", "open and count", opening),
    Case("scan", "full scan, to_table", scan),
    Case("stream", "full scan, to_batches", stream),
    Case("column", "one column", one_column),
    Case("filter-0.1", "filter keeps 0.1 %", filtered(SELECTIVE)),
    Case("filter-10", "filter keeps 10 %", filtered(BROAD)),
    Case("filter-sorted", "filter keeps 0.1 %, sorted key", filtered_by_sorted_key),
    Case("take-100", "take 100 rows", take(100)),
    Case("take-1000", "take 1,000 rows", take(1000)),
    Case("take-10000", "take 10,000 rows*", take(10_000)),
    Case("take-100-cold", "take 100 rows, cold", take_cold(100), cold=True),
    Case("scan-cold", "full scan, cold", scan_cold, cold=True),
]
