"""`write_deltalake` and what creates tables, with deltalake's names and arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

from .._native.delta import Snapshot
from .._native.store import Store
from ..commit.loop import follow
from ..commit.orphans import StagedFiles
from ..exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..store.stores import absolute
from .commit import NO_TABLE, DeltaCommit, newest_version
from .constraints import Constraints
from .external_log import ExternalLog
from .filesystem import DataFiles
from .incoming import reader_of
from .log_store import resolve_for_writing
from .newcomer import staged_rows
from .post_commit import PostCommit
from .properties import CommitProperties, PostCommitHookProperties, WriterProperties
from .replacement import Replacement, remove_actions
from .schema import Schema
from .sql_names import columns_in_backticks, in_own_words
from .table_metadata import TableState
from .table_properties import check_properties
from .write_plan import MODES, Mode, plan_write

if TYPE_CHECKING:
    from .table import DeltaTable


def write_deltalake(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    data: Any,
    *,
    partition_by: list[str] | str | None = None,
    mode: Mode = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
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

    Raises:
        AlreadyExistsError: There is a table, and the mode is `error`.
        SchemaMismatchError: The data do not have the table's columns.
        InvalidArgumentError: Rows that a constraint of the table refuses; arguments that do not go together.
        UnsupportedError: The table asks its writers for what this release does not have: it is named.
        CommitConflictError: Others' commits leave no room for this one. Nothing of it is visible.

    Example:
        `write_deltalake("s3://lake/events", table, partition_by="day", mode="append")`
    """
    if mode not in MODES:
        raise InvalidArgumentError(f"expected mode as one of {', '.join(MODES)}, found {mode!r}")
    if (txn_app_id is None) != (txn_version is None):
        raise InvalidArgumentError("expected txn_app_id and txn_version together, found one of them")
    check_properties(configuration or {}, strict=True)
    application = (txn_app_id, txn_version) if txn_app_id is not None and txn_version is not None else None
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
        if mode == "ignore" or (application is not None and target.has(*application)):
            return
    reader = reader_of(data)
    replaced = columns_in_backticks(predicate) if predicate is not None else None
    plan = plan_write(
        target.uri,
        target.snapshot,
        Schema.from_arrow(reader.schema),
        mode=mode,
        partition_by=partition_by,
        name=name,
        description=description,
        configuration=configuration,
        schema_mode=schema_mode,
        predicate=replaced,
        storage_options=target.storage_options,
        target_file_size=target_file_size,
        properties=writer_properties,
        session_timezone=session_timezone or target.session_timezone,
    )
    with in_own_words(predicate or "", replaced or ""):
        replacement = plan.replacement(target.store, target.snapshot)
    with ExitStack() as open_:
        staged = open_.enter_context(StagedFiles())
        writer = open_.enter_context(plan.writer(target.store, staged))
        changes = plan.changes(target.store, replacement, staged)
        if changes is not None:
            open_.enter_context(changes)
        plan.stage(writer, reader, changes)
        rows = writer.rows
        plan.stage_survivors(writer, replacement, changes)
        adds = writer.close()
        try:
            version = plan.commit(
                target.store,
                target.snapshot,
                adds,
                rows,
                replacement=replacement,
                changes=changes.close() if changes is not None else (),
                properties=commit_properties,
                hooks=post_commithook_properties,
                application=application,
                staged=staged,
            )
        except AlreadyExistsError:
            if mode == "error" or target.snapshot is not None:
                raise
            # Another writer made the table meanwhile: it is written to as if it had been there before.
            write_deltalake(
                target.uri,
                staged_rows(plan, target.store, adds),
                partition_by=partition_by,
                mode=mode,
                schema_mode=schema_mode,
                storage_options=storage_options,
                predicate=predicate,
                target_file_size=target_file_size,
                writer_properties=writer_properties,
                commit_properties=commit_properties,
                post_commithook_properties=post_commithook_properties,
                txn_app_id=txn_app_id,
                txn_version=txn_version,
                durable=durable,
                session_timezone=session_timezone,
            )
            staged.discard()
            return
    target.committed(version)


