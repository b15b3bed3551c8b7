"""`DeltaTable`: one version of a Delta table, with deltalake's names and arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from .._native.delta import FileSelection, Snapshot
from ..exceptions import InvalidArgumentError, InvalidTypeError, NotFoundError
from ..store.kinds import DELTA, found_instead
from ..store.pickling import pickled_options
from ..store.staging import flush, has_moved, refresh
from ..store.stores import absolute, resolve
from .alter import TableAlterer
from .definition.statistics_columns import statistics_columns
from .log.checkpoint import write_checkpoint
from .log.cleanup import clean_up
from .log.commit import CommitRequest
from .log.entries import LOG
from .log.external import ExternalLog
from .log.snapshots import load_snapshot, refresh_snapshot
from .log.store import resolve_for_writing
from .log.target import WriteTarget
from .metadata import Metadata, ProtocolVersions, protocol_of
from .missing import MissingMethods, names_of
from .positional import with_positional
from .properties import CommitProperties, PostCommitHookProperties
from .raw_table import DEFAULT_BUFFER, DeltaTableConfig, PeerAttributes
from .read import versions
from .read.add_actions import add_actions
from .read.change_feed import ChangeFeed
from .read.chosen_columns import ChosenColumns
from .read.feed_range import FeedRange
from .read.filesystem import FileLocator
from .read.filters import BoundFilter, FilterType, bind
from .read.scan import TableScan
from .read.selection import bind_to, file_uris, in_partitions, one_filter, partitions_of
from .read.selection_vectors import selection_vectors
from .read.session_zone import zone_name
from .row_changes import RowChanges
from .schema import Schema, large
from .table_properties import check_properties
from .write.add_files import AddAction, add_files
from .write.create import create_table, telling_that_it_was_created
from .write.plan import WriteRequest
from .write.symlink_manifests import symlink_manifests

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

    from .._native.schema import ArrowSchemaExportable
    from .read.filters import RowFilter


class DeltaTable(RowChanges, PeerAttributes, MissingMethods):
    """One version of a Delta table.

    Args:
        table_uri: A path, or a URI of a registered scheme.
        version: The version to open; the newest if not given.
        storage_options: Options of the store, such as credentials.
        without_files: Accepted as deltalake accepts it; files cost little here.
        log_buffer_size: As `without_files`.
        skip_stats: As `without_files`; statistics are only read when a filter asks for them.
        timezone: What timestamps without a zone mean as partition values; UTC if not given. Old releases of Spark wrote
            them in the zone of their session.
        session_timezone: What times without a zone mean in filters, in `load_as_version` and in `load_cdf`; UTC if not
            given. In Spark that is `spark.sql.session.timeZone`.
        durable: Whether what is written through it is on stable storage when a call returns.

    Raises:
        NotFoundError: There is no table, or no such version.
        UnsupportedError: The table asks for a feature that this release does not have: it is named.
        CorruptFileError: The log is broken in a way that no checkpoint and no other entry makes up for.

    Example:
        `DeltaTable("s3://lake/events").to_pyarrow_table(columns=["id"], filters=[("day", "=", "2024-01-01")])`
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: dict[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
        *,
        timezone: str | None = None,
        durable: bool = True,
        session_timezone: str | None = None,
    ) -> None:
        self._uri = absolute(table_uri)
        self._storage_options = storage_options
        zone_name(session_timezone)
        self._timezone = timezone
        self._durable = durable
        self._session_timezone = session_timezone
        self._config = DeltaTableConfig(without_files, log_buffer_size or DEFAULT_BUFFER, skip_stats)
        self._store = resolve(self._uri, storage_options=storage_options, durable=durable)
        refresh(self._store)
        self._snapshot = self._load(version)

    def _load(self, version: int | None) -> Snapshot:
        if version is not None and not hasattr(version, "__index__"):
            raise InvalidTypeError(f"expected a version as an integer, found {version!r}")
        if version is not None and not 0 <= version < 2**63:
            raise InvalidArgumentError(f"expected a version from 0 to 2^63 - 1, found {version}", version=version)
        self._finish_newest()
        try:
            return load_snapshot(self._store, version=version, timezone=self._timezone)
        except NotFoundError as error:
            raise found_instead(error, self._store, self._uri, DELTA) from None

    def _finish_newest(self) -> None:
        """Copies the newest entry to its final path, if a writer left it staged in an external manifest store."""
        external = ExternalLog.of(self._store, self._uri, self._storage_options)
        if external is not None:
            external.latest()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_snapshot"] = self._snapshot.version, self.metadata().id
        state["_storage_options"] = pickled_options(self._storage_options)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        version, id = state["_snapshot"]
        self._snapshot = self._load(version)
        if self.metadata().id != id:
            raise NotFoundError(
                f"version {version} of the table at {self._uri} is there no more: the table was deleted, and another "
                "one made there, since it was pickled; open it again",
                uri=self._uri,
                version=version,
            )

    @staticmethod
    def is_deltatable(table_uri: str | os.PathLike[str], storage_options: dict[str, str] | None = None) -> bool:
        """Whether there is a Delta table at a URI.

        Example:
            >>> from esker.delta import DeltaTable
            >>> DeltaTable.is_deltatable("memory://nothing-here")
            False
        """
        store = resolve(table_uri, storage_options=storage_options)
        return any(path.endswith((".json", ".parquet")) for path in store.list_paths(LOG))

    @classmethod
    @with_positional("commit_properties", "post_commithook_properties", "raise_if_key_not_exists")
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: Schema | ArrowSchemaExportable,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: list[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: dict[str, str] | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
    ) -> DeltaTable:
        """Creates a table without rows, or with mode `overwrite` puts one in the place of another.

        Args:
            table_uri: Where it shall be.
            schema: Its columns: of `Schema`, or anything with the Arrow PyCapsule interface.
            mode: What to do if there is one: `error` and `append` raise, `overwrite` replaces it, `ignore` opens it.
            partition_by: Columns to partition by.
            name: For people.
            description: What the table is for.
            configuration: Properties, such as `delta.appendOnly`.
            storage_options: Options of the store, such as credentials.
            commit_properties: What goes into the log entry.
            post_commithook_properties: What is done after the commit.
            raise_if_key_not_exists: Whether unknown properties under `delta.` are refused.

        Raises:
            AlreadyExistsError: There is a table.
            CommitStateUnknownError: It was created, and could not be opened, which the message tells.
            UnsupportedError: It would have a feature that this release does not write.

        Example:
            >>> import pyarrow as pa
            >>> from esker.delta import DeltaTable
            >>> DeltaTable.create("memory://created", pa.schema([("id", pa.int64())]), mode="ignore").version()
            0
        """
        check_properties(dict(configuration or {}), strict=raise_if_key_not_exists)
        # `memory://` stands for another name each time that it is resolved.
        table_uri = absolute(table_uri)
        request = WriteRequest(
            mode=mode,
            partition_by=partition_by,
            name=name,
            description=description,
            configuration=configuration,
        )
        created = create_table(
            WriteTarget.of(table_uri, storage_options),
            schema if isinstance(schema, Schema) else Schema.from_arrow(schema),
            request,
            CommitRequest(commit_properties, post_commithook_properties),
        )
        with telling_that_it_was_created(table_uri) if created else nullcontext():
            return cls(table_uri, storage_options=storage_options)

    @with_positional()
    def create_write_transaction(
        self,
        actions: list[AddAction],
        mode: Literal["append", "overwrite"],
        schema: Schema | ArrowSchemaExportable,
        partition_by: list[str] | str | None = None,
        partition_filters: FilterType | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commits files that another program wrote into the table's folder.

        Args:
            actions: The files.
            mode: Whether they are added, or take the place of those that are there.
            schema: Their columns, partition columns among them.
            partition_by: The table's partition columns.
            partition_filters: In mode `overwrite`: which partitions are replaced; all if not given.
            commit_properties: What goes into the log entry.
            post_commithook_properties: What is done after the commit.

        Raises:
            SchemaMismatchError: The columns are not the table's.
            CommitConflictError: Others' commits leave no room for this one.
        """
        add_files(
            self._write_target(),
            actions,
            schema if isinstance(schema, Schema) else Schema.from_arrow(schema),
            WriteRequest(mode=mode, partition_by=partition_by),
            partition_filters,
            CommitRequest(commit_properties, post_commithook_properties),
        )

    def generate(self) -> None:
        """Writes lists of files (`_symlink_format_manifest/`) for engines that read no log."""
        symlink_manifests(self._store, self._select())

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Of each file with deleted rows `filepath`, a URI, and `selection_vector`: which of its rows are there."""
        return selection_vectors(self._scan(), self._select())

    @property
    def alter(self) -> TableAlterer:
        """Changes of columns, constraints, properties and features."""
        return TableAlterer(self._write_target)

    def create_checkpoint(self, *, parts: int | None = None) -> None:
        """Writes a checkpoint of the version that is open, so that readers need not replay the log.

        Args:
            parts: How many files it is cut into; one if not given. A table with v2 checkpoints has none of several.
        """
        write_checkpoint(self._store, self._snapshot, parts=parts)
        flush(self._store, "Checkpoint")

    def cleanup_metadata(self) -> None:
        """Deletes log files older than the newest `delta.logRetentionDuration` (30 days) that no kept version needs."""
        clean_up(self._store, self._snapshot)
        flush(self._store, "Log clean-up")

    @property
    def table_uri(self) -> str:
        """Where the table is."""
        return self._uri

    def version(self) -> int:
        """The number of the version that is open."""
        return self._snapshot.version

    def metadata(self) -> Metadata:
        """What the table is."""
        return Metadata(self._snapshot)

    def protocol(self) -> ProtocolVersions:
        """What the table asks of readers and writers."""
        return protocol_of(self._snapshot)

    def schema(self) -> Schema:
        """The table's columns."""
        return Schema.from_json(self.metadata()._schema_string)

    def transaction_version(self, app_id: str) -> int | None:
        """The newest transaction version of an application, None if it has none."""
        found = self._snapshot.transactions.get(app_id)
        return found[0] if found is not None else None

    def load_as_version(self, version: int | str | datetime) -> None:
        """Goes to another version, older or newer.

        Args:
            version: Its number, or a time (ISO 8601, or datetime; without a zone it is UTC, or `session_timezone`):
                the version that was the newest then.

        Raises:
            NotFoundError: There is no such version, or none as old.
        """
        if isinstance(version, bool) or not isinstance(version, int | str | datetime):
            raise TypeError(f"expected a version as int, str or datetime, found {type(version).__name__}")
        with self._looking_again():
            if not isinstance(version, int):
                # The newest version tells which times hold.
                times = self._commit_times(load_snapshot(self._store))
                version = versions.version_at(times, version, self._uri, self._session_timezone)
            self._snapshot = self._load(version)

    def update_incremental(self) -> None:
        """Goes to the newest version. Only the commits since the one that is open are read."""
        with self._looking_again() as is_another:
            if is_another:
                self._snapshot = self._load(None)
                return
            self._finish_newest()
            self._snapshot = refresh_snapshot(self._snapshot, self._store)

    @contextmanager
    def _looking_again(self) -> Iterator[bool]:
        """Looks at what others have committed to a branch; True if the table is another one now: its store is anew.

        Where that one's version cannot be loaded, the store stays the one that knows of it: what is written on top of
        the version that is open would land on another table's log.
        """
        refresh(self._store)
        if not has_moved(self._store):
            yield False
            return
        before = self._store
        self._store = resolve(self._uri, storage_options=self._storage_options, durable=self._durable)
        try:
            yield True
        except BaseException:
            self._store = before
            raise

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """What the writers of the versions say of them, the newest first.

        Args:
            limit: How many at most.
        """
        return versions.history(self._store, self.version(), limit)

    def file_uris(
        self, partition_filters: FilterType | None = None, *, file_pruning_predicate: RowFilter | None = None
    ) -> list[str]:
        """The places of the files.

        Args:
            partition_filters: Deprecated; the same as `file_pruning_predicate`.
            file_pruning_predicate: SQL, tuples or a pyarrow expression. Files that cannot hold rows for which it is
                true, by their partition values and statistics, are left out.
        """
        where = self._bind(one_filter("partition_filters", partition_filters, file_pruning_predicate))
        return file_uris(self._store, self._snapshot, where)

    def partitions(
        self, partition_filters: FilterType | None = None, *, file_pruning_predicate: RowFilter | None = None
    ) -> list[dict[str, Any]]:
        """The partitions that have files, as values by column: texts, null as None.

        Args:
            partition_filters: Deprecated; the same as `file_pruning_predicate`.
            file_pruning_predicate: As in `file_uris`.
        """
        where = self._bind(one_filter("partition_filters", partition_filters, file_pruning_predicate))
        return partitions_of(self._store, self._snapshot, where)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """One row a file: path, size, time, partition values, statistics.

        Args:
            flatten: Whether statistics and partition values are columns (`min.x`, `partition.p`) rather than structs.
        """
        partitioned = self._snapshot.partition_columns
        data = pa.schema([field for field in self.schema().to_plain_arrow() if field.name not in partitioned])
        kept = statistics_columns(data, self.metadata().configuration)
        return add_actions(self._store, self._select(), kept, flatten=flatten)

    def count(self) -> int:
        """How many rows: from statistics where files have them, else from the files."""
        known = self._rows_by_statistics()
        return known if known is not None else sum(batch.num_rows for batch in self._scan().batches([]))

    def _rows_by_statistics(self) -> int | None:
        """How many rows, None if a file has no statistics that tell."""
        selection = self._select()
        records = pa.record_batch(selection.statistics(self._store, bounds=False)[1]).column(0)
        if records.null_count:
            return None
        vectors = pa.record_batch(selection.describe()).column("deletion_vector")
        deleted: int = pc.sum(vectors.field("cardinality")).as_py() or 0
        return (pc.sum(records).as_py() or 0) - deleted

    def to_pyarrow_dataset(
        self,
        partitions: FilterType | None = None,
        filesystem: Any | None = None,
        parquet_read_options: ds.ParquetReadOptions | None = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: RowFilter | None = None,
    ) -> ds.Dataset:
        """The table as a dataset of pyarrow.

        A table with deletion vectors, mapped columns or widened types has no form that pyarrow reads lazily: its rows
        are read at once. `scan` streams them.

        Args:
            partitions: Deprecated; the same as `file_pruning_predicate`.
            filesystem: Where the files are read from, its root being the table's; found by the URI if not given.
            parquet_read_options: How pyarrow reads Parquet.
            schema: In place of the table's.
            as_large_types: Whether texts, bytes and lists have offsets of 64 bits.
            file_pruning_predicate: As in `file_uris`.
        """
        predicate = one_filter("partitions", partitions, file_pruning_predicate)
        scan = self._scan(predicate, filesystem)
        wanted = schema if schema is not None else scan.read_schema
        if schema is None and as_large_types:
            wanted = pa.schema([field.with_type(large(field.type)) for field in wanted])
        if schema is None and parquet_read_options is not None:
            dictionaries = parquet_read_options.dictionary_columns
            wanted = pa.schema(
                [f.with_type(pa.dictionary(pa.int32(), f.type)) if f.name in dictionaries else f for f in wanted]
            )
        data_files = scan.table_files()
        if scan.is_plain(data_files):
            known = scan.guarantees()
            return scan.dataset(data_files, schema=wanted, read_options=parquet_read_options, guarantees=known)
        import pyarrow.dataset as ds

        return ds.dataset(scan.table_as(wanted))

    def to_pyarrow_table(
        self,
        partitions: FilterType | None = None,
        columns: list[str] | None = None,
        filesystem: Any | None = None,
        filters: RowFilter | None = None,
    ) -> pa.Table:
        """The rows.

        Args:
            partitions: Deprecated; use `filters`.
            columns: Their names; all if not given. `s.x` is the field `x` of a struct `s`, as a column `x`.
            filesystem: As in `to_pyarrow_dataset`.
            filters: SQL, tuples or a pyarrow expression; files that cannot hold such rows are not opened, and of the
                others only row groups that may are read.
        """
        where = self._bind(one_filter("partitions", partitions, filters))
        chosen = ChosenColumns.of(columns, self._snapshot)
        selection = self._snapshot.select(self._store, where.predicates if where else None)
        scan = TableScan(self._store, self._snapshot, self._files(filesystem), selection)
        data_files = scan.table_files()
        if scan.is_plain(data_files) and (where is None or not where.is_widened):
            return chosen.pick(scan.conformed(scan.plain_table(data_files, chosen.read, where)))
        read = pa.schema([scan.schema.field(name) for name in chosen.read])
        return chosen.pick(pa.Table.from_batches(scan.batches(chosen.read, where), read))

    def to_pandas(
        self,
        partitions: FilterType | None = None,
        columns: list[str] | None = None,
        filesystem: Any | None = None,
        filters: RowFilter | None = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """The rows as a DataFrame of pandas; arguments as in `to_pyarrow_table`."""
        table = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        return table.to_pandas(types_mapper=types_mapper)

    def scan(self, columns: list[str] | None = None, predicate: RowFilter | None = None) -> pa.RecordBatchReader:
        """The rows as a stream of record batches.

        Args:
            columns: Their names; all if not given.
            predicate: SQL, tuples or a pyarrow expression.
        """
        chosen = ChosenColumns.of(columns, self._snapshot)
        where = self._bind(predicate)
        selection = self._snapshot.select(self._store, where.predicates if where else None)
        scan = TableScan(self._store, self._snapshot, self._files(), selection)
        return pa.RecordBatchReader.from_batches(chosen.schema, map(chosen.pick, scan.batches(chosen.read, where)))

    def load_cdf(
        self,
        starting_version: int | None = 0,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        columns: list[str] | None = None,
        predicate: RowFilter | None = None,
        allow_out_of_range: bool = False,
    ) -> pa.RecordBatchReader:
        """The rows that changed, with `_change_type`, `_commit_version` and `_commit_timestamp`.

        `_change_type` is `insert`, `delete`, `update_preimage` or `update_postimage`. Rows have the columns of the
        version that is open, as in deltalake and Spark: null where a change is older than a column.

        Args:
            starting_version: The first version.
            ending_version: The last one; the newest if not given.
            starting_timestamp: No version before the first one that was made at that time or later.
            ending_timestamp: No version behind the last one that was made at that time or before.
            columns: Their names; all if not given.
            predicate: Which of the changed rows are kept.
            allow_out_of_range: Whether a range behind the newest version is empty rather than an error.

        Raises:
            InvalidArgumentError: There is no such range.
            NotFoundError: A version of it has been cleaned up.
            UnsupportedError: The change data feed was not on in all of it.
        """
        times = self._commit_times()
        zone = self._session_timezone
        given = FeedRange(starting_version, ending_version, starting_timestamp, ending_timestamp, allow_out_of_range)
        start, end = given.versions(times, self.version(), zone) or (0, -1)
        feed = ChangeFeed(self._store, self._snapshot, TableScan(self._store, self._snapshot, self._files()), times)
        where = bind(predicate, feed.schema, session_timezone=self._session_timezone)
        chosen = ChosenColumns(columns, feed.schema)
        batches = feed.batches(start, end, chosen.read, where)
        return pa.RecordBatchReader.from_batches(chosen.schema, map(chosen.pick, batches))

    def __arrow_c_schema__(self) -> object:
        return self._scan().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def _commit_times(self, snapshot: Snapshot | None = None) -> dict[int, int]:
        configuration = Metadata(snapshot or self._snapshot).configuration
        in_commit = configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"
        return versions.commit_times(self._store, in_commit=in_commit)

    def _write_target(self) -> WriteTarget:
        """Where a write to the table goes: `OpenTable`."""
        resolve_for_writing(self._uri, self._storage_options)
        return WriteTarget(
            self._uri,
            self._store,
            self._snapshot,
            self._storage_options,
            self._session_timezone,
            self.update_incremental,
        )

    def _bind(self, filters: RowFilter | None) -> BoundFilter | None:
        return bind_to(self._snapshot, filters, self._session_timezone)

    def _select(self) -> FileSelection:
        return self._snapshot.select(self._store)

    def _files(self, filesystem: Any | None = None) -> FileLocator:
        return FileLocator(self._store, self._snapshot.root, self._storage_options, filesystem)

    def _scan(self, filters: RowFilter | None = None, filesystem: Any | None = None) -> TableScan:
        where = self._bind(filters)
        selection = self._snapshot.select(self._store, where.predicates if where else None)
        kept = in_partitions(self._snapshot, selection, where)
        return TableScan(self._store, self._snapshot, self._files(filesystem), selection, kept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeltaTable):
            return NotImplemented
        return (self._uri, self.version()) == (other._uri, other.version())

    def __hash__(self) -> int:
        return hash((self._uri, self.version()))

    def __repr__(self) -> str:
        return f"DeltaTable({self._uri!r}, version={self.version()})"


if not TYPE_CHECKING:
    __getattr__ = names_of(
        __name__, ["TableOptimizer", "encode_partition_value"], {"TableMerger": "esker.delta.merger"}
    )
