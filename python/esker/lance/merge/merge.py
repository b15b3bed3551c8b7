"""Runs an upsert: keeps the source, merges it into one version, commits, and merges again after a conflict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from ..._native.merge import MergeRequest, MergeSource, merge
from ..._native.store import Store
from ...arrow.blob_arrays import holds_blobs
from ...arrow.incoming import ReaderLike
from ...arrow.paths import parts_of
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError, UnsupportedError
from ...progress import Progress, Tally
from ...schema import LanceSchema
from ...storage_version import storage_version
from ..change.run import CommitTerms, commit_rows
from ..log import LanceLog
from ..operation import LanceOperation
from ..system_columns import ROW_ADDRESS, ROW_ID
from ..version import TableVersion
from ..write.request import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE, DEFAULT_MEMORY_LIMIT
from .clauses import MergeClauses
from .in_place import check_columns_only, merged_columns
from .outcome import NOTHING, ExecuteResult, PreparedMerge
from .source import ALL_IN_MEMORY, MergeRows, check_columns, fits


@dataclass
class MergeSpecification:
    """The settings of an upsert.

    Attributes:
        on: The key columns.
        clauses: What it does with rows that match and rows that do not.
        data_storage_version: The file version of new files; None for the table's.
        memory_limit: Bytes that it may hold in memory, approximately.
        in_place: Whether rows are updated in place, by new files of some columns.
        target_bases: The ids of the base paths that new files are written to in turn.
    """

    on: list[str]
    clauses: MergeClauses = field(default_factory=MergeClauses)
    data_storage_version: str | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    in_place: bool = False
    target_bases: list[int | None] = field(default_factory=list)


@dataclass(frozen=True)
class KeptSource:
    """The rows of a source, which can be read any number of times.

    Attributes:
        schema: Their columns, in the table's order.
        rows: The rows.
    """

    schema: pa.Schema
    rows: MergeSource


def kept_source(
    table: TableVersion,
    spec: MergeSpecification,
    data: ReaderLike,
    schema: pa.Schema | None,
    progress: Progress | None = None,
) -> KeptSource:
    """Reads a source to its end: incoming -> checked -> conformed -> kept; it spills to disk above the memory limit.

    Raises:
        InvalidArgumentError: There is no clause, or a condition does not parse.
        SchemaMismatchError: A column of the source is not in the table.
        UnsupportedError: A column of the table is named `_rowid` or `_rowaddr`.
    """
    clauses = spec.clauses
    clauses.check()
    for name in (ROW_ID, ROW_ADDRESS):
        if name in table.schema.names:
            raise UnsupportedError(
                f"rows of a table with a column named {name!r} cannot be merged into, rename the column", column=name
            )
    rows = MergeRows(data, schema, table=table.schema, on=spec.on, insert=clauses.insert, update=clauses.updates)
    if spec.in_place:
        check_columns_only(clauses, spec.on, rows.schema, table.schema)
    # Checks the condition before anything is read.
    clauses.update_condition(rows.schema, table)
    return KeptSource(rows.schema, rows.keep(spec.memory_limit // 4, progress))


def prepare(
    table: TableVersion, spec: MergeSpecification, source: KeptSource, *, store: Store | None = None
) -> PreparedMerge:
    """Merges a source into a version and stages the new files; nothing is visible yet.

    Args:
        table: The base version.
        spec: The settings of the merge.
        source: The rows.
        store: The store for new files; by default the table's.
    """
    clauses = spec.clauses
    check_columns(source.schema, table.schema, on=spec.on, insert=clauses.insert, update=clauses.updates)
    if not fits(source.schema, table.schema, spec.on):
        source = _conformed_again(table, spec, source)
    request = MergeRequest(
        on=spec.on,
        when_matched=clauses.when_matched,
        condition=clauses.update_condition(source.schema, table),
        insert=clauses.insert,
        when_not_matched_by_source="delete" if clauses.delete_unmatched else "keep",
        delete_filter=clauses.delete_predicate(table),
        data_storage_version=storage_version(spec.data_storage_version, table.manifest, "append"),
        max_rows_per_file=DEFAULT_MAX_ROWS_PER_FILE,
        max_bytes_per_file=DEFAULT_MAX_BYTES_PER_FILE,
        memory_limit=spec.memory_limit,
        target_bases=spec.target_bases,
    )
    if spec.in_place:
        return merged_columns(table, source.rows, request, spec.on)
    has_blobs = any(holds_blobs(column.type) for column in pa.schema(table.manifest.schema))
    return PreparedMerge.of(merge(store or table.store, table.manifest, source.rows, request), has_blobs=has_blobs)


def _conformed_again(table: TableVersion, spec: MergeSpecification, source: KeptSource) -> KeptSource:
    """The source in the columns of a version in which others have changed them since the rows were kept.

    Raises:
        SchemaMismatchError: A column has another type now.
    """
    kept = pa.RecordBatchReader.from_stream(source.rows)
    insert, update = spec.clauses.insert, spec.clauses.updates
    rows = MergeRows(kept, None, table=table.schema, on=spec.on, insert=insert, update=update)
    limit = spec.memory_limit // 4 if source.rows.spilled_bytes else ALL_IN_MEMORY
    return KeptSource(rows.schema, rows.keep(limit))


def execute(
    table: TableVersion,
    spec: MergeSpecification,
    source: KeptSource,
    terms: CommitTerms,
    progress: Progress | None = None,
) -> tuple[TableVersion, ExecuteResult]:
    """Merges a source and commits it; returns the new version and the counts of the merge."""
    merged: PreparedMerge | None = None

    def compute(at: TableVersion, log: LanceLog, staged: StagedFiles) -> LanceOperation.BaseOperation:
        nonlocal merged
        merged = prepare(at, spec, source, store=log.store)
        for path in merged.staged:
            staged.add(log.store, path)
        # Once more each time that it is computed again.
        tally = Tally(progress, "merging rows", unit="files", total=len(merged.files))
        changed = merged.result
        rows = changed["num_inserted_rows"] + changed["num_updated_rows"] + changed["num_deleted_rows"]
        tally.add(rows=rows, bytes=merged.bytes_written, files=len(merged.files))
        return merged.operation

    committed = commit_rows(table, compute, terms)
    return committed, merged.result if merged is not None else NOTHING.copy()


def key_columns(table: TableVersion, on: str | Iterable[str] | None) -> list[str]:
    """The key columns under the names that they have in the table; by default the table's primary key."""
    fields = table.manifest.schema.fields
    wanted = [on] if isinstance(on, str) else list(on or [])
    if not wanted:
        declared = [field.name() for field in LanceSchema(table.manifest.schema).unenforced_primary_key()]
        wanted = [name for name in declared if any(field.name == name for field in fields)]
    if not wanted:
        raise InvalidArgumentError(
            "expected key columns, found none: name them in on, or declare a primary key in the table's schema"
        )
    names = [field.name for field in fields]
    found = []
    for asked in wanted:
        # A name in backticks is the column that it quotes, as in conditions.
        quoted = [] if asked in names else parts_of(asked)
        name = quoted[0] if len(quoted) == 1 else asked
        similar = [known for known in names if known.lower() == name.lower()]
        if name not in names and len(similar) != 1:
            raise InvalidArgumentError(
                f"expected a key among the table's columns ({', '.join(names)}), found {asked!r}", column=asked
            )
        found.append(name if name in names else similar[0])
    if len(set(found)) != len(found):
        raise InvalidArgumentError(f"duplicate key column in {found}, name each once")
    return found
