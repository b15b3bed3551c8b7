"""The versions of a Delta table as a stream reads them: the files that each entry adds, or those of its change feed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from esker._native.delta import Snapshot, canonical_path
from esker._native.store import Store
from esker.arrow.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from esker.cached import cached_property
from esker.delta.definition.partition_text import partition_text
from esker.delta.log.changes import read_change
from esker.delta.log.conflict import CommitActions
from esker.delta.log.entries import LOG, commit_path, newest_version, read_actions
from esker.delta.log.snapshots import load_snapshot, refresh_snapshot
from esker.delta.read.change_feed import ChangeFeed, FileChange
from esker.delta.read.conform import MappingMode, physical_name
from esker.delta.read.file_reader import TableFile, TableFileReader
from esker.delta.read.filesystem import FileLocator
from esker.delta.read.filters import bind
from esker.delta.read.scan import TableScan
from esker.delta.read.sql_names import columns_in_backticks
from esker.delta.read.versions import commit_times
from esker.exceptions import EskerError, NotFoundError, SchemaMismatchError
from esker.spark.cast import cast_batch
from esker.spark.delta_reader import open_delta, zoned_sql
from esker.spark.options import ReadOptions, TableAddress
from esker.spark.session_settings import session_zone
from esker.spark.streaming.history import (
    READ_AGAIN,
    START_ANEW,
    Piece,
    TableHistory,
    VersionPieces,
    change_refused,
    check_columns,
    cleaned_up,
    may_be_cleaned_up,
)
from esker.spark.streaming.options import StreamReadOptions
from esker.spark.streaming.other_types import other_types
from esker.spark.types import exchange_schema
from esker.spark.zoned_filter import told_zone

__all__ = ["DeltaHistory", "FileRows"]


@dataclass(frozen=True)
class FileRows(InputPartition):  # type: ignore[misc, unused-ignore]
    """A file of a Delta table, or the rows of it that a version changed.

    Args:
        reader: Reads files of the table.
        schema: The Spark schema of the rows.
        options: Columns, filter and zones.
        driver_zone: The zone of the driver's machine.
        change: The file; for a change feed with what happened to its rows.
        is_feed: Whether rows have the columns of a change feed.
        time_ms: When the version was committed, in milliseconds since the epoch.
    """

    reader: TableFileReader
    schema: StructType
    options: ReadOptions
    driver_zone: str | None
    change: FileChange
    is_feed: bool
    time_ms: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows."""
        version, uri = self.change.version, self.reader.store.uri
        with may_be_cleaned_up(version, uri), other_types(self.reader, version):
            yield from self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        wanted = exchange_schema(self.schema)
        feed = [CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP] if self.is_feed else []
        there = self.reader.plain_schema()
        schema = pa.schema([*there, *feed])
        sql = zoned_sql(self.options)
        zone = session_zone(self.options.timezone, self.driver_zone)
        told = told_zone(None if sql is None else columns_in_backticks(sql), schema, zone)
        where = bind(sql, schema, session_timezone=told)
        names = list(self.schema.names)
        needed = {*names, *((where.columns if where.columns is not None else schema.names) if where else [])}
        columns = [name for name in there.names if name in needed]
        only = self.change.only
        extra = [CHANGE_TYPE] if self.is_feed and self.change.kind is None else []
        for batch in self.reader.read(self.change.file, columns, extra=extra, only=only):
            rows = batch.num_rows
            if self.is_feed:
                if self.change.kind is not None:
                    batch = batch.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(self.change.kind), rows))
                version = pa.scalar(self.change.version, COMMIT_VERSION.type)
                batch = batch.append_column(COMMIT_VERSION, pa.repeat(version, rows))
                moment = pa.scalar(self.time_ms * 1000, COMMIT_TIMESTAMP.type)
                batch = batch.append_column(COMMIT_TIMESTAMP, pa.repeat(moment, rows))
            kept = where.keep(batch) if where is not None else batch
            if kept.num_rows:
                yield cast_batch(kept.select(names), wanted, truncate=self.options.truncate, advice=READ_AGAIN)


