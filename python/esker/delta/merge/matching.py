"""Joins the table's rows with those of one part of the source: which clause applies to which row.

```
a file: the columns that the condition and the clauses' predicates read, batch by batch
  -> pairs with equal keys, or all pairs -> those for which the rest of the condition is true
  -> for each the first clause whose predicate is true
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..change.changed_table import ChangedTable, MatchedFile
from ..read.ahead import threads_for
from .condition import JoinCondition
from .joined import JoinedExpression
from .matches import NOTHING, MergeMatches
from .row_values import BoundClause
from .source import SourcePart

_PAIRS = 1 << 18
"""Pairs that are asked at a time."""
NUMBER = "number"
"""The column of numbers in a source that is in memory as a whole."""


def holds(
    condition: JoinedExpression, rows: int, target: pa.RecordBatch | None, source: pa.RecordBatch | None
) -> np.ndarray:
    """For which joined rows a condition is true: null is no yes."""
    found = condition.evaluate(rows, target, source).cast(pa.bool_())
    true: np.ndarray = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return true


def first_clauses(
    clauses: Sequence[BoundClause], rows: int, target: pa.RecordBatch | None, source: pa.RecordBatch | None
) -> np.ndarray:
    """For each joined row the first clause whose predicate is true, or `NOTHING`.

    Args:
        clauses: In their order.
        rows: How many.
        target: The table's columns that the predicates read, None if no row of it is there.
        source: The source's.
    """
    found = np.full(rows, NOTHING, np.int8)
    left = np.arange(rows)
    for number, clause in enumerate(clauses):
        if not len(left):
            break
        if clause.predicate is None:
            found[left] = number
            break
        places = pa.array(left)
        parts = [None if side is None else side.take(places) for side in (target, source)]
        true = holds(clause.predicate, len(left), *parts)
        found[left[true]] = number
        left = left[~true]
    return found


def taken(batch: pa.RecordBatch, names: Sequence[str], places: np.ndarray) -> pa.RecordBatch | None:
    """Rows of some columns; None of no column."""
    return batch.select(list(names)).take(pa.array(places)) if names else None


@dataclass(frozen=True)
class Matcher:
    """Joins files with a part of the source.

    Args:
        table: The version.
        condition: What rows are joined by.
        clauses: What happens to those that match.
        matches: Takes in what is found.
        holds_rows: Whether it holds the source's rows themselves; their numbers if not.
        holds_all: Whether it holds rows that no clause applies to as well.
    """

    table: ChangedTable
    condition: JoinCondition
    clauses: Sequence[BoundClause]
    matches: MergeMatches
    holds_rows: bool
    holds_all: bool

    def match(self, files: Sequence[MatchedFile], part: SourcePart) -> np.ndarray:
        """Joins all files with one part of the source.

        Returns:
            For each row of the part whether a row of the table matched it.
        """
        matched = np.zeros(part.rows.num_rows, bool)
        if not part.rows.num_rows:
            return matched

        def match(number: int) -> None:
            for batch in self.table.scan.read(files[number].file, self._read, self.table.where, numbered=True):
                self._match(number, batch, part, matched)

        with ThreadPoolExecutor(
            threads_for(self.table.target.store.uri), thread_name_prefix="esker-delta-merge"
        ) as pool:
            try:
                for _ in pool.map(match, range(len(files))):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return matched

    @property
    def _read(self) -> list[str]:
        """The table's columns that are read."""
        return list(dict.fromkeys([*self.condition.target, *self._asked("target")]))

    def _asked(self, side: str) -> list[str]:
        """The columns that the clauses' predicates read."""
        predicates = [clause.predicate for clause in self.clauses if clause.predicate is not None]
        return list(dict.fromkeys(name for predicate in predicates for name in getattr(predicate, side)))

    def _match(self, file: int, batch: pa.RecordBatch, part: SourcePart, matched: np.ndarray) -> None:
        numbers = batch.column(batch.num_columns - 1).to_numpy()
        for target, source in self._pairs(batch, part):
            rest = self.condition.rest
            if rest is not None:
                true = holds(
                    rest, len(target), taken(batch, rest.target, target), taken(part.rows, rest.source, source)
                )
                target, source = target[true], source[true]
            if not len(target):
                continue
            matched[source] = True
            found = first_clauses(
                self.clauses,
                len(target),
                taken(batch, self._asked("target"), target),
                taken(part.rows, self._asked("source"), source),
            )
            kept = np.arange(len(found)) if self.holds_all else np.flatnonzero(found != NOTHING)
            if not len(kept):
                self.matches.saw(file)
                continue
            if self.holds_rows:
                beside = part.rows.take(pa.array(source[kept]))
            else:
                beside = pa.record_batch({NUMBER: pa.array(source[kept], pa.uint32())})
            self.matches.add(file, numbers[target[kept]], found[kept], beside)

    def _pairs(self, batch: pa.RecordBatch, part: SourcePart) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of rows that may match: numbers in the batch and in the part."""
        if part.join is not None:
            keys, row = self.condition.target_keys(batch), 0
            while row < batch.num_rows:
                found, row = part.join.find(keys, first=row, most=_PAIRS)
                pairs = pa.record_batch(found)
                source, target = pairs.column("source").to_numpy(), pairs.column("target").to_numpy()
                for start in range(0, len(target), _PAIRS):
                    yield target[start : start + _PAIRS], source[start : start + _PAIRS]
            return
        many = part.rows.num_rows
        step = max(1, _PAIRS // many)
        for start in range(0, batch.num_rows, step):
            rows = np.arange(start, min(start + step, batch.num_rows))
            for first in range(0, many, _PAIRS):
                beside = np.arange(first, min(first + _PAIRS, many))
                yield np.repeat(rows, len(beside)), np.tile(beside, len(rows))
