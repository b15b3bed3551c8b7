"""Takes the blobs of rows, as `BlobFile`s."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from ..._native import blob as native
from ...exceptions import MissingBlobColumnError
from ..scan.take import row_numbers
from ..version import TableVersion
from .file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, check_buffer_size

Selector = Literal["ids", "addresses", "indices"]
"""How rows are selected: by `_rowid`, by `_rowaddr`, or by row number as in `take`."""
_ANY_ROW = 2**64


def blob_files(
    table: TableVersion, column: str, rows: Any, selector: Selector, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE
) -> list[BlobFile | None]:
    """The blobs of rows as files, in the order of `rows`, duplicates included. Reads only where the blobs are stored.

    Raises:
        InvalidArgumentError: The column is not a blob column, a row is deleted or does not exist, or the buffer's size
            is negative.
        InvalidTypeError: The buffer's size is no integer.
        MissingBlobColumnError: There is no such column.
    """
    # Asked for before the rows are known: it is wrong for none of them, too.
    check_buffer_size(buffer_size)
    require_column(table, column)
    numbers = selected(table, selector, rows)
    blobs = native.locate_blobs(table.store, table.manifest, column, numbers, selector=selector)
    return [None if blob is None else BlobFile(blob, buffer_size) for blob in blobs]


def require_column(table: TableVersion, column: str) -> None:
    """Checks that a table has a column, or a field within one at its dotted path.

    Raises:
        MissingBlobColumnError: It has none.
    """
    if table.manifest.schema.find(column) is None:
        names = ", ".join(table.schema.names)
        raise MissingBlobColumnError(
            f"Field {column!r} not found: expected a column of the table, there are: {names}", column=column
        )


def selected(table: TableVersion, selector: Selector, rows: Any) -> pa.Array:
    """The selected rows as a uint64 array."""
    return row_numbers(rows, table.num_rows if selector == "indices" else _ANY_ROW)
