"""What Spark's jobs ask of a table: one version pinned, read in slices; fragments written apart and committed at once.

The processes of a job share nothing: what goes from the driver to a task and back is plain data that pickles, a
fragment as its encoded bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from esker._native.expr import Predicate
from esker._native.store import Store
from esker._native.table import Fragment, Manifest, Schema, Transaction
from esker._native.write import write_fragments
from esker.arrow.batch_source import BatchSource
from esker.arrow.struct_offsets import rebased
from esker.commit import commit, resolve
from esker.commit.orphans import StagedFiles
from esker.exceptions import NotFoundError, SchemaMismatchError
from esker.lance import LanceCommit, LanceLog
from esker.lance.scan.options import ScanOptions
from esker.lance.scan.scan import Scan
from esker.lance.version import TableVersion
from esker.lance.write.newcomer import append_to_newcomer
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.zoned_filter import instants_apart, told_zone, zoned_predicate

__all__ = ["TOKEN", "FragmentSize", "Snapshot", "WritePlan"]

TOKEN = "esker.dataset.write-token"
"""The property of a transaction that names the Spark job whose commit it is."""

_FILE_ROWS = 1024 * 1024
_FILE_BYTES = 90 * 1024**3
_MEMORY_LIMIT = 64 * 1024 * 1024
_DATA = "data/"


@dataclass(frozen=True)
class FragmentSize:
    """What a plan must know of a fragment: rows with the deleted ones, bytes where the writer told."""

    id: int
    physical_rows: int
    size_bytes: int | None


class Snapshot:
    """One version of a table, open for reading.

    Args:
        address: The table.
        version: The version, None for the newest.

    Raises:
        NotFoundError: No table there, or no such version.
    """

    def __init__(self, address: TableAddress, version: int | None = None) -> None:
        self._table = TableVersion.open(address.uri, version, storage_options=dict(address.storage_options))
        self.version = self._table.number
        self.schema = self._table.schema

    def fragments(self) -> list[FragmentSize]:
        """The fragments, in order."""
        return [FragmentSize(f.id, f.physical_rows, _size(f)) for f in self._table.fragments]

    def scan(
        self,
        *,
        columns: Sequence[str],
        filter: str | None,
        zone: str | None,
        fragment_id: int,
        rows: tuple[int, int],
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The live rows among the physical rows [start, end) of one fragment; in the filter times are of `zone`."""
        if all(fragment.id != fragment_id for fragment in self._table.fragments):
            raise NotFoundError(
                f"the table at {self._table.uri} has no fragment {fragment_id} in version {self.version}",
                uri=self._table.uri,
                version=self.version,
            )
        options = ScanOptions(
            columns=list(columns),
            filter=self._bound(filter, zone),
            batch_size=batch_rows,
            fragment_ids=(fragment_id,),
            row_range=rows,
        )
        return Scan(self._table, options).to_batches()

    def _bound(self, filter: str | None, zone: str | None) -> Predicate | None:
        if filter is None:
            return None
        schema = self._table.described_schema
        return zoned_predicate(filter, schema, told_zone(filter, schema, zone))

    def projected_schema(self, columns: Sequence[str], filter: str | None) -> pa.Schema:
        """The schema of what a scan returns, nothing read.

        Raises:
            InvalidArgumentError: A column does not exist, or the filter does not parse.
        """
        filter = None if filter is None else instants_apart(filter)
        return Scan(self._table, ScanOptions(columns=list(columns), filter=filter)).schema


@dataclass(frozen=True)
class WritePlan:
    """A write as the driver fixed it: tasks write fragments by it, the driver commits by it.

    Args:
        address: The table.
        token: The write's own name, by which its commit is found again.
        read_version: The version that the write goes on top of, 0 if there was no table.
        replace: Whether the fragments take the place of all that is there.
        create: Whether the table must not exist when the write commits.
        schema: The table's schema after the write, with its field ids.
        options: Sizes of files.
        data_storage_version: The file version of the fragments.
    """

    address: TableAddress
    token: str
    read_version: int
    replace: bool
    create: bool
    schema: Schema
    options: WriteOptions
    data_storage_version: str

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema as Arrow has it."""
        return pa.schema(self.schema)

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[bytes, ...]:
        """Writes batches of `arrow_schema` as data files and returns their fragments, encoded. No rows make none."""
        fragments = BatchSource(self.arrow_schema, batches).feed(
            lambda reader: write_fragments(
                _store(self.address),
                rebased(reader),
                schema=self.schema,
                data_storage_version=self.data_storage_version,
                max_rows_per_file=self.options.max_rows_per_file or _FILE_ROWS,
                max_bytes_per_file=self.options.max_bytes_per_file or _FILE_BYTES,
                memory_limit=_MEMORY_LIMIT,
            )
        )
        return tuple(fragment.encode() for fragment in fragments)

    def staged(self, fragments: Iterable[bytes]) -> StagedFiles:
        """The data files of fragments, for whom nothing has been put yet that names them."""
        store = _store(self.address)
        return StagedFiles((store, _DATA + file.path) for data in fragments for file in Fragment.decode(data).files)

    def commit(self, fragments: Iterable[bytes], staged: StagedFiles) -> int:
        """Commits all fragments of the write at once and returns the new version.

        Args:
            fragments: What tasks wrote.
            staged: Their files; it is told what is known of the commit.

        Raises:
            AlreadyExistsError: `create`, and another writer has made the table meanwhile.
            CommitConflictError: Another writer's commit leaves no room for this one.
            CommitStateUnknownError: Nobody can tell whether it is there.
        """
        made = [Fragment.decode(data) for data in fragments]
        properties = {TOKEN: self.token}
        if not self.replace:
            return self._commit(Transaction.append(self.read_version, made, properties=properties), staged)
        transaction = Transaction.overwrite(self.read_version, made, self.schema, properties=properties)
        return self._commit(transaction, staged, create=self.create)

    def join(self, fragments: Iterable[bytes], staged: StagedFiles) -> int | None:
        """Appends the fragments to a table that another writer made meanwhile, if it has the very same schema."""
        made = [Fragment.decode(data) for data in fragments]
        try:
            change = append_to_newcomer(
                _log(self.address), made, self.schema, self.data_storage_version, properties={TOKEN: self.token}
            )
        except SchemaMismatchError:
            return None
        return commit(change, staged=staged)

    def _commit(self, transaction: Transaction, staged: StagedFiles, *, create: bool = False) -> int:
        version = self.data_storage_version if self.replace else None
        made = LanceCommit(_log(self.address), transaction, data_storage_version=version, create=create)
        return commit(made, staged=staged)


def latest_manifest(address: TableAddress) -> Manifest | None:
    """The newest version, None if there is no table yet; flags of features are checked for reading."""
    log = _log(address)
    if not log.newest().versions:
        return None
    return log.open()[0]


def _store(address: TableAddress) -> Store:
    return resolve(address.uri, storage_options=address.storage_options)


def _log(address: TableAddress) -> LanceLog:
    return LanceLog.at(address.uri, storage_options=address.storage_options)


def _size(fragment: Fragment) -> int | None:
    sizes = [file.file_size_bytes for file in fragment.files]
    return None if None in sizes else sum(size for size in sizes if size is not None)
