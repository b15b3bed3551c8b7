"""Files that a repository's file system opens for writing over that of an object: with a codec, or with text."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .objects.object_io import DiscardedOnError


class _Below:
    """An object's file as a codec sees it: some codecs close it, others write an end when nobody wants it any more."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.is_wanted = True

    def write(self, data: Any) -> int:
        """Appends bytes, or drops them."""
        return int(self._raw.write(data)) if self.is_wanted else memoryview(data).nbytes

    def close(self) -> None:
        """Nothing: `CompressingWriter` does."""

    def flush(self) -> None:
        """Nothing: the object is there when its file is closed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class CompressingWriter(DiscardedOnError, io.BufferedIOBase):
    """Bytes that go through a codec into an object's file, which is closed with this one, or given up with it.

    Args:
        raw: The object's file.
        codec: Makes the codec's file over it.
    """

    def __init__(self, raw: Any, codec: Callable[..., Any]) -> None:
        self._raw = raw
        self._below = _Below(raw)
        self._codec = codec(self._below, mode="w")

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Appends bytes."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        self._codec.write(data)
        return memoryview(data).nbytes

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        if not self.closed:
            self._below.is_wanted = False
            try:
                with suppress(ValueError, OSError):
                    self._codec.close()
            finally:
                self._raw.discard()
                super().close()

    def close(self) -> None:
        """Ends what the codec has written, and stages the object."""
        if self.closed:
            return
        try:
            self._codec.close()
            self._raw.close()
        except BaseException:
            self.discard()
            raise
        finally:
            super().close()

    def __del__(self) -> None:
        # Not closed: not wanted.
        if hasattr(self, "_codec"):
            self.discard()


class _Placed:
    """A file as text is put over it: a codec's mark of the order of bytes comes only where a file says that it begins.

    Args:
        file: The object's file, or a codec's over it.
        at: The byte that it is at.
    """

    def __init__(self, file: Any, at: int) -> None:
        self._file = file
        self._at: int | None = at

    def seekable(self) -> bool:
        """Whether it can say where it is."""
        return True

    def tell(self) -> int:
        """At first where text begins; then what the file says."""
        at, self._at = self._at, None
        return int(self._file.tell()) if at is None else at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class EncodingWriter(DiscardedOnError, io.TextIOWrapper):
    """Text that becomes an object when the file is closed without an error.

    Args:
        file: The object's file, or a codec's over it.
        at: How many bytes are in front of the text.
        options: `encoding`, `errors` and `newline`.
    """

    def __init__(self, file: Any, at: int, **options: Any) -> None:
        super().__init__(_Placed(file, at), **options)
        self._file = file

    def seekable(self) -> bool:
        """False."""
        return False

    def tell(self) -> int:
        """Refused: what is written is counted by the file below."""
        raise io.UnsupportedOperation(
            "expected a file that is read, found one of text that is written; count its bytes"
        )

    def detach(self) -> Any:
        """The file below, which is to be closed by whoever takes it."""
        super().detach()
        file, self._file = self._file, None
        return file

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        if self._file is not None:
            self._file.discard()

    def __del__(self) -> None:
        # Not closed: not wanted.
        if hasattr(self, "_file"):
            self.discard()
