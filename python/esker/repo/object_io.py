"""Files over objects: what `reader` and `writer` return. Neither holds more than some pieces in memory."""

from __future__ import annotations

import io
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from ..commit.stores import resolve
from ..exceptions import InvalidArgumentError
from .objects import ObjectInfo

if TYPE_CHECKING:
    from .core import RepositoryCore
    from .stored_object import WriteableObject

PIECE_BYTES = 8 << 20
"""What is read or written at once of what is long."""


class ByteSource(Protocol):
    """Something that is read piece by piece."""

    def read(self, size: int, /) -> bytes | str:
        """The next piece, empty at the end."""


def read_range(core: RepositoryCore, info: ObjectInfo, start: int, end: int) -> bytes:
    """Some bytes of an object, wherever they are."""
    if is_elsewhere(info):
        folder, _, name = info.physical_address.rpartition("/")
        return resolve(folder).get_ranges(name, [(start, end)])[0]
    return core.store.get_ranges(info.physical_address, [(start, end)])[0]


def is_elsewhere(info: ObjectInfo) -> bool:
    """Whether an object's bytes are not below the repository's root, but at a URI."""
    return info.address_type == "full" or (info.address_type == "by_prefix" and "://" in info.physical_address)


class ObjectReader(io.RawIOBase):
    """Reads an object by ranges, as it was when it was opened."""

    def __init__(self, core: RepositoryCore, info: ObjectInfo) -> None:
        self._core = core
        self._info = info
        self._at = 0
        self.name = info.path
        self.mode = "rb"

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The next byte's number."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a byte, from the start, from here or from the end."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._info.size_bytes}[whence]
        if start + offset < 0:
            raise InvalidArgumentError(f"expected a place in the object, found {start + offset}")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Reads up to as many bytes as the buffer has."""
        end = min(self._at + len(buffer), self._info.size_bytes)
        if end <= self._at:
            return 0
        data = read_range(self._core, self._info, self._at, end)
        buffer[: len(data)] = data
        self._at = end
        return len(data)


class TextReader(io.TextIOWrapper):
    """Text in UTF-8 that can be sought in bytes from anywhere, as lakeFS's readers can."""

    mode = "r"

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a byte, from the start, from here or from the end."""
        if offset and whence == io.SEEK_CUR:
            return super().seek(self.tell() + offset)
        if offset and whence == io.SEEK_END:
            return super().seek(super().seek(0, io.SEEK_END) + offset)
        return super().seek(offset, whence)


class ObjectWriter(io.BufferedIOBase):
    """Bytes that become an object when the file is closed without an error, and are then staged.

    What is short is put at once, what is long goes out in pieces while it is written.
    """

    def __init__(self, target: WriteableObject, content_type: str, metadata: dict[str, str]) -> None:
        self.content_type = content_type
        self.metadata = metadata
        self.name = target.path
        self.mode = "wb"
        self._target = target
        self._upload: Any = target._branch._core.upload()

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return int(self._upload.size)

    def write(self, data: Any) -> int:
        """Appends bytes."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        raw = data.encode() if isinstance(data, str) else memoryview(data).cast("B")
        self._upload.write(raw)
        return len(raw)

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        if not self.closed:
            self._upload.abort()
            super().close()

    def close(self) -> None:
        """Puts what is left and stages the object."""
        if self.closed:
            return
        try:
            info = self._upload.finish(self._target.path, self.content_type, dict(self.metadata))
            self._target._branch._stage(self._target.path, info)
        except BaseException:
            self._upload.abort()
            raise
        finally:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        super().__exit__(kind, error, traceback)

    def __del__(self) -> None:
        # Nobody closed it: nobody wanted it.
        if hasattr(self, "_upload"):
            self.discard()


class TextWriter(io.TextIOWrapper):
    """Text in UTF-8 that becomes an object when the file is closed without an error."""

    mode = "w"

    def __init__(self, raw: ObjectWriter) -> None:
        super().__init__(raw, encoding="utf-8", newline="", write_through=True)
        self._raw = raw

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        self._raw.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        super().__exit__(kind, error, traceback)

    def __del__(self) -> None:
        self._raw.discard()
