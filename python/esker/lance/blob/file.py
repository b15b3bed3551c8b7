"""`BlobFile`: a blob as a file object that fetches only the bytes that are read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ..._native.blob import LocatedBlob
from ...exceptions import InvalidArgumentError, InvalidTypeError, of_files

DEFAULT_BLOB_BUFFER_SIZE = 512 * 1024
"""Bytes to fetch at once when reads are sequential."""


def check_ends(ranges: Sequence[tuple[int, int]]) -> None:
    """Checks that the ends of ranges are numbers of 64 bits.

    Raises:
        InvalidArgumentError: One is not.

    Example:
        >>> from esker.lance.blob.file import check_ends
        >>> check_ends([(0, 16)])
    """
    for offset, length in ranges:
        if offset + length >= 1 << 64:
            raise InvalidArgumentError(f"offset + length overflowed 64 bits in the range of {length} bytes at {offset}")


def check_buffer_size(buffer_size: int) -> None:
    """Checks a number of bytes to fetch at once.

    Raises:
        InvalidTypeError: It is no integer.
        InvalidArgumentError: It is negative.

    Example:
        >>> from esker.lance.blob.file import check_buffer_size
        >>> check_buffer_size(0)
    """
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
        raise InvalidTypeError(f"buffer_size must be an int, got {type(buffer_size).__name__}")
    if buffer_size < 0:
        raise InvalidArgumentError("buffer_size must be non-negative")


class BlobFile(io.BufferedIOBase):
    """A blob as a file object. Nothing is fetched before it is read. Made by `LanceDataset.take_blobs`.

    A read fetches exactly its bytes. If it starts where the last read ended, `buffer_size` bytes are fetched instead,
    so that many small sequential reads cost few requests.

    Example:
        `with dataset.take_blobs("photo", indices=[7])[0] as file: header = file.read(16)`
    """

    def __init__(self, inner: LocatedBlob, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        super().__init__()
        check_buffer_size(buffer_size)
        self.inner = inner
        self._buffer_size = buffer_size
        self._position = 0
        self._followed = -1
        self._ahead = b""
        self._ahead_start = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """The blob's size in bytes."""
        return self.inner.size

    def tell(self) -> int:
        """The position of the next read."""
        self._check_open("tell")
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to `offset` from the start, the current position or the end. The result may be beyond the end."""
        self._check_open("seek")
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.inner.size}
        if whence not in bases:
            raise ValueError(f"Invalid whence: {whence}")
        position = bases[whence] + offset
        if position < 0:
            raise ValueError(f"negative seek value {position}")
        self._position = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, fewer at the end; without `size` all remaining bytes."""
        self._check_open("read")
        left = max(0, self.inner.size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._fetch(self._position, wanted)
        self._position += len(data)
        self._followed = self._position
        return data

    def read1(self, size: int = -1) -> bytes:
        """Like `read`; without `size` at most `io.DEFAULT_BUFFER_SIZE` bytes."""
        return self.read(io.DEFAULT_BUFFER_SIZE if size is None or size < 0 else size)

    def readall(self) -> bytes:
        """All remaining bytes."""
        return self.read()

    def readinto(self, b: Any) -> int:
        """Fills `b` with the next bytes and returns how many there were."""
        self._check_open("readinto")
        view = memoryview(b).cast("B")
        if view.readonly:
            raise TypeError(f"readinto() argument must be read-write bytes-like object, not {type(b).__name__}")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readinto1(self, b: Any) -> int:
        """Like `readinto`."""
        return self.readinto(b)

    def read_range(self, offset: int, length: int) -> bytes:
        """Exactly these bytes; the position of the next `read` does not change.

        Raises:
            InvalidArgumentError: The range is not within the blob.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Exactly the bytes of each (offset, length), in this order; the position of the next `read` does not change.

        Raises:
            InvalidArgumentError: A range is not within the blob.
        """
        self._check_open("read")
        check_ends(ranges)
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > self.inner.size:
                raise InvalidArgumentError(
                    f"expected ranges within the blob's {self.inner.size} bytes, found one that exceeds blob size: "
                    f"{length} bytes at {offset}"
                )
        return self._read(list(ranges))

    def _fetch(self, start: int, length: int) -> bytes:
        if length == 0:
            return b""
        at = start - self._ahead_start
        if at >= 0 and at + length <= len(self._ahead):
            return self._ahead[at : at + length]
        if start != self._followed or length >= self._buffer_size:
            return self._read([(start, length)])[0]
        self._ahead = self._read([(start, min(self._buffer_size, self.inner.size - start))])[0]
        self._ahead_start = start
        return self._ahead[:length]

    @of_files()
    def _read(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        return self.inner.read_ranges(ranges)

    def _check_open(self, operation: str) -> None:
        if self.closed:
            raise ValueError(f"{operation} of closed file")

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"
