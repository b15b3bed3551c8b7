"""`LanceFileReader`: rows, metadata and global buffers of one file."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from .._native.file import FileReader
from .._native.scan import BatchStream
from .._native.store import Store
from ..arrow.batches import read, read_all
from ..exceptions import InvalidArgumentError, OutOfRangeError, UnsupportedError, of_files
from ..lance.scan.take import row_numbers
from .metadata import LanceFileMetadata, LanceFileStatistics, metadata_of, statistics_of
from .place import locate, refuse_namespace

DEFAULT_BATCH_SIZE = 1024
DEFAULT_BATCH_READAHEAD = 16


class UnknownColumnError(InvalidArgumentError, OSError):
    """A column that the file does not have: pylance refuses it by an `OSError`."""


class FileVersionError(UnsupportedError, OSError):
    """A file of a version that cannot be read: pylance refuses it by an `OSError`."""


class ReaderResults:
    """The rows of a read. They can be read once, either as batches or as a table."""

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as record batches of the read's `batch_size`."""
        return pa.RecordBatchReader.from_batches(pa.schema(self._stream), read(self._stream))

    def to_table(self) -> pa.Table:
        """The rows as a table."""
        return read_all(self._stream)


class LanceFileReader:
    """Reads one data file.

    Args:
        path: A path, or a URI such as `file:///data/a.lance`.
        storage_options: Options of the store, such as credentials.
        columns: Columns and dotted paths (`place.city`) to read; None for all. A path returns its struct with that
            field only.
        namespace_client: Of pylance; refused.
        table_id: Of pylance; refused.

    Raises:
        NotFoundError: There is no such file.
        CorruptFileError: The file is not a Lance file, or is damaged. It is an `OSError` here, as in pylance.
        FileVersionError: The file is of a version that cannot be read.
        UnknownColumnError: The file does not have a column.

    Example:
        >>> import pyarrow as pa
        >>> from esker.file import LanceFileReader, LanceFileWriter
        >>> with LanceFileWriter("memory://doc-reader/a.lance") as writer:
        ...     writer.write_batch(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
        >>> reader = LanceFileReader("memory://doc-reader/a.lance", columns=["name"])
        >>> reader.read_range(1, 2).to_table().to_pylist()
        [{'name': 'b'}, {'name': 'c'}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        storage_options: dict[str, str] | None = None,
        columns: list[str] | None = None,
        *,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        _place: tuple[Store, str] | None = None,
    ) -> None:
        refuse_namespace(namespace_client, table_id)
        if _place is None:
            if path is None:
                raise InvalidArgumentError("expected the path of a file to read, found None")
            _place = locate(path, storage_options)
        try:
            with of_files():
                self._reader = FileReader(*_place)
        except UnsupportedError as error:
            raise FileVersionError(error.message, **error.facts) from error
        if isinstance(columns, str):
            raise TypeError("columns must be a list, found str; put one name in a list")
        self._columns = None if columns is None else list(columns)
        try:
            with of_files():
                self._read(0, 0, 1, 1)
        except InvalidArgumentError as error:
            raise UnknownColumnError(error.message, **error.facts) from error

    def read_all(
        self, *, batch_size: int = DEFAULT_BATCH_SIZE, batch_readahead: int = DEFAULT_BATCH_READAHEAD
    ) -> ReaderResults:
        """All rows.

        Args:
            batch_size: Rows in a batch; the last may be shorter.
            batch_readahead: Batches that may be read ahead.
        """
        return ReaderResults(self._read(0, self.num_rows(), batch_size, batch_readahead))

    def read_range(
        self,
        start: int,
        num_rows: int,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        batch_readahead: int = DEFAULT_BATCH_READAHEAD,
    ) -> ReaderResults:
        """Reads a range of rows.

        Args:
            start: The first row, from 0.
            num_rows: The number of rows.
            batch_size: Rows in a batch; the last may be shorter.
            batch_readahead: Batches that may be read ahead.

        Raises:
            OutOfRangeError: The file does not have all of them.
        """
        held = self.num_rows()
        if start < 0 or num_rows < 0 or start + num_rows > held:
            raise OutOfRangeError(
                f"rows {start} to {start + num_rows} are out of range, expected rows of 0 to {held}",
                found=start if start < 0 else start + num_rows,
                expected=held,
            )
        return ReaderResults(self._read(start, num_rows, batch_size, batch_readahead))

    def take_rows(
        self,
        indices: Any,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        batch_readahead: int = DEFAULT_BATCH_READAHEAD,
    ) -> ReaderResults:
        """Takes rows by number.

        Args:
            indices: Strictly rising row numbers: a list, a range, a numpy or an Arrow array.
            batch_size: Rows in a batch; the last may be shorter.
            batch_readahead: Batches that may be read ahead.

        Raises:
            OutOfRangeError: A number is negative, or beyond the last row.
            InvalidArgumentError: The numbers do not rise strictly.
        """
        rows = row_numbers(indices, self.num_rows())
        _check_rising(rows)
        _check_batches(batch_size, batch_readahead)
        stream = self._reader.take(rows, columns=self._columns, batch_size=batch_size, batch_readahead=batch_readahead)
        return ReaderResults(stream)

    def metadata(self) -> LanceFileMetadata:
        """The file's sections, columns, pages and buffers. No page is read."""
        return metadata_of(self._reader)

    def file_statistics(self) -> LanceFileStatistics:
        """Pages and bytes of each column. No page is read."""
        return statistics_of(self._reader)

    def read_global_buffer(self, index: int) -> bytes:
        """The bytes of a global buffer.

        Args:
            index: Its number: 0 is the file's descriptor; those of `LanceFileWriter.add_global_buffer` start at 1.

        Raises:
            InvalidArgumentError: The file has no such buffer.
        """
        if index < 0:
            raise InvalidArgumentError(f"expected the index of a global buffer >= 0, found {index}")
        return self._reader.read_global_buffer(index)

    def num_rows(self) -> int:
        """Rows in the file."""
        return self._reader.num_rows

    def _read(self, start: int, num_rows: int, batch_size: int, batch_readahead: int) -> BatchStream:
        _check_batches(batch_size, batch_readahead)
        return self._reader.read_range(
            start, num_rows, columns=self._columns, batch_size=batch_size, batch_readahead=batch_readahead
        )


def _check_rising(rows: pa.Array) -> None:
    numbers = rows.to_numpy()
    falls = (numbers[1:] <= numbers[:-1]).nonzero()[0]
    if len(falls):
        at = int(falls[0])
        raise InvalidArgumentError(
            f"expected row numbers that rise strictly, found {numbers[at + 1]} after {numbers[at]}; sort them and "
            "remove duplicates"
        )


def _check_batches(batch_size: int, batch_readahead: int) -> None:
    for name, value in (("batch_size", batch_size), ("batch_readahead", batch_readahead)):
        if value <= 0:
            raise InvalidArgumentError(f"expected {name} > 0, found {value}")
