"""One path of a ref: its bytes and what is known of them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from ..commit.stores import resolve
from ..exceptions import InvalidArgumentError, NotFoundError
from .objects import ObjectInfo

if TYPE_CHECKING:
    from .branch import Branch
    from .reference import Reference


class StoredObject:
    """An object at a path of a ref.

    Example:
        `repository.ref("v1").object("a.csv").reader().read()`
    """

    def __init__(self, ref: Reference, path: str) -> None:
        self._ref = ref
        self.path = path

    def stat(self) -> ObjectInfo:
        """What is known of it.

        Raises:
            NotFoundError: There is no object at the path.
        """
        found = self._ref._find(self.path)
        if found is None:
            raise NotFoundError(f"no object {self.path!r} in {self._ref.id!r}", path=self.path)
        return found

    def exists(self) -> bool:
        """Whether there is an object at the path."""
        return self._ref._find(self.path) is not None

    def reader(self, mode: Literal["r", "rb"] = "rb") -> io.IOBase:
        """Opens it for reading: bytes, or with `r` text in UTF-8."""
        if mode not in ("r", "rb"):
            raise InvalidArgumentError(f"expected the mode 'r' or 'rb', found {mode!r}")
        raw = io.BufferedReader(ObjectReader(self._ref, self.stat()), 1 << 16)
        return io.TextIOWrapper(raw, encoding="utf-8") if mode == "r" else raw

    def read_range(self, start: int, end: int) -> bytes:
        """Some of its bytes, from `start` to before `end`."""
        return read_range(self._ref, self.stat(), start, end)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ref.id!r}, {self.path!r})"


class WriteableObject(StoredObject):
    """An object at a path of a branch.

    Example:
        `repository.branch("main").object("a.csv").upload(b"1,2")`
    """

    def __init__(self, branch: Branch, path: str) -> None:
        super().__init__(branch, path)
        self._branch = branch

    def upload(
        self, data: bytes | str, *, content_type: str = "", metadata: Mapping[str, str] | None = None
    ) -> WriteableObject:
        """Puts its bytes and stages them: others see them once they are committed.

        Args:
            data: The bytes, or text to be stored in UTF-8.
            content_type: A media type.
            metadata: Keys and values of your own, part of the object's identity.
        """
        raw = data.encode() if isinstance(data, str) else bytes(data)
        self._branch._put(self.path, raw, content_type, dict(metadata or {}))
        return self

    def writer(
        self, mode: Literal["w", "wb"] = "wb", *, content_type: str = "", metadata: Mapping[str, str] | None = None
    ) -> io.IOBase:
        """Opens it for writing: it is staged when the file is closed, and not at all if an error closes it.

        The bytes are held in memory until then.
        """
        if mode not in ("w", "wb"):
            raise InvalidArgumentError(f"expected the mode 'w' or 'wb', found {mode!r}")
        raw = ObjectWriter(self, content_type, dict(metadata or {}))
        return io.TextIOWrapper(raw, encoding="utf-8", write_through=True) if mode == "w" else raw

    def delete(self) -> None:
        """Stages that the path goes. No error if there is nothing."""
        self._branch.delete_objects([self.path])

    def copy(self, destination_branch_id: str, destination_path: str) -> WriteableObject:
        """Stages the same object at another path, of another branch if you like. No bytes are copied."""
        from .branch import Branch

        own = destination_branch_id == self._branch.id
        target = self._branch if own else Branch(self._branch._core, destination_branch_id)
        return target._copy(self.stat(), self._branch._source(self.path), destination_path)


class ObjectReader(io.RawIOBase):
    """Reads an object by ranges."""

    def __init__(self, ref: Reference, info: ObjectInfo) -> None:
        self._ref = ref
        self._info = info
        self._at = 0

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
        data = read_range(self._ref, self._info, self._at, end)
        buffer[: len(data)] = data
        self._at = end
        return len(data)


class ObjectWriter(io.BytesIO):
    """Bytes that become an object when they are closed without an error."""

    def __init__(self, target: WriteableObject, content_type: str, metadata: dict[str, str]) -> None:
        super().__init__()
        self._target = target
        self._content_type = content_type
        self._metadata = metadata
        self._failed = False

    def __exit__(self, *error: object) -> None:
        self._failed = error[0] is not None
        super().__exit__(*error)  # type: ignore[arg-type]

    def close(self) -> None:
        """Puts the bytes and stages them, unless an error has ended the block."""
        if not self.closed:
            data = self.getvalue()
            super().close()
            if not self._failed:
                self._target.upload(data, content_type=self._content_type, metadata=self._metadata)


def read_range(ref: Reference, info: ObjectInfo, start: int, end: int) -> bytes:
    """Some bytes of an object, wherever they are."""
    core = ref._core
    if info.address_type == "full" or (info.address_type == "by_prefix" and "://" in info.physical_address):
        folder, _, name = info.physical_address.rpartition("/")
        return resolve(folder).get_ranges(name, [(start, end)])[0]
    return core.store.get_ranges(info.physical_address, [(start, end)])[0]
