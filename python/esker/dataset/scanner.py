"""Scans: the rows of a dataset as a table, a reader or batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset

from .._native import scan as native
from .._native.expr import Predicate
from ..arrow.batches import cut_to_bytes, read, read_all
from ..exceptions import UnsupportedError
from ..lance.scan.options import ColumnOrdering, ScannerBuilder, ScanOptions, ScanStatistics, integer
from ..lance.scan.predicate import to_predicate
from ..lance.scan.projection import Projection
from .blob_frame import BlobMode, frame_with_blobs
from .tagged_batches import tagged_batches

if TYPE_CHECKING:
    import pandas as pd

    from . import LanceDataset

__all__ = ["ColumnOrdering", "LanceScanner", "ScanOptions", "ScanStatistics", "ScannerBuilder"]


class LanceScanner:
    """A scan that is ready to run, as often as wanted. Made by `LanceDataset.scanner`. A `pyarrow.dataset.Scanner` to
    `isinstance`.

    Example:
        `dataset.scanner(columns=["id"], filter="id > 10").to_reader()`
    """

    def __init__(self, dataset: LanceDataset, options: ScanOptions) -> None:
        self._ds = dataset
        self._options = options
        shown = dataset._table_schema if options.blobs == "bytes" else dataset._described_schema
        self._projection = Projection.of(options.columns, shown)
        self._predicate: Predicate | None = None
        if options.filter is not None:
            self._predicate = to_predicate(options.filter, dataset._described_schema)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # No subclass, which would lack the C++ object that functions of pyarrow go to without asking.
        return pyarrow.dataset.Scanner  # type: ignore[no-any-return]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows by the Arrow PyCapsule interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The schema of the dataset."""
        return self._ds.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows that the scan returns."""
        return self._shaped_schema(self._open(self._options))

    def to_table(self) -> pa.Table:
        """The rows, in memory."""
        stream = self._open(self._options)
        if self._is_plain():
            return read_all(stream)
        return pa.Table.from_batches(self._run(stream), self._shaped_schema(stream))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a reader: batches are decoded as they are asked for."""
        stream = self._open(self._options)
        return pa.RecordBatchReader.from_batches(self._shaped_schema(stream), self._run(stream))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as batches, decoded as they are asked for."""
        return self._run(self._open(self._options))

    def _run(self, stream: native.BatchStream) -> Iterator[pa.RecordBatch]:
        options = self._options
        started = time.monotonic()
        before = self._ds._store.io_stats_snapshot()
        rows = 0
        batches: Iterable[pa.RecordBatch]
        batches = read(stream)
        if options.batch_size_bytes is not None:
            batches = cut_to_bytes(batches, options.batch_size_bytes)
        for batch in batches:
            rows += batch.num_rows
            if options.progress is not None:
                options.progress(rows)
            yield self._shape(batch)
        if options.scan_stats_callback is not None:
            after = self._ds._store.io_stats_snapshot()
            iops = after.read_iops - before.read_iops
            nbytes, seconds = after.read_bytes - before.read_bytes, time.monotonic() - started
            options.scan_stats_callback(ScanStatistics(iops, iops, nbytes, rows, seconds, *stream.groups))

    def to_pandas(self, *, blob_mode: BlobMode = "lazy", **kwargs: Any) -> pd.DataFrame:
        """The rows as a pandas data frame; `kwargs` go to `pyarrow.Table.to_pandas`.

        Blob columns come as `BlobFile` objects ("lazy"), as bytes ("bytes") or as dicts ("descriptions").
        """
        return frame_with_blobs(self, blob_mode, kwargs)

    def head(self, num_rows: int) -> pa.Table:
        """The first `num_rows` rows."""
        limit = integer("num_rows", num_rows, least=0)
        limit = limit if self._options.limit is None else min(limit, self._options.limit)
        return LanceScanner(self._ds, replace(self._options, limit=limit)).to_table()

    def count_rows(self) -> int:
        """How many rows the scan returns. Without a filter nothing is read."""
        options = self._options
        if options.row_range is not None or options.include_deleted_rows:
            part = LanceScanner(self._ds, replace(options, columns=[], order_by=()))
            return sum(batch.num_rows for batch in part.to_batches())
        if self._predicate is None:
            wanted = options.fragment_ids
            total = self._ds._num_rows() if wanted is None else self._rows_of(wanted)
        else:
            total = native.count_rows(
                self._ds._store,
                self._ds._manifest,
                filter=self._predicate,
                fragment_ids=options.fragment_ids,
                use_stats=options.use_stats,
            )
        rest = max(0, total - (options.offset or 0))
        return rest if options.limit is None else min(rest, options.limit)

    def _rows_of(self, fragment_ids: Iterable[int]) -> int:
        # A fragment that is named twice counts twice, as it comes twice.
        fragments = {fragment.id: fragment.num_rows for fragment in self._ds._fragments()}
        known = [fragments.get(number) for number in fragment_ids]
        if all(rows is not None for rows in known):
            return sum(rows for rows in known if rows is not None)
        return native.count_rows(self._ds._store, self._ds._manifest, fragment_ids=list(fragment_ids))

    def explain_plan(self, verbose: bool = False) -> str:
        """What the scan does, as indented lines from the last step to the first."""
        return "\n".join("  " * depth + line for depth, line in enumerate(self._plan(verbose)))

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Runs the scan and returns its plan with what it cost."""
        seen: list[ScanStatistics] = []
        if count_rows:
            started, before = time.monotonic(), self._ds._store.io_stats_snapshot()
            rows, after = self.count_rows(), self._ds._store.io_stats_snapshot()
            iops, nbytes = after.read_iops - before.read_iops, after.read_bytes - before.read_bytes
            seen.append(ScanStatistics(iops, iops, nbytes, rows, time.monotonic() - started))
        else:
            scanner = LanceScanner(self._ds, replace(self._options, scan_stats_callback=seen.append))
            for _ in scanner.to_batches():
                pass
        cost = seen[0]
        saved = f", groups_skipped={cost.groups_skipped}/{cost.groups}" if cost.groups else ""
        return (
            f"Analyzed: rows={cost.rows}, elapsed={cost.seconds * 1000:.1f}ms, "
            f"requests={cost.requests}, bytes_read={cost.bytes_read}{saved}\n  "
            + self.explain_plan().replace("\n", "\n  ")
        )

    def take(self, indices: Any, **kwargs: Any) -> pa.Table:
        """Raises `UnsupportedError`: take from the dataset."""
        raise UnsupportedError("a scanner cannot take rows, use LanceDataset.take")

    def scan_batches(self) -> Iterator[pyarrow.dataset.TaggedRecordBatch]:
        """The batches of the scan as a whole, each of rows of one fragment, with that fragment."""
        return tagged_batches(self)

    @staticmethod
    def from_dataset(*args: Any, **kwargs: Any) -> Any:
        """Raises `UnsupportedError`: use `LanceDataset.scanner`."""
        raise UnsupportedError("a scanner is made by LanceDataset.scanner")

    from_fragment = from_batches = from_dataset

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceScanner, (self._ds, self._options)

    def _is_plain(self) -> bool:
        """Whether the native stream is the result as it is."""
        options = self._options
        cut = options.batch_size_bytes is not None
        watched = options.scan_stats_callback is not None or options.progress is not None
        return not (cut or watched) and self._projection.is_plain

    def _open(self, options: ScanOptions) -> native.BatchStream:
        columns = self._projection.columns
        return native.scan(
            self._ds._store,
            self._ds._manifest,
            columns=columns,
            filter=self._predicate,
            limit=options.limit,
            offset=options.offset,
            batch_size=options.batch_size,
            fragment_ids=options.fragment_ids,
            row_range=options.row_range,
            with_row_id=options.with_row_id and "_rowid" not in (columns or ()),
            with_row_address=options.with_row_address and "_rowaddr" not in (columns or ()),
            scan_in_order=options.scan_in_order,
            include_deleted_rows=options.include_deleted_rows,
            use_stats=options.use_stats,
            blobs=options.blobs,
            order_by=[(key.column_name, key.ascending, key.nulls_first) for key in options.order_by],
            strict_batch_size=options.strict_batch_size,
        )

    def _shaped_schema(self, stream: native.BatchStream) -> pa.Schema:
        read_schema = pa.schema(stream)
        empty = [pa.nulls(0, field.type) for field in read_schema]
        return self._shape(pa.RecordBatch.from_arrays(empty, schema=read_schema)).schema

    def _shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        present = self._projection.columns or ()
        return self._projection.apply(batch, [n for n, wanted in self._added() if wanted and n not in present])

    def _added(self) -> tuple[tuple[str, bool], ...]:
        """The columns that options add behind the others."""
        return ("_rowid", self._options.with_row_id), ("_rowaddr", self._options.with_row_address)

    def _plan(self, verbose: bool) -> list[str]:
        options = self._options
        lines = []
        if self._projection.expressions:
            lines.append(f"Projection: {', '.join(self._projection.describe())}")
        if options.order_by and (options.limit is not None or options.offset):
            lines.append(f"Limit: limit={options.limit}, offset={options.offset or 0}")
        if options.order_by:
            lines.append(f"Sort: {', '.join(_order_text(key) for key in options.order_by)}")
        columns = self._projection.columns
        names = list(self._ds._table_schema.names if columns is None else columns)
        if self._predicate is not None:
            names += [name for name in self._predicate.columns if name not in names]
        scan = f"LanceScan: uri={self._ds.uri}, version={self._ds.version}, projection=[{', '.join(names)}]"
        if self._predicate is not None:
            scan += f", filter={self._predicate}"
            if self._ds._manifest.data_storage_version == "0.1":
                scan += f", use_stats={options.use_stats}"
        if not options.order_by and (options.limit is not None or options.offset):
            scan += f", limit={options.limit}, offset={options.offset or 0}"
        ids = options.fragment_ids
        total = self._ds._manifest.num_fragments
        scan += f", fragments={total if ids is None else len(ids)}/{total}"
        if verbose:
            scan += f", in_order={options.scan_in_order}, batch_size={options.batch_size}"
            scan += (
                f", row_id={options.with_row_id}, row_address={options.with_row_address}, rows={self._ds._num_rows()}"
            )
        return [*lines, scan]


def _order_text(key: ColumnOrdering) -> str:
    return f"{key.column_name} {'asc' if key.ascending else 'desc'} nulls {'first' if key.nulls_first else 'last'}"
