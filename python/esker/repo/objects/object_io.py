"""Readers and writers of objects. Both hold a few pieces in memory at most."""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any, Protocol

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..errors import InvalidSeekError
from ..refs.clock import moment
from ..refs.expired import explained
from ..sdk_names import LacksNames
from ..text import check_pairs, check_text
from .address import place_of
from .object_info import ObjectInfo
from .ref_view import BranchView

PIECE_BYTES = 8 << 20
"""What is read or written at once of what is long."""


MEDIA_TYPE = "application/octet-stream"
"""Of objects that were written without one: lakeFS stores it as well, and objects are the same only if theirs are."""


class ByteSource(Protocol):
    """Something that is read piece by piece."""

    def read(self, size: int, /) -> bytes | str:
        """The next piece, empty at the end."""


def read_range(core: RepositoryCore, info: ObjectInfo, commit_id: str, start: int, end: int) -> bytes:
    """Some bytes of an object of a commit, or with an empty id of what is staged, wherever they are."""
    if is_elsewhere(info):
        folder, name = place_of(info.physical_address)
        return core.elsewhere(folder).get_ranges(name, [(start, end)])[0]
    with explained(core.store, commit_id):
        return core.store.get_ranges(info.physical_address, [(start, end)])[0]


def is_elsewhere(info: ObjectInfo) -> bool:
    """Whether an object's bytes are not below the repository's root, but at a URI."""
    return info.address_type == "full" or (info.address_type == "by_prefix" and "://" in info.physical_address)


class ObjectReader(LacksNames, io.RawIOBase):
    """Reads an object by ranges, as it was when it was opened."""

    def __init__(self, core: RepositoryCore, info: ObjectInfo, commit_id: str = "") -> None:
        self._core = core
        self._info = info
        self._commit_id = commit_id
        self._at = 0
        self._is_closed = False
        self.name = info.path
        self.mode = "rb"

    @property
    def closed(self) -> bool:
        """Whether it was closed. A buffer asks before each line, and `io`'s own answer looks for a name in vain."""
        return self._is_closed

    def close(self) -> None:
        """Closes it."""
        self._is_closed = True
        super().close()

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
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._info.size_bytes}.get(whence)
        if start is None:
            raise io.UnsupportedOperation(f"expected a whence of 0, 1 or 2, found {whence}")
        self._at = _checked(start + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Reads up to as many bytes as the buffer has."""
        end = min(self._at + len(buffer), self._info.size_bytes)
        if end <= self._at:
            return 0
        data = read_range(self._core, self._info, self._commit_id, self._at, end)
        buffer[: len(data)] = data
        self._at = end
        return len(data)

    def readall(self) -> bytes:
        """Reads the rest, in pieces that are worth a request each."""
        end = max(self._at, self._info.size_bytes)
        places = range(self._at, end, PIECE_BYTES)
        ranges = [(at, min(at + PIECE_BYTES, end)) for at in places]
        data = b"".join(read_range(self._core, self._info, self._commit_id, *one) for one in ranges)
        self._at = end
        return data


class BufferedObjectReader(io.BufferedReader):
    """Reads ahead, also for text, which asks for a few thousand bytes each time."""

    def read1(self, size: int = -1, /) -> bytes:
        """What is in the buffer, which is filled first if it is empty."""
        if size > 0:
            self.peek()
        return super().read1(size)


class TextReader(io.TextIOWrapper):
    """Text in UTF-8 that can be sought in bytes from anywhere, as lakeFS's readers can."""

    mode = "r"

    def __next__(self) -> str:  # type: ignore[override]
        """The next line; where it ends may be told, which the base class refuses."""
        if line := self.readline():
            return line
        raise StopIteration

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a byte, from the start, from here or from the end."""
        if not offset or whence not in (io.SEEK_CUR, io.SEEK_END):
            return super().seek(_checked(offset) if whence == io.SEEK_SET else offset, whence)
        start = self.tell() if whence == io.SEEK_CUR else super().seek(0, io.SEEK_END)
        return super().seek(_checked(start + offset))


def bytes_of(data: Any) -> memoryview:
    """The bytes of whatever lends them: also of an empty array, and of one with steps.

    Raises:
        InvalidArgumentError: It lends none.
    """
    try:
        view = memoryview(data)
    except TypeError as error:
        raise InvalidArgumentError(f"expected bytes or text, found {type(data).__name__}") from error
    return view.cast("B") if view.nbytes and view.c_contiguous else memoryview(view.tobytes())


def _checked(place: int) -> int:
    if place < 0:
        raise InvalidSeekError(f"expected a place in the object, found {place}; seek to 0 or behind it")
    return place


class DiscardedOnError(io.IOBase):
    """A file that is given up where an error ends its block: nothing of it is staged."""

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        super().__exit__(kind, error, traceback)


class ObjectWriter(LacksNames, DiscardedOnError, io.BufferedIOBase):
    """Bytes that become an object when the file is closed without an error, and are then staged.

    What is short is put at once, what is long goes out in pieces while it is written.

    Args:
        view: The branch.
        path: Where.
        content_type: A media type.
        metadata: The user's own keys and values.
        is_new: Whether there may be no object at the path, not even one that was staged while this one was written.
    """

    def __init__(
        self, view: BranchView, path: str, content_type: str, metadata: dict[str, str], *, is_new: bool = False
    ) -> None:
        self.content_type = content_type
        self.metadata = metadata
        self.name = path
        self.mode = "wb"
        self._view = view
        self._is_new = is_new
        self._began = moment()
        self._upload: Any = view.core.upload()

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
        raw = check_text(data, "a text").encode() if isinstance(data, str) else bytes_of(data)
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
            content_type = check_text(self.content_type or MEDIA_TYPE, "a content type")
            info = self._upload.finish(self.name, content_type, check_pairs(self.metadata, "metadata"))
            self._view.stage(self.name, info, self._began, is_new=self._is_new)
        except BaseException:
            self._upload.abort()
            raise
        finally:
            super().close()

    def __del__(self) -> None:
        # Not closed: not wanted.
        if hasattr(self, "_upload"):
            self.discard()


class TextWriter(DiscardedOnError, io.TextIOWrapper):
    """Text in UTF-8 that becomes an object when the file is closed without an error."""

    mode = "w"

    def __init__(self, raw: ObjectWriter) -> None:
        super().__init__(raw, encoding="utf-8", newline="", write_through=True)
        self._raw = raw
        self._is_detached = False

    @property
    def content_type(self) -> str:
        """The object's media type; may be set until the file is closed."""
        return self._raw.content_type

    @content_type.setter
    def content_type(self, content_type: str) -> None:
        self._raw.content_type = content_type

    @property
    def metadata(self) -> dict[str, str]:
        """The object's keys and values; may be set until the file is closed."""
        return self._raw.metadata

    @metadata.setter
    def metadata(self, metadata: dict[str, str]) -> None:
        self._raw.metadata = metadata

    def write(self, data: Any) -> int:
        """Appends text; bytes are taken as they are, as lakeFS's writers take them."""
        return super().write(check_text(data, "a text")) if isinstance(data, str) else self._raw.write(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._raw.tell()

    def detach(self) -> Any:
        """The file of bytes below, which is to be closed by whoever takes it."""
        super().detach()
        self._is_detached = True
        return self._raw

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        if not self._is_detached:
            self._raw.discard()

    def __del__(self) -> None:
        if hasattr(self, "_is_detached"):
            self.discard()
