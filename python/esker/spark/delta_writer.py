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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from esker._native.delta import Snapshot
from esker._native.store import Store
from esker.commit.pickling import pickled_options
from esker.delta.commit import newest_version, read_change
from esker.delta.data_files import DEFAULT_FILE_SIZE
from esker.delta.log_store import resolve_for_writing
from esker.delta.properties import CommitProperties
from esker.delta.schema import Schema
from esker.delta.write_plan import plan_write
from esker.exceptions import AlreadyExistsError, EskerError, UnsupportedError
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.types import exchange_schema

__all__ = ["DeltaWriter", "FilesMessage"]


@dataclass(frozen=True)
class FilesMessage(WriterCommitMessage):
    """What a task tells the driver: the files that it staged, as JSON, their rows, and its files of changes."""

    adds: str
    rows: int
    changes: str = "[]"


class DeltaWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a Delta table that is there.

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
        if delta.partition_overwrite_mode == "dynamic":
            raise UnsupportedError(
                "partitionOverwriteMode=dynamic is not written by this release; say which rows with replaceWhere"
            )
        self._id = str(uuid.uuid4())
        self._address = address
        self._options = options
        store = self._store()
        snapshot = Snapshot.load(store)
        self.skips = options.save_mode == "ignore" and not overwrite
        if options.save_mode == "error" and not overwrite:
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
            schema_mode=schema_mode,
            predicate=delta.replace_where if overwrite else None,
            storage_options=dict(address.storage_options),
            target_file_size=min(options.max_bytes_per_file, DEFAULT_FILE_SIZE),
        )
        # What could only be refused at the end is refused now.
        replacement = self._plan.replacement(store, snapshot)
        self._keeps_changes = self._plan.changes(store, replacement) is not None

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
        snapshot = Snapshot.load(store, version=self._plan.read_version)
        replacement = self._plan.replacement(store, snapshot)
        found = [message for message in messages if isinstance(message, FilesMessage)]
        adds = [add for message in found for add in json.loads(message.adds)]
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

    def _discard(self, store: Store, messages: Sequence[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, FilesMessage):
                for action in [*json.loads(message.adds), *json.loads(message.changes)]:
                    store.delete(action["_staged"])

    def _landed(self, store: Store) -> bool:
        root = Snapshot.load(store).root
        for version in range(self._plan.read_version + 1, newest_version(store) + 1):
            change = read_change(store, root, version)
            if not change.known or change.write_id == self._id:
                return True
        return False

    def _store(self) -> Store:
        return resolve_for_writing(self._address.uri, self._address.storage_options)
