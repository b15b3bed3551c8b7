"""Writers of blob files beside a file of data: `PackedBlobWriter`, whose blobs share one, and `DedicatedBlobWriter`.

They are written before the file of data, whose column of prepared blobs says where each lies. Nothing names a blob file
until the file of data is in a table: what a process that dies leaves is removed by a clean-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa

from .._native.store import ObjectWriter, Store
from ..arrow.prepared_blobs import DEDICATED, PACKED, prepared_field
from ..exceptions import InvalidArgumentError
from ..lance.blob.prepared import BlobDescriptor, BytesLike, as_bytes, check_blob_id, descriptor_array
from ..store.staging import flush

Self = TypeVar("Self", bound="_BlobFileWriter")
_AT_ONCE = 4 * 1024 * 1024
"""Bytes that are handed on at a time, or one blob."""


class _BlobFileWriter:
    """One blob file that is being written. It becomes visible, complete, when it is finished."""

    def __init__(self, store: Store, data_file: str, blob_id: int) -> None:
        check_blob_id(blob_id)
        stem = data_file.removesuffix(".lance")
        if stem == data_file:
            raise InvalidArgumentError(f"Data file path {data_file!r} must end with '.lance'", path=data_file)
        if not stem.rpartition("/")[2]:
            raise InvalidArgumentError(f"expected the name of a file before '.lance', found {data_file!r}")
        self._store = store
        self._id = blob_id
        # The lowest bit first, so that names that follow one another begin differently.
        self._file = f"{stem}/{f'{blob_id:032b}'[::-1]}.blob"
        self._size = 0
        self._out: ObjectWriter | None = store.writer(self._file)

    @property
    def blob_id(self) -> int:
        """The number of the blob file.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        self._open()
        return self._id

    @property
    def path(self) -> str:
        """Where the blob file is.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        self._open()
        return f"{self._store.uri.rstrip('/')}/{self._file}"

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        out, self._out = self._out, None
        if out is not None:
            out.abort()

    def _open(self) -> ObjectWriter:
        if self._out is None:
            raise InvalidArgumentError(f"{type(self).__name__} is already finished; open another")
        return self._out

    def _write(self, data: bytes) -> int:
        """Appends bytes, and returns where they begin."""
        out, start = self._open(), self._size
        out.write(data)
        self._size += len(data)
        return start

    @contextmanager
    def _or_ended(self) -> Iterator[None]:
        """Ends the writer where an error or Ctrl-C breaks a write off: nobody knows how much of it is there."""
        try:
            yield
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _close(self) -> None:
        out = self._open()
        self._out = None
        out.finish()
        flush(self._store, f"Write {self._file} in")


class PackedBlobWriter(_BlobFileWriter):
    """Writes blobs one after another into one file beside a file of data; `LanceFileSession.open_packed_blob_writer`
    opens it.

    As a context manager it discards the file if it is not finished at the end of the block.

    Example:
        >>> from esker.file import LanceFileSession
        >>> session = LanceFileSession("memory://doc-packed")
        >>> writer = session.open_packed_blob_writer("a.lance", blob_id=1)
        >>> writer.write_blob(b"one")
        >>> writer.write_blob(b"two")
        >>> writer.finish()
        [Packed { blob_id: 1, offset: 0, size: 3 }, Packed { blob_id: 1, offset: 3, size: 3 }]
    """

    def __init__(self, store: Store, data_file: str, blob_id: int) -> None:
        super().__init__(store, data_file, blob_id)
        self._blobs: list[BlobDescriptor] = []
        self._field: pa.Field | None = None

    @property
    def field(self) -> pa.Field:
        """The field of the column that `finish_array` has returned.

        Raises:
            InvalidArgumentError: It has not.
        """
        if self._field is None:
            raise InvalidArgumentError("PackedBlobWriter field is available after finish_array; call it first")
        return self._field

    def write_blob(self, data: BytesLike) -> None:
        """Appends a blob.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        piece = as_bytes(data)
        self._open()
        with self._or_ended():
            start = self._write(piece)
            self._blobs.append(BlobDescriptor(PACKED, None, self._id, start, len(piece)))

    def write_blobs(self, payloads: pa.Array | pa.ChunkedArray) -> None:
        """Appends many blobs; of nulls only that they are none.

        Args:
            payloads: They, binary or large_binary.

        Raises:
            InvalidArgumentError: They are something else, or offsets among them are wrong: nothing is written then.
        """
        self._open()
        chunks = _checked(payloads)
        with self._or_ended():
            for chunk in chunks:
                self._write_chunk(chunk)

    def _write_chunk(self, chunk: pa.Array) -> None:
        values = memoryview(chunk.buffers()[2] or b"")
        width = pa.int64() if pa.types.is_large_binary(chunk.type) else pa.int32()
        number = chunk.offset + len(chunk) + 1
        ends = pa.Array.from_buffers(width, number, [None, chunk.buffers()[1]]).to_pylist()[chunk.offset :]
        for rows in _runs(chunk.is_valid().to_pylist(), ends):
            if rows is None:
                self._blobs.append(BlobDescriptor(None))
                continue
            start = self._write(bytes(values[ends[rows.start] : ends[rows.stop]]))
            for row in rows:
                offset = start + ends[row] - ends[rows.start]
                self._blobs.append(BlobDescriptor(PACKED, None, self._id, offset, ends[row + 1] - ends[row]))

    def finish(self) -> list[BlobDescriptor]:
        """Makes the file visible.

        Returns:
            Where each blob lies, in the order in which they were written, nulls among them.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        self._close()
        return self._blobs

    def finish_array(self, field_name: str) -> pa.StructArray:
        """Makes the file visible.

        Args:
            field_name: The name of the column, which `field` has then.

        Returns:
            A column of prepared blobs, a row for each blob in the order in which they were written.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        self._close()
        self._field = prepared_field(field_name)
        return descriptor_array(self._blobs)


