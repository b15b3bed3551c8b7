"""Deletes rows: whole files by the log alone, parts of files by deletion vectors or by new files of the other rows.

Spec: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import ColumnSplice
from ...commit.orphans import StagedFiles
from ..log.commit import CommitRequest, LogEntry
from ..log.target import WriteTarget
from ..properties import WriterProperties
from .attempts import PreparedChange, run_change
from .budget import Budget
from .changed_table import ChangedTable, MatchedFile
from .column_copies import ColumnCopies, OpenFile
from .files import ChangedFiles
from .group_change import GroupChange, HeldColumns


def delete_rows(
    target: WriteTarget,
    predicate: str | None,
    parquet: WriterProperties | None,
    commit: CommitRequest,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Deletes the rows for which a predicate is true, and tells its metrics.

    Args:
        target: The table.
        predicate: SQL; all rows if not given.
        parquet: How Parquet is written.
        commit: What the caller wants of the commit.
        budget: What it may take.

    Raises:
        InvalidArgumentError: The table is append-only; the predicate does not parse, or names no column.
        CommitConflictError: Others won every race.

    Example:
        `delete_rows(target, "id = 3", None, CommitRequest())["num_deleted_rows"]`
    """

    def prepare(there: WriteTarget, staged: StagedFiles) -> PreparedChange:
        return _prepare(there, predicate, parquet, staged, budget)

    return run_change(target, prepare, commit)


def _prepare(
    target: WriteTarget,
    predicate: str | None,
    parquet: WriterProperties | None,
    staged: StagedFiles,
    budget: Budget | None,
) -> PreparedChange:
    started = time.monotonic()
    table = ChangedTable(target, predicate, budget=budget)
    matched = table.matched(finds_whole=True, has_statistics=True)
    scanned = time.monotonic()
    # Files that are removed as a whole tell by themselves what went.
    keeps_changes = table.state.keeps_change_feed and not all(found.is_whole for found in matched)
    like = next((found for found in matched if not table.writes_vectors and not found.is_whole), None)
    with ChangedFiles(table, staged, parquet, keeps_changes=keeps_changes, copied=like, budget=table.budget) as files:
        copies = ColumnCopies(table, None, staged, parquet)
        known, copied = _delete(table, files, matched, copies)
        actions = files.close()
    metrics: dict[str, Any] = {
        # As deltalake counts: files of changes among them.
        "num_added_files": files.added + files.changed,
        "num_removed_files": files.removed,
        "num_deleted_rows": sum(count or 0 for count in known),
        "num_copied_rows": copied,
    }
    if None in known:
        del metrics["num_deleted_rows"]
    if table.writes_vectors:
        metrics["num_deletion_vectors_added"] = files.vectors
    ended = time.monotonic()
    metrics |= {
        "execution_time_ms": int((ended - started) * 1000),
        "scan_time_ms": int((scanned - started) * 1000),
        "rewrite_time_ms": int((ended - scanned) * 1000),
    }
    if not actions:
        return PreparedChange(None, metrics)
    parameters = {} if predicate is None else {"predicate": predicate}
    entry = LogEntry("DELETE", parameters, actions, table.read_set(matched), metrics, keeps_numbers=True)
    return PreparedChange(entry, metrics)


def _delete(
    table: ChangedTable, files: ChangedFiles, matched: Sequence[MatchedFile], copies: ColumnCopies
) -> tuple[list[int | None], int]:
    """Deletes rows: how many, None where that is not known, and how many others were copied."""
    counts: list[int | None] = []
    spliced: list[tuple[MatchedFile, ColumnSplice]] = []
    rewritten: list[MatchedFile] = []
    for found in matched:
        if table.writes_vectors and not found.is_whole:
            files.delete(found)
        else:
            files.remove(found)
        if found.is_whole or table.writes_vectors:
            counts.append(found.matched)
            continue
        splice = None if files.keeps_changes else copies.splice(found)
        if splice is None:
            rewritten.append(found)
        else:
            spliced.append((found, splice))
    change = _GroupDelete(table)
    files.add_copies(copies.copy(spliced, change))
    deleted, copied = change.deleted, change.copied
    with closing(table.rows(matched if files.keeps_changes else rewritten)) as rows:
        for batch, mask in rows:
            if mask is None:
                files.change(batch, "delete")
                continue
            kept = batch.filter(pc.invert(mask))
            deleted, copied = deleted + batch.num_rows - kept.num_rows, copied + kept.num_rows
            files.write(kept)
            if files.keeps_changes:
                files.change(batch.filter(mask), "delete")
    return [*counts, deleted], copied


class _GroupDelete:
    """The rows that go from row groups of files that are copied."""

    def __init__(self, table: ChangedTable) -> None:
        self._table = table
        self._lock = Lock()
        self.deleted = self.copied = 0

    def __call__(self, rows: OpenFile, group: int) -> GroupChange:
        held = HeldColumns(self._table.asked, limit=self._table.budget.column // 4)
        stays: list[pa.Array] = []
        for batch in rows.read(group, self._table.asked):
            stays.append(pc.invert(self._table.mask(batch)))
            held.add(batch)
        whole = pa.concat_arrays(stays)
        count, kept = len(whole), int(whole.true_count)
        with self._lock:
            self.deleted, self.copied = self.deleted + count - kept, self.copied + kept
        return GroupChange(count, stays=None if count == kept else whole, held=held.columns)
