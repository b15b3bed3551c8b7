"""Hides the Arrow schema in Parquet footers whose types do not suit filters of a Delta table.

A writer may keep its Arrow schema in a file's footer, and pyarrow gives columns the types in it: views in files of
polars, and of deltalake's deletes, updates and merges; times in the zone of their writer. Filters are compared
with statistics in those types, for which pyarrow has no kernels. A Delta table has its own schema, so that nothing is
lost when pyarrow does not find the writer's: its key is renamed in the bytes of the footer, as they are read.

```
... row groups | footer: ... "ARROW:schema" -> "arrow:schema" ... | length | PAR1
```
"""

from __future__ import annotations

import base64
import io
import mmap
import os
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from ...arrow.exit_wait import watch_file, watch_file_system

_KEY, _OTHER = b"ARROW:schema", b"arrow:schema"
_TAIL = 64 * 1024
_MOST_FOOTER = 1 << 30


class TableFileSystem(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """The files of another file system, for reading, Parquet in its own types.

    Args:
        inner: The other file system.

    Example:
        `pa.fs.PyFileSystem(TableFileSystem(pa.fs.LocalFileSystem()))`
    """

    def __init__(self, inner: pa_fs.FileSystem) -> None:
        self.inner = inner
        watch_file_system(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFileSystem) and bool(other.inner.equals(self.inner))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file, for reading anywhere."""
        file = self.inner.open_input_file(path)
        size = file.size()
        start = max(0, size - _TAIL)
        tail = file.read_at(size - start, start)
        length = int.from_bytes(tail[-8:-4], "little")
        if len(tail) - 8 < length <= min(size - 8, _MOST_FOOTER):
            start = size - 8 - length
            tail = file.read_at(size - start, start)
        if _is_odd(tail):
            tail = _renamed(tail)
        # The tail that was read is not requested again.
        return pa.PythonFile(_FileWithTail(file, size, start, tail), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """A file, for reading."""
        return self.inner.open_input_stream(path)

    def get_type_name(self) -> str:
        """A name for messages."""
        return str(self.inner.type_name)

    def normalize_path(self, path: str) -> str:
        """The path as the other has it."""
        return str(self.inner.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        """Sizes of files."""
        return list(self.inner.get_file_info(paths))

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        """Files below a folder."""
        return list(self.inner.get_file_info(selector))

    def create_dir(self, path: str, recursive: bool) -> None:
        """Hands it on, as are all that follow."""
        self.inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        """Hands it on."""
        self.inner.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Hands it on."""
        self.inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        """Hands it on."""
        self.inner.delete_dir_contents("", accept_root_dir=True)

    def delete_file(self, path: str) -> None:
        """Hands it on."""
        self.inner.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        """Hands it on."""
        self.inner.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        """Hands it on."""
        self.inner.copy_file(src, dest)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Hands it on."""
        return self.inner.open_output_stream(path, metadata=metadata)

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Hands it on."""
        return self.inner.open_append_stream(path, metadata=metadata)


class ParquetSources:
    """The sources that Parquet files of a table are opened from.

    A local file is opened by its path, or mapped into memory where its footer has to be changed: no thread of pyarrow
    runs Python for it, which would be in the way when the process ends.

    Args:
        is_filtered: Whether a filter may be compared with statistics; without, all footers are good.

    Example:
        `format.make_fragment(*ParquetSources(is_filtered=True).of(filesystem, "a.parquet"))`
    """

    def __init__(self, *, is_filtered: bool) -> None:
        self._is_filtered = is_filtered
        self._wrapped: dict[int, tuple[pa_fs.FileSystem, pa_fs.FileSystem]] = {}

    def of(self, filesystem: pa_fs.FileSystem, path: str) -> tuple[Any, pa_fs.FileSystem | None]:
        """The file and its file system, or bytes and none."""
        if not self._is_filtered:
            return path, filesystem
        if isinstance(filesystem, pa_fs.LocalFileSystem):
            mapped = _mapped(path)
            return (path, filesystem) if mapped is None else (mapped, None)
        if id(filesystem) not in self._wrapped:
            self._wrapped[id(filesystem)] = (filesystem, pa_fs.PyFileSystem(TableFileSystem(filesystem)))
        return path, self._wrapped[id(filesystem)][1]

    def open(self, filesystem: pa_fs.FileSystem, path: str) -> pa.NativeFile:
        """The file, for reading anywhere."""
        source, where = self.of(filesystem, path)
        return source if where is None else where.open_input_file(source)


def _mapped(path: str) -> pa.NativeFile | None:
    """A local file with a footer that suits the table; None if its own does, or if there is none."""
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            end = max(0, size - 8)
            file.seek(end)
            start = end - int.from_bytes(file.read(8)[:4], "little")
            if start < 0:
                return None
            file.seek(start)
            footer = file.read(end - start)
            if not _is_odd(footer):
                return None
            # The mapping is private: changes do not reach the file.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError:
        # Reading the file will raise the error.
        return None
    at = start + footer.rfind(_KEY)
    mapped[at : at + len(_KEY)] = _OTHER
    return pa.BufferReader(pa.py_buffer(mapped))


class _FileWithTail(io.RawIOBase):
    """A file whose last bytes are known already."""

    def __init__(self, file: pa.NativeFile, size: int, start: int, tail: bytes) -> None:
        self._file, self._size, self._start, self._tail = file, size, start, tail
        self._at = 0
        watch_file(self)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        first = min(self._at, self._size)
        end = self._size if size is None or size < 0 else min(self._size, first + size)
        self._at = end
        if first >= self._start:
            return self._tail[first - self._start : end - self._start]
        data: bytes = self._file.read_at(min(end, self._start) - first, first)
        return data if end <= self._start else data + self._tail[: end - self._start]

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _is_odd(tail: bytes) -> bool:
    """Whether the Arrow schema in a footer has types that filters of a Delta table have no kernels for."""
    at = tail.rfind(_KEY)
    if at < 0:
        return False
    # Compact Thrift: the header of a binary field, its length in 7 bits a byte, the text.
    at += len(_KEY) + 1
    length = shift = 0
    while at < len(tail):
        length |= (tail[at] & 0x7F) << shift
        shift += 7
        at += 1
        if tail[at - 1] < 0x80:
            break
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(tail[at : at + length])))
    except (ValueError, OSError, pa.ArrowException):
        # pyarrow could not read this schema either.
        return True
    return any(_is_odd_type(kind) for kind in schema.types)


def _is_odd_type(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    if types.is_timestamp(kind):
        return kind.tz not in (None, "UTC")
    if types.is_dictionary(kind):
        return _is_odd_type(kind.value_type)
    return any(_is_odd_type(kind.field(i).type) for i in range(kind.num_fields))


def _renamed(tail: bytes) -> bytes:
    at = tail.rfind(_KEY)
    return tail[:at] + _OTHER + tail[at + len(_KEY) :]
