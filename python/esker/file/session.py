"""`LanceFileSession`: reads and writes many files under one root."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from .._native.store import Store
from ..exceptions import NotFoundError
from ..store.staging import flush
from ..store.stores import resolve
from .blob_writers import DedicatedBlobWriter, PackedBlobWriter
from .place import refuse_namespace
from .reader import LanceFileReader
from .writer import LanceFileWriter


@dataclass
class ListResult:
    """The contents of one folder, without those of its folders.

    Args:
        common_prefixes: Its folders, relative to the session's root.
        objects: Its files, relative to the session's root.
    """

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """Files under one root, read and written over one store.

    Args:
        base_path: The root: a path or a URI.
        storage_options: Options of the store, such as credentials.
        namespace_client: Of pylance; refused.
        table_id: Of pylance; refused.

    Example:
        >>> import pyarrow as pa
        >>> from esker.file import LanceFileSession
        >>> session = LanceFileSession("memory://doc-session")
        >>> with session.open_writer("a.lance") as writer:
        ...     writer.write_batch(pa.table({"id": [1, 2]}))
        >>> session.list(), session.open_reader("a.lance").num_rows()
        (['a.lance'], 2)
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        storage_options: dict[str, str] | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
    ) -> None:
        refuse_namespace(namespace_client, table_id)
        self._store: Store = resolve(base_path, storage_options=storage_options)

    def open_reader(self, path: str, columns: list[str] | None = None) -> LanceFileReader:
        """A reader of the file at `path`, relative to the root; see `LanceFileReader`."""
        return LanceFileReader(None, columns=columns, _place=(self._store, path))

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """A writer of the file at `path`, relative to the root; see `LanceFileWriter`."""
        return LanceFileWriter(
            None,
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            keep_original_array=keep_original_array,
            max_page_bytes=max_page_bytes,
            _place=(self._store, path),
        )

    def open_packed_blob_writer(self, path: str, blob_id: int) -> PackedBlobWriter:
        """A writer of a file of many blobs, next to the file of data at `path`; see `PackedBlobWriter`.

        Args:
            path: The file of data that is to name them, relative to the root; it need not be there yet.
            blob_id: The number of the file of blobs, from 1; one of the same number is replaced.

        Raises:
            InvalidArgumentError: The path does not end in `.lance`, or the number cannot be.
        """
        return PackedBlobWriter(self._store, path, blob_id)

    def open_dedicated_blob_writer(self, path: str, blob_id: int) -> DedicatedBlobWriter:
        """A writer of a file of one blob, next to the file of data at `path`; see `DedicatedBlobWriter`.

        Args:
            path: The file of data that is to name it, relative to the root; it need not be there yet.
            blob_id: The number of the file of the blob, from 1; one of the same number is replaced.

        Raises:
            InvalidArgumentError: The path does not end in `.lance`, or the number cannot be.
        """
        return DedicatedBlobWriter(self._store, path, blob_id)

    def contains(self, path: str) -> bool:
        """Whether there is a file at `path`, relative to the root."""
        try:
            self._store.head(path)
        except NotFoundError:
            return False
        return True

    def list(self, path: str | None = None) -> list[str]:
        """All files below the folder `path`, at any depth, relative to the root and in order; None for the root."""
        return [meta.path for meta in self._store.list(_folder(path))]

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """The files and folders directly in the folder `path`; None for the root."""
        folder = _folder(path)
        found = ListResult([], [])
        for name in self.list(path):
            first, separator, _ = name[len(folder) :].partition("/")
            if not separator:
                found.objects.append(name)
            elif folder + first not in found.common_prefixes:
                found.common_prefixes.append(folder + first)
        return found

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Some bytes of a file.

        Args:
            path: The file, relative to the root.
            offset: The first byte.
            length: How many bytes.

        Raises:
            NotFoundError: There is no such file.
            CorruptFileError: The file ends before the end of the range.
        """
        return self._store.get_ranges(path, [(offset, offset + length)])[0]

    def delete_file(self, path: str) -> None:
        """Deletes a file.

        Raises:
            NotFoundError: There is no such file.
        """
        self._store.head(path)
        self._store.delete(path)
        flush(self._store, f"Delete {path} from")

    def upload_file(self, local_path: str | Path, remote_path: str) -> None:
        """Copies a local file to `remote_path`, relative to the root."""
        self._store.put(remote_path, Path(local_path).read_bytes())
        flush(self._store, f"Upload {remote_path} to")

    def download_file(self, remote_path: str, local_path: str | Path) -> None:
        """Copies the file at `remote_path`, relative to the root, to a local file.

        Raises:
            NotFoundError: There is no such file.
        """
        Path(local_path).write_bytes(self._store.get(remote_path))


def _folder(path: str | None) -> str:
    return f"{path.strip('/')}/" if path else ""
