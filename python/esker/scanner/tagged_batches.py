"""The batches of a scan, each tagged with the fragment that its rows are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from ..exceptions import UnsupportedError
from ..lance.scan.scan import Scan
from ..lance.system_columns import ROW_ADDRESS

_OFFSET_BITS = pa.scalar(32, pa.uint64())


def tagged_batches(scan: Scan, fragments: Mapping[int, Any]) -> Iterator[pyarrow.dataset.TaggedRecordBatch]:
    """The batches of a scan, cut where the next row is from another fragment.

    Args:
        scan: The scan.
        fragments: The tags of the batches, by fragment id.

    Raises:
        UnsupportedError: The scan is ordered and has no row addresses: it includes deleted rows, or the table has a
            column of that name.

    Example:
        `for batch, fragment in tagged_batches(scan, {0: fragment}): ...`
    """
    has_addresses = ROW_ADDRESS not in scan.table.schema.names and not scan.options.include_deleted_rows
    if not has_addresses and scan.options.order_by:
        raise UnsupportedError(
            "the fragments of rows in an order are known by _rowaddr only, expected a scan that has it: "
            "leave include_deleted_rows or order_by out"
        )
    return _by_address(scan, fragments) if has_addresses else _by_fragment(scan, fragments)


def _by_address(scan: Scan, fragments: Mapping[int, Any]) -> Iterator[pyarrow.dataset.TaggedRecordBatch]:
    shown = scan.schema
    addressed = scan.but(with_row_address=True)
    for batch in addressed.to_batches():
        runs = pc.run_end_encode(pc.shift_right(batch[ROW_ADDRESS], _OFFSET_BITS), run_end_type=pa.int32())
        rows = batch if ROW_ADDRESS in shown.names else batch.drop_columns([ROW_ADDRESS])
        start = 0
        for end, number in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            yield pyarrow.dataset.TaggedRecordBatch(rows.slice(start, end - start), fragments[number])
            start = end


def _by_fragment(scan: Scan, fragments: Mapping[int, Any]) -> Iterator[pyarrow.dataset.TaggedRecordBatch]:
    """Scans one fragment after the other, each with the rest of the offset and of the limit."""
    options = scan.options
    skip, left = options.offset or 0, options.limit
    for number in fragments if options.fragment_ids is None else options.fragment_ids:
        limit = None if left is None else skip + left
        for batch in scan.but(fragment_ids=(number,), offset=None, limit=limit).to_batches():
            rows = batch.slice(skip)
            skip -= batch.num_rows - rows.num_rows
            if left is not None:
                left -= rows.num_rows
            if rows.num_rows:
                yield pyarrow.dataset.TaggedRecordBatch(rows, fragments[number])
        if left == 0:
            return