@dataclass(frozen=True)
class _FilePiece(Piece):
    """A file: one unit."""

    part: FileRows

    def partitions(self, first: int, last: int) -> list[InputPartition]:
        return [self.part]


@dataclass(frozen=True)
class _UncountedPiece(_FilePiece):
    """A file whose rows no statistics tell: its footer does, once somebody asks."""

    @cached_property
    def _counted(self) -> int:
        return _rows_in(self.part.reader, self.part.change.file)

    def rows_between(self, first: int, last: int) -> int:
        return self._counted if first < last else 0


class DeltaHistory(TableHistory):
    """The versions of a Delta table.

    Args:
        address: The table.
        schema: The Spark schema of the rows of the stream.
        options: What is read.
        driver_zone: The zone of the driver's machine.
    """

    kind = "delta"
    first_version = 0

    def __init__(
        self, address: TableAddress, schema: StructType, options: StreamReadOptions, driver_zone: str | None
    ) -> None:
        table = open_delta(address, options.read)
        self.uri = address.uri
        self._address = address
        self._schema = schema
        self._options = options
        self._driver_zone = driver_zone
        self._store = table._store
        self._snapshot = table._snapshot
        self._known: tuple[Snapshot, ...] = ()
        self._kept: int | None = None
        self._entries: dict[tuple[int, int, int | None], str] = {}

    @property
    def store(self) -> Store:
        """The table's store."""
        return self._store

    def newest(self) -> int:
        """The newest version.

        Raises:
            NotFoundError: The table is gone.
        """
        found = newest_version(self._store)
        if found < 0:
            raise NotFoundError(f"no table at {self.uri}: its log is gone", uri=self.uri)
        return found

    def oldest(self) -> int:
        """The oldest version whose entry is there."""
        names = [path.removeprefix(LOG) for path in self._store.list_paths(LOG)]
        entries = [int(name[:20]) for name in names if name.endswith(".json") and name[:-5].isdigit()]
        return min(entries, default=0)

    def entry(self, version: int) -> str:
        """A digest of the entry of a version.

        Raises:
            NotFoundError: There is no such entry.
        """
        if version < 0:
            raise NotFoundError(f"the table at {self.uri} has no version {version}", uri=self.uri, version=version)
        path = commit_path(version)
        meta = self._store.head(path)
        key = (version, meta.size, meta.last_modified_us)
        if key not in self._entries or meta.last_modified_us is None:
            self._entries[key] = hashlib.sha256(self._store.get(path)).hexdigest()[:32]
        return self._entries[key]

    def continues(self, version: int, entry: str) -> bool:
        """Whether later entries lead from the files of the version, as it was loaded, to those that are there."""
        before = next((known for known in (self._snapshot, *self._known) if known.version == version), None)
        if before is None or not before.num_files:
            return False
        try:
            there = load_snapshot(self._store, timezone=self._options.read.partition_timezone)
            after = refresh_snapshot(before, self._store, version=there.version)
        except EskerError:
            return False
        if any(_table_id(each) != _table_id(before) for each in (there, after)):
            return False
        known = set(before.select(self._store).paths())
        for number in range(version + 1, there.version + 1):
            change = read_change(self._store, before.root, number)
            # What an entry removes was there: no file of another table went without notice.
            if not change.known or not known.issuperset(change.removes):
                return False
            known |= set(change.adds)
        return _files(there, self._store) == _files(after, self._store)

    def keep(self, version: int) -> None:
        """Keeps the version up to which the stream has read, if it is one that was loaded."""
        self._kept = version

    def remember(self, before: TableHistory) -> None:
        """Takes over the version that the history before this one had loaded, and the one that it keeps."""
        if isinstance(before, DeltaHistory):
            kept = [known for known in before._known if known.version == before._kept]
            self._known, self._kept = (before._snapshot, *kept[:1]), before._kept

    def times(self) -> Mapping[int, int]:
        """When the versions were committed, in milliseconds since the epoch."""
        configuration: dict[str, str] = json.loads(self._snapshot.metadata_json)["configuration"]
        in_commit = configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"
        return commit_times(self._store, in_commit=in_commit)

    def snapshot(self, version: int) -> VersionPieces:
        """All rows of a version."""
        try:
            at = load_snapshot(self._store, version=version, timezone=self._options.read.partition_timezone)
        except NotFoundError:
            raise cleaned_up(version, self.uri) from None
        if version > self._snapshot.version:
            self._refresh()
        if _mode(at) != "none" and _mode(self._snapshot) == "none":
            raise SchemaMismatchError(
                f"version {version} of {self.uri} has column mapping, and version {self._snapshot.version} has none, "
                f"whose columns cannot be found in older files; {START_ANEW}"
            )
        selection = at.select(self._store)
        # The columns are those that the table has now: what a restarted query asks for, the version may lack.
        reader = self._reader(self._snapshot)
        scan = TableScan(self._store, at, reader.files, selection)
        files = self._present(scan.table_files(), scan.physical_names(), reader, version)
        sizes = pa.record_batch(selection.describe()).column("size_bytes").to_pylist()
        rows: list[int | None] = [None] * len(files)
        if self._options.limits.rows is not None:
            rows = pa.record_batch(selection.statistics(self._store, bounds=False)[1]).column("num_records").to_pylist()
        kind = "insert" if self._options.feed else None
        time = self.times().get(version, 0) if self._options.feed else 0
        # A log and its checkpoint list files in different orders.
        found = sorted(zip(files, sizes, rows, strict=True), key=lambda each: each[0].path)
        pieces = [
            self._piece(count, size or 0, self._part(reader, FileChange(version, file, kind), time))
            for file, size, count in found
        ]
        return VersionPieces(version, pieces, True)

    def changes(self, first: int, last: int) -> Iterator[VersionPieces]:
        """What the versions `first` to `last` add, or change."""
        self._refresh()
        reader = self._reader(self._snapshot)
        if self._options.feed:
            yield from self._fed(reader, first, last)
            return
        for version in range(first, last + 1):
            change = read_change(self._store, self._snapshot.root, version)
            if not change.known:
                raise cleaned_up(version, self.uri)
            yield VersionPieces(version, self._added(reader, change), True)

    def _refresh(self) -> None:
        """Looks at the newest version: files are read by the columns that the table has now."""
        before = self._snapshot
        snapshot = refresh_snapshot(before, self._store)
        if snapshot.version > before.version:
            there = TableScan.schema_of(snapshot)
            feed = {CHANGE_TYPE.name, COMMIT_VERSION.name, COMMIT_TIMESTAMP.name} if self._options.feed else set()
            wanted = StructType([field for field in self._schema.fields if field.name not in feed])
            check_columns(snapshot.version, self.uri, there, wanted)
            self._check_replaced(before, snapshot, wanted.names)
        self._snapshot = snapshot

    def _check_replaced(self, before: Snapshot, snapshot: Snapshot, names: list[str]) -> None:
        """Checks that names still stand for the columns for which they stood: mapped columns may exchange theirs."""
        known, there = pa.schema(before), pa.schema(snapshot)
        sql = zoned_sql(self._options.read)
        asked = set(names)
        if sql is not None:
            feed = [CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP] if self._options.feed else []
            read = bind(sql, pa.schema([*TableScan.schema_of(before), *feed]), session_timezone=None)
            asked |= set(known.names if read is None or read.columns is None else read.columns)
        for name in known.names:
            if name not in asked:
                continue
            found = there.field(name) if name in there.names else None
            path = name if found is None else _replaced(known.field(name), found, _mode(before), _mode(snapshot))
            if path is not None:
                raise SchemaMismatchError(
                    f"column {path!r} of {self.uri} is not there any more in version {snapshot.version}, or is another "
                    f"one than that with which the stream was loaded; {READ_AGAIN}",
                    column=path,
                )

    def _added(self, reader: TableFileReader, change: CommitActions) -> list[Piece]:
        adds, removes = (
            {path: action for path, action in actions.items() if action.get("dataChange", True)}
            for actions in (change.adds, change.removes)
        )
        if removes:
            # A delete that rewrites files adds only rows that stay: its writer says so.
            only_deletes = change.operation == "DELETE" or all(
                path in removes and _deletes_more(removes[path], add) for path, add in adds.items()
            )
            kind = "delete" if only_deletes else "change"
            if self._options.skips_changes or (kind == "delete" and self._options.skips_deletes):
                return []
            raise change_refused(change.version, self.uri, change.operation, kind)  # type: ignore[arg-type]
        return [
            self._piece(
                _rows_of(action),
                int(action.get("size") or 0),
                self._part(
                    reader, FileChange(change.version, self._file(reader, change.version, path, action), None), 0
                ),
            )
            for path, action in sorted(adds.items())
        ]

    def _piece(self, rows: int | None, size: int, part: FileRows) -> Piece:
        if rows or self._options.limits.rows is None:
            return _FilePiece(1, rows or 0, size, part)
        return _UncountedPiece(1, 0, size, part)

    def _fed(self, reader: TableFileReader, first: int, last: int) -> Iterator[VersionPieces]:
        times = self.times()
        scan = TableScan(self._store, self._snapshot, reader.files)
        found = ChangeFeed(self._store, self._snapshot, scan, dict(times)).file_changes(first, last)
        for version in range(first, last + 1):
            try:
                with other_types(reader, version):
                    _, changes = next(found)
            except NotFoundError as error:
                raise cleaned_up(version, self.uri) from error
            actions = {} if self._options.limits.is_none else self._changed_files(version)
            pieces: list[Piece] = [
                _FilePiece(
                    1,
                    self._changed_rows(reader, change, actions.get(change.file.path)),
                    int(actions.get(change.file.path, {}).get("size") or 0),
                    self._part(reader, change, times.get(version, 0)),
                )
                for change in changes
            ]
            yield VersionPieces(version, pieces, False)

    def _changed_files(self, version: int) -> dict[str, dict[str, Any]]:
        """What the entry of a version says of the files that it adds, removes or tells changes by, by their paths."""
        try:
            found = list(read_actions(self._store, version))
        except NotFoundError:
            # It was cleaned up since its files were found, which are there still.
            return {}
        return {
            canonical_path(self._snapshot.root, action["path"]): action
            for kind in ("remove", "add", "cdc")
            for name, action in found
            if name == kind
        }

    def _changed_rows(self, reader: TableFileReader, change: FileChange, action: Mapping[str, Any] | None) -> int:
        """About how many rows of a file a version changed; 0 without a limit of rows."""
        if self._options.limits.rows is None or action is None:
            return 0
        if change.only is not None:
            return len(change.only)
        rows = _rows_of(action)
        if rows:
            return rows - int((action.get("deletionVector") or {}).get("cardinality", 0))
        # Files of changes have no statistics, and removals need not repeat theirs.
        return _rows_in(reader, change.file)

    def _part(self, reader: TableFileReader, change: FileChange, time_ms: int) -> FileRows:
        return FileRows(
            reader, self._schema, self._options.read, self._driver_zone, change, self._options.feed, time_ms
        )

    def _file(self, reader: TableFileReader, version: int, path: str, action: Mapping[str, Any]) -> TableFile:
        spelled = action.get("partitionValues") or {}
        names = {physical: name for name, physical in reader.physical_names().items()}
        partition = {
            names[physical]: self._parsed(reader, version, names[physical], value)
            for physical, value in spelled.items()
            if physical in names
        }
        return TableFile(path, partition, action.get("deletionVector"))

    def _present(
        self, files: list[TableFile], then: Mapping[str, str], reader: TableFileReader, version: int
    ) -> list[TableFile]:
        """Files of a version with their partition values under the names, and in the types, that columns have now.

        Args:
            files: The files.
            then: The columns of the version: for each logical name the physical one.
            reader: Has the columns of now.
            version: The version.
        """
        now = {physical: name for name, physical in reader.physical_names().items()}
        names = {name: now[physical] for name, physical in then.items() if physical in now}
        types = {field.name: field.type for field in reader.plain_schema()}
        known: dict[tuple[str, str | None], pa.Scalar] = {}

        def value_of(name: str, value: pa.Scalar) -> pa.Scalar:
            if value.type == types[name]:
                return value
            key = (name, partition_text(value))
            if key not in known:
                known[key] = self._parsed(reader, version, *key)
            return known[key]

        return [
            replace(
                file,
                partition={
                    names[name]: value_of(names[name], value) for name, value in file.partition.items() if name in names
                },
            )
            for file in files
        ]

    def _parsed(self, reader: TableFileReader, version: int, name: str, text: str | None) -> pa.Scalar:
        """A partition value of a version as the type that its column has now."""
        with other_types(reader, version):
            return pa.array(self._snapshot.parse_partition_values(name, [text]))[0]

    def _reader(self, snapshot: Snapshot) -> TableFileReader:
        files = FileLocator(self._store, snapshot.root, dict(self._address.storage_options))
        return TableFileReader.of(self._store, snapshot, files)


