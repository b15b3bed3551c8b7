"""`DeltaStorageHandler`: the objects below a table's root as a file system of pyarrow, under deltalake's name."""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.fs as pa_fs

from ..._native.store import ObjectMeta, Store
from ...arrow.exit_wait import watch_file_system
from ...exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from ...store.pickling import pickled_options
from ...store.staging import StagingStore
from ...store.stores import absolute, resolve
from ..log.store_file import StoreFile, WrittenStoreFile
from ..raw_table import RawTable
from ..table import DeltaTable

__all__ = ["DeltaStorageHandler"]

_BUFFER = "max_buffer_size"
_SMALLEST_BUFFER = 5 << 20


class DeltaStorageHandler(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """The objects below a root, for `pyarrow.fs.PyFileSystem`; paths are relative to it.

    A folder is there as long as an object is in it. On a branch of a repository it is read-only: what is written there
    belongs to a commit, which the repository's own file system and the table's methods make.

    Args:
        table_uri: The root: a path, or a URI of a registered scheme.
        options: Options of the store, such as credentials.
        known_sizes: Sizes in bytes of files, by path, which are then not asked for.

    Raises:
        UnsupportedError: No store answers to the URI's scheme.

    Example:
        `pyarrow.dataset.dataset("/", filesystem=pa_fs.PyFileSystem(DeltaStorageHandler("s3://lake/events")))`
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        options: dict[str, str] | None = None,
        known_sizes: dict[str, int] | None = None,
    ) -> None:
        given = {key: value for key, value in (options or {}).items() if key != _BUFFER}
        uri = absolute(table_uri)
        self._set(resolve(uri, storage_options=given), uri, options, known_sizes)

    def _set(self, store: Store, uri: str, options: dict[str, str] | None, known_sizes: dict[str, int] | None) -> None:
        self._store = store
        self._uri = uri
        self._options = options
        self._known_sizes = {self.normalize_path(path): size for path, size in (known_sizes or {}).items()}
        watch_file_system(self)

    @classmethod
    def from_table(
        cls,
        table: RawTable | DeltaTable,
        options: dict[str, str] | None = None,
        known_sizes: dict[str, int] | None = None,
    ) -> Self:
        """The file system of an open table.

        Args:
            table: The table, or its `_table`.
            options: Options of the store; the table's own if not given.
            known_sizes: As above.
        """
        opened: DeltaTable = table if isinstance(table, DeltaTable) else table.opened
        found = cls.__new__(cls)
        found._set(opened._store, opened._uri, options or opened._storage_options, known_sizes)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._uri, pickled_options(self._options), self._known_sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeltaStorageHandler) and self._store.uri == other._store.uri

    def __hash__(self) -> int:
        return hash(self._store.uri)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def equals(self, other: object) -> bool:
        """Whether another one has the same root."""
        return self == other

    def get_type_name(self) -> str:
        """The kind of file system, for messages."""
        return "object-store"

    def normalize_path(self, path: str) -> str:
        """The path below the root, without a `/` at its start.

        Raises:
            InvalidArgumentError: It leads out of the root.
        """
        parts = [part for part in path.split("/") if part]
        if any(part in (".", "..") for part in parts):
            raise InvalidArgumentError(f"expected a path below the root, found {path!r}; leave out '.' and '..'")
        return "/".join(parts) + ("/" if parts and path.endswith("/") else "")

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        """What is at each of the paths: a file, a folder that has files, or nothing."""
        return [self._info(self._path(path)) for path in paths]

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        """What is in a folder.

        Raises:
            NotFoundError: There is no such folder, and the selector does not allow for that.
        """
        base = self._path(selector.base_dir)
        prefix = base + "/" if base else ""
        files = self._store.list(prefix)
        folders = {folder.strip("/") for folder in self._store.list_folders(prefix)}
        if base and not files and not folders and not selector.allow_not_found:
            raise NotFoundError(f"there is no folder {base!r}; check the path", path=base)
        for meta in files:
            inside = meta.path[len(prefix) :].split("/")[:-1]
            folders |= {prefix + "/".join(inside[: depth + 1]) for depth in range(len(inside))}
        found = [self._file(meta) for meta in files]
        found += [pa_fs.FileInfo(folder, pa_fs.FileType.Directory) for folder in sorted(folders)]
        return [info for info in found if selector.recursive or posixpath.dirname(info.path) == base]

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file, for reading anywhere.

        Raises:
            NotFoundError: There is none.
        """
        where = self._path(path)
        return pa.PythonFile(StoreFile(self._store, where, self._known_sizes.get(where)), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """A file, for reading from its start; see `open_input_file`."""
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.NativeFile:
        """A new file, which takes the place of one that is there when it is closed.

        Args:
            path: Its path.
            metadata: Accepted as deltalake accepts it.
        """
        self._check_written()
        size = (self._options or {}).get(_BUFFER)
        if size is not None and int(size) < _SMALLEST_BUFFER:
            warnings.warn(
                f"You specified a `{_BUFFER}` of {size} bits less than {_SMALLEST_BUFFER} bits; parts of uploads are "
                "not smaller than that, leave it out",
                UserWarning,
                stacklevel=2,
            )
        where = self._path(path)
        self._known_sizes.pop(where, None)
        return pa.PythonFile(WrittenStoreFile(self._store.writer(where)), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.NativeFile:
        """Objects are not appended to: raises `UnsupportedError`."""
        raise UnsupportedError("objects of a store are not appended to; write a new one with open_output_stream")

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Does nothing: a folder is there when an object is in it."""
        self._path(path)

    def delete_file(self, path: str) -> None:
        """Deletes a file.

        Raises:
            NotFoundError: There is none.
        """
        self._check_written()
        where = self._path(path)
        self._store.head(where)
        self._store.delete(where)

    def delete_dir(self, path: str) -> None:
        """Deletes a folder and what is in it; nothing happens if there is none."""
        self.delete_dir_contents(path, missing_dir_ok=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False, *, accept_root_dir: bool = False) -> None:
        """Deletes what is in a folder.

        Args:
            path: The folder.
            missing_dir_ok: Whether it need not be there.
            accept_root_dir: Whether it may be the root.

        Raises:
            InvalidArgumentError: It is the root, unasked for.
            NotFoundError: There is no such folder.
        """
        self._check_written()
        where = self._path(path)
        if not where and not accept_root_dir:
            raise InvalidArgumentError("expected a folder below the root; accept_root_dir=True deletes all of it")
        paths = self._store.list_paths(where + "/" if where else "")
        if where and not paths and not missing_dir_ok:
            raise NotFoundError(f"there is no folder {where!r}; check the path", path=where)
        self._store.delete_all(paths)

    def delete_root_dir_contents(self) -> None:
        """Deletes all that is below the root."""
        self.delete_dir_contents("", accept_root_dir=True)

    def copy_file(self, src: str, dst: str) -> None:
        """Copies a file, over one that is there.

        Raises:
            NotFoundError: There is no such file.
        """
        self._check_written()
        source, target = self._path(src), self._path(dst)
        self._store.head(source)
        if source != target:
            self._store.copy(source, self._store, target)

    def move(self, src: str, dest: str) -> None:
        """Moves a file over one that is there, or a folder: each file is copied, then deleted.

        Raises:
            NotFoundError: There is nothing to move.
            InvalidArgumentError: A folder would move into itself.
        """
        self._check_written()
        source, target = self._path(src), self._path(dest)
        if self._info(source).type == pa_fs.FileType.File:
            moved = {source: target}
        else:
            moved = {path: target + path[len(source) :] for path in self._store.list_paths(source + "/")}
            if f"{target}/".startswith(f"{source}/") and source != target:
                raise InvalidArgumentError(f"expected a folder outside of {source!r}, found {target!r}")
        if not moved:
            raise NotFoundError(f"there is no file and no folder {source!r}; check the path", path=source)
        if source == target:
            return
        for path, place in moved.items():
            self._store.copy(path, self._store, place)
        self._store.delete_all(list(moved))

    def _path(self, path: str) -> str:
        return self.normalize_path(path).rstrip("/")

    def _info(self, path: str) -> pa_fs.FileInfo:
        try:
            if path:
                return self._file(self._store.head(path))
        except NotFoundError:
            if not self._store.list_first(path + "/", 1)[0]:
                return pa_fs.FileInfo(path, pa_fs.FileType.NotFound)
        return pa_fs.FileInfo(path, pa_fs.FileType.Directory)

    def _file(self, meta: ObjectMeta) -> pa_fs.FileInfo:
        size = self._known_sizes.get(meta.path, meta.size)
        return pa_fs.FileInfo(meta.path, pa_fs.FileType.File, size=size, mtime_ns=self._modified_ns(meta))

    def _modified_ns(self, meta: ObjectMeta) -> int | None:
        """When an object was changed; a file system tells it finer than the store."""
        root = self._uri if self._uri.startswith("/") else None
        if self._uri.lower().startswith("file://"):
            root = unquote(urlparse(self._uri).path)
        if root is not None:
            try:
                return os.stat(os.path.join(root, meta.path)).st_mtime_ns
            except OSError:
                pass
        return None if meta.last_modified_us is None else meta.last_modified_us * 1000

    def _check_written(self) -> None:
        if isinstance(self._store, StagingStore):
            raise UnsupportedError(
                "a table on a branch of a repository is read here, not written, as what changes belongs to a commit; "
                "use the table's methods, or the repository's file system",
                uri=self._uri,
            )
