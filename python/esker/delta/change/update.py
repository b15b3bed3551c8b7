"""Updates rows: those that a predicate means get new values, in new files; others stay, or are copied.

With deletion vectors the old rows are deleted from their files, and new files have the new rows alone.

Spec: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from .assignments import Assignments
from .attempts import PreparedChange, run_change
from .changed_table import ChangedTable, MatchedFile
from .column_copies import ColumnCopies
from .files import ChangedFiles


@dataclass(frozen=True)
class UpdateRequest:
    """The arguments of an update.

    Args:
        assignments: SQL by column.
        predicate: Which rows get new values, as SQL; all if not given.
        parquet: How Parquet is written.
        strict: Whether a value that does not fit its column is an error; if not, it becomes null.
    """

    assignments: Mapping[str, str]
    predicate: str | None = None
    parquet: WriterProperties | None = None
    strict: bool = True


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
    table = ChangedTable(target, request.predicate)
    assignments = Assignments(
        table.state, request.assignments, strict=request.strict, session_timezone=target.session_timezone
    )
    matched = [] if assignments.is_empty else table.matched(finds_whole=table.writes_vectors, has_statistics=True)
    scanned = time.monotonic()
    like = next((found for found in matched if not table.writes_vectors and not found.is_whole), None)
    with ChangedFiles(
        table, staged, request.parquet, keeps_changes=table.state.keeps_change_feed, copied=like
    ) as files:
        copies = ColumnCopies(table, assignments.columns, assignments.read, staged, request.parquet)
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

    def changed(old: pa.RecordBatch) -> pa.RecordBatch:
        new = assignments.applied(old)
        files.change(old, "update_preimage")
        files.change(new, "update_postimage")
        return new

    def values(batch: pa.RecordBatch, mask: pa.Array | None) -> pa.RecordBatch:
        nonlocal updated, copied
        meant = batch.num_rows if mask is None else int(pc.sum(mask).as_py() or 0)
        with lock:
            updated, copied = updated + meant, copied + batch.num_rows - meant
        if not meant:
            return batch
        if mask is None or meant == batch.num_rows:
            return changed(batch)
        return _merged(batch, mask, changed(batch.filter(mask)), assignments.columns)

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
    files.add_copies(copies.copy(spliced, values))
    for batch, mask in table.rows(written):
        files.write(values(batch, mask))
    return updated, copied


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
