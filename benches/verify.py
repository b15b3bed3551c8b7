"""Before anything is timed, every engine must give the rows that went in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benches.cases import BROAD, SELECTIVE, Subject, count_batches, row_numbers, sorted_range
from benches.peers.peer import Range


class WrongResult(Exception):
    """An engine returned other rows than those that were written."""


def same(found: pa.Table, expected: pa.Table, what: str) -> None:
    """Compare two tables; an engine may return views or large strings for strings, but no other values."""
    if found.num_rows != expected.num_rows:
        raise WrongResult(f"{what}: expected {expected.num_rows} rows, found {found.num_rows}")
    if not found.select(expected.column_names).cast(expected.schema).equals(expected):
        raise WrongResult(f"{what}: the values differ")


def kept(table: pa.Table, where: Range) -> pa.Table:
    """The rows that a predicate keeps."""
    return table.filter(where.arrow())


def verify(subject: Subject) -> None:
    """Read the table in each of the ways that are timed, and compare with the input.

    Raises:
        WrongResult: a way of reading gives other rows.
    """
    table = subject.data.table
    reader = subject.peer.open(subject.path)
    if reader.count() != table.num_rows:
        raise WrongResult(f"count: expected {table.num_rows}, found {reader.count()}")
    same(reader.scan(), table, "scan")
    rows = count_batches(reader.stream())
    if rows != table.num_rows:
        raise WrongResult(f"stream: expected {table.num_rows} rows, found {rows}")
    same(reader.scan([subject.data.column]), table.select([subject.data.column]), "one column")
    same(reader.scan(where=SELECTIVE), kept(table, SELECTIVE), "filter keeping 0.1 %")
    same(reader.scan(where=BROAD), kept(table, BROAD), "filter keeping 10 %")
    where = sorted_range(subject.data)
    same(reader.scan(where=where), kept(table, where), "filter by a sorted key")
    numbers = row_numbers(np.random.default_rng(subject.seed), subject.data, 1000)
    same(reader.take(numbers), table.take(numbers), "take")
