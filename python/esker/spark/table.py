"""`PinnedTable`: a version that Spark's tasks read in slices. `FragmentPlan`: a write of fragments by tasks, with one
commit by the driver.

The processes of a job share nothing: the driver and the tasks exchange only plain data that can be pickled, such as
encoded fragments.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from esker._native.expr import Predicate
from esker._native.schema import Schema
from esker._native.store import Store
from esker._native.table import Fragment, Manifest, Transaction
from esker._native.write import write_fragments
from esker.arrow.batch_source import BatchSource
from esker.arrow.blob_arrays import holds_blobs, to_blobs
from esker.arrow.json_columns import shown_schema
from esker.arrow.struct_offsets import rebased
from esker.cached import cached_property
from esker.commit import commit, resolve
from esker.commit.clock import seconds_since
from esker.commit.orphans import StagedFiles
from esker.exceptions import CommitConflictError, NotFoundError, SchemaMismatchError
from esker.lance import LanceCommit, LanceLog
from esker.lance.commit import APPLICATION_PREFIX, is_applied
from esker.lance.log import entry_of
from esker.lance.operation import application_properties
from esker.lance.scan.options import ScanOptions
from esker.lance.scan.scan import Scan
from esker.lance.version import TableVersion
from esker.lance.write.compression import DEFAULT_COMPRESSION, Compression, compression_config
from esker.lance.write.newcomer import append_to_newcomer
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.table_format import is_delta
from esker.spark.zoned_filter import instants_apart, told_zone, zoned_predicate
from esker.store.staging import Handover, adopt

__all__ = ["TOKEN", "FragmentSize", "PinnedTable", "FragmentPlan", "made_meanwhile", "replaced_meanwhile"]

TOKEN = "esker.dataset.write-token"
"""The transaction property with the token of the Spark write that committed it."""

_FILE_ROWS = 1024 * 1024
_FILE_BYTES = 90 * 1024**3
_MEMORY_LIMIT = 64 * 1024 * 1024
_DATA = "data/"


@dataclass(frozen=True)
class FragmentSize:
    """The size of a fragment: rows including deleted ones, and bytes if the manifest has them."""

    id: int
    physical_rows: int
    size_bytes: int | None


class PinnedTable:
    """One version of a table, open for reading.

    Args:
        address: The table.
        version: The version, None for the newest.

    Raises:
        NotFoundError: There is no table, or no such version.
    """

    def __init__(self, address: TableAddress, version: int | None = None) -> None:
        self._table = TableVersion.open(address.uri, version, storage_options=dict(address.storage_options))
        self.version = self._table.number
        self.schema = shown_schema(self._table.schema)

    @cached_property
    def entry(self) -> str:
        """What tells this version from one with its number of another table: who committed it, and when."""
        return entry_of(self._table.manifest)

    @property
    def described_schema(self) -> pa.Schema:
        """The columns as filters see them."""
        return self._table.described_schema

    @property
    def num_rows(self) -> int:
        """The number of live rows."""
        return self._table.num_rows

    def fragments(self) -> list[FragmentSize]:
        """The fragments, in order."""
        return [FragmentSize(f.id, f.physical_rows, _size(f)) for f in self._table.fragments]

    def bytes_per_row(self) -> float:
        """How many bytes a row has in the data files, as far as the manifest records their sizes."""
        summary = self._table.manifest.summary()
        return summary["total_files_size"] / max(summary["total_data_file_rows"], 1)

    def scan(
        self,
        *,
        columns: Sequence[str],
        filter: str | None,
        zone: str | None,
        clock: datetime,
        fragment_ids: tuple[int, ...],
        rows: tuple[int, int] | None,
        batch_rows: int,
    ) -> Scan:
        """A scan of the live rows of some fragments, or of those among the physical rows [start, end) of a single one.

        Times without a zone in the filter are in `zone`, and it is `clock` there.
        """
        options = ScanOptions(
            columns=list(columns),
            filter=self._bound(filter, zone, clock),
            batch_size=batch_rows,
            fragment_ids=fragment_ids,
            row_range=rows,
            json_text=True,
        )
        return Scan(self._table, options)

    def _bound(self, filter: str | None, zone: str | None, clock: datetime) -> Predicate | None:
        if filter is None:
            return None
        schema = self._table.described_schema
        return zoned_predicate(filter, schema, told_zone(filter, schema, zone), clock)

    def projected_schema(self, columns: Sequence[str], filter: str | None) -> pa.Schema:
        """The schema of the rows of a scan. Nothing is read.

        Raises:
            InvalidArgumentError: A column does not exist, or the filter does not parse.
        """
        filter = None if filter is None else instants_apart(filter)
        return Scan(self._table, ScanOptions(columns=list(columns), filter=filter, json_text=True)).schema


@dataclass(frozen=True)
class FragmentPlan:
    """The plan of a write, made by the driver: tasks write fragments with it, and the driver commits with it.

    Args:
        address: The table.
        token: The write's random id, by which its commit can be found.
        read_version: The base version, 0 if there was no table.
        replace: Whether the fragments replace all rows of the table.
        create: Whether it is an error if the table exists at the commit.
        schema: The table's schema after the write, with its field ids.
        options: Sizes of files.
        data_storage_version: The file version of the fragments.
        compression: How small their files are to be.
        application: The id of a stream and the number of its batch, which is committed once; None for other writes.
        applications: What is known to be committed: for each application its last number.
        entry: What tells the base version from one with its number of another table; empty if there was none.
        began: When it was planned, by both clocks of the driver: no file is older.
    """

    address: TableAddress
    token: str
    read_version: int
    replace: bool
    create: bool
    schema: Schema
    options: WriteOptions
    data_storage_version: str
    compression: Compression = DEFAULT_COMPRESSION
    application: tuple[str, int] | None = None
    applications: Mapping[str, int] = field(default_factory=dict)
    entry: str = ""
    began: tuple[float, float] = field(default_factory=lambda: (time.monotonic(), time.time()))

    @property
    def is_known_to_be_applied(self) -> bool:
        """Whether the batch was committed already when the write was planned."""
        if self.application is None:
            return False
        name, number = self.application
        return self.applications.get(name, -1) >= number

    def is_applied(self) -> bool:
        """Whether the batch is committed in the newest version."""
        if self.application is None:
            return False
        manifest = latest_manifest(self.address)
        return manifest is not None and is_applied(manifest, *self.application)

    def check_base(self) -> None:
        """Checks that the table is the one that the write was planned for: the files have its field ids.

        Raises:
            NotFoundError: The table is gone.
            CommitConflictError: Another one is in its place.
        """
        if not self.entry:
            if is_delta(self.address):
                raise made_meanwhile(self.address.uri, "Delta")
            return
        log = _log(self.address)
        try:
            found = log.open(self.read_version)[0]
        except NotFoundError:
            if 0 < log.newest().latest <= self.read_version:
                raise replaced_meanwhile(self.address.uri, self.read_version) from None
            if not log.newest().versions:
                raise
            # It was cleaned up.
            return
        if entry_of(found) != self.entry:
            raise replaced_meanwhile(self.address.uri, self.read_version)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema as an Arrow schema."""
        return pa.schema(self.schema)

    def store(self) -> Store:
        """The store of the table, in which a task stages its files: on a branch, they are seen there alone."""
        return resolve(self.address.uri, storage_options=self.address.storage_options)

    def log(self, files: Handover) -> LanceLog:
        """The log that the write is committed to.

        Args:
            files: What the stores of the tasks have handed over.
        """
        log = _log(self.address)
        adopt(log.store, files, seconds_since(*self.began))
        return log

    def write(self, store: Store, batches: Iterable[pa.RecordBatch]) -> tuple[bytes, ...]:
        """Writes batches of `arrow_schema` as data files and returns their encoded fragments: none without rows."""
        fragments = BatchSource(self.arrow_schema, batches).feed(
            lambda reader: write_fragments(
                store,
                rebased(reader),
                schema=self.schema,
                data_storage_version=self.data_storage_version,
                compression=self.compression,
                max_rows_per_file=self.options.max_rows_per_file or _FILE_ROWS,
                max_bytes_per_file=self.options.max_bytes_per_file or _FILE_BYTES,
                memory_limit=_MEMORY_LIMIT,
            )
        )
        return tuple(fragment.encode() for fragment in fragments)

    def staged(self, store: Store, fragments: Iterable[bytes]) -> StagedFiles:
        """The data files of fragments that are staged and not committed, with their blobs."""
        files = [_DATA + file.path for data in fragments for file in Fragment.decode(data).files]
        if any(holds_blobs(field.type) for field in self.arrow_schema):
            # What it imports takes a while, which processes without blobs do not wait for.
            from esker.lance.write.staging import blob_folder

            files = [path for file in files for path in (blob_folder(file), file)]
        return StagedFiles((store, path) for path in files)

    def joined(self, log: LanceLog, fragments: Iterable[bytes], most: int) -> tuple[list[bytes], tuple[bytes, ...]]:
        """The same rows in fewer data files: those fragments that stay, and new ones in place of the smallest."""
        by_size = sorted(fragments, key=lambda data: Fragment.decode(data).physical_rows, reverse=True)
        kept, small = by_size[: most - 1], by_size[most - 1 :]
        made = [Fragment.decode(data) for data in small]
        # A version that nobody commits, whose rows are these.
        manifest = Transaction.overwrite(0, made, self.schema).apply(
            None, version=1, data_storage_version=self.data_storage_version, timestamp_ns=1, store=log.store
        )
        table = TableVersion.of(self.address.uri, log, manifest, dict(self.address.storage_options))
        written = self.write(log.store, map(self._with_blobs, Scan(table, ScanOptions(blobs="bytes")).to_batches()))
        self.staged(log.store, small).discard()
        return kept, written

    def _with_blobs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        wanted = self.arrow_schema
        columns = [to_blobs(batch[field.name], field.type) for field in wanted]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def commit(self, log: LanceLog, fragments: Iterable[bytes], staged: StagedFiles) -> int:
        """Commits all fragments of the write at once and returns the new version.

        Args:
            log: That of `log`.
            fragments: The encoded fragments of all tasks.
            staged: Their files; its `outcome` is kept up to date.

        Raises:
            AlreadyExistsError: `create` is True, and another writer has created the table meanwhile.
            CommitConflictError: Another writer's change conflicts with this one.
            CommitStateUnknownError: It is not known whether the commit landed.
        """
        made = [Fragment.decode(data) for data in fragments]
        properties = self._properties()
        if not self.replace:
            return self._commit(log, Transaction.append(self.read_version, made, properties=properties), staged)
        config = compression_config(self.options.compression)
        transaction = Transaction.overwrite(
            self.read_version, made, self.schema, config=config or None, properties=properties
        )
        return self._commit(log, transaction, staged, create=self.create)

    def join(self, log: LanceLog, fragments: Iterable[bytes], staged: StagedFiles) -> int | None:
        """Appends the fragments to a table that another writer has created meanwhile, and returns the new version; None
        if that table's schema or file version does not fit."""
        made = [Fragment.decode(data) for data in fragments]
        try:
            change = append_to_newcomer(
                log, made, self.schema, self.data_storage_version, properties=self._properties()
            )
        except SchemaMismatchError:
            return None
        return commit(change, staged=staged)

    def _properties(self) -> dict[str, str] | None:
        return application_properties(self.application, {TOKEN: self.token})

    def _commit(self, log: LanceLog, transaction: Transaction, staged: StagedFiles, *, create: bool = False) -> int:
        version = self.data_storage_version if self.replace else None
        made = LanceCommit(log, transaction, data_storage_version=version, create=create)
        return commit(made, staged=staged)