class WriteTarget:
    """Where a write goes: a table, or a place where there is none yet.

    Example:
        `WriteTarget.of("s3://lake/events", None).snapshot is None`
    """

    def __init__(
        self, uri: str, store: Store, snapshot: Snapshot | None, options: dict[str, str] | None, table: Any = None
    ) -> None:
        self.uri = uri
        self.store = store
        self.snapshot = snapshot
        self.storage_options = options
        self._table: DeltaTable | None = table

    @staticmethod
    def of(
        table_or_uri: str | os.PathLike[str] | DeltaTable, options: dict[str, str] | None, *, durable: bool = True
    ) -> WriteTarget:
        """The table, or the place."""
        from .table import DeltaTable

        if isinstance(table_or_uri, DeltaTable):
            table = table_or_uri
            resolve_for_writing(table._uri, table._storage_options)
            return WriteTarget(table._uri, table._store, table._snapshot, table._storage_options, table)
        uri = absolute(table_or_uri)
        store = resolve_for_writing(uri, options, durable=durable)
        external = ExternalLog.of(store, uri, options)
        if external is not None:
            external.latest()
        if newest_version(store) == NO_TABLE:
            return WriteTarget(uri, store, None, options)
        return WriteTarget(uri, store, Snapshot.load(store), options)

    @property
    def session_timezone(self) -> str | None:
        """What times without a zone mean in filters of an open table."""
        return self._table._session_timezone if self._table is not None else None

    def files(self) -> DataFiles:
        """Where its data files are."""
        if self.snapshot is None:
            raise NotFoundError(f"no Delta table at {self.uri}; create it first", uri=self.uri)
        return DataFiles(self.store, self.snapshot.root, self.storage_options)

    def has(self, application: str, number: int) -> bool:
        """Whether an application has committed this number, or a later one."""
        found = self.snapshot.transactions.get(application) if self.snapshot is not None else None
        return found is not None and found[0] >= number

    def hooks(self, configuration: dict[str, str], properties: PostCommitHookProperties | None) -> PostCommit:
        """What follows a commit."""
        return PostCommit(self.store, configuration, properties, self.snapshot)

    def committed(self, version: int) -> None:
        """An open table goes to the new version."""
        if self._table is not None:
            follow(self._table.update_incremental, f"version {version}")


def create_table(
    uri: str | os.PathLike[str],
    schema: Any,
    mode: Mode,
    partition_by: list[str] | str | None,
    *,
    name: str | None,
    description: str | None,
    configuration: Mapping[str, str | None] | None,
    storage_options: dict[str, str] | None,
    commit_properties: CommitProperties | None,
    post_commithook_properties: PostCommitHookProperties | None,
) -> None:
    """Creates a table without rows, or puts one in the place of another.

    Example:
        `create_table("t", schema, "error", None, name=None, description=None, ...)`
    """
    if mode not in MODES:
        raise InvalidArgumentError(f"expected mode as one of {', '.join(MODES)}, found {mode!r}")
    target = WriteTarget.of(uri, storage_options)
    before = None
    if target.snapshot is not None:
        if mode == "ignore":
            return
        if mode != "overwrite":
            raise AlreadyExistsError(
                f'a Delta table at {target.uri} exists already; use mode="overwrite" or mode="ignore"', uri=target.uri
            )
        before = TableState.of(target.snapshot)
        before.check_writable()
        if before.configuration.get("delta.appendOnly", "").lower() == "true" and target.snapshot.num_files:
            raise InvalidArgumentError(
                f"the table at {target.uri} is append-only (delta.appendOnly): replacing it would remove rows"
            )
    made = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by or [])
    after = TableState.new(
        made, columns, name=name, description=description, configuration=configuration, replaced=before
    )
    Constraints(after.schema, after.configuration, after.protocol, is_new=True)
    replacement = Replacement(target.store, target.snapshot, target.files()) if target.snapshot is not None else None
    removes = []
    if target.snapshot is not None:
        removes = remove_actions(target.snapshot, target.snapshot.select(target.store))
    commit = DeltaCommit(
        target.store,
        target.uri,
        target.snapshot,
        "CREATE TABLE" if before is None else "CREATE OR REPLACE TABLE",
        {
            "isManaged": "false",
            "description": description,
            "partitionBy": json.dumps(columns, separators=(",", ":")),
            "properties": json.dumps(after.configuration, separators=(",", ":")),
        },
        [*after.actions_after(before), *(("remove", action) for action in removes)],
        options=target.storage_options,
        read=replacement.read_set() if replacement is not None else None,
        properties=commit_properties,
        after=target.hooks(after.configuration, post_commithook_properties),
    )
    try:
        commit.run()
    except AlreadyExistsError:
        if mode not in ("ignore", "overwrite") or before is not None:
            raise
        # Another writer made the table meanwhile.
        create_table(
            uri,
            schema,
            mode,
            partition_by,
            name=name,
            description=description,
            configuration=configuration,
            storage_options=storage_options,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
