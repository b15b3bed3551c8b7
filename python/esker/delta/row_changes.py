"""The methods of `DeltaTable` that change rows, with deltalake's names and arguments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .change.assignments import sql_assignments
from .change.budget import budget
from .change.delete import delete_rows
from .change.update import UpdateRequest, update_rows
from .log.target import WriteTarget
from .merge.clauses import Clauses
from .merge.run import MergeRequest
from .merge.source import KeptSource
from .merger import TableMerger
from .positional import commit_request
from .properties import CommitProperties, PostCommitHookProperties, WriterProperties

_ORDER = ("post_commithook_properties", "commit_properties")


class RowChanges:
    """Deletes, updates and merges of an open table."""

    def _write_target(self) -> WriteTarget:
        """Where a write to the table goes."""
        raise NotImplementedError

    def delete(
        self,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        memory_limit: int | None = None,
    ) -> dict[str, Any]:
        """Deletes the rows for which a predicate is true.

        Files that partition values and statistics rule out are not opened. With `delta.enableDeletionVectors` files
        stay as they are, and their deleted rows are listed beside them; else their other rows are written anew. What
        changes nothing writes no version. A race that is lost is run again.

        Args:
            predicate: SQL; all rows if not given.
            writer_properties: How Parquet is written.
            args: Commit arguments by position, which are deprecated.
            commit_properties: What goes into the log entry, how often a lost race is run again.
            post_commithook_properties: What is done after the commit.
            memory_limit: Bytes that the process grows by at most, beside the caller's rows; 512 MiB if not given.

        Returns:
            Numbers of files, rows and milliseconds; `num_deleted_rows` is not there if the log does not tell it.

        Raises:
            InvalidArgumentError: The table is append-only; the predicate does not parse, or names no column.
            CommitConflictError: Others won every race. Nothing of it is visible.

        Example:
            `DeltaTable("s3://lake/events").delete("day < '2024-01-01'")["num_deleted_rows"]`
        """
        commit = commit_request("delete", args, commit_properties, post_commithook_properties, _ORDER)
        return delete_rows(self._write_target(), predicate, writer_properties, commit, budget(memory_limit))

    def update(
        self,
        updates: dict[str, str] | None = None,
        new_values: dict[str, int | float | str | datetime | bool | list[Any]] | None = None,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        memory_limit: int | None = None,
    ) -> dict[str, Any]:
        """Gives the rows for which a predicate is true new values.

        Expressions read the row as it was. Values are cast to the types of their columns, generated columns that are
        not given are computed anew, constraints are checked. Files, races and feeds are as in `delete`.

        Args:
            updates: SQL for each column that changes.
            new_values: In its place: values of Python.
            predicate: SQL; all rows if not given.
            writer_properties: How Parquet is written.
            error_on_type_mismatch: Whether a value that does not fit its column is an error; if not, it becomes null.
            args: Commit arguments by position, which are deprecated.
            commit_properties: What goes into the log entry, how often a lost race is run again.
            post_commithook_properties: What is done after the commit.
            memory_limit: Bytes that the process grows by at most, beside the caller's rows; 512 MiB if not given.

        Returns:
            Numbers of files, rows and milliseconds.

        Raises:
            InvalidArgumentError: SQL that does not parse, or names no column; values that do not fit their column; rows
                that a constraint refuses; an append-only table.
            CommitConflictError: Others won every race. Nothing of it is visible.

        Example:
            `DeltaTable("s3://lake/stock").update({"n": "n + 1"}, predicate="id = 3")["num_updated_rows"]`
        """
        commit = commit_request("update", args, commit_properties, post_commithook_properties, _ORDER)
        target = self._write_target()
        assignments = sql_assignments(updates, new_values, target.session_timezone)
        request = UpdateRequest(assignments, predicate, writer_properties, error_on_type_mismatch, budget(memory_limit))
        return update_rows(target, request, commit)

    def merge(
        self,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        memory_limit: int | None = None,
    ) -> TableMerger:
        """Begins a merge of rows into the table: clauses follow, then `execute`.

        Equalities of the predicate find rows by key, files that hold none of the source's keys are not opened. Two rows
        of the source that change one row of the table are an error; nulls match nothing. Values are cast to the types
        of their columns. Files, races and feeds are as in `delete`.

        Args:
            source: The rows: anything Arrow, a reader, a dataset, a frame of pandas or polars, a relation of DuckDB.
            predicate: When a row of the source matches one of the table, as SQL.
            source_alias: What the source is called in SQL.
            target_alias: What the table is called in SQL.
            merge_schema: Whether columns that clauses assign, and the table does not have, are added to it.
            error_on_type_mismatch: Whether a value that does not fit its column is an error; if not, it becomes null.
            writer_properties: How Parquet is written.
            streamed_exec: Changes nothing: rows are streamed, and files are left out by the source's keys as well.
            max_spill_size: Bytes of the source that are kept in memory before they go to disk; a sixteenth of
                `memory_limit` at most.
            max_temp_directory_size: Bytes of all temporary files together; any number if not given.
            args: Commit arguments by position, which are deprecated.
            commit_properties: What goes into the log entry, how often a lost race is run again.
            post_commithook_properties: What is done after the commit.
            memory_limit: Bytes that the process grows by at most, beside the caller's rows; 512 MiB if not given.

        Returns:
            The merger.

        Raises:
            TypeError: A source that is no rows.
            InvalidArgumentError: More temporary files than allowed.

        Example:
            `DeltaTable("s3://lake/stock").merge(rows, "t.id = s.id", "s", "t").when_matched_update_all().execute()`
        """
        commit = commit_request("merge", args, commit_properties, post_commithook_properties, _ORDER)
        allowed = budget(memory_limit, max_temp_directory_size)
        kept = allowed.kept if max_spill_size is None else min(allowed.kept, max_spill_size)
        rows = KeptSource(source, memory_limit=kept, disk=allowed.disk)
        request = MergeRequest(
            rows,
            predicate,
            Clauses(),
            source_alias,
            target_alias,
            merge_schema,
            error_on_type_mismatch,
            writer_properties,
            allowed,
        )
        return TableMerger(self._write_target(), request, commit)