class DedicatedBlobWriter(_BlobFileWriter):
    """Writes one blob, in pieces, into a file of its own; `LanceFileSession.open_dedicated_blob_writer` opens it.

    As a context manager it discards the file if it is not finished at the end of the block.

    Example:
        >>> from esker.file import LanceFileSession
        >>> writer = LanceFileSession("memory://doc-dedicated").open_dedicated_blob_writer("a.lance", blob_id=1)
        >>> writer.write(b"one ")
        >>> writer.write(b"blob")
        >>> writer.finish()
        Dedicated { blob_id: 1, size: 8 }
    """

    def write(self, data: BytesLike) -> None:
        """Appends bytes to the blob.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        piece = as_bytes(data)
        self._open()
        with self._or_ended():
            self._write(piece)

    def finish(self) -> BlobDescriptor:
        """Makes the file visible.

        Returns:
            Where the blob lies.

        Raises:
            InvalidArgumentError: The writer is finished.
        """
        self._close()
        return BlobDescriptor(DEDICATED, None, self._id, None, self._size)


def _runs(is_valid: list[bool], ends: list[int]) -> Iterator[range | None]:
    """The rows whose bytes lie together, some MiB at a time; None for each null among them."""
    first = 0
    for row, valid in enumerate(is_valid):
        if not valid:
            if first < row:
                yield range(first, row)
            yield None
            first = row + 1
        elif ends[row + 1] - ends[first] >= _AT_ONCE:
            yield range(first, row + 1)
            first = row + 1
    if first < len(is_valid):
        yield range(first, len(is_valid))


def _checked(payloads: Any) -> list[pa.Array]:
    """The arrays of blobs, all of whose offsets are sound."""
    if isinstance(payloads, pa.ChunkedArray):
        chunks = {f"Packed blob payload chunk {number}": chunk for number, chunk in enumerate(payloads.chunks)}
    elif isinstance(payloads, pa.Array):
        chunks = {"Packed blob payload array": payloads}
    else:
        raise InvalidArgumentError(
            f"payloads must be a pyarrow BinaryArray, LargeBinaryArray, or ChunkedArray, got {type(payloads).__name__}"
        )
    for name, chunk in chunks.items():
        if not (pa.types.is_binary(chunk.type) or pa.types.is_large_binary(chunk.type)):
            raise InvalidArgumentError(f"{name} must have Arrow type Binary or LargeBinary, got {chunk.type}")
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(
                f"{name} contains invalid Arrow data: {str(error).replace('Non-monotonic', 'non-monotonic')}"
            ) from error
    if isinstance(payloads, pa.ChunkedArray) and not (
        pa.types.is_binary(payloads.type) or pa.types.is_large_binary(payloads.type)
    ):
        raise InvalidArgumentError(
            f"Packed blob payloads must have Arrow type Binary or LargeBinary, got {payloads.type}"
        )
    return [chunk for chunk in chunks.values() if len(chunk)]
