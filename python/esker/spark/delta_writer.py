"""A DataFrame on its way into a Delta table: tasks stage data files, the driver makes one log entry.

```
driver   the plan: the table's version, its schema, the id of the write
tasks      batches -> the table's types, by name -> constraints -> data files -> their `add` actions, as a message
driver   commit: all files of the tasks that won, in one entry that carries the id
driver   abort: deletes the files of tasks that finished where others failed
```

Tasks see settings of the session that the driver's planner does not: what times without a zone mean in `replaceWhere`,
and whether an overwrite replaces partitions. Their messages tell the commit.
"""

from __future__ import annotations

import copy
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from esker._native.delta import Snapshot
from esker._native.store import Store
from esker.commit.clock import seconds_since
from esker.commit.orphans import StagedFiles
from esker.delta.definition.constraints import Constraints
from esker.delta.definition.table_state import TableState
from esker.delta.log.commit import CommitRequest, DeltaCommit, LogEntry
from esker.delta.log.entries import NO_TABLE, newest_version
from esker.delta.log.snapshots import load_snapshot
from esker.delta.log.store import resolve_for_writing
from esker.delta.log.target import WriteTarget
from esker.delta.properties import CommitProperties
from esker.delta.read.sql_names import columns_in_backticks
from esker.delta.schema import Schema
from esker.delta.table_properties import check_properties
from esker.delta.write.attempt import attempt_of
from esker.delta.write.checked import checked
from esker.delta.write.conformed import conformed
from esker.delta.write.plan import DeltaWritePlan, SchemaMode, WriteRequest, plan_write
from esker.delta.write.replacement import replaced_files, writes_changes
from esker.delta.write.staged_rows import staged_rows
from esker.delta.write.staging import StagedWrite, Staging
from esker.exceptions import AlreadyExistsError, EskerError, InvalidArgumentError
from esker.spark.cast import cast_batch
from esker.spark.char_lengths import check_lengths, lengths_of
from esker.spark.matching import check_append, renamed
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.session_settings import OVERWRITE_MODE, ZONE, machine_zone, session_zone, setting
from esker.spark.spelling import spelled_as, spelled_sql
from esker.spark.table import made_meanwhile, replaced_meanwhile
from esker.spark.table_format import has_lance
from esker.spark.types import nullable_type, spark_schema, table_schema
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_task import MadeInWorkers
from esker.spark.writer import may_discard
from esker.spark.zoned_filter import instants_apart, reads_times
from esker.store.pickling import pickled_options
from esker.store.staging import Handover, adopt, hand_over

__all__ = ["DeltaWriter", "FilesMessage"]

_SESSION_DYNAMIC = "partitionOverwriteMode=dynamic"


@dataclass(frozen=True)
class FilesMessage(WriterCommitMessage):
    """What a task tells the driver: the files that it staged, as JSON, their rows, its files of changes, and what it
    knows of the session: its time zone, and how it overwrites partitions; for a branch, what its store has staged."""

    adds: str
    rows: int
    changes: str = "[]"
    zone: str | None = None
    overwrite_mode: str | None = None
    staged: Handover = ()


