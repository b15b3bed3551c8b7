"""Files that a repository's file system opens for writing over that of an object: with a codec, or with text."""

from __future__ import annotations

import io
from contextlib import suppress
from types import TracebackType
from typing import Any


class CompressingWriter(io.BufferedIOBase):
    """Bytes that go through a codec into an object's file, which is closed with this one, or given up with it.

    Args:
        raw: The object's file.
        codec: The codec's file over it, which ends what it has written, but does not close what is below it.
    """

    def __init__(self, raw: Any, codec: Any) -> None:
        self._raw = raw
        self._codec = codec

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
            try:
                # It writes an end, which is given up with the rest.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        super().__exit__(kind, error, traceback)

    def __del__(self) -> None:
        # Not closed: not wanted.
        if hasattr(self, "_codec"):
            self.discard()


class EncodingWriter(io.TextIOWrapper):
    """Text that becomes an object when the file is closed without an error.

    Args:
        file: The object's file, or a codec's over it.
        options: `encoding`, `errors` and `newline`.
    """

    def __init__(self, file: Any, **options: Any) -> None:
        super().__init__(file, **options)
        self._file = file

    def discard(self) -> None:
        """Gives up what was written, and closes the file."""
        self._file.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        super().__exit__(kind, error, traceback)
