"""Merges rows into a table: prepares the change from one version, and runs it again where a race was lost.

Spec: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ...commit.orphans import StagedFiles
from ..change.attempts import PreparedChange, run_change
from ..change.budget import Budget
from ..change.changed_table import ChangedTable, MatchedFile
from ..change.column_copies import ColumnCopies
from ..change.files import ChangedFiles
from ..definition.table_state import TableState
from ..log.commit import CommitRequest, LogEntry
from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from ..properties import WriterProperties
from ..read.scan import TableScan
from ..schema import Schema
from .changed_files import MergeWriter
from .clauses import Clause, Clauses
from .condition import join_condition
from .copied_groups import changed_columns
from .joined import JoinedColumns
from .matches import RANGE_ROWS, MergeMatches
from .matching import NUMBER, Matcher
from .pruning import matchable
from .row_values import RowValues, assigned_column, bind_clause
from .source import KeptSource, SourceParts


@dataclass(frozen=True)
class MergeRequest:
    """The arguments of a merge.

    Args:
        source: Its rows.
        predicate: When a row of the source matches one of the table, as SQL.
        clauses: What happens then.
        source_alias: What the source is called in SQL.
        target_alias: What the table is called in SQL.
        merge_schema: Whether columns that clauses assign, and the table does not have, are added to it.
        strict: Whether a value that does not fit its column is an error; if not, it becomes null.
        parquet: How Parquet is written.
        budget: What it may take.
    """

    source: KeptSource
    predicate: str
    clauses: Clauses
    source_alias: str | None = None
    target_alias: str | None = None
    merge_schema: bool = False
    strict: bool = True
    parquet: WriterProperties | None = None
    budget: Budget = field(default_factory=Budget)


def merge_rows(target: WriteTarget, request: MergeRequest, commit: CommitRequest) -> dict[str, Any]:
    """Merges rows into a table, and tells its metrics.

    Args:
        target: The table.
        request: Which rows, and what happens to them.
        commit: What the caller wants of the commit.

    Raises:
        InvalidArgumentError: SQL that does not parse, or names no column; several rows of the source for one of the
            table; values that do not fit their column; rows that a constraint refuses.
        SchemaMismatchError: Structs that have other fields than their column.
        CommitConflictError: Others won every race.

    Example:
        `merge_rows(target, MergeRequest(source, "t.id = s.id", clauses, "s", "t"), CommitRequest())`
    """

    def prepare(there: WriteTarget, staged: StagedFiles) -> PreparedChange:
        return _prepare(there, request, staged)

    return run_change(target, prepare, commit)


def _prepare(target: WriteTarget, request: MergeRequest, staged: StagedFiles) -> PreparedChange:
    started = time.monotonic()
    source, clauses = request.source, request.clauses
    before = TableState.of(target.base)
    schema = TableScan.schema_of(target.base)
    columns = JoinedColumns(schema, source.schema, request.target_alias, request.source_alias, target.session_timezone)
    after = _evolved(before, request) if request.merge_schema else before
    condition = join_condition(request.predicate, columns)
    matched, inserts, by_source = (
        [bind_clause(clause, columns, after, source.schema, fills=request.merge_schema) for clause in part]
        for part in (clauses.matched, clauses.not_matched, clauses.not_matched_by_source)
    )
    parts = SourceParts(source, condition, request.budget.source)
    where = None
    if not by_source:
        where = matchable(
            schema,
            condition,
            parts.ranges,
            request.target_alias,
            partition_by=before.partition_by,
            session_timezone=target.session_timezone,
        )
    table = ChangedTable(target, None, bound=where, removes_rows=bool(matched or by_source), budget=request.budget)
    found = table.candidates(has_statistics=True)
    skipped = len(target.base.select(target.store, None)) - len(found) if where is not None else 0
    holds_rows = parts.count > 1
    matches = MergeMatches(
        _counts(table, found),
        source.schema if holds_rows else pa.schema([(NUMBER, pa.uint32())]),
        memory_limit=request.budget.matches,
        disk=request.budget.disk,
    )
    matcher = Matcher(table, condition, matched, matches, holds_rows, holds_all=bool(by_source))
    values = RowValues(after, strict=request.strict, session_timezone=target.session_timezone)
    like = next(iter(found), None) if not table.writes_vectors and (matched or by_source) else None
    with ChangedFiles(
        table,
        staged,
        request.parquet,
        keeps_changes=after.keeps_change_feed,
        copied=like,
        after=after,
        budget=request.budget,
    ) as files:
        assigned = changed_columns(matched, by_source, values, condition)
        deletes = any(clause.action == "delete" for clause in (*matched, *by_source))
        changed = None if deletes else assigned
        copies = ColumnCopies(table, changed, staged, request.parquet, after=after, assigned=assigned)
        writer = MergeWriter(table, files, values, matched, by_source, inserts, matches, copies, changed, None)
        for part in parts:
            seen = matcher.match(found, part)
            if inserts:
                writer.insert(part.rows, np.flatnonzero(~seen))
            if not holds_rows:
                writer.source = part.rows
            # The next part is made without this one in memory.
            del part, seen
            pa.default_memory_pool().release_unused()
        scanned = time.monotonic()
        touched = [writer.change(number, file) for number, file in enumerate(found)]
        writer.finish()
        actions = files.close()
    counts = writer.counts
    metrics: dict[str, Any] = {
        "num_source_rows": source.num_rows,
        "num_target_rows_inserted": counts.inserted,
        "num_target_rows_updated": counts.updated,
        "num_target_rows_deleted": counts.deleted,
        "num_target_rows_copied": counts.copied,
        "num_output_rows": counts.inserted + counts.updated + counts.copied,
        "num_target_files_scanned": len(found),
        "num_target_files_skipped_during_scan": skipped,
        "num_target_files_added": files.added,
        "num_target_files_removed": files.removed,
    }
    if table.writes_vectors:
        metrics["num_target_deletion_vectors_added"] = files.vectors
    ended = time.monotonic()
    metrics |= {
        "execution_time_ms": int((ended - started) * 1000),
        "scan_time_ms": int((scanned - started) * 1000),
        "rewrite_time_ms": int((ended - scanned) * 1000),
    }
    actions = [*after.actions_after(before), *actions]
    if not actions:
        return PreparedChange(None, metrics)
    read = _read_set(table, found, [is_changed or matches.has_matched(n) for n, is_changed in enumerate(touched)])
    entry = LogEntry("MERGE", _parameters(request), actions, read, metrics, keeps_numbers=True)
    return PreparedChange(entry, metrics)


def _read_set(table: ChangedTable, found: Sequence[MatchedFile], touched: Sequence[bool]) -> ReadSet:
    return table.read_set([file for file, is_touched in zip(found, touched, strict=True) if is_touched])


def _counts(table: ChangedTable, found: Sequence[MatchedFile]) -> list[int]:
    """How many rows each file holds, deleted ones among them."""
    known = table.rows_by_statistics()
    pairs = zip(found, known, strict=True)
    # A number that takes many ranges is asked of the file itself.
    return [
        count if count is not None and count <= RANGE_ROWS else table.scan.count(file.file) for file, count in pairs
    ]


def _parameters(request: MergeRequest) -> dict[str, str]:
    described = {key: json.dumps(part) for key, part in request.clauses.described().items()}
    return {"mergePredicate": request.predicate, **described}


def _evolved(before: TableState, request: MergeRequest) -> TableState:
    """The table with the columns of the source that clauses assign."""
    names = [field.name for field in before.schema.fields]
    every = request.source.schema.names
    wanted: list[str] = []
    for clause in (*request.clauses.matched, *request.clauses.not_matched, *request.clauses.not_matched_by_source):
        wanted += _assigned(clause, names, every, request)
    generated = request.source.generated
    chosen = [field.with_metadata(generated.get(field.name)) for field in request.source.schema if field.name in wanted]
    merged = before.merged_with(Schema.from_arrow(_as_named(chosen, names)))
    return merged if merged.schema != before.schema else before


def _assigned(clause: Clause, names: list[str], every: list[str], request: MergeRequest) -> list[str]:
    """The columns of the source whose names a clause assigns to."""
    found = []
    if clause.takes_all:
        left_out = {name.lower() for name in clause.except_columns}
        found += [name for name in every if name.lower() not in left_out]
    for given in clause.assignments:
        column = assigned_column(given, [*names, *every], request.target_alias, request.source_alias)
        found += [name for name in every if column is not None and name.lower() == column.lower()]
    return found


def _as_named(fields: Sequence[pa.Field], names: list[str]) -> pa.Schema:
    """Fields, those of the table under the table's spelling."""
    own = {name.lower(): name for name in names}
    return pa.schema([field.with_name(own.get(field.name.lower(), field.name)) for field in fields])
