"""The change data feed: the rows that were inserted, deleted or updated between two versions.

An entry with `cdc` actions has all its changes in these files; its adds and removes say the same once more. In other
entries the rows of added files were inserted and those of removed files deleted; where only the deletion vector of a
file changed, the rows in which the two vectors differ.

Spec: "Add CDC File", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import Snapshot, read_changes
from ..._native.store import Store
from ...arrow.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from ...exceptions import NotFoundError, UnsupportedError
from ..definition.feed_columns import check_feed_columns
from ..log.entries import read_actions
from ..log.snapshots import load_snapshot
from .feed_schemas import FeedSchemas, parsed
from .file_errors import FinerTimesError, after, each_batch
from .filters import BoundFilter
from .open_parquet import BATCH_ROWS
from .scan import TableFile, TableScan

_ENABLED = "delta.enableChangeDataFeed"


ChangedFile = tuple[str, dict[str, str | None] | None, dict[str, Any] | None]
"""Canonical path, partition values by physical name, deletion vector."""
RUN = 64
"""Commits that are parsed at once."""


@dataclass(frozen=True)
class VersionChanges:
    """The changes of one version: its cdc files, or what was added and removed; and whether it turns the feed on."""

    version: int
    enabled: bool | None
    cdc: list[ChangedFile]
    adds: list[ChangedFile]
    removes: list[ChangedFile]


@dataclass(frozen=True)
class FileChange:
    """A file of which rows changed: all of them, or some; what happened to them, None if the file says it itself."""

    version: int
    file: TableFile
    kind: str | None
    only: pa.Array | None = None


class ChangeFeed:
    """The changes of versions `start` to `end` of a table.

    Args:
        store: The table's.
        snapshot: The version that is open, whose columns the rows have.
        scan: Reads files of that version.
        times: When versions were made, in milliseconds since the epoch.
    """

    def __init__(self, store: Store, snapshot: Snapshot, scan: TableScan, times: dict[int, int]) -> None:
        self._store = store
        self._snapshot = snapshot
        self._scan = scan
        self._times = times
        check_feed_columns(scan.schema.names, version=snapshot.version)
        self._columns = scan.schema.names
        # A file of an older version may have been partitioned by other columns.
        self._names = {physical: name for name, physical in scan.physical_names().items()}
        self._partitions: dict[tuple[tuple[str, str | None], ...], dict[str, pa.Scalar]] = {}
        self._known: dict[tuple[int, str | None], dict[str, pa.Scalar]] = {}
        self._schemas = FeedSchemas(parsed(snapshot.metadata_json))
        self.schema = pa.schema([*scan.schema, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP])
        """The table's columns, and what happened to the row, in which version and when."""

    def batches(
        self, start: int, end: int, columns: list[str] | None, where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """The changed rows, version by version; the next files are read while one is handed out.

        Raises:
            UnsupportedError: Columns of a version in the range are none that the open version can show.
        """
        read = self._batches(start, end, columns, where)
        while True:
            with self._schemas.told():
                batch = next(read, None)
            if batch is None:
                return
            yield batch

    def _batches(
        self, start: int, end: int, columns: list[str] | None, where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        names = self.schema.names if columns is None else columns
        # Find out first whether the feed was on in all versions: no row is handed out before.
        changes = [rows for change in self._changes(start, end) for rows in self._of_version(change)]
        files = [self._with_constants(rows) for rows in changes]
        given = 0
        if all(rows.only is None for rows in changes) and self._scan.is_plain(files):
            try:
                for batch in self._of_dataset(files, names, where):
                    given += batch.num_rows
                    yield batch
                return
            except FinerTimesError:
                pass  # Each file is read alone, as times are cut then.
        yield from after(self._of_files(changes, names, where), given)

    def _of_files(
        self, changes: list[FileChange], names: list[str], where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        threads = min(8, os.cpu_count() or 1)
        pending: deque[Future[list[pa.RecordBatch]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for rows in changes:
                    pending.append(pool.submit(self._rows, rows, names, where))
                    if len(pending) > threads:
                        yield from pending.popleft().result()
                while pending:
                    yield from pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def file_changes(self, start: int, end: int) -> Iterator[tuple[int, list[FileChange]]]:
        """The files of which rows changed, for each version from `start` to `end`: what others read in their own way.

        Raises:
            NotFoundError: A version of it has been cleaned up.
            UnsupportedError: The change data feed was not on in all of it.
        """
        for change in self._changes(start, end):
            yield change.version, list(self._of_version(change))

    def _with_constants(self, changed: FileChange) -> TableFile:
        """A file of which version, time and kind of change are known as partition values are."""
        key = (changed.version, changed.kind)
        if key not in self._known:
            self._known[key] = {
                COMMIT_VERSION.name: pa.scalar(changed.version, COMMIT_VERSION.type),
                COMMIT_TIMESTAMP.name: pa.scalar(self._time(changed.version), COMMIT_TIMESTAMP.type),
            }
            if changed.kind is not None:
                self._known[key][CHANGE_TYPE.name] = pa.scalar(changed.kind)
        return replace(changed.file, partition={**changed.file.partition, **self._known[key]})

    def _time(self, version: int) -> int:
        return self._times.get(version, 0) * 1000

    def _of_dataset(
        self, files: list[TableFile], names: list[str], where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        read = list(names)
        if where is not None:
            wanted = where.columns if where.columns is not None else self.schema.names
            read += [name for name in wanted if name not in read]
        expression = where.expression if where is not None else None
        schema = pa.schema([*self._scan.read_schema, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP])
        dataset = self._scan.dataset(files, schema=schema, is_filtered=where is not None)
        batches = dataset.to_batches(columns=read, filter=expression, batch_size=BATCH_ROWS)
        for batch in each_batch(batches, self._snapshot.version):
            kept = where.keep(batch) if where is not None and where.expression is None else batch
            if kept.num_rows:
                yield self._scan.conformed(kept.select(names))

    def _changes(self, start: int, end: int) -> Iterator[VersionChanges]:
        before, since = self._metadata_before(start)
        # Of what comes before version 0 nothing is enabled.
        enabled = before is not None and _is_enabled(before)
        for first in range(start, end + 1, RUN):
            for found in read_changes(self._store, self._snapshot.root, first, min(first + RUN - 1, end)):
                change = VersionChanges(*found)
                if change.enabled is not None and start < change.version <= since:
                    raise UnsupportedError(
                        f"whether version {start} was written with a change data feed is not known, as what the table "
                        f"was before version {change.version} has been cleaned up; start with that version",
                        version=start,
                    )
                enabled = enabled if change.enabled is None else change.enabled
                if not enabled:
                    raise UnsupportedError(
                        f"version {change.version} was written without a change data feed; set {_ENABLED}, and start "
                        "after that",
                        version=change.version,
                    )
                if change.enabled is not None:
                    # Files that it removes are of the columns before.
                    if before is not None:
                        self._schemas.see(before, change.version)
                    actions = read_actions(self._store, change.version)
                    before = next((value for name, value in actions if name == "metaData"), before)
                yield change

    def _metadata_before(self, start: int) -> tuple[dict[str, Any] | None, int]:
        """What the table was before a version, and the version that says so: a later one where others are gone."""
        if start == 0:
            return None, -1
        for version in range(start - 1, self._snapshot.version):
            try:
                return parsed(load_snapshot(self._store, version=version).metadata_json), version
            except NotFoundError:
                continue
        return parsed(self._snapshot.metadata_json), self._snapshot.version

    def _of_version(self, change: VersionChanges) -> Iterator[FileChange]:
        version = change.version
        if change.cdc:
            for action in change.cdc:
                yield FileChange(version, self._file(action), None)
            return
        removed = {action[0]: action for action in change.removes}
        for action in change.adds:
            before = removed.pop(action[0], None)
            if before is None:
                yield FileChange(version, self._file(action), "insert")
                continue
            # The same file with another deletion vector: the rows in which the two differ changed.
            old, new = self._deleted(before), self._deleted(action)
            whole = replace(self._file(action), deletion_vector=None)
            for kind, rows in (("delete", _minus(new, old)), ("insert", _minus(old, new))):
                if len(rows):
                    yield FileChange(version, whole, kind, rows)
        for action in removed.values():
            yield FileChange(version, self._file(action), "delete")

    def _rows(self, changed: FileChange, names: list[str], where: BoundFilter | None) -> list[pa.RecordBatch]:
        extra = [CHANGE_TYPE] if changed.kind is None else []
        wanted = set(names)
        if where is not None:
            wanted |= set(where.columns if where.columns is not None else self.schema.names)
        columns = [name for name in self._columns if name in wanted]
        schema = pa.schema(
            [*(self.schema.field(name) for name in columns), CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP]
        )
        found = []
        for batch in self._scan.read(changed.file, columns, extra=extra, only=changed.only):
            rows = batch.num_rows
            kinds = pa.repeat(pa.scalar(changed.kind), rows) if changed.kind else batch.column(CHANGE_TYPE.name)
            arrays = [
                *batch.columns[: len(columns)],
                kinds,
                pa.repeat(pa.scalar(changed.version, pa.int64()), rows),
                pa.repeat(pa.scalar(self._time(changed.version), COMMIT_TIMESTAMP.type), rows),
            ]
            made = pa.RecordBatch.from_arrays(arrays, schema=schema)
            kept = where.keep(made) if where is not None else made
            if kept.num_rows:
                found.append(kept.select(names))
        return found

    def _file(self, action: ChangedFile) -> TableFile:
        path, spelled, vector = action
        if spelled is None and self._snapshot.partition_columns:
            raise UnsupportedError(
                f"the removal of {path} says nothing of its partition, so that its rows cannot be told; start after it",
                path=path,
            )
        return TableFile(path, self._partition(spelled or {}), vector)

    def _partition(self, spelled: dict[str, str | None]) -> dict[str, pa.Scalar]:
        key = tuple(sorted(spelled.items()))
        if key not in self._partitions:
            self._partitions[key] = {
                name: pa.array(self._snapshot.parse_partition_values(name, [value]))[0]
                for name, value in ((self._names.get(physical), value) for physical, value in key)
                if name is not None
            }
        return self._partitions[key]

    def _deleted(self, action: ChangedFile) -> pa.Array:
        found = self._scan.deleted(TableFile(action[0], {}, action[2]))
        return pa.array([], pa.uint64()) if found is None else found


def _is_enabled(metadata: dict[str, Any]) -> bool:
    configuration: dict[str, str] = metadata["configuration"]
    return configuration.get(_ENABLED, "").lower() == "true"


def _minus(rows: pa.Array, others: pa.Array) -> pa.Array:
    return rows.filter(pc.invert(pc.is_in(rows, others)))