def replaced_meanwhile(uri: str, version: int) -> CommitConflictError:
    """The error of a write whose table was replaced between its plan and its commit.

    Example:
        >>> from esker.spark.table import replaced_meanwhile
        >>> replaced_meanwhile("t.lance", 3).message[:46]
        'the table at t.lance was replaced or reset sin'
    """
    return CommitConflictError(
        f"the table at {uri} was replaced or reset since the write was planned on its version {version}, expected that "
        "version as it was, found another table; nothing of ours is visible, run it again",
        uri=uri,
        version=version,
        retryable=False,
    )


def made_meanwhile(uri: str, found: str) -> CommitConflictError:
    """The error of a write of a new table where one of the other format was made between its plan and its commit.

    Example:
        >>> from esker.spark.table import made_meanwhile
        >>> made_meanwhile("t", "Delta").message[:45]
        'others have made a Delta table at t since the'
    """
    return CommitConflictError(
        f"others have made a {found} table at {uri} since the write was planned, expected none there; nothing of ours "
        "is visible, run it again or give another path",
        uri=uri,
        retryable=False,
    )


def latest_manifest(address: TableAddress) -> Manifest | None:
    """The manifest of the newest version, None if there is no table. Its reader feature flags are checked."""
    log = _log(address)
    if not log.newest().versions:
        return None
    return log.open()[0]


def applications_of(manifest: Manifest | None) -> dict[str, int]:
    """For each application the last number that it has committed by this version."""
    config = {} if manifest is None else manifest.config
    return {
        name.removeprefix(APPLICATION_PREFIX): int(number)
        for name, number in config.items()
        if name.startswith(APPLICATION_PREFIX) and number.isascii() and number.isdigit()
    }


def _log(address: TableAddress) -> LanceLog:
    return LanceLog.at(address.uri, storage_options=address.storage_options)


def _size(fragment: Fragment) -> int | None:
    sizes = [file.file_size_bytes for file in fragment.files]
    return None if None in sizes else sum(size for size in sizes if size is not None)
