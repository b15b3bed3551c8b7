"""What a merge does to row groups of files that are copied: new values of some rows, and rows that go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ..change.column_copies import OpenFile
from ..change.group_change import GroupChange, in_one
from ..schema import Schema
from ..write.conformed import conformed
from ..write.incoming import BATCH_ROWS
from .condition import JoinCondition
from .matches import NOTHING, RANGE_ROWS, MergeMatches, RangeMatches, Undone
from .row_values import BoundClause, RowValues

_COLUMNS = 16
"""Columns that are read at once."""


def changed_columns(
    clauses: Sequence[BoundClause], by_source: Sequence[BoundClause], values: RowValues, condition: JoinCondition
) -> set[str]:
    """The columns that rows of the table get new values in, those that stay.

    A column that gets the key that its row was found by stays as it is.

    Args:
        clauses: The clauses of rows that match.
        by_source: The clauses of the table's rows that none of the source matches.
        values: What clauses make of rows.
        condition: What rows are joined by.

    Example:
        `changed_columns(matched, by_source, values, condition)`
    """
    changed: set[str] = set()
    for clause in (*clauses, *by_source):
        if clause.action == "delete":
            continue
        changed |= values.generated
        for name in clause.values:
            source = clause.columns.get(name)
            if clause in by_source or source is None or source not in condition.same_as(name):
                changed.add(name)
    return changed


class CopiedGroups:
    """Tells what happens to row groups.

    Args:
        values: What clauses make of rows.
        clauses: The clauses of rows of the table, by their numbers.
        matches: What happens to which rows.
        undoubted: The clause that may apply to a row twice.
        schema: The table's columns after the merge.
        changed: Those that get new values; None if rows may go.
        target: The table's columns as it was.
        source: Gives the source's rows beside some matches.

    Example:
        `groups.add(0, found, None); copies.copy(files, groups)`
    """

    def __init__(
        self,
        values: RowValues,
        clauses: Sequence[BoundClause],
        matches: MergeMatches,
        undoubted: int,
        schema: Schema,
        changed: set[str] | None,
        target: list[str],
        source: Callable[[pa.RecordBatch, np.ndarray], pa.RecordBatch],
    ) -> None:
        self._values = values
        self._clauses = clauses
        self._matches = matches
        self._undoubted = undoubted
        self._source = source
        updates = [clause for clause in clauses if clause.action == "update"]
        every = {name for clause in updates for name in clause.values} | values.generated if updates else set()
        wanted = every if changed is None else changed
        self._schema = Schema([field for field in schema.fields if field.name in wanted])
        kept = {name for name in wanted if any(name not in clause.values for clause in updates)}
        read = kept | values.checked | {name for clause in updates for name in clause.target}
        self._read = [name for name in target if name in read] if updates else []
        self._files: dict[str, tuple[int, Undone | None]] = {}
        self._held: dict[str, tuple[int, RangeMatches]] = {}

    def add(self, number: int, path: str, undone: Undone | None) -> None:
        """A file: its number, and what happens to its rows that no row of the source matches."""
        self._files[path] = number, undone

    def __call__(self, rows: OpenFile, group: int) -> GroupChange:
        """What happens to the rows of one row group of a file."""
        first, end = rows.starts[group], rows.starts[group + 1]
        number, undone = self._files[rows.found.file.path]
        places: list[np.ndarray] = []
        made: list[pa.RecordBatch] = []
        stays = np.ones(end - first, bool)
        for numbers, clauses, source in self._acting(rows.found.file.path, number, undone, first, end):
            for which, clause in enumerate(self._clauses):
                mine = np.flatnonzero(clauses == which)
                if clause.action == "delete":
                    stays[numbers[mine] - first] = False
                    continue
                for start in range(0, len(mine), BATCH_ROWS):
                    part = mine[start : start + BATCH_ROWS]
                    made.append(
                        self._made(rows, group, clause, numbers[part], None if source is None else source(part))
                    )
                    places.append(numbers[part] - first)
        kept = None if stays.all() else pa.array(stays)
        if not made:
            return GroupChange(end - first, stays=kept)
        where = np.concatenate(places)
        whole = in_one(made)
        order = np.argsort(where, kind="stable")
        if whole is not None and (np.diff(where) < 0).any():
            whole = whole.take(pa.array(order))
        return GroupChange(end - first, where[order], whole, kept)

    def _acting(
        self, path: str, number: int, undone: Undone | None, first: int, end: int
    ) -> list[tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], pa.RecordBatch] | None]]:
        """The rows of a group that clauses apply to, ascending in each part, and the source's rows beside them."""
        found: list[tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], pa.RecordBatch] | None]] = []
        for place in range(first // RANGE_ROWS, (end - 1) // RANGE_ROWS + 1):
            held = self._held.get(path)
            if held is None or held[0] != place:
                held = self._held[path] = place, self._matches.range(number, place, self._undoubted)
            here = held[1].between(first, end)
            acting = np.flatnonzero(here.clauses != NOTHING)

            def beside(part: np.ndarray, here: RangeMatches = here, acting: np.ndarray = acting) -> pa.RecordBatch:
                return self._source(here.beside, acting[part])

            found.append((here.rows[acting].astype(np.int64), here.clauses[acting], beside))
        if undone is not None:
            start, stop = np.searchsorted(undone[0], np.array([first, end], np.uint64))
            found.append((undone[0][start:stop].astype(np.int64), undone[1][start:stop], None))
        return found

    def _made(
        self, rows: OpenFile, group: int, clause: BoundClause, numbers: np.ndarray, source: pa.RecordBatch | None
    ) -> pa.RecordBatch:
        """The new values of some rows, in the columns that change."""
        # Not none: there are rows, of which nothing has to be read.
        old = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
        if self._read:
            only = pa.array(numbers.astype(np.uint64))
            columns: list[pa.Array] = []
            # A page of each column is in memory while it is read.
            for start in range(0, len(self._read), _COLUMNS):
                part = in_one(list(rows.read(group, self._read[start : start + _COLUMNS], only=only)))
                columns += [] if part is None else part.columns
            old = pa.RecordBatch.from_arrays(columns, names=self._read)
        made = self._values.made(clause, len(numbers), old, source)
        (batch,) = conformed([made], self._schema)
        return batch
