"""Updates rows: those that a predicate means get new values, in new files; others stay, or are copied.

With deletion vectors the old rows are deleted from their files, and new files have the new rows alone.

Spec: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import ColumnSplice
from ...commit.orphans import StagedFiles
from ..log.commit import CommitRequest, LogEntry
from ..log.target import WriteTarget
from ..properties import WriterProperties
from ..schema import Schema
from ..write.conformed import conformed
from .assignments import Assignments
from .attempts import PreparedChange, run_change
from .budget import Budget
from .changed_table import ChangedTable, MatchedFile
from .column_copies import ColumnCopies, OpenFile
from .files import ChangedFiles
from .group_change import GroupChange, HeldColumns, in_one


@dataclass(frozen=True)
class UpdateRequest:
    """The arguments of an update.

    Args:
        assignments: SQL by column.
        predicate: Which rows get new values, as SQL; all if not given.
        parquet: How Parquet is written.
        strict: Whether a value that does not fit its column is an error; if not, it becomes null.
        budget: What it may take.
    """

    assignments: Mapping[str, str]
    predicate: str | None = None
    parquet: WriterProperties | None = None
    strict: bool = True
    budget: Budget = field(default_factory=Budget)


def update_rows(target: WriteTarget, request: UpdateRequest, commit: CommitRequest) -> dict[str, Any]:
    """Gives rows new values, and tells its metrics.

    Args:
        target: The table.
        request: Which rows, and which values.
        commit: What the caller wants of the commit.

    Raises:
        InvalidArgumentError: The table is append-only; SQL that does not parse, or names no column; values that do not
            fit their column; rows that a constraint refuses.
        CommitConflictError: Others won every race.

    Example:
        `update_rows(target, UpdateRequest({"n": "n + 1"}, "id = 3"), CommitRequest())["num_updated_rows"]`
    """

    def prepare(there: WriteTarget, staged: StagedFiles) -> PreparedChange:
        return _prepare(there, request, staged)

    return run_change(target, prepare, commit)


def _prepare(target: WriteTarget, request: UpdateRequest, staged: StagedFiles) -> PreparedChange:
    started = time.monotonic()
    table = ChangedTable(target, request.predicate, budget=request.budget)
    assignments = Assignments(
        table.state, request.assignments, strict=request.strict, session_timezone=target.session_timezone
    )
    matched = [] if assignments.is_empty else table.matched(finds_whole=table.writes_vectors, has_statistics=True)
    scanned = time.monotonic()
    like = next((found for found in matched if not table.writes_vectors and not found.is_whole), None)
    with ChangedFiles(
        table,
        staged,
        request.parquet,
        keeps_changes=table.state.keeps_change_feed,
        copied=like,
        budget=request.budget,
    ) as files:
        copies = ColumnCopies(table, assignments.columns, staged, request.parquet, alone=True)
        updated, copied = _update(table, files, matched, assignments, copies)
        actions = files.close()
    metrics: dict[str, Any] = {
        "num_added_files": files.added,
        "num_removed_files": files.removed,
        "num_updated_rows": updated,
        "num_copied_rows": copied,
    }
    if table.writes_vectors:
        metrics["num_deletion_vectors_added"] = files.vectors
    metrics |= {
        "execution_time_ms": int((time.monotonic() - started) * 1000),
        "scan_time_ms": int((scanned - started) * 1000),
    }
    if not actions:
        return PreparedChange(None, metrics)
    parameters = {"predicate": "true" if request.predicate is None else request.predicate}
    entry = LogEntry("UPDATE", parameters, actions, table.read_set(matched), metrics, keeps_numbers=True)
    return PreparedChange(entry, metrics)


def _update(
    table: ChangedTable,
    files: ChangedFiles,
    matched: Sequence[MatchedFile],
    assignments: Assignments,
    copies: ColumnCopies,
) -> tuple[int, int]:
    """Gives rows new values; how many those are, and how many others were copied."""
    updated = copied = 0
    lock = Lock()

    def note(meant: int, others: int) -> None:
        nonlocal updated, copied
        with lock:
            updated, copied = updated + meant, copied + others

    spliced: list[tuple[MatchedFile, ColumnSplice]] = []
    written: list[MatchedFile] = []
    for found in matched:
        if table.writes_vectors and not found.is_whole:
            files.delete(found)
        else:
            files.remove(found)
        splice = copies.splice(found)
        if splice is None:
            written.append(found)
        else:
            spliced.append((found, splice))
    files.add_copies(copies.copy(spliced, _GroupUpdate(table, assignments, note)))
    with closing(table.rows(written)) as rows:
        for batch, mask in rows:
            meant = batch.num_rows if mask is None else int(pc.sum(mask).as_py() or 0)
            note(meant, batch.num_rows - meant)
            if not meant:
                files.write(batch)
                continue
            old = batch if mask is None or meant == batch.num_rows else batch.filter(mask)
            new = assignments.applied(old)
            files.change(old, "update_preimage")
            files.change(new, "update_postimage")
            files.write(new if old is batch else _merged(batch, mask, new, assignments.columns))
    return updated, copied


class _GroupUpdate:
    """The new values of row groups of files that are copied."""

    def __init__(self, table: ChangedTable, assignments: Assignments, note: Callable[[int, int], None]) -> None:
        self._table = table
        self._assignments = assignments
        self._note = note
        changed = assignments.columns
        self._changed = Schema([field for field in table.state.schema.fields if field.name in changed])
        asked = [] if table.where is None else table.where.columns
        needed = set(table.names if asked is None else asked) | changed | assignments.read
        self._read = [name for name in table.names if name in needed]

    def __call__(self, rows: OpenFile, group: int) -> GroupChange:
        changed_names = [name for name in self._read if name in self._assignments.columns]
        held = HeldColumns(changed_names, limit=self._table.budget.column // 4)
        places: list[np.ndarray] = []
        made: list[pa.RecordBatch] = []
        first = 0
        for batch in rows.read(group, self._read):
            count = batch.num_rows
            mask = None if rows.found.is_whole else self._table.mask(batch)
            meant = np.arange(count) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))
            self._note(len(meant), count - len(meant))
            if len(meant):
                new = self._assignments.applied(batch if len(meant) == count else batch.filter(mask))
                made.extend(conformed([new], self._changed))
                places.append(meant + first)
            first += count
            held.add(batch)
        changed = np.concatenate(places) if places else np.array([], np.int64)
        if len(changed) == first:
            return GroupChange(first, None, in_one(made))
        return GroupChange(first, changed, in_one(made), held=held.columns)


def _merged(old: pa.RecordBatch, mask: pa.Array, new: pa.RecordBatch, changed: set[str]) -> pa.RecordBatch:
    """The rows of a batch in their order, those of the mask with their new values."""
    chosen = mask.to_numpy(zero_copy_only=False)
    places = np.arange(old.num_rows)
    places[chosen] = old.num_rows + np.arange(new.num_rows)
    columns = []
    for name, before, after in zip(old.schema.names, old.columns, new.columns, strict=True):
        if name not in changed:
            columns.append(before)
            continue
        both = pa.concat_arrays([before, after.cast(before.type)])
        columns.append(both.take(pa.array(places)))
    return pa.RecordBatch.from_arrays(columns, schema=new.schema)
