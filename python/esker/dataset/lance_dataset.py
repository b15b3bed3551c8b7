"""`LanceDataset`: a Lance table at one of its versions, and `dataset`, which opens one."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from .._native.store import Store
from .._native.table import Manifest
from ..arrow.blob_arrays import marked_blobs
from ..arrow.incoming import ReaderLike
from ..arrow.json_columns import shown_schema
from ..commit.external import ExternalManifestStore
from ..commit.protocol import CommitLock
from ..exceptions import InvalidArgumentError, of_changes, of_files
from ..fragment import LanceFragment
from ..lance.history.versions import version_asof
from ..lance.io_stats import IOMeter, IOStats
from ..lance.log import LanceLog
from ..lance.refs.opening import open_at
from ..lance.refs.places import Reference
from ..lance.scan.options import ColumnOrdering, Columns, blobs_as, integer
from ..lance.scan.predicate import Filter, to_predicate
from ..lance.scan.take import take_rows
from ..lance.session import Session, session_for
from ..lance.version import TableVersion
from ..lance.write.request import WriteArguments
from ..lance.write.table import write_given
from ..missing import refuse_options
from ..progress import Progress
from ..scanner import LanceScanner, ScannerBuilder
from ..scanner.blob_frame import parted
from ..schema import LanceSchema
from ..store.base_stores import BaseStores
from ..store.pickling import pickled_options
from ..store.staging import StagingStore
from .blobs import BlobsApi
from .cleanup import CleanupApi
from .clones import BasePathsApi
from .columns import ColumnsApi
from .commits import CommitsApi
from .in_memory import InMemoryApi
from .inventory import InventoryApi, check_read_params
from .merge_insert import MergeInsertApi
from .optimizer import OptimizeApi
from .refs import RefsApi
from .row_ids import RowIdsApi
from .rows import RowsApi
from .settings import SettingsApi
from .sql import SqlApi
from .unsupported import UnsupportedApi
from .validation import ValidationApi
from .versions import VersionsApi

if TYPE_CHECKING:
    import pandas as pd

_NO_COLUMNS = pa.schema([])


class LanceDataset(
    RowIdsApi,
    RowsApi,
    MergeInsertApi,
    VersionsApi,
    RefsApi,
    CommitsApi,
    SettingsApi,
    SqlApi,
    ColumnsApi,
    BlobsApi,
    BasePathsApi,
    CleanupApi,
    OptimizeApi,
    InventoryApi,
    InMemoryApi,
    ValidationApi,
    UnsupportedApi,
    pyarrow.dataset.UnionDataset,  # type: ignore[misc]
):
    """A Lance table, pinned at one version. It is a `pyarrow.dataset.Dataset`, and can be pickled and forked.

    Args:
        uri: The table: a path, or a URI of a registered scheme.
        version: The version to show, the latest by default: its number, the name of a tag, or a tuple (branch, number)
            as `checkout_version` takes it.
        storage_options: Options of the store, such as credentials.
        default_scan_options: Default options of the user's scans: `scanner`, `to_table`, `to_batches`, `to_pandas`,
            `head`, `slice`, `schema`, and the dataset as a source of rows. They do not apply to counts, takes, samples,
            fragments and changes.
        block_size: A hint of pylance, of no effect here, like `index_cache_size` and `metadata_cache_size`.
        metadata_cache_size_bytes: The limit of the dataset's own session, if none is given; see `Session`.
        index_cache_size_bytes: Likewise.
        commit_lock: Held around commits, for stores without put-if-absent.
        session: The caches that several datasets share, and one account of their requests.
        manifest_store: The external manifest store of a table whose store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one. All writers must use it.
        base_store_params: Options by the path of a base path; they replace `storage_options` for it.
        read_params: Hints of pylance, of no effect here: what is decoded is validated in any case.
        namespace_client: Refused unless None, like `table_id` and `namespace_client_managed_versioning`.

    Raises:
        NotFoundError: There is no table, or no such version, tag or branch.
        CorruptFileError: The manifest is damaged.
        UnsupportedError: The table needs a newer reader, or this release does not have an option.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-dataset")
        >>> dataset.to_table(filter="id > 1").num_rows
        2
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """A dataset that can be passed to pyarrow's C++ code."""
        self: Self = super().__new__(cls)
        # Functions of pyarrow use the C++ object of a dataset without a check, and crash the process if there is none.
        # Ours is a union of no datasets with no columns; `_scanner_options` refuses scans of it by pyarrow.
        pyarrow.dataset.UnionDataset.__init__(self, _NO_COLUMNS, [])
        return self

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: Reference | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: dict[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: dict[str, Any] | None = None,
        session: Session | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
        *,
        manifest_store: ExternalManifestStore | str | None = None,
    ) -> None:
        refuse_options(
            namespace_client=namespace_client,
            table_id=table_id,
            namespace_client_managed_versioning=namespace_client_managed_versioning,
        )
        check_read_params(read_params)
        del block_size, index_cache_size, metadata_cache_size
        session = session_for(session, index_cache_size_bytes, metadata_cache_size_bytes)
        refuse_options(serialized_manifest=serialized_manifest)
        table = open_at(
            uri,
            version,
            storage_options=storage_options,
            commit_lock=commit_lock,
            manifest_store=manifest_store,
            base_store_params=base_store_params,
        )
        if session is not None:
            session._watch(table.store)
        self._bind(table, default_scan_options)

    def _bind(self, table: TableVersion, default_scan_options: dict[str, Any] | None) -> None:
        self._table = table
        self._default_scan_options = default_scan_options
        self._meter = IOMeter([table.store])

    @classmethod
    def _of(cls, table: TableVersion, default_scan_options: dict[str, Any] | None = None) -> Self:
        # As in pylance, no instance of a subclass, whose own __init__ does not run here and may take other arguments.
        self = LanceDataset.__new__(LanceDataset)
        self._bind(table, default_scan_options)
        return self

    @classmethod
    def _open(cls, uri: str | os.PathLike[str], **options: Any) -> Self:
        return LanceDataset(uri, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        # The absolute URI: the copy may be unpickled in another working folder.
        log = self._table.log
        state = (
            log.uri,
            self._table.manifest,
            pickled_options(self._table.storage_options),
            self._default_scan_options,
            log.manifest_store,
            {place: pickled_options(given) for place, given in (log.bases.params or {}).items()} or None,
            # What a branch's URI means may be another commit by then: the store carries the one that was read.
            log.store if isinstance(log.store, StagingStore) else None,
        )
        return _unpickle, state

    def __setstate__(self, state: Any) -> None:
        """Does nothing: `_unpickle` restores everything."""

    def __copy__(self) -> LanceDataset:
        return self._at(self._table)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset(uri={self.uri!r}, version={self.version})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows by the Arrow PyCapsule interface."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    @property
    def _storage_options(self) -> dict[str, str] | None:
        # Its own name for them, which code beside it reads.
        return self._table.storage_options

    @property
    def _ds(self) -> LanceDataset:
        # Tools built on pylance look here for its Rust object; this class has the methods that the two share.
        return self

    @property
    def uri(self) -> str:
        """The table's URI, as it was given."""
        return self._table.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns that a scan returns: those of the table, or those that `default_scan_options` select."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return shown_schema(self._table.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """The columns with their field ids."""
        return LanceSchema(self._table.manifest.schema)

    @property
    def max_field_id(self) -> int:
        """The highest field id assigned so far, including those of dropped columns."""
        return self._table.manifest.max_field_id

    @property
    def data_storage_version(self) -> str:
        """The table's file version, "2.0" for example; appends may have added files of other versions."""
        return self._table.manifest.data_storage_version

    @property
    def version(self) -> int:
        """The version that this dataset shows."""
        return self._table.number

    def scanner(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Any = None,
        full_text_query: Any = None,
        *,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        row_range: tuple[int, int] | None = None,
        progress: Progress | Callable[[int], object] | None = None,
        **options: Any,
    ) -> LanceScanner:
        """A scan of this version.

        Args:
            columns: Names of columns (nested ones with dots) in the order to return, or a dict of name to SQL
                expression.
            filter: Returns only rows for which this is true: the text of a SQL WHERE clause, or a pyarrow expression.
            limit: The maximum number of rows, after `filter` and `offset`.
            offset: The number of rows to skip at the start, after `filter`.
            nearest: Not supported yet.
            batch_size: The maximum number of rows per batch.
            batch_size_bytes: The approximate maximum number of bytes per batch.
            batch_readahead: A hint of pylance, of no effect here.
            fragment_readahead: A hint of pylance, of no effect here.
            scan_in_order: False returns batches as they become ready.
            fragments: Scans only these fragments, in this order.
            index_segments: Not supported yet.
            full_text_query: Not supported yet.
            with_row_id: Adds the column `_rowid`.
            with_row_address: Adds the column `_rowaddr`.
            strict_batch_size: All batches but the last hold exactly `batch_size` rows.
            order_by: Sorts the result, in memory.
            row_range: Physical rows [start, end) of the one fragment in `fragments`.
            progress: Called after each batch with the number of rows so far, or an `esker.progress.Progress`.
            **options: The other options of pylance's scanner: hints are accepted, options that would change the result
                are refused.

        Raises:
            InvalidArgumentError: A column does not exist, or the filter does not parse.
            InvalidTypeError: An option is unknown.
            UnsupportedError: This release does not have an option.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [3, 1, 2]}), "memory://doc-scanner")
            >>> dataset.scanner(columns={"twice": "id * 2"}, order_by=["id"], limit=1).to_table().to_pylist()
            [{'twice': 2}]
        """
        builder = ScannerBuilder(self).apply_defaults(self._default_scan_options or {})
        named = {
            "columns": columns,
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "nearest": nearest,
            "batch_size": batch_size,
            "batch_size_bytes": batch_size_bytes,
            "batch_readahead": batch_readahead,
            "fragment_readahead": fragment_readahead,
            "scan_in_order": scan_in_order,
            "fragments": fragments,
            "index_segments": index_segments,
            "full_text_query": full_text_query,
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "strict_batch_size": strict_batch_size,
            "order_by": order_by,
            "row_range": row_range,
            "progress": progress,
        }
        builder.apply_defaults(options)
        # None leaves an option as it is.
        return builder.apply_defaults({name: it for name, it in named.items() if it is not None}).to_scanner()

    def _rows_to_write(self) -> pa.RecordBatchReader:
        """All rows with their blobs as bytes and their JSON as it is stored, as the source of another write."""
        scan = self.scanner(blob_handling="all_binary")._scan.but(json_text=False)
        return marked_blobs(scan.to_reader(), self._table.schema)

    def to_table(self, *args: Any, **options: Any) -> pa.Table:
        """The rows as a table in memory. Arguments are those of `scanner`."""
        return self.scanner(*args, **options).to_table()

    def to_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows as batches. A batch is decoded when it is read. Arguments are those of `scanner`."""
        return self.scanner(*args, **options).to_batches()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """The rows as a pandas data frame. Arguments are those of `scanner`, but for their places, and of its
        `to_pandas`."""
        options, shown = parted(options)
        by_place = (columns, filter, limit, offset, nearest, batch_size)
        options |= {"batch_readahead": batch_readahead, "fragment_readahead": fragment_readahead}
        return self.scanner(*by_place, scan_in_order=scan_in_order, **options).to_pandas(**shown)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first `num_rows` rows. `options` are those of `scanner`."""
        return self.scanner(**{**options, "limit": num_rows}).to_table()

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """Rows [start, end) by position.

        Raises:
            InvalidArgumentError: `start` is negative, or `end` is less than `start`.
        """
        start, end = integer("start", start), integer("end", end)
        if start < 0 or end < start:
            raise InvalidArgumentError(f"expected 0 <= start <= end, found start {start} and end {end}")
        return self.scanner(offset=start, limit=end - start, columns=columns).to_table()

    @of_files()
    def take(self, indices: Any, columns: Columns | None = None, *, blob_handling: str | None = None) -> pa.Table:
        """Takes rows by number, in the order of `indices`, duplicates included.

        Args:
            indices: Row numbers from 0: a list, a range, a numpy or an Arrow array.
            columns: As in `scanner`; but a path in a list, such as `s.a` or `l.item.a`, leaves its struct or list in
                place, with only the fields that are asked for.
            blob_handling: Likewise: "all_binary" reads blobs, which are described otherwise.

        Raises:
            OutOfRangeError: A number is negative, or beyond the last row.
            InvalidTypeError: A number is null, or no integer.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [10, 11, 12]}), "memory://doc-take")
            >>> dataset.take([2, 0, 2])["id"].to_pylist()
            [12, 10, 12]
        """
        table = self._table
        return take_rows(
            table.store,
            table.manifest,
            table.described_schema,
            indices,
            columns,
            in_structs=True,
            fragment_ids=None,
            rows=table.num_rows,
            blobs=blobs_as(blob_handling),
        )

    def sample(self, num_rows: int, columns: Columns | None = None, randomize_order: bool = True) -> pa.Table:
        """A random sample of `num_rows` different rows; in the table's order unless `randomize_order`."""
        total, num_rows = self._table.num_rows, integer("num_rows", num_rows, least=0)
        if num_rows > total:
            raise InvalidArgumentError(f"expected a sample of at most {total} rows, found {num_rows}")
        numbers = random.sample(range(total), num_rows)
        return self.take(numbers if randomize_order else sorted(numbers), columns)

    @of_changes()
    def count_rows(self, filter: Filter | None = None, **options: Any) -> int:
        """The number of rows for which `filter` is true. Without a filter it is taken from the manifest, if that has
        it."""
        if filter is None and not options:
            return self._table.num_rows
        # Without `default_scan_options`, which apply to the user's scans only.
        return ScannerBuilder(self).apply_defaults({"filter": filter, **options}).to_scanner().count_rows()

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """The fragments that may have rows for which a filter is true, in order: all of them, without partitions.

        Args:
            filter: A pyarrow expression. Pass it to the scans of the fragments, too.

        Raises:
            InvalidArgumentError: The filter has a column that does not exist.
        """
        if filter is not None:
            to_predicate(filter, self._table.described_schema)
        return [LanceFragment(self, None, fragment=fragment) for fragment in self._table.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment with this id, None if there is none."""
        found = [fragment for fragment in self._table.fragments if fragment.id == fragment_id]
        return LanceFragment(self, None, fragment=found[0]) if found else None

    def fragment_ids(self) -> list[int]:
        """The ids of all fragments, in order."""
        return [fragment.id for fragment in self._table.fragments]

    def io_stats(self) -> IOStats:
        """Requests and bytes of this dataset since the last call."""
        return self._meter.take()

    io_stats_incremental = io_stats

    def io_stats_snapshot(self) -> IOStats:
        """Requests and bytes of this dataset since the last `io_stats`, without starting anew."""
        return self._meter.snapshot()

    def session(self) -> Session:
        """The caches of this dataset, which it shares with its other versions and with the datasets that are opened
        with them; and the account of their requests.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-dataset-session")
            >>> other = esker.dataset("memory://doc-dataset-session", session=dataset.session())
            >>> other.session().is_same_as(dataset.session())
            True
        """
        return Session._of(self._store)

    def insert(self, data: ReaderLike, *, mode: str = "append", **options: Unpack[WriteArguments]) -> None:
        """Writes rows and moves this dataset to the new version. See `write_dataset`."""
        written = write_given(self, data, None, mode, options)
        self._move_to(self._table.at(written.manifest))


def dataset(
    uri: str | os.PathLike[str] | None = None,
    version: Reference | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: dict[str, str] | None = None,
    default_scan_options: dict[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: dict[str, Any] | None = None,
    session: Session | None = None,
    namespace_client: Any = None,
    table_id: list[str] | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    *,
    manifest_store: ExternalManifestStore | str | None = None,
) -> LanceDataset:
    """Opens a table.

    Args:
        uri: A path, or a URI of a registered scheme (`file://`, `memory://NAME`).
        version: The version to open, the latest by default: its number, the name of a tag, or a tuple (branch, number)
            as `LanceDataset.checkout_version` takes it.
        asof: Opens the latest version before this time (local if it has no time zone) if `version` is not given.
        block_size: A hint of pylance, of no effect here, like `index_cache_size`.
        commit_lock: Held around commits, for stores without put-if-absent.
        index_cache_size: See `block_size`.
        storage_options: Options of the store, such as credentials.
        default_scan_options: Default options of the user's scans; see `LanceDataset`.
        metadata_cache_size_bytes: The limit of the dataset's own session, if none is given; see `Session`.
        index_cache_size_bytes: Likewise.
        manifest_store: The external manifest store of a table whose store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one.
        session: The caches that several datasets share, and one account of their requests.
        base_store_params: By the place of a base path, its options in place of `storage_options`.
        read_params: Hints of pylance, of no effect here.
        namespace_client: Refused unless None, like `table_id`.
        table_id: See `namespace_client`.

    Raises:
        InvalidArgumentError: There is no `uri`.
        NotFoundError: There is no table, no such version, tag or branch, or none before `asof`.
        CorruptFileError: The manifest is damaged.
        UnsupportedError: The table needs a newer reader.

    Example:
        >>> import esker, pyarrow as pa
        >>> _ = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-open")
        >>> esker.dataset("memory://doc-open").version
        1
    """
    del block_size, index_cache_size
    refuse_options(namespace_client=namespace_client, table_id=table_id)
    if uri is None:
        raise InvalidArgumentError("expected the uri of a table, found None")
    found = LanceDataset(
        uri,
        version,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        commit_lock=commit_lock,
        manifest_store=manifest_store,
        session=session,
        base_store_params=base_store_params,
        read_params=read_params,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
    )
    if version is None and asof is not None:
        return found.checkout_version(version_asof(found._table, asof))
    return found


def _unpickle(
    uri: str,
    manifest: Manifest,
    storage_options: dict[str, str] | None,
    default_scan_options: dict[str, Any] | None,
    manifest_store: ExternalManifestStore | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    store: Store | None = None,
) -> LanceDataset:
    if store is None:
        log = LanceLog.at(
            uri, storage_options=storage_options, manifest_store=manifest_store, base_store_params=base_store_params
        )
    else:
        log = LanceLog(store, uri, bases=BaseStores(storage_options, base_store_params))
    return LanceDataset._of(TableVersion.of(uri, log, manifest, storage_options), default_scan_options)
