"""A store as a pyarrow file system, and where each data file of a table lies."""

from __future__ import annotations

import posixpath
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from ..._native.store import Store
from ...arrow.exit_wait import watch_file_system
from ...exceptions import NotFoundError, UnsupportedError
from ...store.pickling import pickled_options
from ...store.stores import resolve
from ..log.store_file import StoreFile


class StoreFileSystem(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """The objects of one store, for reading; paths are relative to its root.

    Example:
        `pa.fs.PyFileSystem(StoreFileSystem(store))`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        watch_file_system(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFileSystem) and other._store.uri == self._store.uri

    def __ne__(self, other: object) -> bool:
        return not self == other

    def get_type_name(self) -> str:
        """A name for messages."""
        return "esker"

    def normalize_path(self, path: str) -> str:
        """The path as it is."""
        return path

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        """Sizes of objects."""
        found = []
        for path in paths:
            try:
                found.append(pa_fs.FileInfo(path, pa_fs.FileType.File, size=self._store.head(path).size))
            except NotFoundError:
                found.append(pa_fs.FileInfo(path, pa_fs.FileType.NotFound))
        return found

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        """Objects below a folder."""
        prefix = selector.base_dir.rstrip("/") + "/" if selector.base_dir else ""
        return [pa_fs.FileInfo(meta.path, pa_fs.FileType.File, size=meta.size) for meta in self._store.list(prefix)]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """An object, for reading."""
        return pa.PythonFile(StoreFile(self._store, path), mode="r")

    def open_input_file(self, path: str) -> pa.NativeFile:
        """An object, for reading anywhere."""
        return pa.PythonFile(StoreFile(self._store, path), mode="r")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedError("the files of a table are read here, not written")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class FileLocator:
    """Where the data files of a table are: within its root, or elsewhere by absolute path.

    Args:
        store: The table's.
        root: The canonical place of the table, with a `/` at its end.
        storage_options: For stores of files elsewhere.

    Example:
        `filesystem, path = FileLocator(store, "/t/", {}).locate("a.parquet")`
    """

    def __init__(
        self, store: Store, root: str, storage_options: dict[str, str] | None, filesystem: Any | None = None
    ) -> None:
        self._store = store
        self._root = root
        self._options = storage_options
        self._given = filesystem is not None
        self._elsewhere: dict[str, pa_fs.FileSystem] = {}
        self._stores: dict[str, Store] = {}
        self._local = pa_fs.LocalFileSystem()
        if filesystem is None:
            filesystem = self._local if root.startswith("/") else pa_fs.PyFileSystem(StoreFileSystem(store))
        elif isinstance(filesystem, str):
            filesystem, base = pa_fs.FileSystem.from_uri(filesystem)
            filesystem = pa_fs.SubTreeFileSystem(base, filesystem)
        elif not isinstance(filesystem, pa_fs.FileSystem):
            filesystem = pa_fs.PyFileSystem(pa_fs.FSSpecHandler(filesystem))
        self.filesystem: pa_fs.FileSystem = filesystem

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.filesystem if self._given else None
        return FileLocator, (self._store, self._root, pickled_options(self._options), given)

    def store_of(self, path: str) -> tuple[Store, str]:
        """The store of a file outside of the table, and its path there, by its canonical path."""
        folder, name = posixpath.split(path)
        if folder not in self._stores:
            self._stores[folder] = resolve(folder, storage_options=self._options)
        return self._stores[folder], name

    def place(self, path: str) -> tuple[Store, str]:
        """The store of a file, within the table or outside, and its path there, by its canonical path."""
        scheme, separator, _ = path.partition("://")
        is_elsewhere = path.startswith("/") or (separator and "/" not in scheme)
        return self.store_of(path) if is_elsewhere else (self._store, path)

    def locate(self, path: str) -> tuple[pa_fs.FileSystem, str]:
        """The file system of a file, and its path there, by its canonical path."""
        if path.startswith("/"):
            return self._local, path
        scheme, separator, _ = path.partition("://")
        if separator and "/" not in scheme:
            folder, name = posixpath.split(path)
            if folder not in self._elsewhere:
                store = resolve(folder, storage_options=self._options)
                self._elsewhere[folder] = pa_fs.PyFileSystem(StoreFileSystem(store))
            return self._elsewhere[folder], name
        if self.filesystem is self._local and not self._given:
            return self._local, self._root + path
        return self.filesystem, path