class DeltaWriter(MadeInWorkers, DataSourceArrowWriter):
    """Writes a DataFrame to a Delta table, which is created if there is none.

    Args:
        address: The table.
        schema: The DataFrame's schema.
        overwrite: Whether the DataFrame takes the place of the table's rows, or of those of `replaceWhere`.
        options: delta-spark's options, and sizes of files.
        is_stream: Whether it is a batch of a stream: a later one finds the table that the first one has made.

    Raises:
        AlreadyExistsError: Save mode "error".
        SchemaMismatchError: The DataFrame does not fit the table.
        InvalidArgumentError: Options that do not go together.
        UnsupportedError: The table asks its writers for what this release does not have.
    """

    def __init__(
        self,
        address: TableAddress,
        schema: StructType,
        overwrite: bool,
        options: WriteOptions,
        *,
        is_stream: bool = False,
    ) -> None:
        self._id = str(uuid.uuid4())
        self._began = time.monotonic(), time.time()
        self.address = self._address = address
        self._options = options
        self._overwrite = overwrite
        self._is_streamed = is_stream
        options.check_format("delta", address.uri)
        target = self._target()
        self._transactions = (
            {} if target.snapshot is None else {n: f[0] for n, f in target.snapshot.transactions.items()}
        )
        self._table_id = None if target.snapshot is None else _id_of(target.snapshot)
        self.skips = target.snapshot is not None and (self._ignores() or self._is_applied(target))
        self._unlike = self._check(target.snapshot)
        if self.skips and target.snapshot is not None:
            # Nothing is written, whatever the columns of the DataFrame.
            schema = spark_schema(TableState.of(target.snapshot).schema.to_plain_arrow())
        self._incoming, self._plan = self._planned(target, schema)
        predicate = self._plan.request.predicate
        # Without an option only tasks know the zone of the session.
        told = options.timezone is not None or predicate is None
        self._asks_zone = not told and reads_times(predicate or "", self._plan.after.schema.to_plain_arrow())
        self._driver_zone = machine_zone() if self._asks_zone else None
        # What could only be refused at the end is refused now.
        replacement = replaced_files(self._plan, target)
        if self._asks_zone:
            self._keeps_changes = target.snapshot is not None and self._plan.after.keeps_change_feed
        else:
            self._keeps_changes = writes_changes(self._plan, replacement)

    def __getstate__(self) -> dict[str, object]:
        options = pickled_options(self._address.storage_options)
        return {**self.__dict__, "_plan": replace(self._plan, storage_options=options)}

    def numbered(self, application: tuple[str, int]) -> DeltaWriter:
        """The same write as one batch of a stream, which is committed once.

        Args:
            application: The id of the stream, and the number of the batch.

        Raises:
            InvalidArgumentError: Options have properties for a table that was there before the stream, and has others.
        """
        made = copy.copy(self)
        name, number = application
        if self._unlike and name not in self._transactions:
            raise self._no_new_table(self._unlike)
        delta = replace(self._options.delta, txn_app_id=name, txn_version=number)
        made._options = replace(self._options, delta=delta)
        made._is_streamed = True
        made.skips = self.skips or self._transactions.get(name, number - 1) >= number
        return made

    @in_words_of_spark()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesMessage:
        """Stages the rows of one task."""
        if self.skips:
            return FilesMessage("[]", 0)
        mode = setting(OVERWRITE_MODE)
        self._check_mode(mode)
        names = self._plan.after.schema.to_plain_arrow().names
        iterator = (batch.rename_columns(spelled_as(batch.schema.names, names)) for batch in iterator)
        first = next(iterator, None)
        zone = self._zone(first)
        plan = self._plan.in_zone(zone)
        merging = self._options.delta.merge_schema
        lengths = lengths_of(plan.after.schema)
        wanted = {
            field.name: field.with_type(nullable_type(field.type)) for field in plan.after.schema.to_plain_arrow()
        }

        def cast(batch: pa.RecordBatch) -> pa.RecordBatch:
            target = pa.schema([wanted[name].with_nullable(True) for name in batch.schema.names])
            made = cast_batch(batch, target, fill=merging)
            check_lengths(made, lengths)
            return made

        rows = map(cast, chain([first] if first is not None else [], iterator))
        try:
            store = self._store()
            with Staging(plan, store, writes_changes=self._keeps_changes) as staging:
                staging.store(checked(conformed(rows, plan.after.schema), plan))
                written = staging.finish()
        except InvalidArgumentError as error:
            if "predicate" in str(error):
                raise InvalidArgumentError(f"option replaceWhere: {error}") from error
            raise
        adds, changes = json.dumps(written.adds), json.dumps(written.changes)
        return FilesMessage(adds, written.rows, changes, zone, mode, hand_over(store))

    @in_words_of_spark()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Makes the files of all tasks the table's next version.

        Raises:
            CommitConflictError: Others' commits leave no room for it.
            CommitStateUnknownError: Nobody can tell whether it is there.
        """
        if self.skips:
            # Tasks of a batch do not know its number: what they have written is nobody's.
            StagedFiles((self._store(), path) for path in _paths(messages)).discard()
            return
        found = [message for message in messages if isinstance(message, FilesMessage)]
        store = self._adopting(found)
        is_new = self._plan.read_version == NO_TABLE
        if self._is_streamed and not self._overwrite and not is_new and not any(message.rows for message in found):
            # A batch of a stream without rows: there is nothing that could be there twice.
            return
        staged = StagedFiles((store, path) for path in _paths(found))
        with staged:
            numbered = self._options.delta.txn_app_id is not None and newest_version(store) != NO_TABLE
            if numbered and self._is_applied(self._target()):
                # Another run of the application was faster, and nothing of ours was put.
                staged.discard()
                return
            self._commit(store, found, staged)

    @property
    def options(self) -> WriteOptions | None:
        """How it writes."""
        return self._options

    def joined(self, messages: Sequence[WriterCommitMessage | None], most: int) -> list[WriterCommitMessage | None]:
        """The same rows in fewer files: those of each partition are written anew as one.

        Args:
            messages: What the tasks have told.
            most: How many files there may be, if there are not more partitions.
        """
        found = [message for message in messages if isinstance(message, FilesMessage)]
        adds = [add for message in found for add in json.loads(message.adds)]
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for add in adds:
            by_partition.setdefault(json.dumps(add.get("partitionValues") or {}, sort_keys=True), []).append(add)
        several = [group for group in by_partition.values() if len(group) > 1]
        if len(adds) <= most or not several:
            return list(messages)
        store, plan = self._adopting(found), self._plan
        gone = [add for group in several for add in group]
        with Staging(plan, store) as staging:
            staging.store(staged_rows(plan, store, gone))
            written = staging.finish()
        StagedFiles((store, add["_staged"]) for add in gone).discard()
        kept = [group[0] for group in by_partition.values() if len(group) == 1]
        first = found[0]
        rows = sum(message.rows for message in found)
        return [replace(first, adds=json.dumps([*kept, *written.adds]), rows=rows, staged=hand_over(store))]

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Deletes the files of the tasks that finished, if others did not: then nothing was committed.

        What became of a commit that failed is known to `commit` alone, which deletes what is nobody's.
        """
        if may_discard(messages):
            # What ended the write is told, not that its branch is gone or cannot be asked: what is left is garbage.
            with suppress(EskerError, OSError):
                store = self._store()
                StagedFiles((store, path) for path in _paths(messages)).discard()

    def _commit(self, store: Store, found: Sequence[FilesMessage], staged: StagedFiles) -> None:
        version = self._plan.read_version
        target = WriteTarget(self._address.uri, store, None, dict(self._address.storage_options))
        if version == NO_TABLE and has_lance(store):
            if self._ignores():
                staged.discard()
                return
            raise made_meanwhile(self._address.uri, "Lance")
        if version != NO_TABLE:
            if NO_TABLE != newest_version(store) < version:
                raise replaced_meanwhile(self._address.uri, version)
            target = target.at(version)
            if _id_of(target.base) != self._table_id:
                raise replaced_meanwhile(self._address.uri, version)
        adds = [add for message in found for add in json.loads(message.adds)]
        changes = [change for message in found for change in json.loads(message.changes)]
        zones = {message.zone for message in found} - {None}
        if self._asks_zone and len(zones) != 1:
            told = ", ".join(sorted(map(str, zones))) or "none"
            raise InvalidArgumentError(
                f"option replaceWhere: expected one time zone of the session, found {told}; set the option timezone"
            )
        plan = self._plan.in_zone(zones.pop()) if self._asks_zone else self._plan
        # Of a table without partitions all rows are overwritten.
        partition_by = plan.after.partition_by
        is_dynamic = any(self._is_dynamic(message.overwrite_mode) for message in found)
        replaces_partitions = is_dynamic and bool(partition_by)
        if replaces_partitions:
            plan = plan.replacing_partitions()
        written = StagedWrite(adds, changes, sum(message.rows for message in found))
        # Where tasks have told of changes, the commit tells of all of them.
        attempt = attempt_of(target, self._incoming, plan, written, staged, tells=self._keeps_changes)
        delta = self._options.delta
        application = None
        if delta.txn_app_id is not None and delta.txn_version is not None:
            application = (delta.txn_app_id, delta.txn_version)
        metadata = {"userMetadata": delta.user_metadata} if delta.user_metadata is not None else None
        request = CommitRequest(CommitProperties(metadata), None, application, self._id)

        def rerun(version: int) -> DeltaCommit:
            """The same write on top of what others have done, with the files of its new rows."""
            nonlocal attempt
            there = target.later(version)
            is_another = replaces_partitions and list(there.base.partition_columns) != list(partition_by)
            if target.snapshot is not None and (is_another or _id_of(there.base) != self._table_id):
                raise replaced_meanwhile(self._address.uri, version)
            if application is not None and there.has(application):
                return DeltaCommit(there, LogEntry("WRITE", {}, []), request)
            attempt = attempt.again(there, staged)
            staged.discard(keep=attempt.paths)
            return attempt.commit(request)

        # An overwrite of all rows does not take away what its plan has not seen.
        runs_again = target.snapshot is not None and (replaces_partitions or plan.request.predicate is not None)
        # An append goes to the table that another writer has made meanwhile.
        joins = target.snapshot is None and not self._overwrite and self._options.save_mode == "append"
        try:
            attempt.commit(request).run(staged, rerun=rerun if runs_again or joins else None, runs_again=runs_again)
        except AlreadyExistsError:
            if not self._ignores():
                raise
            staged.discard()

    def _check(self, snapshot: Snapshot | None) -> list[str]:
        """Refuses options that do not go together, or not with the table.

        Returns:
            The properties that the table has otherwise, which a stream may name that has written to it before.
        """
        delta, uri = self._options.delta, self._address.uri
        if self._overwrite and delta.replace_where is not None:
            for given, name in (
                (delta.partition_overwrite_mode == "dynamic", _SESSION_DYNAMIC),
                (self._options.overwrite_schema, "overwriteSchema=true"),
            ):
                if given:
                    raise InvalidArgumentError(f"expected {name} or replaceWhere, found both; leave one out", uri=uri)
        self._check_mode(None)
        if snapshot is None:
            check_properties(dict(delta.properties), strict=True)
            return []
        if self.skips:
            # Of what is there already nothing is asked.
            return []
        if delta.properties and not self._is_streamed:
            raise self._no_new_table(delta.properties)
        if self._options.save_mode == "error" and not self._overwrite:
            raise AlreadyExistsError(f'a table at {uri} exists already; use mode="append" or mode="overwrite"', uri=uri)
        there = list(snapshot.partition_columns)
        columns = there if delta.partition_columns is None else spelled_as(delta.partition_columns, there)
        if columns != there and not (self._overwrite and self._options.overwrite_schema):
            raise InvalidArgumentError(
                f"option partitionColumns: expected those of the table, {', '.join(there) or 'none'}, found "
                f"{', '.join(columns) or 'none'}; leave it out, or say mode overwrite and overwriteSchema=true",
                uri=uri,
            )
        known = TableState.of(snapshot).configuration
        return [name for name, value in delta.properties.items() if known.get(name, "").lower() != value.lower()]

    def _no_new_table(self, properties: Iterable[str]) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"expected a new table for the properties {', '.join(properties)}, found one at {self._address.uri}; "
            "set them with DeltaTable.alter",
            uri=self._address.uri,
        )

    def _check_mode(self, session: str | None) -> None:
        if self._options.overwrite_schema and self._is_dynamic(session):
            raise InvalidArgumentError(
                f"expected overwriteSchema=true or {_SESSION_DYNAMIC}, found both: partitions that stay have the "
                "columns of before; set the option partitionOverwriteMode to static",
                uri=self._address.uri,
            )

    def _is_dynamic(self, session: str | None) -> bool:
        """Whether an overwrite replaces partitions: the write's own option goes before the session's."""
        if not self._overwrite or self._options.delta.replace_where is not None:
            return False
        return (self._options.delta.partition_overwrite_mode or session or "").lower() == "dynamic"

    def _ignores(self) -> bool:
        return self._options.save_mode == "ignore" and not self._overwrite

    def _is_applied(self, target: WriteTarget) -> bool:
        """Whether the application has committed this number already, or a later one."""
        delta = self._options.delta
        return delta.txn_version is not None and target.has((delta.txn_app_id or "", delta.txn_version))

    def _planned(self, target: WriteTarget, schema: StructType) -> tuple[Schema, DeltaWritePlan]:
        """The columns of the rows, and what is done with them."""
        options, delta, uri = self._options, self._options.delta, self._address.uri
        mode: SchemaMode | None = "merge" if delta.merge_schema else None
        if self._overwrite and options.overwrite_schema:
            mode = "overwrite"
        if target.snapshot is not None and mode != "overwrite":
            schema = renamed(schema, TableState.of(target.snapshot).schema.to_plain_arrow().names)
        if target.snapshot is not None and mode is None:
            state = TableState.of(target.snapshot)
            generated = Constraints(state.schema, state.configuration, state.protocol).generated
            advice = "select the table's columns, or set the option mergeSchema=true"
            if self._overwrite:
                advice += ", or overwriteSchema=true"
            check_append(schema, state.schema.to_plain_arrow(), uri, optional=generated, advice=advice)
        predicate = None
        if self._overwrite and delta.replace_where is not None:
            known = schema if target.snapshot is None else TableState.of(target.snapshot).schema.to_plain_arrow()
            predicate = spelled_sql(delta.replace_where, known.names, quotes_names=True)
            predicate = instants_apart(columns_in_backticks(predicate))
        request = WriteRequest(
            mode="overwrite" if self._overwrite else "append",
            schema_mode=mode,
            predicate=predicate,
            partition_by=self._partition_columns(target, schema, mode),
            configuration=delta.properties,
            target_file_size=options.max_bytes_per_file,
            max_rows_per_file=options.max_rows_per_file,
            session_timezone=options.timezone,
        )
        # All of it nullable, as Spark's Delta has it: that a DataFrame has no nulls today binds no later write.
        incoming = Schema.from_arrow(table_schema(schema))
        plan = plan_write(target, incoming, request)
        check_append(schema, plan.after.schema.to_plain_arrow(), uri, optional=plan.missing, merging=delta.merge_schema)
        return incoming, plan

    def _partition_columns(self, target: WriteTarget, schema: StructType, mode: SchemaMode | None) -> list[str] | None:
        """The columns to partition by, in the spelling of the DataFrame; None for those of the table."""
        given = self._options.delta.partition_columns
        if self.skips:
            return None
        if given is not None:
            return spelled_as(given, schema.names)
        if mode != "overwrite" or target.snapshot is None:
            return None
        kept = spelled_as(target.snapshot.partition_columns, schema.names)
        missing = [name for name in kept if name not in schema.names]
        if missing:
            raise InvalidArgumentError(
                f"expected the columns by which the table at {self._address.uri} is partitioned, found no "
                f"{missing[0]!r} among {', '.join(schema.names)}; name others with the option partitionColumns, or [] "
                "for none",
                uri=self._address.uri,
                column=missing[0],
            )
        return kept

    def _zone(self, batch: pa.RecordBatch | None) -> str | None:
        """What times without a zone mean: as an option says, the session, or Spark by how it sends times."""
        if not self._asks_zone:
            return self._options.timezone
        sent = {field.type.tz for field in (() if batch is None else batch.schema) if pa.types.is_timestamp(field.type)}
        named = next((zone for zone in sent if zone is not None), None)
        zone = session_zone(setting(ZONE) or named, self._driver_zone)
        if zone is None:
            raise InvalidArgumentError(
                "option replaceWhere: expected the time zone of the session for its times, found none; set the option "
                f"timezone, or {ZONE}"
            )
        return zone

    def _target(self) -> WriteTarget:
        store = self._store()
        snapshot = load_snapshot(store) if newest_version(store) != NO_TABLE else None
        return WriteTarget(self._address.uri, store, snapshot, dict(self._address.storage_options))

    def _store(self) -> Store:
        return resolve_for_writing(self._address.uri, self._address.storage_options)

    def _adopting(self, messages: Iterable[FilesMessage]) -> Store:
        """The store that the write is committed to, with what those of the tasks have staged."""
        store = self._store()
        adopt(store, tuple(chain.from_iterable(m.staged for m in messages)), seconds_since(*self._began))
        return store


def _id_of(snapshot: Snapshot) -> str:
    """The id that a table gets when it is made."""
    return str(json.loads(snapshot.metadata_json)["id"])


def _paths(messages: Sequence[WriterCommitMessage | None]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, FilesMessage):
            for action in [*json.loads(message.adds), *json.loads(message.changes)]:
                yield action["_staged"]
