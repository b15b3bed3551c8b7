"""Deletes rows: whole files by the log alone, parts of files by deletion vectors or by new files of the other rows.

Spec: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from ...commit.orphans import StagedFiles
from ..log.commit import CommitRequest, LogEntry
from ..log.target import WriteTarget
from ..properties import WriterProperties
from .attempts import PreparedChange, run_change
from .changed_table import ChangedTable, MatchedFile
from .files import ChangedFiles


def delete_rows(
    target: WriteTarget, predicate: str | None, parquet: WriterProperties | None, commit: CommitRequest
) -> dict[str, Any]:
    """Deletes the rows for which a predicate is true, and tells its metrics.

    Args:
        target: The table.
        predicate: SQL; all rows if not given.
        parquet: How Parquet is written.
        commit: What the caller wants of the commit.

    Raises:
        InvalidArgumentError: The table is append-only; the predicate does not parse, or names no column.
        CommitConflictError: Others won every race.

    Example:
        `delete_rows(target, "id = 3", None, CommitRequest())["num_deleted_rows"]`
    """

    def prepare(there: WriteTarget, staged: StagedFiles) -> PreparedChange:
        return _prepare(there, predicate, parquet, staged)

    return run_change(target, prepare, commit)


def _prepare(
    target: WriteTarget, predicate: str | None, parquet: WriterProperties | None, staged: StagedFiles
) -> PreparedChange:
    started = time.monotonic()
    table = ChangedTable(target, predicate)
    matched = table.matched(finds_whole=True)
    scanned = time.monotonic()
    # Files that are removed as a whole tell by themselves what went.
    keeps_changes = table.state.keeps_change_feed and not all(found.is_whole for found in matched)
    like = next((found for found in matched if not table.writes_vectors and not found.is_whole), None)
    with ChangedFiles(table, staged, parquet, keeps_changes=keeps_changes, copied=like) as files:
        known, copied = _delete(table, files, matched)
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


def _delete(table: ChangedTable, files: ChangedFiles, matched: Sequence[MatchedFile]) -> tuple[list[int | None], int]:
    """Deletes rows: how many, None where that is not known, and how many others were copied."""
    counts: list[int | None] = []
    rewritten: list[MatchedFile] = []
    for found in matched:
        if table.writes_vectors and not found.is_whole:
            files.delete(found)
        else:
            files.remove(found)
        if found.is_whole or table.writes_vectors:
            counts.append(found.matched)
        else:
            rewritten.append(found)
    deleted = copied = 0
    for batch, mask in table.rows(matched if files.keeps_changes else rewritten):
        if mask is None:
            files.change(batch, "delete")
            continue
        kept = batch.filter(pc.invert(mask))
        deleted, copied = deleted + batch.num_rows - kept.num_rows, copied + kept.num_rows
        files.write(kept)
        if files.keeps_changes:
            files.change(batch.filter(mask), "delete")
    return [*counts, deleted], copied
