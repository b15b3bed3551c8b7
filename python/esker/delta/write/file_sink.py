"""Where the bytes of one data file go while it is made: a small file is one put, a large one leaves in pieces.

What is not at the store yet is at most one piece, however large the file becomes. Nothing is visible before the end.
"""

from __future__ import annotations

import io
from typing import Any

from ..._native.store import ObjectWriter, Store

PIECE = 8 * 1024 * 1024
"""Bytes that are held at most, and that a file may have to be put at once."""


class FileSink(io.RawIOBase):
    """The bytes of one file on their way to a store.

    Args:
        store: The store.
        path: The file's path in it.

    Example:
        `sink = FileSink(store, "part-0.parquet"); sink.write(b"PAR1"); sink.finish()`
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._pieces: list[bytes] = []
        self._writer: ObjectWriter | None = None
        self._finished = self._dropped = False
        self._buffered = 0
        self.size = 0

    @property
    def held(self) -> int:
        """Bytes in memory, those that the store's own writer may have among them."""
        return self._buffered + (PIECE if self._writer is not None and not self._finished else 0)

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """How many bytes there are."""
        return self.size

    def write(self, data: Any, /) -> int:
        """Appends bytes; those of a file that is dropped go nowhere."""
        piece = bytes(data)
        if self._dropped:
            return len(piece)
        self._pieces.append(piece)
        self._buffered += len(piece)
        self.size += len(piece)
        if self._buffered >= PIECE:
            if self._writer is None:
                self._writer = self._store.writer(self._path)
            self._writer.write(self._taken())
        return len(piece)

    def finish(self) -> None:
        """Makes the file visible."""
        if self._writer is None:
            self._store.put(self._path, self._taken())
        else:
            self._writer.write(self._taken())
            self._writer.finish()
        self._finished = True

    def abort(self) -> None:
        """Leaves nothing behind of a file that is not finished."""
        self._pieces, self._buffered, self._dropped = [], 0, not self._finished
        if self._writer is not None and not self._finished:
            self._writer.abort()

    def _taken(self) -> bytes:
        pieces, self._pieces, self._buffered = self._pieces, [], 0
        return b"".join(pieces)
