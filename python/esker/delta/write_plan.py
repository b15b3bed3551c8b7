"""A write as it is fixed before the first row: plain data that pickles, so that several processes may stage files by it
and one commits them all.

```
plan_write: the table's version, what it is before and after -> stage: rows, checked, in data files -> commit: one entry
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .._native.delta import Snapshot
from .._native.store import Store
from ..commit.orphans import StagedFiles
from ..exceptions import InvalidArgumentError, UnsupportedError
from ..store.pickling import pickled_options
from .change_data import ChangeDataWriter
from .commit import NO_TABLE, DeltaCommit
from .constraints import Constraints
from .data_files import DataFileWriter
from .filesystem import DataFiles
from .incoming import check_names, fit
from .post_commit import PostCommit
from .properties import CommitProperties, PostCommitHookProperties, WriterProperties
from .replacement import Replacement, RowPredicate, keeps_change_feed
from .schema import Schema
from .table_metadata import TableState
from .write_protocol import DEFAULT

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
SchemaMode: TypeAlias = Literal["merge", "overwrite"]
MODES = {"error": "ErrorIfExists", "append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
"""The modes of a write, and what a log entry calls them."""


@dataclass(frozen=True)
class WritePlan:
    """One write into one table.

    Args:
        uri: The table's place.
        read_version: The version that the write was computed from, -1 if there is no table.
        before: What the table is.
        after: What it will be.
        mode: What becomes of the rows that are there.
        missing: The table's columns that the rows do not have.
        predicate: Which rows are replaced, in mode `overwrite`.
        storage_options: Options of the store. They may hold passwords.
        target_file_size: Bytes of a file, about.
        properties: How Parquet is written.
        session_timezone: What times without a zone mean in the predicate; UTC if not given.

    Example:
        `plan = plan_write(uri, snapshot, Schema.from_arrow(data.schema), mode="append")`
    """

    uri: str
    read_version: int
    before: TableState | None
    after: TableState
    mode: Mode
    missing: frozenset[str]
    predicate: str | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    target_file_size: int | None = None
    properties: WriterProperties | None = None
    session_timezone: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "storage_options": pickled_options(self.storage_options)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def writer(self, store: Store, staged: StagedFiles | None = None) -> DataFileWriter:
        """What stages data files for it."""
        return DataFileWriter(
            store,
            self.after.schema,
            self.after.partition_by,
            self.after.configuration,
            mapped=self.after.mapped,
            target_file_size=self.target_file_size,
            properties=self.properties,
            tight=self.after.configuration.get("delta.enableDeletionVectors", "").lower() == "true",
            staged=staged,
        )

    def changes(
        self, store: Store, replacement: Replacement | None, staged: StagedFiles | None = None
    ) -> ChangeDataWriter | None:
        """What stages files of changes; None if the data files tell what changed, or nobody asks."""
        if replacement is None or not replacement.rewrites or not keeps_change_feed(self.after.configuration):
            return None
        return self.change_writer(store, staged)

    def change_writer(self, store: Store, staged: StagedFiles | None = None) -> ChangeDataWriter:
        """What stages files of changes for it."""
        return ChangeDataWriter(
            store, self.after, target_file_size=self.target_file_size, properties=self.properties, staged=staged
        )

    def stage(
        self, writer: DataFileWriter, rows: pa.RecordBatchReader, changes: ChangeDataWriter | None = None
    ) -> None:
        """Writes rows to data files, once they are what the table asks of rows, and to files of changes.

        Raises:
            SchemaMismatchError: Values that do not fit their column.
            InvalidArgumentError: Rows that a constraint or the predicate refuses.
        """
        constraints = Constraints(self.after.schema, self.after.configuration, self.after.protocol)
        replaced = None
        if self.predicate is not None:
            replaced = RowPredicate(self.predicate, self.after.schema.to_arrow(), self.session_timezone)
        for batch in fit(rows, self.after.schema):
            whole = constraints.generate(batch, set(self.missing))
            constraints.enforce(whole)
            if replaced is not None:
                replaced.check(whole)
            writer.write(whole)
            if changes is not None:
                changes.write(whole, "insert")

    def replacement(self, store: Store, snapshot: Snapshot | None) -> Replacement | None:
        """The files that it takes out; None if it takes out none.

        Raises:
            InvalidArgumentError: The table is append-only.
        """
        if self.mode != "overwrite" or snapshot is None:
            return None
        if self.after.configuration.get("delta.appendOnly", "").lower() == "true" and snapshot.num_files:
            raise InvalidArgumentError(
                f"the table at {self.uri} is append-only (delta.appendOnly): an overwrite would remove rows"
            )
        files = DataFiles(store, snapshot.root, dict(self.storage_options or {}))
        found = Replacement(store, snapshot, files, self.predicate, self.session_timezone)
        found.stage()
        return found

    def stage_survivors(
        self, writer: DataFileWriter, replacement: Replacement | None, changes: ChangeDataWriter | None = None
    ) -> None:
        """Writes the rows that stay of files that are taken out, and those that do not to files of changes."""
        if replacement is None:
            return
        for whole in self._fit(replacement.survivors()):
            writer.write(whole)
        if changes is not None:
            for whole in self._fit(replacement.removed_rows()):
                changes.write(whole, "delete")

    def _fit(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from fit(pa.RecordBatchReader.from_batches(batch.schema, [batch]), self.after.schema)

    def commit(
        self,
        store: Store,
        snapshot: Snapshot | None,
        adds: Sequence[Mapping[str, Any]],
        rows: int,
        *,
        replacement: Replacement | None = None,
        changes: Sequence[Mapping[str, Any]] = (),
        properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        application: tuple[str, int] | None = None,
        write_id: str | None = None,
        staged: StagedFiles | None = None,
    ) -> int:
        """Commits staged files in one entry, data files and files of changes; the version that it became.

        `staged` is told what is known of the commit.

        Raises:
            CommitConflictError: Others' commits leave no room for it.
        """
        removes = replacement.removes() if replacement is not None else []
        partitions = json.dumps(self.after.partition_by, separators=(",", ":"))
        parameters: dict[str, Any] = {"mode": MODES[self.mode], "partitionBy": partitions}
        if self.predicate is not None:
            parameters["predicate"] = self.predicate
        metrics = {
            "numFiles": len(adds),
            "numOutputRows": rows,
            "numOutputBytes": sum(add["size"] for add in adds),
        }
        if removes:
            metrics["numRemovedFiles"] = len(removes)
        if changes:
            metrics["numAddedChangeFiles"] = len(changes)
        actions = [
            *self.after.actions_after(self.before),
            *(("remove", action) for action in removes),
            *(("add", _as_written(add)) for add in adds),
            *(("cdc", _as_written(change)) for change in changes),
        ]
        return DeltaCommit(
            store,
            self.uri,
            snapshot,
            "WRITE",
            parameters,
            actions,
            options=self.storage_options,
            read=replacement.read_set() if replacement is not None else None,
            properties=properties,
            metrics=metrics,
            application=application,
            after=PostCommit(store, self.after.configuration, hooks, snapshot),
            write_id=write_id,
        ).run(staged)


def _as_written(action: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in action.items() if key != "_staged"}


def plan_write(
    uri: str,
    snapshot: Snapshot | None,
    incoming: Schema,
    *,
    mode: Mode,
    partition_by: list[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: SchemaMode | None = None,
    predicate: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_file_size: int | None = None,
    properties: WriterProperties | None = None,
    session_timezone: str | None = None,
) -> WritePlan:
    """Fixes a write, and refuses there what could only fail later.

    Args:
        uri: Where it goes.
        snapshot: The version of the table that it goes on top of, None if there is no table.
        incoming: The columns of the rows.
        mode: What becomes of the rows that are there.
        partition_by: Columns to partition a new table by.
        name: Of a new table.
        description: Of a new table.
        configuration: Properties of a new table.
        schema_mode: Whether the table's columns change.
        predicate: Which rows are replaced.
        storage_options: Options of the store.
        target_file_size: Bytes of a file, about.
        properties: How Parquet is written.
        session_timezone: What times without a zone mean in the predicate; UTC if not given.

    Raises:
        SchemaMismatchError: The rows do not have the table's columns.
        InvalidArgumentError: Arguments that do not go together.
        UnsupportedError: The table asks its writers for what this release does not have.

    Example:
        `plan_write(uri, None, Schema.from_arrow(data.schema), mode="append")`
    """
    if mode not in MODES:
        raise InvalidArgumentError(f"expected mode as one of {', '.join(MODES)}, found {mode!r}")
    if schema_mode not in (None, "merge", "overwrite"):
        raise InvalidArgumentError(f"expected schema_mode as merge or overwrite, found {schema_mode!r}")
    if schema_mode == "overwrite" and mode != "overwrite":
        raise InvalidArgumentError(f'expected mode="overwrite" with schema_mode="overwrite", found mode={mode!r}')
    if predicate is not None and mode != "overwrite":
        raise InvalidArgumentError(f'expected mode="overwrite" with a predicate, found mode={mode!r}')
    before = TableState.of(snapshot) if snapshot is not None else None
    if before is not None:
        before.check_writable()
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    if before is None or (schema_mode == "overwrite" and predicate is None):
        kept = before.partition_by if before is not None else []
        after = TableState.new(
            incoming,
            list(kept if columns is None else columns),
            name=name if before is None else before.metadata.get("name"),
            description=description if before is None else before.metadata.get("description"),
            configuration=configuration if before is None else before.configuration,
            replaced=before,
        )
    else:
        after = before
        if columns is not None and list(columns) != before.partition_by:
            raise InvalidArgumentError(
                f"expected the table's partition columns {before.partition_by}, found {list(columns)}; "
                'leave partition_by out, or give mode="overwrite" and schema_mode="overwrite"'
            )
        if schema_mode is not None:
            merged = before.merged_with(incoming)
            after = merged if merged.schema != before.schema else before
    constraints = Constraints(after.schema, after.configuration, after.protocol, is_new=before is None)
    given = incoming.to_arrow()
    missing = check_names(after.schema, given, constraints.generated, merging=schema_mode is not None)
    for column in after.schema.fields:
        if column.name in missing and DEFAULT in column.metadata:
            raise UnsupportedError(
                f"column {column.name!r} has the default {column.metadata[DEFAULT]}, which this release does not "
                "compute; give the column",
                column=column.name,
            )
    return WritePlan(
        uri,
        snapshot.version if snapshot is not None else NO_TABLE,
        before,
        after,
        mode,
        frozenset(missing),
        predicate,
        storage_options,
        target_file_size,
        properties,
        session_timezone,
    )
