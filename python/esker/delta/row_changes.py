"""The methods of `DeltaTable` that change rows, with deltalake's names and arguments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .change.assignments import sql_assignments
from .change.delete import delete_rows
from .change.update import UpdateRequest, update_rows
from .log.target import WriteTarget
from .positional import commit_request
from .properties import CommitProperties, PostCommitHookProperties, WriterProperties

_ORDER = ("post_commithook_properties", "commit_properties")


class RowChanges:
    """Deletes and updates of an open table."""

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

        Returns:
            Numbers of files, rows and milliseconds; `num_deleted_rows` is not there if the log does not tell it.

        Raises:
            InvalidArgumentError: The table is append-only; the predicate does not parse, or names no column.
            CommitConflictError: Others won every race. Nothing of it is visible.

        Example:
            `DeltaTable("s3://lake/events").delete("day < '2024-01-01'")["num_deleted_rows"]`
        """
        commit = commit_request("delete", args, commit_properties, post_commithook_properties, _ORDER)
        return delete_rows(self._write_target(), predicate, writer_properties, commit)

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
        assignments = sql_assignments(updates, new_values)
        request = UpdateRequest(assignments, predicate, writer_properties, error_on_type_mismatch)
        return update_rows(self._write_target(), request, commit)
