"""An fsspec file system over a repository: paths are `<ref>/<path>`.

pandas, pyarrow and DuckDB read and write through it. What is written is staged on the branch, as everywhere else:
`repository.branch(...).commit(...)` of the same `Repository` makes it visible to others.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

from fsspec.spec import AbstractFileSystem

from ..exceptions import InvalidArgumentError, NotFoundError
from .objects import CommonPrefix, ObjectInfo
from .repository import Repository


class RepositoryFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files of a repository's refs.

    Args:
        repository: The repository, or where it is.

    Example:
        `pandas.read_parquet("main/a.parquet", filesystem=RepositoryFileSystem(repository))`
    """

    protocol = "esker-repo"
    cachable = False
    root_marker = ""

    def __init__(self, repository: Repository | str, **options: Any) -> None:
        super().__init__(**options)
        self.repository = Repository(repository) if isinstance(repository, str) else repository

    def _split(self, path: str) -> tuple[str, str]:
        stripped = self._strip_protocol(path).strip("/")
        for ref, rest in _cuts(stripped):
            if self.repository._core.has_branch(ref):
                return ref, rest
        ref, _, rest = stripped.partition("/")
        return ref, rest

    def _ref(self, ref: str) -> Any:
        known = self.repository.branch(ref)
        return known if self.repository._core.has_branch(ref) else self.repository.ref(ref)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """What is in a folder of a ref; the branches at the root."""
        if not self._strip_protocol(path).strip("/"):
            found = [_folder(branch.id) for branch in self.repository.branches()]
        else:
            ref, rest = self._split(path)
            prefix = rest.rstrip("/") + "/" if rest else ""
            found = [_file(ref, entry) for entry in self._ref(ref).objects(prefix=prefix, delimiter="/")]
            if not found and rest:
                found = [self.info(path)]
        return found if detail else [entry["name"] for entry in found]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """What is known of a file or a folder."""
        ref, rest = self._split(path)
        if not ref or not rest:
            return _folder(ref)
        branch = self._ref(ref)
        try:
            return _file(ref, branch.object(rest).stat())
        except NotFoundError:
            if next(iter(branch.objects(prefix=rest.rstrip("/") + "/", max_amount=1)), None) is None:
                raise
            return _folder(f"{ref}/{rest.rstrip('/')}")

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        ref, rest = self._split(path)
        if mode == "rb":
            return self._ref(ref).object(rest).reader()
        if mode == "wb":
            return self.repository.branch(ref).object(rest).writer()
        raise InvalidArgumentError(f"expected the mode 'rb' or 'wb', found {mode!r}; objects are not changed in place")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """The bytes of a file, or some of them."""
        with self._open(path) as file:
            size = file.seek(0, io.SEEK_END)
            first, last = _place(start, 0, size), _place(end, size, size)
            file.seek(first)
            return bytes(file.read(max(last - first, 0)))

    def modified(self, path: str) -> datetime:
        """When the bytes were put there."""
        when = self.info(path).get("mtime")
        if not isinstance(when, datetime):
            raise NotFoundError(f"{path!r} does not say when it was changed", path=path)
        return when

    def rm_file(self, path: str) -> None:
        """Stages that a path goes."""
        ref, rest = self._split(path)
        self.repository.branch(ref).delete_objects([rest])

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Stages the same object at another path; no bytes are copied."""
        ref, rest = self._split(path1)
        target, to = self._split(path2)
        self.repository.branch(target)._copy(self._ref(ref).object(rest).stat(), target, to)

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Nothing: there are only paths."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing: there are only paths."""

    def rmdir(self, path: str) -> None:
        """Nothing: there are only paths."""


def _cuts(path: str) -> list[tuple[str, str]]:
    """All ways to cut a path into a branch, whose name may have slashes, and the rest; the longest name first."""
    parts = path.split("/")
    return [("/".join(parts[:n]), "/".join(parts[n:])) for n in range(len(parts), 0, -1)]


def _place(at: int | None, default: int, size: int) -> int:
    if at is None:
        return default
    return max(size + at, 0) if at < 0 else min(at, size)


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _file(ref: str, entry: ObjectInfo | CommonPrefix) -> dict[str, Any]:
    if isinstance(entry, CommonPrefix):
        return _folder(f"{ref}/{entry.path.rstrip('/')}")
    facts = {"mtime": entry.mtime, "checksum": entry.checksum, "metadata": dict(entry.metadata)}
    return {"name": f"{ref}/{entry.path}", "size": entry.size_bytes, "type": "file", **facts}
