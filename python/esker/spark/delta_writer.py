"""A DataFrame on its way into a Delta table: tasks stage data files, the driver makes one log entry.

```
driver   the plan: the table's version, its schema, the id of the write
tasks      batches -> the table's types, by name -> constraints -> data files -> their `add` actions, as a message
driver   commit: all files of the tasks that won, in one entry that carries the id
driver   abort, also after a commit that failed: looks for the id first, deletes only what no entry names
```
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from esker._native.delta import Snapshot
from esker._native.store import Store
from esker.commit import resolve
from esker.commit.pickling import pickled_options
from esker.delta.commit import NO_TABLE, newest_version, read_change
from esker.delta.data_files import DEFAULT_FILE_SIZE
from esker.delta.filesystem import DataFiles
from esker.delta.log_store import resolve_for_writing
from esker.delta.partition_replacement import PartitionReplacement
from esker.delta.properties import CommitProperties
from esker.delta.replacement import Replacement
from esker.delta.schema import Schema
from esker.delta.table_properties import check_properties
from esker.delta.write_plan import plan_write
from esker.exceptions import AlreadyExistsError, EskerError, InvalidArgumentError
from esker.spark.delta_reader import is_delta
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.types import exchange_schema

__all__ = ["DeltaWriter", "FilesMessage", "writes_delta"]


def writes_delta(address: TableAddress, options: WriteOptions) -> bool:
    """Whether a write goes to a Delta table: one is there, or none of another kind and one is asked for.

    Raises:
        AlreadyExistsError: A Delta table is asked for where a table of another kind is.

    Example:
        `writes_delta(address, WriteOptions.parse({"table_format": "delta"}))`
    """
    if is_delta(address):
        return True
    if options.table_format != "delta":
        return False
    if resolve(address.uri, storage_options=address.storage_options).list_paths("_versions/"):
        raise AlreadyExistsError(
            f"expected a place without a table for table_format=delta, found a Lance table at {address.uri}; "
            "give another path",
            uri=address.uri,
        )
    return True


@dataclass(frozen=True)
class FilesMessage(WriterCommitMessage):
    """What a task tells the driver: the files that it staged, as JSON, their rows, and its files of changes."""

    adds: str
    rows: int
    changes: str = "[]"


class DeltaWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a Delta table, which is created if there is none.

    Args:
        address: The table.
        schema: The DataFrame's schema.
        overwrite: Whether the DataFrame takes the place of the table's rows, or of those of `replaceWhere`.
        options: delta-spark's options, and sizes of files.

    Raises:
        AlreadyExistsError: Save mode "error".
        SchemaMismatchError: The DataFrame does not fit the table.
        UnsupportedError: The table asks its writers for what this release does not have.
    """

    def __init__(self, address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions) -> None:
        delta = options.delta
        self._id = str(uuid.uuid4())
        self._address = address
        self._options = options
        store = self._store()
        snapshot = Snapshot.load(store) if newest_version(store) != NO_TABLE else None
        self._dynamic = overwrite and delta.partition_overwrite_mode == "dynamic"
        if self._dynamic and delta.replace_where is not None:
            raise InvalidArgumentError(
                "expected partitionOverwriteMode=dynamic or replaceWhere, found both; leave one out", uri=address.uri
            )
        if snapshot is not None and delta.properties:
            raise InvalidArgumentError(
                f"expected a new table for the properties {', '.join(delta.properties)}, found one at {address.uri}; "
                "set them with DeltaTable.alter"
            )
        check_properties(dict(delta.properties), strict=True)
        self.skips = snapshot is not None and options.save_mode == "ignore" and not overwrite
        if snapshot is not None and options.save_mode == "error" and not overwrite:
            raise AlreadyExistsError(
                f'a table at {address.uri} exists already; use mode="append" or mode="overwrite"', uri=address.uri
            )
        if overwrite and options.overwrite_schema and delta.replace_where is None:
            schema_mode: Any = "overwrite"
        else:
            schema_mode = "merge" if delta.merge_schema else None
        incoming = Schema.from_arrow(exchange_schema(schema))
        self._plan = plan_write(
            address.uri,
            snapshot,
            incoming,
            mode="overwrite" if overwrite else "append",
            partition_by=list(delta.partition_columns) or None,
            configuration=delta.properties,
            schema_mode=schema_mode,
            predicate=delta.replace_where if overwrite else None,
            storage_options=dict(address.storage_options),
            target_file_size=min(options.max_bytes_per_file, DEFAULT_FILE_SIZE),
        )
        # What could only be refused at the end is refused now.
        replacement = self._plan.replacement(store, snapshot)
        self._dynamic &= bool(self._plan.after.partition_by)
        self._keeps_changes = not self._dynamic and self._plan.changes(store, replacement) is not None

    def __getstate__(self) -> dict[str, object]:
        options = pickled_options(self._address.storage_options)
        return {**self.__dict__, "_plan": replace(self._plan, storage_options=options)}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesMessage:
        """Stages the rows of one task."""
        if self.skips:
            return FilesMessage("[]", 0)
        writer = self._plan.writer(self._store())
        changes = self._plan.change_writer(self._store()) if self._keeps_changes else None
        try:
            for batch in iterator:
                self._plan.stage(writer, pa.RecordBatchReader.from_batches(batch.schema, [batch]), changes)
            said = changes.close() if changes is not None else []
            return FilesMessage(json.dumps(writer.close()), writer.rows, json.dumps(said))
        except BaseException:
            writer.abandon()
            if changes is not None:
                changes.abandon()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Makes the files of all tasks the table's next version."""
        if self.skips:
            return
        store = self._store()
        version = self._plan.read_version
        snapshot = Snapshot.load(store, version=version) if version != NO_TABLE else None
        found = [message for message in messages if isinstance(message, FilesMessage)]
        adds = [add for message in found for add in json.loads(message.adds)]
        replacement = self._replacement(store, snapshot, adds)
        delta = self._options.delta
        changes = [change for message in found for change in json.loads(message.changes)]
        survivors = self._plan.writer(store)
        removed = self._plan.changes(store, replacement)
        self._plan.stage_survivors(survivors, replacement, removed)
        application = None
        if delta.txn_app_id is not None and delta.txn_version is not None:
            application = (delta.txn_app_id, delta.txn_version)
        metadata = {"userMetadata": delta.user_metadata} if delta.user_metadata is not None else None
        self._plan.commit(
            store,
            snapshot,
            [*adds, *survivors.close()],
            sum(message.rows for message in found),
            replacement=replacement,
            changes=[*changes, *(removed.close() if removed is not None else ())],
            properties=CommitProperties(metadata),
            application=application,
            write_id=self._id,
        )
        if application is not None and not self._landed(store):
            # The application had committed this number already.
            self._discard(store, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Deletes the files of the tasks that finished, unless the write has landed or nobody can tell."""
        try:
            store = self._store()
            landed = self._landed(store)
        except (EskerError, OSError):
            # A file too many costs room; a file too few costs rows.
            return
        if not landed:
            self._discard(store, messages)

    def _replacement(
        self, store: Store, snapshot: Snapshot | None, adds: Sequence[Mapping[str, Any]]
    ) -> Replacement | None:
        if not self._dynamic or snapshot is None:
            return self._plan.replacement(store, snapshot)
        files = DataFiles(store, snapshot.root, dict(self._address.storage_options))
        replacement = PartitionReplacement(store, snapshot, files, adds)
        replacement.stage()
        return replacement

    def _discard(self, store: Store, messages: Sequence[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, FilesMessage):
                for action in [*json.loads(message.adds), *json.loads(message.changes)]:
                    store.delete(action["_staged"])

    def _landed(self, store: Store) -> bool:
        newest = newest_version(store)
        root = Snapshot.load(store).root if newest != NO_TABLE else ""
        for version in range(self._plan.read_version + 1, newest + 1):
            change = read_change(store, root, version)
            if not change.known or change.write_id == self._id:
                return True
        return False

    def _store(self) -> Store:
        return resolve_for_writing(self._address.uri, self._address.storage_options)
