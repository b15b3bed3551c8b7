"""One object of a store as a file of Python, for readers of Parquet."""

from __future__ import annotations

import io
from typing import Any

from ..._native.store import Store
from ...arrow.exit_wait import watch_file


class StoreFile(io.RawIOBase):
    """One object of a store, for reading.

    Example:
        `pa.PythonFile(StoreFile(store, "a.parquet"))`
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._size = store.head(path).size
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
