"""Writes what a merge makes: files whose rows change, by new files or by deletion vectors, and inserted rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from ..._native.delta import ColumnSplice, encode_deletion_vector
from ..change.changed_table import ChangedTable, MatchedFile
from ..change.column_copies import ColumnCopies
from ..change.files import ChangedFiles
from ..read.ahead import read_ahead
from ..write.incoming import BATCH_ROWS
from .copied_groups import CopiedGroups
from .matches import NOTHING, RANGE_ROWS, MergeMatches, RangeMatches, Undone
from .matching import NUMBER, first_clauses, taken
from .row_values import BoundClause, RowValues

_AT_ONCE = 2
"""Files that are copied at once, where each is held."""
_HELD_ROWS = 1 << 20
"""Numbers of rows that wait until their files are read."""


@dataclass(frozen=True)
class _Rewrite:
    """A file whose rows are written: those of some numbers, or all if none are given."""

    number: int
    found: MatchedFile
    undone: Undone | None
    only: np.ndarray | None


@dataclass(frozen=True)
class _Piece:
    """Rows of a file: for each the clause that applies to it, and the rows of the source beside those that have one."""

    rows: pa.RecordBatch
    clauses: np.ndarray
    beside: list[tuple[np.ndarray, pa.RecordBatch]]
    is_copy: bool

    @property
    def size(self) -> int:
        """Its bytes."""
        return int(self.rows.nbytes) + sum(int(rows.nbytes) for _, rows in self.beside)


@dataclass
class MergeCounts:
    """How many rows were inserted, updated, deleted, copied."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    copied: int = 0


