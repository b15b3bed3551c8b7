"""What changed, row by row, between versions.

An entry with `cdc` actions says it itself: its adds and removes are the same changes once more. In other entries the
rows of added files were inserted, those of removed files deleted; where only a deletion vector changed, those between
the two.

Spec: "Add CDC File", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._native.delta import Snapshot, canonical_path
from .._native.store import Store
from ..exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from .filters import BoundFilter
from .history import commit_path, read_actions
from .scan import DataFile, TableScan

CHANGE_TYPE = pa.field("_change_type", pa.string())
COMMIT_VERSION = pa.field("_commit_version", pa.int64())
COMMIT_TIMESTAMP = pa.field("_commit_timestamp", pa.timestamp("us", "UTC"))
_ENABLED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class Changes:
    """The changes of one version: its cdc files, or what was added and removed."""

    version: int
    cdc: list[dict[str, Any]]
    adds: list[dict[str, Any]]
    removes: list[dict[str, Any]]


class ChangeFeed:
    """The changes of versions `start` to `end` of a table.

    Args:
        store: The table's.
        snapshot: Version `end`, whose columns the rows have.
        scan: Reads files of that version.
        times: When versions were made, in milliseconds since the epoch.
    """

    def __init__(self, store: Store, snapshot: Snapshot, scan: TableScan, times: dict[int, int]) -> None:
        self._store = store
        self._snapshot = snapshot
        self._scan = scan
        self._times = times

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, and what happened to the row, in which version and when."""
        return pa.schema([*self._scan.schema, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP])

    def batches(
        self, start: int, end: int, columns: list[str] | None, where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """The changed rows, version by version."""
        names = self.schema.names if columns is None else columns
        changes = list(self._changes(start, end))
        for change in changes:
            for batch in self._of_version(change):
                kept = where.keep(batch) if where is not None else batch
                if kept.num_rows:
                    yield kept.select(names)

    def _changes(self, start: int, end: int) -> Iterator[Changes]:
        enabled = self._enabled_before(start)
        for version in range(start, end + 1):
            found = Changes(version, [], [], [])
            try:
                actions = list(read_actions(self._store, version))
            except NotFoundError as error:
                raise NotFoundError(
                    f"version {version} is not there: it may have been cleaned up; start later", version=version
                ) from error
            for name, value in actions:
                if name == "metaData":
                    enabled = (value.get("configuration") or {}).get(_ENABLED, "").lower() == "true"
                elif name == "cdc":
                    found.cdc.append(value)
                elif name == "add" and value.get("dataChange", True):
                    found.adds.append(value)
                elif name == "remove" and value.get("dataChange", True):
                    found.removes.append(value)
            if not enabled:
                raise UnsupportedError(
                    f"version {version} was written without a change data feed; set {_ENABLED}, and start after that",
                    version=version,
                )
            yield found

    def _enabled_before(self, start: int) -> bool:
        if start == 0:
            return False
        try:
            before = Snapshot.load(self._store, version=start - 1)
        except NotFoundError:
            before = self._snapshot
        configuration: dict[str, str] = json.loads(before.metadata_json)["configuration"]
        return configuration.get(_ENABLED, "").lower() == "true"

    def _of_version(self, change: Changes) -> Iterator[pa.RecordBatch]:
        if change.cdc:
            for action in change.cdc:
                yield from self._rows(change.version, self._file(action), None)
            return
        removed = {self._key(action): action for action in change.removes}
        for action in change.adds:
            before = removed.pop(self._key(action), None)
            if before is None:
                yield from self._rows(change.version, self._file(action), "insert")
                continue
            # The same file with other deleted rows: only those between the two vectors changed.
            old, new = self._deleted(before), self._deleted(action)
            whole = replace(self._file(action), deletion_vector=None)
            for kind, rows in (("delete", _minus(new, old)), ("insert", _minus(old, new))):
                if len(rows):
                    yield from self._rows(change.version, whole, kind, only=rows)
        for action in removed.values():
            yield from self._rows(change.version, self._file(action), "delete")

    def _rows(
        self, version: int, file: DataFile, kind: str | None, only: pa.Array | None = None
    ) -> Iterator[pa.RecordBatch]:
        names = self._scan.schema.names
        extra = [CHANGE_TYPE] if kind is None else []
        for batch in self._scan.read(file, names, extra=extra, only=only):
            rows = batch.num_rows
            kinds = batch.column(CHANGE_TYPE.name) if kind is None else pa.repeat(pa.scalar(kind), rows)
            columns = [
                *(batch.column(name) for name in names),
                kinds,
                pa.repeat(pa.scalar(version, pa.int64()), rows),
                pa.repeat(pa.scalar(self._times.get(version, 0) * 1000, COMMIT_TIMESTAMP.type), rows),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _key(self, action: dict[str, Any]) -> str:
        return canonical_path(self._snapshot.root, action["path"])

    def _file(self, action: dict[str, Any]) -> DataFile:
        spelled = action.get("partitionValues")
        if spelled is None:
            if self._snapshot.partition_columns:
                raise UnsupportedError(
                    f"the removal of {action['path']} says nothing of its partition, so that its rows cannot be told; "
                    "start after it",
                    path=action["path"],
                )
            spelled = {}
        partition = {}
        for name, physical in self._scan.partition_names().items():
            values = pa.array(self._snapshot.parse_partition_values(name, [spelled.get(physical)]))
            partition[name] = values[0]
        return DataFile(self._key(action), partition, _vector(action))

    def _deleted(self, action: dict[str, Any]) -> pa.Array:
        found = self._scan.deleted(replace(self._file(action), partition={}))
        return pa.array([], pa.uint64()) if found is None else found


def _vector(action: dict[str, Any]) -> dict[str, Any] | None:
    vector = action.get("deletionVector")
    if vector is None:
        return None
    fields = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
    return {name: vector.get(name) for name in fields}


def _minus(rows: pa.Array, others: pa.Array) -> pa.Array:
    return rows.filter(pc.invert(pc.is_in(rows, others)))


def version_range(
    start: int | None, end: int | None, newest: int, *, allow_out_of_range: bool
) -> tuple[int, int] | None:
    """The versions to read, None if there are none.

    Raises:
        InvalidArgumentError: The range ends before it starts, or starts behind the newest version.

    Example:
        >>> from esker.delta.change_feed import version_range
        >>> version_range(1, None, 4, allow_out_of_range=False)
        (1, 4)
    """
    first = 0 if start is None else start
    last = newest if end is None else min(end, newest)
    if end is not None and first > end:
        raise InvalidArgumentError(f"expected a range that starts before it ends, found versions {first} to {end}")
    if first > newest:
        if allow_out_of_range:
            return None
        raise InvalidArgumentError(
            f"expected a version up to the newest, {newest}, found {first} ({commit_path(first)}); "
            "use allow_out_of_range=True to get no rows instead",
            version=first,
        )
    return first, last
