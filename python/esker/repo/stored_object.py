"""One path of a ref: its bytes and what is known of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from .object_io import PIECE_BYTES, ByteSource, ObjectReader, ObjectWriter, TextReader, TextWriter, read_range
from .objects import ObjectInfo

if TYPE_CHECKING:
    from .branch import Branch
    from .reference import Reference

WriteMode = Literal["w", "wb", "x", "xb"]


class StoredObject:
    """An object at a path of a ref.

    Example:
        `repository.ref("v1").object("a.csv").reader().read()`
    """

    def __init__(self, ref: Reference, path: str) -> None:
        self._ref = ref
        self.path = path

    @property
    def repo(self) -> str:
        """The repository's id."""
        return self._ref.repo_id

    @property
    def ref(self) -> str:
        """The ref expression."""
        return self._ref.id

    def stat(self, pre_sign: bool | None = None) -> ObjectInfo:
        """What is known of it.

        Args:
            pre_sign: Asks for an address that anybody may read, in lakeFS: an error here.

        Raises:
            NotFoundError: There is no object at the path.
            UnsupportedError: `pre_sign` is true.
        """
        if pre_sign:
            raise UnsupportedError("addresses are not signed here; give the store's own to whoever may read it")
        found = self._ref._find(self.path)
        if found is None:
            raise NotFoundError(f"no object {self.path!r} in {self._ref.id!r}", path=self.path)
        return found

    def exists(self) -> bool:
        """Whether there is an object at the path; False as well where there is no such ref."""
        try:
            return self._ref._find(self.path) is not None
        except NotFoundError:
            return False

    def reader(self, mode: Literal["r", "rb"] = "rb", pre_sign: bool | None = None) -> Any:
        """Opens it for reading: bytes, or with `r` text in UTF-8. Seeking counts bytes.

        Args:
            mode: `rb` or `r`.
            pre_sign: How lakeFS's client fetches; of no effect here.
        """
        if mode not in ("r", "rb"):
            raise InvalidArgumentError(f"expected the mode 'r' or 'rb', found {mode!r}")
        raw = io.BufferedReader(ObjectReader(self._ref._core, self.stat()), 1 << 16)
        return TextReader(raw, encoding="utf-8", newline="") if mode == "r" else raw

    def read_range(self, start: int, end: int) -> bytes:
        """Some of its bytes, from `start` to before `end`."""
        return read_range(self._ref._core, self.stat(), start, end)

    def copy(self, destination_branch_id: str, destination_path: str) -> WriteableObject:
        """Stages the same object at another path, of a branch. No bytes are copied."""
        from .branch import Branch

        own = isinstance(self._ref, Branch) and destination_branch_id == self._ref.id
        target = self._ref if own else Branch(self._ref._core, destination_branch_id)
        assert isinstance(target, Branch)
        return target._copy(self.stat(), self._ref._source(self.path), destination_path)

    def __str__(self) -> str:
        return self.path

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
        self,
        data: bytes | str | ByteSource | Iterable[bytes],
        mode: WriteMode = "w",
        pre_sign: bool | None = None,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> WriteableObject:
        """Puts its bytes and stages them: others see them once they are committed.

        Args:
            data: The bytes, or text to be stored in UTF-8, or an open file, or the pieces one after the other: what is
                long goes to the store in parts, and only some of them are held in memory.
            mode: With `x`, there may be no object yet.
            pre_sign: How lakeFS's client sends; of no effect here.
            content_type: A media type, `application/octet-stream` by default.
            metadata: Keys and values of your own, part of the object's identity.

        Raises:
            AlreadyExistsError: There is an object, and the mode is `x`.
        """
        with self._writer(mode, content_type, metadata) as writer:
            for piece in _pieces(data):
                writer.write(piece)
        return self

    def writer(
        self,
        mode: WriteMode = "wb",
        pre_sign: bool | None = None,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Any:
        """Opens it for writing: it is staged when the file is closed, and not at all if an error closes it.

        What is long goes to the store in parts while it is written. `discard()` gives it up.

        Args:
            mode: `wb` for bytes, `w` for text; with `x` in place of `w`, there may be no object yet.
            pre_sign: How lakeFS's client sends; of no effect here.
            content_type: A media type, `application/octet-stream` by default; like `metadata` an attribute of the file
                that may be set until it is closed.
            metadata: Keys and values of your own, part of the object's identity.

        Raises:
            AlreadyExistsError: There is an object, and the mode is `x`.
        """
        writer = self._writer(mode, content_type, metadata)
        return writer if "b" in mode else TextWriter(writer)

    def _writer(self, mode: str, content_type: str | None, metadata: Mapping[str, str] | None) -> ObjectWriter:
        if mode not in ("w", "wb", "x", "xb"):
            raise InvalidArgumentError(f"expected the mode 'w', 'wb', 'x' or 'xb', found {mode!r}")
        if "x" in mode and self.exists():
            raise AlreadyExistsError(f"{self.path!r} exists already in {self._ref.id!r}", path=self.path)
        self._branch._check_writeable(self.path)
        return ObjectWriter(self, content_type or "", dict(metadata or {}))

    def delete(self) -> None:
        """Stages that the path goes. No error if there is nothing."""
        self._branch.delete_objects([self.path])


def _pieces(data: bytes | str | ByteSource | Iterable[bytes]) -> Iterable[bytes | str | memoryview]:
    if isinstance(data, bytes | bytearray | memoryview):
        view = memoryview(data).cast("B")
        return (view[at : at + PIECE_BYTES] for at in range(0, len(view), PIECE_BYTES))
    if isinstance(data, str):
        return (data,)
    if hasattr(data, "read"):
        return iter(lambda: data.read(PIECE_BYTES) or b"", b"")
    return data