@dataclass
class MergeWriter:
    """Writes the files of a merge.

    Args:
        table: The version that changes.
        files: Stages what is written.
        values: What clauses make of rows.
        matched: The clauses of rows that match.
        by_source: The clauses of the table's rows that none of the source matches.
        inserts: The clauses of the source's rows that none of the table matches.
        matches: What happens to which rows.
        copies: Copies files.
        changed: The columns that rows of the table get new values in; None if rows may go.
        source: The source's rows, where `matches` has their numbers.
    """

    table: ChangedTable
    files: ChangedFiles
    values: RowValues
    matched: Sequence[BoundClause]
    by_source: Sequence[BoundClause]
    inserts: Sequence[BoundClause]
    matches: MergeMatches
    copies: ColumnCopies
    changed: set[str] | None
    source: pa.RecordBatch | None
    counts: MergeCounts = field(default_factory=MergeCounts)
    _copied: list[tuple[int, MatchedFile, ColumnSplice, Undone | None]] = field(default_factory=list)
    _rewritten: list[_Rewrite] = field(default_factory=list)

    def insert(self, rows: pa.RecordBatch, unmatched: np.ndarray) -> None:
        """Inserts rows of the source that no row of the table matched."""
        for start in range(0, len(unmatched), BATCH_ROWS):
            part = rows.take(pa.array(unmatched[start : start + BATCH_ROWS]))
            clauses = first_clauses(self.inserts, part.num_rows, None, part)
            for number, clause in enumerate(self.inserts):
                places = np.flatnonzero(clauses == number)
                if len(places):
                    made = self.values.made(clause, len(places), None, part.take(pa.array(places)))
                    self.files.write(made)
                    self.files.change(made, "insert")
                    self.counts.inserted += len(places)

    def change(self, number: int, found: MatchedFile) -> bool:
        """Changes one file.

        Returns:
            Whether any row of it changed.
        """
        undone = self._not_matched(number, found) if self.by_source else None
        if not self.matches.acts_on(number) and (undone is None or not len(undone[0])):
            return False
        rows, clauses = self.matches.clauses(number, self._undoubted)
        if undone is not None:
            rows, clauses = np.concatenate([rows, undone[0]]), np.concatenate([clauses, undone[1]])
        deletes = np.isin(clauses, self._deletes)
        live = self.table.live(found.file)
        is_whole = len(rows) == live
        self.counts.deleted += int(deletes.sum())
        self.counts.updated += int((~deletes).sum())
        if self.table.writes_vectors and not is_whole:
            encoded, count = encode_deletion_vector([pa.array(np.sort(rows))])
            self.files.delete(replace(found, encoded=encoded, matched=count))
        else:
            self.files.remove(found)
        if self.table.writes_vectors or is_whole:
            changing = rows if self.files.keeps_changes else rows[~deletes]
            if len(changing):
                self._rewritten.append(_Rewrite(number, found, undone, np.sort(changing)))
        else:
            self.counts.copied += live - len(rows)
            splice = self.copies.splice(found)
            if splice is None:
                self._rewritten.append(_Rewrite(number, found, undone, None))
            else:
                self._copied.append((number, found, splice, undone))
        # What happens to rows that nothing matches is in memory until their file is written.
        waiting = len(self._copied) + len(self._rewritten)
        numbers = sum(len(each.only) for each in self._rewritten if each.only is not None)
        if (undone is not None and waiting >= _AT_ONCE) or numbers > _HELD_ROWS:
            self.finish()
        return True

    def finish(self) -> None:
        """Writes the rows of the files of which that was left."""
        reads = [partial(self._pieces, each) for each in self._rewritten]
        # Its threads end with it, whatever is raised meanwhile.
        with closing(read_ahead(reads, lambda piece: piece.size, limit=self.table.budget.ahead)) as pieces:
            for piece in pieces:
                self._write(piece)
        self._rewritten.clear()
        if self._copied:
            self._copy()

    def _copy(self) -> None:
        schema = self.files.schema
        groups = CopiedGroups(
            self.values,
            self._clauses,
            self.matches,
            self._undoubted,
            schema,
            self.changed,
            self.table.names,
            self._source,
        )
        for number, found, _, undone in self._copied:
            groups.add(number, found.file.path, undone)
        self.files.add_copies(self.copies.copy([(found, splice) for _, found, splice, _ in self._copied], groups))
        self._copied.clear()

    @property
    def _clauses(self) -> list[BoundClause]:
        """The clauses of rows of the table, by their numbers."""
        return [*self.matched, *self.by_source]

    @property
    def _deletes(self) -> list[int]:
        return [number for number, clause in enumerate(self._clauses) if clause.action == "delete"]

    @property
    def _undoubted(self) -> int:
        """The clause that may apply to a row twice."""
        sure = (number for number, clause in enumerate(self.matched) if clause.is_unconditional_delete)
        return next(sure, NOTHING - 1)

    def _not_matched(self, number: int, found: MatchedFile) -> Undone:
        """What happens to the rows of a file that no row of the source matches."""
        predicates = [clause.predicate for clause in self.by_source if clause.predicate is not None]
        read = list(dict.fromkeys(name for predicate in predicates for name in predicate.target))
        matched = self.matches.rows(number)
        rows, clauses = [], []
        for batch in self.table.scan.read(found.file, read or self.table.names[:1], numbered=True):
            numbers = batch.column(batch.num_columns - 1).to_numpy()
            at = np.searchsorted(matched, numbers)
            is_matched = np.zeros(len(numbers), bool)
            there = at < len(matched)
            is_matched[there] = matched[at[there]] == numbers[there]
            places = np.flatnonzero(~is_matched)
            which = first_clauses(self.by_source, len(places), taken(batch, read, places), None)
            acting = which != NOTHING
            rows.append(numbers[places[acting]])
            clauses.append((which[acting] + len(self.matched)).astype(np.int8))
        if not rows:
            return np.array([], np.uint64), np.array([], np.int8)
        return np.concatenate(rows), np.concatenate(clauses)

    def _pieces(self, rewrite: _Rewrite) -> Iterator[_Piece]:
        """The rows of a file that are written, with what happens to them."""
        number, undone, only = rewrite.number, rewrite.undone, rewrite.only
        columns = self.table.names if only is None or self.files.keeps_changes else self._needed
        chosen = None if only is None else pa.array(only)
        held: tuple[int, RangeMatches] | None = None
        for batch in self.table.scan.read(rewrite.found.file, columns, only=chosen, numbered=True):
            numbers = batch.column(batch.num_columns - 1).to_numpy()
            rows = batch.select(columns)
            clauses = np.full(len(numbers), NOTHING, np.int8)
            beside: list[tuple[np.ndarray, pa.RecordBatch]] = []
            last = int(numbers[-1])
            for place in range(int(numbers[0]) // RANGE_ROWS, last // RANGE_ROWS + 1):
                if held is None or held[0] != place:
                    held = place, self.matches.range(number, place, self._undoubted)
                here = held[1].between(int(numbers[0]), last + 1)
                acting = np.flatnonzero(here.clauses != NOTHING)
                at = np.searchsorted(numbers, here.rows[acting])
                # Of the rows that act some may not be asked for.
                there = at < len(numbers)
                there[there] = numbers[at[there]] == here.rows[acting][there]
                clauses[at[there]] = here.clauses[acting][there]
                beside.append((at[there], self._source(here.beside, acting[there])))
            if undone is not None:
                start, end = np.searchsorted(undone[0], np.array([numbers[0], last + 1], np.uint64))
                at = np.searchsorted(numbers, undone[0][start:end])
                there = at < len(numbers)
                there[there] = numbers[at[there]] == undone[0][start:end][there]
                clauses[at[there]] = undone[1][start:end][there]
            yield _Piece(rows, clauses, beside, only is None)

    @property
    def _needed(self) -> list[str]:
        """The table's columns that updates keep or read."""
        read: set[str] = set()
        for clause in self._clauses:
            if clause.action == "update":
                read |= clause.target
                read |= {name for name in self.table.names if name not in clause.values}
        return [name for name in self.table.names if name in read] or self.table.names[:1]

    def _source(self, beside: pa.RecordBatch, places: np.ndarray) -> pa.RecordBatch:
        if self.source is None:
            return beside.take(pa.array(places))
        return self.source.take(beside.column(NUMBER).take(pa.array(places)))

    def _write(self, piece: _Piece) -> None:
        """Writes rows of the table: those that nothing happens to as they are, the others as clauses make them."""
        rows, clauses, beside, is_copy = piece.rows, piece.clauses, piece.beside, piece.is_copy
        if is_copy and not (clauses != NOTHING).any():
            self.files.write(self.values.widened(rows))
            return
        made: list[pa.RecordBatch] = []
        places: list[np.ndarray] = []
        changed: set[str] = set()
        for number, clause in enumerate(self._clauses):
            if number < len(self.matched):
                pieces = [(at, source) for at, source in beside if len(at)]
            else:
                pieces = [(np.flatnonzero(clauses == number), None)] if (clauses == number).any() else []
            for at, source in pieces:
                mine = np.flatnonzero(clauses[at] == number)
                if not len(mine):
                    continue
                old = rows.take(pa.array(at[mine]))
                if clause.action == "delete":
                    self.files.change(old, "delete")
                    continue
                now = None if source is None else source.take(pa.array(mine))
                new = self.values.made(clause, len(mine), old, now)
                self.files.change(old, "update_preimage")
                self.files.change(new, "update_postimage")
                made.append(new)
                places.append(at[mine])
                changed |= clause.values.keys() | self.values.generated
        if not is_copy:
            for new in made:
                self.files.write(new)
            return
        whole = self._in_place(self.values.widened(rows), made, places, changed)
        stays = ~np.isin(clauses, self._deletes)
        self.files.write(whole if stays.all() else whole.filter(pa.array(stays)))

    def _in_place(
        self, old: pa.RecordBatch, made: list[pa.RecordBatch], places: list[np.ndarray], changed: set[str]
    ) -> pa.RecordBatch:
        """Rows with those that changed where they were."""
        if not made:
            return old
        order = np.arange(old.num_rows)
        there = np.concatenate(places)
        order[there] = old.num_rows + np.arange(len(there))
        chosen = pa.array(order)
        columns = []
        for index, name in enumerate(old.schema.names):
            values = old.column(index)
            if name in changed:
                values = pa.concat_arrays([values, *(new.column(index) for new in made)]).take(chosen)
            columns.append(values)
        return pa.RecordBatch.from_arrays(columns, schema=old.schema)
