"""Blobs of rows: as files, whole, or by ranges."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from ..._native import blob as native
from ..scan.take import row_numbers
from ..version import TableVersion
from .file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile

Selector = Literal["ids", "addresses", "indices"]
"""What rows are named by: `_rowid`, `_rowaddr`, or their number as in a take."""
_ANY_ROW = 2**64


def blob_files(
    table: TableVersion, column: str, rows: Any, selector: Selector, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE
) -> list[BlobFile | None]:
    """Blobs as files, in the order asked for and as often as asked for. Only where they lie is read.

    Raises:
        InvalidArgumentError: Not a blob column, a row that is deleted or does not exist.
    """
    numbers = selected(table, selector, rows)
    blobs = native.locate_blobs(table.store, table.manifest, column, numbers, selector=selector)
    return [None if blob is None else BlobFile(blob, buffer_size) for blob in blobs]


def selected(table: TableVersion, selector: Selector, rows: Any) -> pa.Array:
    """Rows as a uint64 array."""
    return row_numbers(rows, table.num_rows if selector == "indices" else _ANY_ROW)
