"""`Scan`: a scan of one version, with its projection, predicate and options."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..._native import scan as native
from ..._native.expr import Predicate
from ...arrow.batches import cut_to_bytes, read, read_all
from ...arrow.json_columns import as_json_text, has_jsonb
from ...exceptions import EskerError
from ...progress import Tally, byte_count
from ..system_columns import ROW_ADDRESS, ROW_ID
from ..version import TableVersion
from .named_columns import named_columns
from .options import ScanOptions, ScanStatistics
from .predicate import to_predicate
from .projection import Projection


class Scan:
    """A scan of one version. It can run any number of times.

    Args:
        table: The version.
        options: The options of the scan.

    Raises:
        InvalidArgumentError: A column does not exist, or the filter does not parse.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance.scan.options import ScanOptions
        >>> from esker.lance.scan.scan import Scan
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-scan")
        >>> Scan(dataset._table, ScanOptions(filter="id > 1", limit=1)).to_table().to_pydict()
        {'id': [2]}
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        self.table = table
        self.options = options = _with_added_last(table, options)
        self.projection = Projection(None)
        self.predicate: Predicate | None = None
        if options.columns is None and options.filter is None:
            return
        few = named_columns(table, options)
        if few is not None:
            # What they don't tell, or tell in words about few columns, all of them do.
            with suppress(EskerError):
                self._bind(*few)
                return
        described = table.described_schema
        self._bind(table.schema if options.blobs == "bytes" else described, described)

    def _bind(self, shown: pa.Schema, described: pa.Schema) -> None:
        options = self.options
        self.projection = Projection.of(options.columns, shown)
        if options.filter is not None:
            self.predicate = to_predicate(options.filter, described)

    def but(self, **changes: Any) -> Scan:
        """The same scan with other options."""
        return Scan(self.table, replace(self.options, **changes))

    @property
    def schema(self) -> pa.Schema:
        """The columns that the scan returns."""
        return self._shaped_schema(self._open())

    def to_table(self) -> pa.Table:
        """The rows, in memory."""
        stream = self._open()
        if self._is_plain() and not (self.options.json_text and has_jsonb(pa.schema(stream))):
            return read_all(stream)
        return pa.Table.from_batches(self._run(stream), self._shaped_schema(stream))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a reader. A batch is decoded when it is read."""
        stream = self._open()
        return pa.RecordBatchReader.from_batches(self._shaped_schema(stream), self._run(stream))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as batches. A batch is decoded when it is read."""
        return self._run(self._open())

    def _run(self, stream: native.BatchStream) -> Iterator[pa.RecordBatch]:
        options = self.options
        started = time.monotonic()
        before = self.table.store.io_stats_snapshot()
        rows, tally = 0, Tally(options.progress, "reading rows")
        batches: Iterable[pa.RecordBatch]
        batches = read(stream)
        has_json: bool | None = None
        if options.batch_size_bytes is not None:
            batches = cut_to_bytes(batches, options.batch_size_bytes)
        for batch in batches:
            rows += batch.num_rows
            if options.progress is not None:
                tally.add(rows=batch.num_rows, bytes=byte_count(batch))
            shaped = self._projected(batch)
            if has_json is None:
                # To ask each batch takes long where rows are wide and batches small.
                has_json = options.json_text and has_jsonb(shaped.schema)
            yield self._shown(shaped, has_json)
        if options.scan_stats_callback is not None:
            after = self.table.store.io_stats_snapshot()
            iops = after.read_iops - before.read_iops
            nbytes, seconds = after.read_bytes - before.read_bytes, time.monotonic() - started
            options.scan_stats_callback(ScanStatistics(iops, iops, nbytes, rows, seconds, *stream.groups))

    def count_rows(self) -> int:
        """How many rows the scan returns. Without a filter it takes the manifest's counts where it can."""
        options = self.options
        if options.order_by:
            # The order changes no count, but an order by what is not there is no scan.
            self.but(limit=0)._open()
        if options.row_range is not None or options.include_deleted_rows:
            part = self.but(columns=[], order_by=())
            return sum(batch.num_rows for batch in part.to_batches())
        if self.predicate is None:
            wanted = options.fragment_ids
            total = self.table.num_rows if wanted is None else self._rows_of(wanted)
        else:
            total = native.count_rows(
                self.table.store,
                self.table.manifest,
                filter=self.predicate,
                fragment_ids=options.fragment_ids,
                use_stats=options.use_stats,
            )
        rest = max(0, total - (options.offset or 0))
        return rest if options.limit is None else min(rest, options.limit)

    def _rows_of(self, fragment_ids: Iterable[int]) -> int:
        # A fragment that is given twice counts twice, since its rows are returned twice.
        fragments = {fragment.id: fragment.num_rows for fragment in self.table.fragments}
        known = [fragments.get(number) for number in fragment_ids]
        if all(rows is not None for rows in known):
            return sum(rows for rows in known if rows is not None)
        return native.count_rows(self.table.store, self.table.manifest, fragment_ids=list(fragment_ids))

    def _is_plain(self) -> bool:
        """Whether the batches of the native stream are the result, unchanged and unwatched."""
        options = self.options
        cut = options.batch_size_bytes is not None
        watched = options.scan_stats_callback is not None or options.progress is not None
        return not (cut or watched) and self.projection.is_plain

    def _open(self) -> native.BatchStream:
        options = self.options
        columns = self.projection.columns
        return native.scan(
            self.table.store,
            self.table.manifest,
            columns=columns,
            filter=self.predicate,
            limit=options.limit,
            offset=options.offset,
            batch_size=options.batch_size,
            fragment_ids=options.fragment_ids,
            row_range=options.row_range,
            with_row_id=options.with_row_id and ROW_ID not in (columns or ()),
            with_row_address=options.with_row_address and ROW_ADDRESS not in (columns or ()),
            scan_in_order=options.scan_in_order,
            include_deleted_rows=options.include_deleted_rows,
            use_stats=options.use_stats,
            blobs=options.blobs,
            order_by=[(key.column_name, key.ascending, key.nulls_first) for key in options.order_by],
            strict_batch_size=options.strict_batch_size,
            string_view=options.string_view and not self.projection.expressions,
        )

    def _shaped_schema(self, stream: native.BatchStream) -> pa.Schema:
        read_schema = pa.schema(stream)
        empty = [pa.nulls(0, field.type) for field in read_schema]
        shaped = self._projected(pa.RecordBatch.from_arrays(empty, schema=read_schema))
        return self._shown(shaped, self.options.json_text).schema

    def _projected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        shown = self.projection.names
        return self.projection.apply(batch, [n for n, wanted in self._added() if wanted and n not in shown])

    def _shown(self, shaped: pa.RecordBatch, has_json: bool) -> pa.RecordBatch:
        if has_json:
            shaped = as_json_text(shaped)
        if self.options.string_view and self.projection.expressions:
            # Expressions are evaluated on plain texts.
            return pa.record_batch(native.string_views(shaped))
        return shaped

    def _added(self) -> tuple[tuple[str, bool], ...]:
        """The columns that options add after the others, and whether they are wanted."""
        return (ROW_ID, self.options.with_row_id), (ROW_ADDRESS, self.options.with_row_address)


def _with_added_last(table: TableVersion, options: ScanOptions) -> ScanOptions:
    """The options without the names of system columns that are asked for once more: they come last then."""
    added = [
        name for name, is_added in ((ROW_ID, options.with_row_id), (ROW_ADDRESS, options.with_row_address)) if is_added
    ]
    if not isinstance(options.columns, list) or not any(name in options.columns for name in added):
        return options
    schema = table.manifest.schema
    last = [name for name in added if schema.find(name) is None]
    return replace(options, columns=[name for name in options.columns if name not in last])
