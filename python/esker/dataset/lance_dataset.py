"""A table at one of its versions, to be scanned, taken from, counted, and looked at in its other versions."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from .. import blob as _blob  # noqa: F401  # Registers the Arrow type of blob columns.
from .._native import table as native
from .._native.scan import count_rows as count_native
from ..arrow.blob_arrays import marked_blobs
from ..arrow.incoming import ReaderLike
from ..commit.external import ExternalManifestStore
from ..commit.protocol import CommitLock
from ..exceptions import InvalidArgumentError
from ..fragment import LanceFragment, write_fragments
from ..lance.blob.file import BlobsApi
from ..lance.io_stats import IOMeter, IOStats, Session
from ..lance.log import LanceLog
from ..lance.merge.outcome import ExecuteResult
from ..lance.operation import LANCE_COMMIT_MESSAGE_KEY, LanceOperation, Transaction
from ..lance.scan.options import ColumnOrdering, Columns, ScanStatistics, integer
from ..lance.scan.predicate import Filter
from ..lance.scan.take import take_rows
from ..lance.write.staging import refuse_options
from ..schema import LanceSchema
from ..store.pickling import pickled_options
from .cleanup import CleanupApi
from .clones import BasePathsApi
from .columns import ColumnsApi
from .commits import CommitsApi
from .merge_insert import MergeInsertApi, MergeInsertBuilder
from .row_ids import RowIdsApi
from .rows import DeleteResult, RowsApi, UpdateResult
from .scanner import LanceScanner, ScannerBuilder
from .settings import SettingsApi
from .unsupported import PendingApi
from .validation import ValidationApi
from .versions import Version, VersionsApi, check_version, version_asof
from .write import write_dataset

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "ColumnOrdering",
    "DeleteResult",
    "ExecuteResult",
    "LanceDataset",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "Transaction",
    "UpdateResult",
    "Version",
    "dataset",
    "write_dataset",
    "write_fragments",
]


_NO_COLUMNS = pa.schema([])


class LanceDataset(
    RowIdsApi,
    RowsApi,
    MergeInsertApi,
    VersionsApi,
    CommitsApi,
    SettingsApi,
    ColumnsApi,
    BlobsApi,
    BasePathsApi,
    CleanupApi,
    ValidationApi,
    PendingApi,
    pyarrow.dataset.UnionDataset,  # type: ignore[misc]
):
    """A Lance table, pinned at one version. It is a `pyarrow.dataset.Dataset`, pickles, and survives a fork.

    Args:
        uri: The table: a path, or a URI of a registered scheme.
        version: The version to show, the latest by default.
        storage_options: Options of the store, such as credentials.
        default_scan_options: Options that scans of the user's own start from: `scanner`, `to_table`, `to_batches`,
            `to_pandas`, `head`, `slice`, `schema`, and the dataset as a source of rows. Counts, takes, samples,
            fragments and changes go by the version as it is.
        block_size: A hint of pylance, of no effect here, like all cache sizes.
        commit_lock: Held around commits, for stores without put-if-absent.
        session: Keeps one account of what several datasets cost.
        manifest_store: What orders the versions where the table's store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one. All writers must name it.
        base_store_params: By the place of a base path, its options in place of `storage_options`.
        **pylance_only: Refused unless None.

    Raises:
        NotFoundError: No table there, or no such version.
        CorruptFileError: A damaged manifest.
        UnsupportedError: A table that needs a newer reader, or an option that this release does not have.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-dataset")
        >>> dataset.to_table(filter="id > 1").num_rows
        2
    """

    _schema: pa.Schema | None
    _described: pa.Schema | None

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """A dataset that pyarrow's C++ code may be handed."""
        self: Self = super().__new__(cls)
        # Functions of pyarrow go to the C++ object of a dataset without asking, and would kill the process where there
        # is none. Ours is of no parts and no columns: see `_scanner_options` for what becomes of a scan of it.
        pyarrow.dataset.UnionDataset.__init__(self, _NO_COLUMNS, [])
        return self

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: int | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: dict[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        session: Session | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
        base_store_params: dict[str, dict[str, str]] | None = None,
        **pylance_only: Any,
    ) -> None:
        del block_size, index_cache_size, metadata_cache_size, metadata_cache_size_bytes, index_cache_size_bytes
        refuse_options(serialized_manifest=serialized_manifest, **pylance_only)
        log = LanceLog.at(
            uri, storage_options=storage_options, manifest_store=manifest_store, base_store_params=base_store_params
        )
        if session is not None:
            session._watch(log.store)
        manifest, _ = log.open(None if version is None else check_version(version))
        self._bind(os.fspath(uri), log, manifest, storage_options, default_scan_options, commit_lock)

    def _bind(
        self,
        uri: str,
        log: LanceLog,
        manifest: native.Manifest,
        storage_options: dict[str, str] | None,
        default_scan_options: dict[str, Any] | None = None,
        commit_lock: CommitLock | None = None,
    ) -> None:
        self._uri = uri
        self._show(log, manifest)
        self._storage_options = storage_options
        self._default_scan_options = default_scan_options
        self._commit_lock = commit_lock
        self._meter = IOMeter([log.store])

    @classmethod
    def _at(
        cls,
        uri: str,
        log: LanceLog,
        manifest: native.Manifest,
        storage_options: dict[str, str] | None,
        default_scan_options: dict[str, Any] | None = None,
        commit_lock: CommitLock | None = None,
    ) -> LanceDataset:
        """A dataset on a manifest that was read already."""
        self = cls.__new__(cls)
        self._bind(uri, log, manifest, storage_options, default_scan_options, commit_lock)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The absolute URI: the copy may wake up in another working folder.
        state = (
            self._log.uri,
            self._manifest,
            pickled_options(self._storage_options),
            self._default_scan_options,
            self._log.manifest_store,
            {place: pickled_options(given) for place, given in (self._log.bases.params or {}).items()} or None,
        )
        return _unpickle, state

    def __setstate__(self, state: Any) -> None:
        """Nothing: `__reduce__` tells all."""

    def __copy__(self) -> LanceDataset:
        return self._with_manifest(self._manifest)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset(uri={self._uri!r}, version={self.version})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows by the Arrow PyCapsule interface."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    @property
    def _ds(self) -> LanceDataset:
        # Where tools that were built on pylance look for its Rust object: what it has in common with us is our own.
        return self

    @property
    def uri(self) -> str:
        """Where the table lies, as it was given."""
        return self._uri

    @property
    def schema(self) -> pa.Schema:
        """The columns that a scan returns: the table's, unless default scan options say otherwise."""
        return self.scanner().projected_schema if self._default_scan_options else self._table_schema

    @property
    def _table_schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = pa.schema(self._manifest.schema)
        return self._schema

    @property
    def _described_schema(self) -> pa.Schema:
        """The columns that a filter sees: descriptions in place of blobs."""
        if self._described is None:
            self._described = pa.schema(self._manifest.schema.described())
        return self._described

    @property
    def lance_schema(self) -> LanceSchema:
        """The columns with their field ids."""
        return LanceSchema(self._manifest.schema)

    @property
    def max_field_id(self) -> int:
        """The highest field id given out so far, be it of a column that is gone."""
        return self._manifest.max_field_id

    @property
    def data_storage_version(self) -> str:
        """The version of the data files, "2.0" for example; appends may have brought files of others."""
        return self._manifest.data_storage_version

    @property
    def version(self) -> int:
        """The version that this dataset shows."""
        return self._manifest.version

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
        progress: Callable[[int], object] | None = None,
        **options: Any,
    ) -> LanceScanner:
        """A scan of this version.

        Args:
            columns: Names of columns (nested ones with dots) in the order wanted, or a dict of name to SQL expression.
            filter: Rows for which this is true: the text of a SQL WHERE clause, or a pyarrow expression.
            limit: At most so many rows, after `filter` and `offset`.
            offset: Rows to leave out at the start, after `filter`.
            nearest: Not supported yet.
            batch_size: Rows per batch at most.
            batch_size_bytes: Bytes per batch, about.
            batch_readahead: A hint of pylance, of no effect here.
            fragment_readahead: A hint of pylance, of no effect here.
            scan_in_order: False lets batches come as they are ready.
            fragments: Only these, in this order.
            index_segments: Not supported yet.
            full_text_query: Not supported yet.
            with_row_id: Adds the column `_rowid`.
            with_row_address: Adds the column `_rowaddr`.
            strict_batch_size: All batches but the last hold exactly `batch_size` rows.
            order_by: Sorts the result, in memory.
            row_range: Physical rows [start, end) of the one fragment in `fragments`.
            progress: Called after each batch with the rows that have come so far.
            **options: The other options of pylance's scanner: hints are accepted, anything that would change the result
                is refused.

        Raises:
            InvalidArgumentError: A column that does not exist, a filter that does not parse, an unknown option.
            UnsupportedError: An option that this release does not have.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [3, 1, 2]}), "memory://doc-scanner")
            >>> dataset.scanner(columns={"twice": "id * 2"}, order_by=["id"], limit=1).to_table().to_pylist()
            [{'twice': 2}]
        """
        builder = ScannerBuilder(self).apply_defaults(self._default_scan_options or {})
        options |= {
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
        return builder.apply_defaults(options).to_scanner()

    def _scan(self, **options: Any) -> LanceScanner:
        """A scan of this version as it is: what changes, checks and counts read through, whatever options users chose
        for scans of their own."""
        return ScannerBuilder(self).apply_defaults(options).to_scanner()

    def _rows_to_write(self) -> pa.RecordBatchReader:
        """All rows with their blobs, to be written elsewhere."""
        return marked_blobs(self.scanner(blob_handling="all_binary").to_reader(), self._table_schema)

    def to_table(self, *args: Any, **options: Any) -> pa.Table:
        """The rows as a table in memory. Arguments are those of `scanner`."""
        return self.scanner(*args, **options).to_table()

    def to_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows as batches, decoded as they are asked for. Arguments are those of `scanner`."""
        return self.scanner(*args, **options).to_batches()

    def to_pandas(self, *args: Any, **options: Any) -> pd.DataFrame:
        """The rows as a pandas data frame. Arguments are those of `scanner`, and `blob_mode` of its `to_pandas`."""
        blob_mode = options.pop("blob_mode", "lazy")
        return self.scanner(*args, **options).to_pandas(blob_mode=blob_mode)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first `num_rows` rows. `options` are those of `scanner`."""
        return self.scanner(**{**options, "limit": num_rows}).to_table()

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """Rows [start, end) by position.

        Raises:
            InvalidArgumentError: `start` is negative, or `end` lies before it.
        """
        start, end = integer("start", start), integer("end", end)
        if start < 0 or end < start:
            raise InvalidArgumentError(f"expected 0 <= start <= end, found start {start} and end {end}")
        return self.scanner(offset=start, limit=end - start, columns=columns).to_table()

    def take(self, indices: Any, columns: Columns | None = None) -> pa.Table:
        """Rows by number, in the order asked for and as often as asked for.

        Args:
            indices: Row numbers from 0: a list, a range, a numpy or an Arrow array.
            columns: As in `scanner`.

        Raises:
            OutOfRangeError: A number beyond the last row, or a negative one.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [10, 11, 12]}), "memory://doc-take")
            >>> dataset.take([2, 0, 2])["id"].to_pylist()
            [12, 10, 12]
        """
        return self._take(indices, columns, fragment_ids=None, num_rows=self._num_rows())

    def _take(
        self,
        indices: Any,
        columns: Columns | None,
        *,
        fragment_ids: list[int] | None,
        num_rows: int,
        blobs: Literal["bytes", "descriptions"] = "descriptions",
    ) -> pa.Table:
        return take_rows(
            self._store,
            self._manifest,
            self._described_schema,
            indices,
            columns,
            fragment_ids=fragment_ids,
            rows=num_rows,
            blobs=blobs,
        )

    def sample(
        self, num_rows: int, columns: Columns | None = None, randomize_order: bool = True, **options: Any
    ) -> pa.Table:
        """`num_rows` rows by chance, each at most once; in the table's order unless `randomize_order`."""
        refuse_options(**options)
        total, num_rows = self._num_rows(), integer("num_rows", num_rows, least=0)
        if num_rows > total:
            raise InvalidArgumentError(f"expected a sample of at most {total} rows, found {num_rows}")
        numbers = random.sample(range(total), num_rows)
        return self.take(numbers if randomize_order else sorted(numbers), columns)

    def count_rows(self, filter: Filter | None = None, **options: Any) -> int:
        """How many rows satisfy `filter`. Without one nothing is read."""
        if filter is None and not options:
            return self._num_rows()
        return self._scan(filter=filter, **options).count_rows()

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """All fragments, in order. A filter is refused, as in pylance."""
        refuse_options(filter=filter)
        return [LanceFragment(self, None, fragment=fragment) for fragment in self._fragments()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment of that id, None if there is none."""
        found = [fragment for fragment in self._fragments() if fragment.id == fragment_id]
        return LanceFragment(self, None, fragment=found[0]) if found else None

    def fragment_ids(self) -> list[int]:
        """The ids of all fragments, in order."""
        return [fragment.id for fragment in self._fragments()]

    def io_stats(self) -> IOStats:
        """Requests and bytes of this dataset since the last call."""
        return self._meter.take()

    io_stats_incremental = io_stats

    def io_stats_snapshot(self) -> IOStats:
        """Requests and bytes of this dataset since the last `io_stats`, without starting anew."""
        return self._meter.snapshot()

    def insert(self, data: ReaderLike, *, mode: str = "append", **options: Any) -> None:
        """Writes rows and moves this dataset to the version that they made. See `write_dataset`."""
        written = write_dataset(data, self, mode=mode, **options)
        self._move_to(written._manifest)

    def _fragments(self) -> list[native.Fragment]:
        return self._manifest.fragments()

    def _num_rows(self) -> int:
        known = self._manifest.num_rows
        # Tables of old writers: the files know.
        return known if known is not None else count_native(self._store, self._manifest)

    def _move_to(self, manifest: native.Manifest) -> None:
        self._show(self._log, manifest)

    def _show(self, log: LanceLog, manifest: native.Manifest) -> None:
        self._log = log.mounted(manifest)
        self._store = self._log.store
        self._manifest = manifest
        self._schema, self._described = None, None

    def _with_manifest(self, manifest: native.Manifest) -> LanceDataset:
        return LanceDataset._at(
            self._uri, self._log, manifest, self._storage_options, self._default_scan_options, self._commit_lock
        )


def dataset(
    uri: str | os.PathLike[str],
    version: int | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: dict[str, str] | None = None,
    default_scan_options: dict[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    manifest_store: ExternalManifestStore | str | None = None,
    **pylance_only: Any,
) -> LanceDataset:
    """Opens a table.

    Args:
        uri: A path, or a URI of a registered scheme (`file://`, `memory://NAME`).
        version: The version to open, the latest by default.
        asof: Opens the latest version before this time (local if it names no zone) when `version` is not given.
        block_size: A hint of pylance, of no effect here, like the cache sizes.
        commit_lock: Held around commits, for stores without put-if-absent.
        index_cache_size: See `block_size`.
        storage_options: Options of the store, such as credentials.
        default_scan_options: Options that the user's own scans of it start from; see `LanceDataset`.
        metadata_cache_size_bytes: See `block_size`.
        index_cache_size_bytes: See `block_size`.
        manifest_store: What orders the versions where the table's store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one.
        **pylance_only: Refused unless None.

    Raises:
        NotFoundError: No table there, no such version, or none before `asof`.
        CorruptFileError: A damaged manifest.
        UnsupportedError: A table that needs a newer reader.

    Example:
        >>> import esker, pyarrow as pa
        >>> _ = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-open")
        >>> esker.dataset("memory://doc-open").version
        1
    """
    del block_size, index_cache_size, metadata_cache_size_bytes, index_cache_size_bytes
    found = LanceDataset(
        uri,
        version,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        commit_lock=commit_lock,
        manifest_store=manifest_store,
        **pylance_only,
    )
    if version is None and asof is not None:
        return found.checkout_version(version_asof(found, asof))
    return found


def _unpickle(
    uri: str,
    manifest: native.Manifest,
    storage_options: dict[str, str] | None,
    default_scan_options: dict[str, Any] | None,
    manifest_store: ExternalManifestStore | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
) -> LanceDataset:
    log = LanceLog.at(
        uri, storage_options=storage_options, manifest_store=manifest_store, base_store_params=base_store_params
    )
    return LanceDataset._at(uri, log, manifest, storage_options, default_scan_options)
