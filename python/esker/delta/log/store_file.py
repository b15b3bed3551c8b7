"""One object of a store as a file of Python, for readers and writers of Parquet."""

from __future__ import annotations

import io
from typing import Any

from ..._native.store import ObjectWriter, Store
from ...arrow.exit_wait import watch_file


class StoreFile(io.RawIOBase):
    """One object of a store, for reading.

    Args:
        store: The store.
        path: The object's path in it.
        size: Its size in bytes, which is asked for if not given.

    Example:
        `pa.PythonFile(StoreFile(store, "a.parquet"))`
    """

    def __init__(self, store: Store, path: str, size: int | None = None) -> None:
        self._store = store
        self._path = path
        self._size = store.head(path).size if size is None else size
        self._at = 0
        watch_file(self)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def size(self) -> int:
        """Bytes."""
        return self._size

    def tell(self) -> int:
        """Where the next read starts."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to where the next read shall start."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, all that are left if no number is given."""
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        (data,) = self._store.get_ranges(self._path, [(self._at, self._at + wanted)])
        self._at += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """The next bytes into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class WrittenStoreFile(io.RawIOBase):
    """A new object of a store, which is there when the file is closed. One that is forgotten leaves nothing behind.

    Args:
        writer: What writes it.
    """

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self._at = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """How many bytes there are."""
        return self._at

    def write(self, data: Any, /) -> int:
        """Appends bytes."""
        piece = bytes(memoryview(data))
        self._writer.write(piece)
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        """Makes the object visible."""
        if not self.closed:
            super().close()
            self._writer.finish()

    def __del__(self) -> None:
        if not self.closed:
            self._writer.abort()
            super().close()
