"""An object at a path of a ref: its metadata, reading, writing, copying."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import Any, Literal

from ...exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from ..errors import ExpiredError
from ..sdk_names import LacksNames
from ..text import check_pairs, check_text
from .object_info import ObjectInfo
from .object_io import (
    PIECE_BYTES,
    BufferedObjectReader,
    ByteSource,
    ObjectReader,
    ObjectWriter,
    TextReader,
    TextWriter,
    bytes_of,
    read_range,
)
from .ref_view import BranchView, RefView
from .staging import Staging

WriteMode = Literal["w", "wb", "x", "xb"]


class StoredObject(LacksNames):
    """An object at a path of a ref.

    Example:
        `repository.ref("v1").object("a.csv").reader().read()`
    """

    def __init__(self, view: RefView, path: str) -> None:
        self._view = view
        self.path = path

    @property
    def repo(self) -> str:
        """The repository's id."""
        return self._view.core.id

    @property
    def ref(self) -> str:
        """The ref expression."""
        return self._view.id

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
        return self._stat()[0]

    def _stat(self) -> tuple[ObjectInfo, str | Staging]:
        """What is known of it, and the id of the commit that it is part of, or where it is staged."""
        found, source = self._view.found(self.path)
        if found is None:
            raise NotFoundError(f"no object {self.path!r} in {self._view.id!r}", path=self.path)
        return found, source

    def exists(self) -> bool:
        """Whether there is an object at the path; False as well where there is no such ref.

        Raises:
            ExpiredError: The commit's content has expired, so that it is not known.
        """
        try:
            return self._view.found(self.path)[0] is not None
        except ExpiredError:
            raise
        except NotFoundError:
            return False

    def reader(self, mode: Literal["r", "rb"] = "rb", pre_sign: bool | None = None) -> Any:
        """Opens it for reading: bytes, or with `r` text in UTF-8. Lines end at line feeds, seeking counts bytes.

        Args:
            mode: `rb` or `r`.
            pre_sign: How lakeFS's client fetches; of no effect here.
        """
        if mode not in ("r", "rb"):
            raise InvalidArgumentError(f"expected the mode 'r' or 'rb', found {mode!r}")
        raw = BufferedObjectReader(ObjectReader(self._view.core, *self._place()), 1 << 16)
        return TextReader(raw, encoding="utf-8", newline="\n") if mode == "r" else raw

    def read_range(self, start: int, end: int) -> bytes:
        """Some of its bytes, from `start` to before `end`."""
        return read_range(self._view.core, *self._place(), start, end)

    def _place(self) -> tuple[ObjectInfo, str]:
        found, source = self._stat()
        return found, source if isinstance(source, str) else ""

    def copy(self, destination_branch_id: str, destination_path: str) -> WriteableObject:
        """Stages the same object at another path, of a branch. No bytes are copied."""
        own = isinstance(self._view, BranchView) and destination_branch_id == self._view.id
        target = self._view if own else BranchView(self._view.core, destination_branch_id)
        assert isinstance(target, BranchView)
        target.stage_copy(*self._stat(), destination_path)
        return WriteableObject(target, destination_path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._view, self.path)

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._view.id!r}, {self.path!r})"


class WriteableObject(StoredObject):
    """An object at a path of a branch.

    Example:
        `repository.branch("main").object("a.csv").upload(b"1,2")`
    """

    _view: BranchView

    def __init__(self, view: BranchView, path: str) -> None:
        super().__init__(view, path)

    def upload(
        self,
        data: bytes | str | os.PathLike[str] | ByteSource | Iterable[bytes],
        mode: WriteMode = "w",
        pre_sign: bool | None = None,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> WriteableObject:
        """Puts its bytes and stages them: others see them once they are committed.

        Args:
            data: The bytes, or text to be stored in UTF-8, or a file of this machine as a `pathlib.Path`, or an open
                file, or the pieces one after the other: what is long goes to the store in parts, and only some of them
                are held in memory.
            mode: With `x`, there may be no object yet.
            pre_sign: How lakeFS's client sends; of no effect here.
            content_type: A media type, `application/octet-stream` by default.
            metadata: Keys and values of your own, part of the object's identity.

        Raises:
            AlreadyExistsError: There is an object, and the mode is `x`.
            InvalidArgumentError: The data are nothing of that kind.
        """
        if isinstance(data, os.PathLike):
            with open(data, "rb") as file:
                return self.upload(file, mode, pre_sign, content_type, metadata)
        pieces = _pieces(data)
        with self._writer(mode, content_type, metadata) as writer:
            for piece in pieces:
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
            raise AlreadyExistsError(f"{self.path!r} exists already in {self._view.id!r}", path=self.path)
        self._view.check_writeable(self.path)
        media_type = check_text(content_type or "", "a content type")
        pairs = check_pairs(metadata, "metadata")
        return ObjectWriter(self._view, self.path, media_type, pairs, is_new="x" in mode)

    def delete(self) -> None:
        """Stages that the path goes. No error if there is nothing."""
        self._view.stage(self.path, None)


def _pieces(data: bytes | str | ByteSource | Iterable[bytes]) -> Iterable[bytes | str | memoryview]:
    if isinstance(data, bytes | bytearray | memoryview):
        view = bytes_of(data)
        return (view[at : at + PIECE_BYTES] for at in range(0, len(view), PIECE_BYTES))
    if isinstance(data, str):
        return (check_text(data, "a text"),)
    read = getattr(data, "read", None)
    if callable(read):
        return iter(lambda: read(PIECE_BYTES) or b"", b"")
    if isinstance(data, Mapping | Set) or not isinstance(data, Iterable):
        raise InvalidArgumentError(
            f"expected bytes, text, a path, an open file or pieces of bytes, found {type(data).__name__}"
        )
    return data
