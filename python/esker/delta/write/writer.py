"""`write_deltalake`, with deltalake's names and arguments: a Delta write from the rows of a caller to a log entry.

```
incoming -> plan -> conformed -> checked -> stored -> entry -> committed
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...commit.orphans import StagedFiles
from ...exceptions import AlreadyExistsError, InvalidArgumentError
from ...progress import Progress, as_progress
from ..log.commit import CommitRequest, DeltaCommit, LogEntry
from ..log.target import OpenTable, WriteTarget
from ..properties import CommitProperties, PostCommitHookProperties, Transaction, WriterProperties
from ..read.sql_names import columns_in_backticks
from ..table_properties import check_properties
from .attempt import first_attempt
from .incoming import incoming
from .plan import Mode, SchemaMode, WriteRequest, check_file_size, check_mode


def write_deltalake(
    table_or_uri: str | os.PathLike[str] | OpenTable,
    data: Any,
    *,
    partition_by: list[str] | str | None = None,
    mode: Mode = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: SchemaMode | None = None,
    storage_options: dict[str, str] | None = None,
    predicate: str | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    durable: bool = True,
    session_timezone: str | None = None,
    progress: Progress | Callable[[int], object] | None = None,
) -> None:
    """Writes rows to a Delta table, which is created if there is none.

    Args:
        table_or_uri: A path, a URI of a registered scheme, or an open table, which then goes to the new version.
        data: Anything with the Arrow PyCapsule interface; streams are written as they come.
        partition_by: Columns to partition a new table by; an existing one must be partitioned so.
        mode: `error` if there is a table, `append`, `overwrite`, or `ignore` to do nothing if there is one.
        name: Of a new table, for people.
        description: Of a new table.
        configuration: Properties of a new table.
        schema_mode: `merge` adds columns that only the data have and fills those that they lack with nulls;
            `overwrite` gives the table the columns of the data, with mode `overwrite`.
        storage_options: Options of the store, such as credentials.
        predicate: SQL: with mode `overwrite` only rows for which it is true are replaced. New rows must be such rows.
        target_file_size: Bytes of a file, about; `delta.targetFileSize`, or 100 MiB if not given.
        writer_properties: How Parquet is written.
        commit_properties: What goes into the log entry, how often a lost race is run again.
        post_commithook_properties: What is done after the commit.
        txn_app_id: An application that numbers its writes, with `txn_version`.
        txn_version: Its number of this write: if the table has it already, or a later one, nothing is written.
        durable: Whether it returns only when files and log entry are on stable storage; without, local files are left
            to the operating system, as deltalake leaves them. An open table has its own.
        session_timezone: What times without a zone mean in the predicate; UTC if not given. An open table may have its
            own.
        progress: Called with the rows taken so far, or an `esker.progress.Progress`, which is told of files, too.

    Raises:
        AlreadyExistsError: There is a table, and the mode is `error`.
        SchemaMismatchError: The data do not have the table's columns.
        InvalidArgumentError: Rows that a constraint of the table refuses; arguments that do not go together.
        UnsupportedError: The table asks its writers for what this release does not have: it is named.
        CommitConflictError: Others' commits leave no room for this one. Nothing of it is visible.

    Example:
        `write_deltalake("s3://lake/events", table, partition_by="day", mode="append")`
    """
    check_mode(mode)
    check_file_size(target_file_size)
    if (txn_app_id is None) != (txn_version is None):
        raise InvalidArgumentError("expected txn_app_id and txn_version together, found one of them")
    check_properties(configuration or {}, strict=True)
    application = None
    if txn_app_id is not None and txn_version is not None:
        given = Transaction(txn_app_id, txn_version)
        application = (given.app_id, given.version)
    if table_or_uri == "memory://":
        raise InvalidArgumentError(
            "expected memory://NAME, found memory://, which draws a name each time: nobody would find the rows again; "
            'give a name, or write to a table of DeltaTable.create("memory://", ...)',
            uri="memory://",
        )
    target = WriteTarget.of(table_or_uri, storage_options, durable=durable)
    if target.snapshot is not None:
        if mode == "error":
            raise AlreadyExistsError(
                f'a Delta table at {target.uri} exists already; use mode="append" or mode="overwrite"', uri=target.uri
            )
        if mode == "ignore" or (application is not None and target.has(application)):
            return
    request = WriteRequest(
        mode=mode,
        schema_mode=schema_mode,
        predicate=columns_in_backticks(predicate) if predicate is not None else None,
        given_predicate=predicate,
        partition_by=partition_by,
        name=name,
        description=description,
        configuration=configuration,
        target_file_size=target_file_size,
        parquet=writer_properties,
        session_timezone=session_timezone or target.session_timezone,
    )
    commit = CommitRequest(commit_properties, post_commithook_properties, application)
    _write(target, incoming(data), request, commit, as_progress(progress))


def _write(
    target: WriteTarget,
    rows: pa.RecordBatchReader,
    request: WriteRequest,
    commit: CommitRequest,
    progress: Progress | None = None,
) -> None:
    """Stages the rows and commits them; an open table goes to the new version."""
    with StagedFiles() as staged:
        attempt = first_attempt(target, rows, request, staged, progress)

        def rerun(version: int) -> DeltaCommit:
            """Writes the rows to the table that others have made or changed, as if that had been there before."""
            nonlocal attempt
            there = target.later(version)
            if commit.application is not None and there.has(commit.application):
                return DeltaCommit(there, LogEntry("WRITE", {}, []), commit)
            attempt = attempt.again(there, staged)
            staged.discard(keep=attempt.paths)
            return attempt.commit(commit)

        # Others' rows that a predicate means are replaced with those that were there; an overwrite of all rows does
        # not take away what its caller has not seen.
        runs_again = request.mode == "overwrite" and request.predicate is not None
        may_rerun = request.mode in ("append", "overwrite")
        try:
            version = attempt.commit(commit).run(staged, rerun=rerun if may_rerun else None, runs_again=runs_again)
        except AlreadyExistsError:
            if request.mode != "ignore" or target.snapshot is not None:
                raise
            staged.discard()
            return
    target.committed(version)
