"""Rewrites the fragments of one group: their live rows, in order, in new files. Nothing of it is visible yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..._native import table as native
from ...arrow.blob_arrays import marked_schema
from ..log import LanceLog
from ..scan.options import ScanOptions
from ..scan.scan import Scan
from ..system_columns import ROW_ID
from ..version import TableVersion
from ..write.request import DEFAULT_MAX_ROWS_PER_GROUP, WriteRequest
from ..write.staging import stage
from ..write.target import LanceTarget
from .options import CompactionSettings
from .results import RewriteResult
from .sizes import data_bytes, live_rows, num_files


def rewrite_group(
    table: TableVersion, group: Sequence[native.Fragment], settings: CompactionSettings, log: LanceLog
) -> RewriteResult:
    """Writes the live rows of some fragments to new ones.

    Args:
        table: The version that has the fragments.
        group: The fragments, in the table's order.
        settings: The options of the compaction.
        log: The table's log, whose store the files go to.

    Example:
        `rewrite_group(table, table.fragments[:2], settings, table.writable_log(durable=True))`
    """
    stable = table.has_stable_row_ids
    ids = tuple(fragment.id for fragment in group)
    options = ScanOptions(fragment_ids=ids, blobs="bytes", with_row_id=stable, batch_size=settings.batch_size)
    scan = Scan(table, options)
    schema = marked_schema(scan.schema, table.schema)
    kept: list[pa.Array] = []

    names = [name for name in schema.names if name != ROW_ID]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in scan.to_batches():
            if stable:
                kept.append(batch[ROW_ID])
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema).select(names)

    staged = stage(
        WriteRequest(
            target=LanceTarget(table.uri, log, table.manifest),
            data=batches(),
            schema=pa.schema([schema.field(name) for name in names]),
            data_storage_version=settings.data_storage_version,
            max_rows_per_file=rows_per_file(table, group, settings),
            max_rows_per_group=settings.max_rows_per_group or DEFAULT_MAX_ROWS_PER_GROUP,
            memory_limit=settings.memory_limit,
            external_blobs="reference",
            allow_null_loss=True,
        )
    )
    if not stable:
        return RewriteResult(table.number, tuple(group), tuple(staged.fragments))
    own = pa.chunked_array(kept, pa.uint64())
    new, start = [], 0
    for fragment in staged.fragments:
        new.append(fragment.with_row_ids(own.slice(start, fragment.physical_rows).combine_chunks()))
        start += fragment.physical_rows
    return RewriteResult(table.number, tuple(group), tuple(new))


def rows_per_file(table: TableVersion, group: Sequence[native.Fragment], settings: CompactionSettings) -> int:
    """How many rows each new file gets, so that all have about the same number."""
    rows = sum(live_rows(table, fragment) for fragment in group)
    sizes = [data_bytes(fragment) for fragment in group]
    nbytes = None if None in sizes else sum(size or 0 for size in sizes)
    return max(1, -(-rows // num_files(rows, nbytes, settings)))
