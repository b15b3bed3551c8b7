"""What a merge does to which rows: found while the table's keys are read, asked for while its files are written.

Rows of a file are held in ranges of a million, so that a file is written with one range in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..._native.merge import DiskQuota, RowPartitions
from ...exceptions import CorruptFileError, InvalidArgumentError

RANGE_ROWS = 1 << 20
NOTHING = -1
"""The number of no clause."""
Undone: TypeAlias = "tuple[np.ndarray, np.ndarray]"
"""Rows that no row of the source matches, ascending, and what happens to them."""
_ROW = pa.field("row", pa.uint64())
_CLAUSE = pa.field("clause", pa.int8())


@dataclass(frozen=True)
class RangeMatches:
    """What happens to the rows of one range of a file.

    Args:
        rows: The numbers of rows, ascending.
        clauses: For each the clause that applies to it, or `NOTHING` if it only matched.
        beside: The source's side of each.
    """

    rows: np.ndarray
    clauses: np.ndarray
    beside: pa.RecordBatch

    def between(self, first: int, last: int) -> RangeMatches:
        """Those of the rows from one number on, below another."""
        start, end = np.searchsorted(self.rows, np.array([first, last], np.uint64))
        return RangeMatches(self.rows[start:end], self.clauses[start:end], self.beside.slice(start, end - start))


class MergeMatches:
    """Holds them, in memory up to a limit and beyond it on disk.

    Args:
        counts: For each file how many rows it holds.
        beside: The columns that are held of the source's rows.
        memory_limit: Bytes that are kept in memory.
        disk: What temporary files take their bytes of.

    Example:
        `matches.add(0, numbers, clauses, beside); matches.ranges(0)`
    """

    def __init__(
        self, counts: list[int], beside: pa.Schema, *, memory_limit: int, disk: DiskQuota | None = None
    ) -> None:
        sizes = [max(1, -(-count // RANGE_ROWS)) for count in counts]
        self._first = np.cumsum([0, *sizes]).tolist()
        self._names = [f"{number}" for number in range(len(beside))]
        self._beside = beside
        held = [pa.field(name, field.type) for name, field in zip(self._names, beside, strict=True)]
        self._schema = pa.schema([_ROW, _CLAUSE, *held])
        self._held = RowPartitions(self._schema, self._first[-1], memory_limit=memory_limit, disk=disk)
        self._acts = np.zeros(len(counts), bool)
        self._matched = np.zeros(len(counts), bool)

    def add(self, file: int, rows: np.ndarray, clauses: np.ndarray, beside: pa.RecordBatch) -> None:
        """Rows of one batch of a file, ascending.

        Raises:
            CorruptFileError: The file has more rows than it was said to hold.
        """
        self._matched[file] = True
        if (clauses != NOTHING).any():
            self._acts[file] = True
        batch = pa.RecordBatch.from_arrays([pa.array(rows), pa.array(clauses), *beside.columns], schema=self._schema)
        place = rows // RANGE_ROWS
        if len(place) and place[-1] >= len(self._places(file)):
            raise CorruptFileError(
                "expected as many rows in each file as its statistics in the log say (numRecords), found more; nothing "
                "was written"
            )
        starts = np.flatnonzero(np.diff(place, prepend=place[0] + 1)) if len(place) else np.array([], np.int64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
            self._held.push_to(batch.slice(start, end - start), self._first[file] + int(place[start]))

    def saw(self, file: int) -> None:
        """Notes that rows of a file matched, whatever happens to them."""
        self._matched[file] = True

    def has_matched(self, file: int) -> bool:
        """Whether a row of a file matched."""
        return bool(self._matched[file])

    def acts_on(self, file: int) -> bool:
        """Whether a clause applies to a row of a file."""
        return bool(self._acts[file])

    def rows(self, file: int) -> np.ndarray:
        """The numbers of a file's rows that are held, ascending."""
        parts = [self._read(place, ["row"]).column(0).to_numpy() for place in self._places(file)]
        return np.sort(np.concatenate(parts)) if parts else np.array([], np.uint64)

    def clauses(self, file: int, undoubted: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a file that a clause applies to, ascending and each once, and the clauses.

        Args:
            file: The file.
            undoubted: A clause that may apply to a row twice.

        Raises:
            InvalidArgumentError: Clauses apply to a row for two rows of the source.
        """
        rows, clauses = [], []
        for number in range(len(self._places(file))):
            found = self.range(file, number, undoubted)
            acting = found.clauses != NOTHING
            rows.append(found.rows[acting])
            clauses.append(found.clauses[acting])
        return np.concatenate(rows), np.concatenate(clauses)

    def _places(self, file: int) -> range:
        return range(self._first[file], self._first[file + 1])

    def _read(self, place: int, columns: list[str]) -> pa.RecordBatch:
        parts = [pa.record_batch(part).select(columns) for part in self._held.read(place)]
        schema = pa.schema([self._schema.field(name) for name in columns])
        whole = pa.Table.from_batches([part.cast(schema) for part in parts], schema).combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)

    def range(self, file: int, number: int, undoubted: int) -> RangeMatches:
        """What happens to the rows of one range of a file; arguments and errors as in `clauses`."""
        batch = self._read(self._first[file] + number, self._schema.names)
        rows, clauses = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        # Of the pairs of one row those that act come first.
        order = np.lexsort((clauses == NOTHING, rows))
        rows, clauses = rows[order], clauses[order]
        if len(rows) > 1:
            again = np.flatnonzero(rows[1:] == rows[:-1]) + 1
            wrong = again[
                (clauses[again] != NOTHING) & ((clauses[again] != undoubted) | (clauses[again - 1] != undoubted))
            ]
            if len(wrong):
                raise InvalidArgumentError(
                    "MERGE matched a target row with multiple source rows that satisfy duplicate relevant WHEN MATCHED "
                    f"clauses: expected one row of the source at most for a row of the table, found several for row "
                    f"{int(rows[wrong[0]])} of a file; leave all but one of them out of the source"
                )
            if len(again):
                first = np.ones(len(rows), bool)
                first[again] = False
                order, rows, clauses = order[first], rows[first], clauses[first]
        beside = batch.select(self._names).take(pa.array(order)) if self._names else batch.select([])
        made = pa.RecordBatch.from_arrays(beside.columns, schema=self._beside)
        return RangeMatches(rows, clauses, made)