def _rows_of(action: Mapping[str, Any]) -> int:
    """The rows of a file as its statistics have them, 0 if they do not."""
    try:
        return int(json.loads(action.get("stats") or "{}").get("numRecords", 0))
    except (ValueError, TypeError, AttributeError):
        return 0


def _rows_in(reader: TableFileReader, file: TableFile) -> int:
    """The rows of a file as its footer has them."""
    try:
        return int(reader.footer(file).num_rows)
    except (EskerError, OSError):
        # Whoever reads the rows says what is wrong with the file.
        return 0


def _deletes_more(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a file has only lost rows: its deletion vector has grown."""
    old, new = (int((action.get("deletionVector") or {}).get("cardinality", 0)) for action in (before, after))
    return new > old


def _table_id(snapshot: Snapshot) -> str:
    found: str = json.loads(snapshot.metadata_json)["id"]
    return found


def _files(snapshot: Snapshot, store: Store) -> list[tuple[str, object]]:
    """The files of a version, and which of their rows are deleted."""
    found = pa.record_batch(snapshot.select(store).describe())
    pairs = zip(found.column("path").to_pylist(), found.column("deletion_vector").to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: pair[0])


def _mode(snapshot: Snapshot) -> MappingMode:
    return cast("MappingMode", snapshot.column_mapping)


def _replaced(known: pa.Field, there: pa.Field, was: MappingMode, mode: MappingMode) -> str | None:
    """The path of the first field that has its name, but other values; None if there is none."""
    if physical_name(known, was) != physical_name(there, mode):
        return str(known.name)
    if pa.types.is_list(known.type) and pa.types.is_list(there.type):
        within = _replaced(known.type.value_field, there.type.value_field, was, mode)
        return None if within is None else f"{known.name}.{within}"
    if pa.types.is_map(known.type) and pa.types.is_map(there.type):
        within = _replaced(known.type.item_field, there.type.item_field, was, mode)
        return None if within is None else f"{known.name}.{within}"
    if pa.types.is_struct(known.type) and pa.types.is_struct(there.type):
        for index in range(known.type.num_fields):
            field = known.type.field(index)
            place = there.type.get_field_index(field.name)
            within = None if place < 0 else _replaced(field, there.type.field(place), was, mode)
            if within is not None:
                return f"{known.name}.{within}"
    return None
