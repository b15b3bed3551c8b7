"""The methods of `LanceDataset` that read blobs: as files, whole, or by ranges (docs/blobs.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._native import blob as native
from ..exceptions import InvalidArgumentError, of_files
from ..lance.blob.file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, check_ends
from ..lance.blob.take import Selector, blob_files, require_column, selected
from ..lance.handle import DatasetHandle


class BlobsApi(DatasetHandle):
    """The methods of `LanceDataset` that read blobs."""

    def take_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Takes blobs as file objects, in the order of the rows, duplicates included. Reads only where they are stored.

        Args:
            blob_column: The blob column; one within a struct by its dotted path.
            ids: Rows by `_rowid`. Exactly one of `ids`, `addresses` and `indices` is given.
            addresses: Rows by `_rowaddr`.
            indices: Rows by number, as in `take`.
            buffer_size: Bytes to fetch at once when reads are sequential; 0 never reads ahead.

        Returns:
            A file for each row, None for a null blob.

        Raises:
            InvalidArgumentError: The column is not a blob column, or a row is deleted or does not exist.

        Example:
            >>> import esker, pyarrow as pa
            >>> field = pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
            >>> table = pa.table([pa.array([b"first", None], pa.large_binary())], schema=pa.schema([field]))
            >>> dataset = esker.write_dataset(table, "memory://doc-take-blobs")
            >>> file, nothing = dataset.take_blobs("photo", indices=[0, 1])
            >>> file.seek(1), file.read(2), nothing
            (1, b'ir', None)
        """
        selector, rows = _selection(ids, addresses, indices)
        return blob_files(self._table, blob_column, rows, selector, buffer_size)

    @of_files()
    def read_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Reads whole blobs. Blobs close to each other are read in one request.

        Args:
            blob_column: The blob column; one within a struct by its dotted path.
            ids: Rows by `_rowid`. Exactly one of `ids`, `addresses` and `indices` is given.
            addresses: Rows by `_rowaddr`.
            indices: Rows by number, as in `take`.
            io_buffer_size: A hint of pylance, of no effect here.
            preserve_order: Of no effect: the result is in the order of the rows in any case.

        Returns:
            For each row its address and its blob, None for a null.

        Raises:
            InvalidArgumentError: The column is not a blob column, or a row is deleted or does not exist.

        Example:
            `{address: len(blob) for address, blob in dataset.read_blobs("photo", indices=range(10))}`
        """
        _check_buffer(io_buffer_size)
        require_column(self._table, blob_column)
        selector, rows = _selection(ids, addresses, indices)
        numbers = selected(self._table, selector, rows)
        return native.read_blobs(self._table.store, self._table.manifest, blob_column, numbers, selector=selector)

    @of_files()
    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: Selector,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Reads ranges of many blobs. Ranges close to each other are read in one request.

        Args:
            blob_column: The blob column; one within a struct by its dotted path.
            requests: Tuples of (row, offset, length); a row may be in several.
            selector: How rows are selected: by "ids", "addresses" or "indices".
            io_buffer_size: A hint of pylance, of no effect here.
            preserve_order: Of no effect: the result is in the order of the requests in any case.

        Returns:
            For each request its number, the row's address and the bytes, None for a null blob.

        Raises:
            InvalidArgumentError: The column is not a blob column, a row is deleted or does not exist, or a range is not
                within its blob.

        Example:
            `dataset.read_blob_ranges("photo", [(7, 0, 16), (7, 4096, 16)], selector="indices")`
        """
        _check_buffer(io_buffer_size)
        require_column(self._table, blob_column)
        rows = selected(self._table, selector, [row for row, _, _ in requests])
        ranges = [(offset, length) for _, offset, length in requests]
        if any(offset < 0 or length < 0 for offset, length in ranges):
            raise InvalidArgumentError("expected ranges with an offset and a length of 0 or more")
        check_ends(ranges)
        return native.read_blob_ranges(
            self._table.store, self._table.manifest, blob_column, rows, ranges, selector=selector
        )


def _check_buffer(io_buffer_size: int | None) -> None:
    if io_buffer_size is not None and io_buffer_size <= 0:
        raise InvalidArgumentError(f"io_buffer_size must be greater than 0, found {io_buffer_size}")


def _selection(ids: Any, addresses: Any, indices: Any) -> tuple[Selector, Any]:
    """How rows are selected, and the rows."""
    given: list[tuple[Selector, Any]] = [("ids", ids), ("addresses", addresses), ("indices", indices)]
    given = [(name, rows) for name, rows in given if rows is not None]
    if len(given) != 1:
        raise InvalidArgumentError("Exactly one of ids, indices, or addresses must be specified")
    return given[0]
