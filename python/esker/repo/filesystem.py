"""A repository as a file system, for pandas, pyarrow, DuckDB and whatever else takes one from fsspec.

```
esker://<ref>/<path>                a branch, a tag, or any ref expression
esker://<repository>@<ref>/<path>   the same, as `Branch.store_uri` writes it: see `table_address`
```

A `/` in a branch's name may be written as %2F, and must be where another branch has the name before it. In the first
form an option tells the repository: `storage_options={"repository": "s3://bucket/lake"}`. What is written is staged on
the branch, as everywhere: `fs.repository.branch("main").commit("...")` shows it to others.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from glob import has_magic
from typing import Any, ClassVar, Literal
from urllib.parse import quote, unquote

import fsspec
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from fsspec.utils import other_paths

from ..exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError
from .branch import Branch
from .fsspec_files import CompressingWriter, EncodingWriter
from .fsspec_transaction import FsspecTransaction
from .objects.object_info import CommonPrefix, ObjectInfo
from .objects.object_io import PIECE_BYTES, BufferedObjectReader, ObjectReader, read_range
from .objects.staging import Staging
from .objects.stored_object import StoredObject, WriteableObject
from .reference import Reference
from .repository import Repository
from .table_address import SCHEME, TableAddress, parse

PROTOCOL = SCHEME

_MADE_AT_MOST = 1000
"""Folders that were made and are known to be empty."""
_READ_AHEAD_BYTES = 1 << 16


class _Kept(type(AbstractFileSystem)):  # type: ignore[misc]
    """fsspec keeps a file system for each set of options; one of an open repository belongs to that alone."""

    def __call__(cls, repository: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(repository, Repository):
            options["skip_instance_cache"] = True
        return super().__call__(repository, *args, **options)


class RepositoryFileSystem(AbstractFileSystem, metaclass=_Kept):  # type: ignore[misc]
    """The refs of a repository as folders, with objects below them, whose folders are there while they hold any.

    Empty objects whose paths end with a `/` are folders, and go with them.

    Args:
        repository: Its URI, or a `Repository` that is open: what one stages, the other sees and commits. By default the
            one that a URL names.
        repository_options: Options of the store, if `repository` is a URI.
        named: The repository that a URL names, which fsspec finds out.

    Example:
        >>> from esker.repo import Repository
        >>> from esker.repo.filesystem import RepositoryFileSystem
        >>> fs = RepositoryFileSystem(Repository.create("memory://doc-filesystem"))
        >>> fs.pipe("main/a/b.txt", b"hello")
        >>> fs.ls("main/a", detail=False)
        ['main/a/b.txt']
        >>> _ = fs.repository.branch("main").commit("hello")
        >>> fs.cat("main~0/a/b.txt")
        b'hello'
    """

    protocol: ClassVar[str] = PROTOCOL
    root_marker: ClassVar[str] = ""
    transaction_type: ClassVar[type[FsspecTransaction]] = FsspecTransaction

    def __init__(
        self,
        repository: str | os.PathLike[str] | Repository | None = None,
        *,
        repository_options: Mapping[str, str] | None = None,
        named: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        repository = named if repository is None else repository
        if repository is None:
            raise InvalidArgumentError(
                "expected the option 'repository', or a URL that names one, esker://<repository>@<ref>/<path>: "
                "`Branch.store_uri` and `Reference.store_uri` write it"
            )
        if not isinstance(repository, Repository):
            repository = Repository(repository, storage_options=repository_options)
        self.repository = repository
        self._made: set[str] = set()

    @property
    def fsid(self) -> str:
        """What tells it from others: the repository."""
        return f"{PROTOCOL}-{self.repository.id}"

    @classmethod
    def _strip_protocol(cls, path: str | list[str]) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return os.fspath(path).removeprefix(f"{PROTOCOL}://").strip("/")

    @classmethod
    def _get_kwargs_from_urls(cls, path: str) -> dict[str, str]:
        found = _address(os.fspath(path))
        return {} if found is None else {"named": found.repository}

    def _split(self, path: str) -> tuple[str, str, str]:
        """How the path spells the ref, the ref, and the path below it."""
        first, *rest = self._strip_protocol(path).split("/")
        found = _address(f"{PROTOCOL}://{first}")
        if found is not None:
            if found.repository.rstrip("/") != self.repository.uri.rstrip("/"):
                raise InvalidArgumentError(
                    f"expected a path of the repository {self.repository.uri}, found one of {found.repository}; leave "
                    "out the option 'repository', or write esker://<ref>/<path>"
                )
            return first, found.ref, "/".join(rest)
        if rest and "%" not in first and not self._is_ref(first):
            # A branch with a slash in its name, written as it is.
            for count in range(1, len(rest) + 1):
                longer = "/".join([first, *rest[:count]])
                if self.repository._core.has_branch(longer):
                    return longer, longer, "/".join(rest[count:])
        return first, unquote(first), "/".join(rest)

    def _is_ref(self, name: str) -> bool:
        try:
            self.repository._core.resolve(name)
        except (NotFoundError, InvalidArgumentError):
            return False
        return True

    def _reference(self, ref: str) -> Reference:
        # A branch shows what is staged on it, which a ref expression does not.
        if self.repository._core.has_branch(ref):
            return self.repository.branch(ref)
        return self.repository.ref(ref)

    def _branch(self, path: str) -> tuple[Branch, str]:
        _, ref, key = self._split(path)
        if not key:
            raise InvalidArgumentError(f"expected a branch and a path below it, found {path!r}")
        branch = self.repository.branch(ref)
        branch.get_commit()
        if self._intrans:
            branch._view = self.transaction.view(ref)
        return branch, key

    def _writeable(self, path: str) -> WriteableObject:
        branch, key = self._branch(path)
        return branch.object(key)

    def _object(self, path: str) -> StoredObject:
        _, ref, key = self._split(path)
        if not key:
            raise IsADirectoryError(path)
        return self._reference(ref).object(key)

    # What is there.

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is known of a path: `name`, `type` and `size`; of an object also `mtime`, `checksum` and more.

        Raises:
            NotFoundError: There is nothing.
        """
        written, ref, key = self._split(path)
        name = self._strip_protocol(path)
        if not ref:
            return _folder("")
        reference = self._reference(ref)
        reference.get_commit()
        if not key:
            return _folder(name)
        found = reference.object(key)
        if found.exists():
            return _file(written, found.stat())
        if any(True for _ in reference.objects(prefix=key + "/", max_amount=1)):
            return _folder(name)
        raise NotFoundError(f"no object and no folder {key!r} in {ref!r}", path=key)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What a folder holds; of an object, itself.

        Raises:
            NotFoundError: There is nothing.
        """
        written, ref, key = self._split(path)
        if not ref:
            names = {branch.id for branch in self.repository.branches()} | {tag.id for tag in self.repository.tags()}
            found = [_folder(quote(name, safe="")) for name in sorted(names)]
        else:
            prefix = key + "/" if key else ""
            listed = self._reference(ref).objects(prefix=prefix, delimiter="/")
            found = [_described(written, one) for one in listed if not _is_marker(one)]
            if not found and key and self._strip_protocol(path) in self._made and not self.exists(path):
                return []
            if not found and key:
                found = [self.info(path)]
                if found[0]["type"] == "directory":
                    found = []
        return found if detail else [one["name"] for one in found]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **options: Any
    ) -> Any:
        """All objects below a path, by one walk through the listing."""
        written, ref, key = self._split(path)
        if maxdepth is not None or withdirs or not ref:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **options)
        reference = self._reference(ref)
        found: dict[str, dict[str, Any]] = {}
        if key and reference.object(key).exists():
            one = _file(written, reference.object(key).stat())
            found[one["name"]] = one
        for listed in reference.objects(prefix=key + "/" if key else ""):
            if not _is_marker(listed):
                one = _described(written, listed)
                found[one["name"]] = one
        return found if detail else list(found)

    def created(self, path: str) -> datetime | None:
        """When an object's bytes were put."""
        return self._object(path).stat().mtime

    modified = created

    def checksum(self, path: str) -> str:
        """Of an object: changes whenever its bytes do."""
        return self._object(path).stat().checksum

    ukey = checksum

    # Reading and writing.

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | Literal["default"] | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **options: Any,
    ) -> Any:
        """Opens an object. What is written is staged when the file is closed, and not if an error ends its block.

        Args:
            path: Of the object.
            mode: `rb`, `wb`, `ab` and `xb` for bytes, the same without `b` for text.
            block_size: Bytes to read ahead.
            cache_options: How, as fsspec's caches take it.
            compression: A codec of fsspec's, or `infer` it from the path.
            options: `encoding`, `errors` and `newline` of text; others as fsspec takes them.
        """
        if "r" in mode or ("b" in mode and compression is None):
            return super().open(path, mode, block_size, cache_options, compression, **options)
        texts = {name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options}
        binary = mode if "b" in mode else mode.replace("t", "") + "b"
        raw = super().open(path, binary, block_size, cache_options, **options)
        at = raw.tell()
        codec = get_compression(self._strip_protocol(path), compression)
        file = raw if codec is None else CompressingWriter(raw, compr[codec])
        return file if "b" in mode else EncodingWriter(file, at, **texts)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | Literal["default"] | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        if mode == "rb":
            return RepositoryFile(self, path, self._object(path), block_size, cache_options, **options)
        target = self._writeable(path)
        if mode == "xb" and target.exists():
            raise AlreadyExistsError(f"{path!r} exists already; open it with 'wb' to replace it", path=path)
        if mode not in ("wb", "ab", "xb"):
            raise InvalidArgumentError(f"expected the mode 'rb', 'wb', 'ab' or 'xb', found {mode!r}")
        writer = target.writer("xb" if mode == "xb" else "wb")
        if mode == "ab" and target.exists():
            shutil.copyfileobj(target.reader(), writer, PIECE_BYTES)
        return writer

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """An object's bytes, or some of them; negative numbers count from its end."""
        found, commit_id = self._object(path)._place()
        size = found.size_bytes
        first, last = _bounds(start, 0, size), _bounds(end, size, size)
        return read_range(self.repository._core, found, commit_id, first, last) if first < last else b""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Stages an object with these bytes."""
        target = self._writeable(path)
        if mode == "create" and target.exists():
            raise AlreadyExistsError(f"{path!r} exists already; pipe it with mode='overwrite' to replace it", path=path)
        target.upload(value, "x" if mode == "create" else "w")

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Stages an empty object."""
        if truncate or not self.exists(path):
            self.pipe_file(path, b"")

    def expand_path(
        self,
        path: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
        **options: Any,
    ) -> Any:
        """The paths that patterns stand for. One that is there stands for itself, whatever characters it has."""
        given = [path] if isinstance(path, str | os.PathLike) else path
        literal = [one for one in given if assume_literal or not self._is_pattern(one)]
        patterns = [one for one in given if one not in literal]
        found = set(super().expand_path(literal, recursive, maxdepth, True, **options) if literal else ())
        if patterns or not literal:
            found.update(super().expand_path(patterns, recursive, maxdepth, **options))
        return sorted(found)

    def _is_pattern(self, path: str | os.PathLike[str]) -> bool:
        return bool(has_magic(os.fspath(path))) and not self.exists(path)

    def _pairs(
        self, path1: str | list[str], path2: str | list[str], recursive: bool, maxdepth: int | None
    ) -> tuple[list[str], list[str]]:
        """What is copied and where to, as fsspec's `copy` has it, but that what is there is no pattern."""
        if isinstance(path1, list) and isinstance(path2, list):
            if len(path1) != len(path2):
                raise InvalidArgumentError(f"expected as many targets as sources, found {len(path2)} and {len(path1)}")
            return path1, path2
        is_one = isinstance(path1, str)
        sources: list[str] = self.expand_path(path1, recursive=recursive, maxdepth=maxdepth)
        if is_one and (not recursive or maxdepth is not None):
            sources = [one for one in sources if not (one.endswith("/") or self.isdir(one))]
        if not sources:
            return [], []
        if isinstance(path1, str) and self._is_pattern(path1):
            is_inside = len(sources) == 1
        else:
            into = isinstance(path2, str) and (path2.endswith("/") or self.isdir(path2))
            is_inside = isinstance(path1, str) and into and not path1.endswith("/")
        return sources, other_paths(sources, path2, exists=is_inside, flatten=not is_one)

    def copy(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **options: Any,
    ) -> None:
        """Stages objects at other paths. No bytes are copied."""
        sources, targets = self._pairs(path1, path2, recursive, maxdepth)
        super().copy(sources, targets, recursive=recursive, on_error=on_error, **options)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Stages the object at another path. No bytes are copied."""
        found = self._found(path1)
        if found is not None:
            self._stage_copy(found, path2)

    def _found(self, path: str) -> tuple[ObjectInfo, str | Staging] | None:
        """What is known of an object; None of a folder, which is there with what it holds."""
        try:
            return self._object(path)._stat()
        except (NotFoundError, IsADirectoryError):
            if self.isdir(path):
                return None
            raise

    def _stage_copy(self, found: tuple[ObjectInfo, str | Staging], path: str) -> None:
        branch, key = self._branch(path)
        branch._view.stage_copy(*found, key)

    def mv(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Stages objects at other paths, and that they go from where they were. What moves to where it is stays.

        Raises:
            InvalidArgumentError: A folder would go below itself, or several objects to the same path.
            NotFoundError: There is nothing at one of the paths. Nothing is staged then.
        """
        if isinstance(path1, str) and isinstance(path2, str):
            # A ref may be written in several ways.
            (_, ref, key), (_, target_ref, target) = self._split(path1), self._split(path2)
            if (ref, key) == (target_ref, target):
                return
            if recursive and ref == target_ref and target.startswith(key + "/"):
                raise InvalidArgumentError(f"expected a path outside of {path1!r} to move it to, found {path2!r}")
        # All of it is looked for before anything is staged: a target may be a source too, or below a pattern's folder.
        gone = self._all_gone(path1, recursive, maxdepth)
        sources, targets = self._pairs(path1, path2, recursive, maxdepth)
        looked = [(self._found(source), target) for source, target in zip(sources, targets, strict=True)]
        found = [(one, target) for one, target in looked if one is not None]
        copied, places = {self._split(one)[1:] for one in sources}, [self._split(target)[1:] for _, target in found]
        if len(kept := set(places)) < len(places):
            raise InvalidArgumentError(f"expected a place for each object to move to, found several for one: {path2!r}")
        left = [
            (branch, [one for one in paths if (branch.id, one) not in kept and _goes(branch, one, copied)])
            for branch, paths in gone
        ]
        for one, target in found:
            self._stage_copy(one, target)
        for branch, paths in left:
            branch.delete_objects(paths)

    def rm_file(self, path: str) -> None:
        """Stages that an object goes.

        Raises:
            NotFoundError: There is none.
        """
        target = self._writeable(path)
        target.stat()
        target.delete()

    _rm = rm_file

    def rm(self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        """Stages that objects go; with `recursive`, all that is below the paths as well.

        Args:
            path: Paths, or patterns of them.
            recursive: Also what is below them.
            maxdepth: So many folders deep, 1 for what is directly in them.

        Raises:
            NotFoundError: There is nothing at one of the paths. Nothing is staged then.
        """
        if maxdepth is not None and maxdepth < 1:
            raise InvalidArgumentError(f"expected a maxdepth of 1 or more, found {maxdepth}")
        for branch, paths in self._all_gone(path, recursive, maxdepth):
            branch.delete_objects(paths)

    def _all_gone(self, path: str | list[str], recursive: bool, maxdepth: int | None) -> list[tuple[Branch, list[str]]]:
        """What goes with paths, or with the paths that patterns stand for."""
        return [
            (branch, paths)
            for one in ([path] if isinstance(path, str | os.PathLike) else path)
            for branch, paths in self._gone(os.fspath(one), recursive, maxdepth)
        ]

    def _gone(self, path: str, recursive: bool, maxdepth: int | None) -> Iterator[tuple[Branch, list[str]]]:
        """What goes with a path, or with the paths that a pattern stands for."""
        if self._is_pattern(path):
            matches = self.glob(path, maxdepth=maxdepth)
            if not matches:
                raise NotFoundError(f"no object and no folder matches {path!r}", path=path)
            for one in matches:
                # What a pattern stands for is the first folder deep.
                if (recursive and maxdepth != 1) or self.isfile(one):
                    yield from self._gone(one, recursive, None if maxdepth is None else max(1, maxdepth - 1))
            return
        branch, key = self._branch(path)
        found = [key] if branch.object(key).exists() else []
        if recursive:
            below = (one.path for one in branch.objects(prefix=key + "/"))
            depth = key.count("/") + (maxdepth or 0)
            found += [one for one in below if maxdepth is None or one.count("/") <= depth]
        if not found and not (recursive and self.isdir(path)):
            raise NotFoundError(f"no object {key!r} in {branch.id!r}", path=key)
        yield branch, found

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Nothing that others see: folders are there while they hold objects. This file system lists it as empty."""
        # DuckDB lists what it has just made.
        if len(self._made) > _MADE_AT_MOST:
            self._made.clear()
        self._made.add(self._strip_protocol(path))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """The same as `mkdir`."""
        self.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Nothing: folders are there while they hold objects."""

    def invalidate_cache(self, path: str | None = None) -> None:
        """Nothing: listings are not kept."""


class RepositoryFile(AbstractBufferedFile):  # type: ignore[misc]
    """An object that is read in pieces, with fsspec's read-ahead."""

    def __init__(
        self,
        fs: RepositoryFileSystem,
        path: str,
        found: StoredObject,
        block_size: int | Literal["default"] | None,
        cache_options: dict[str, Any] | None,
        **options: Any,
    ) -> None:
        # As it is now, by one look: a commit to the branch does not change what an open file reads.
        info, commit_id = found._place()
        self._reader = BufferedObjectReader(ObjectReader(fs.repository._core, info, commit_id), _READ_AHEAD_BYTES)
        # What fsspec has noted of one that it opens anew out of a pickle is not asked.
        options["size"] = info.size_bytes
        super().__init__(fs, path, "rb", block_size or "default", cache_options=cache_options, **options)

    def _fetch_range(self, start: int, end: int) -> bytes:
        self._reader.seek(start)
        return bytes(self._reader.read(end - start))


def _address(url: str) -> TableAddress | None:
    """What a URL names; None for `esker://<ref>/<path>`, whose ref may hold an `@` but no repository before it."""
    try:
        return parse(url)
    except InvalidArgumentError:
        return None


def _bounds(asked: int | None, otherwise: int, size: int) -> int:
    if asked is None:
        return otherwise
    return min(size, asked if asked >= 0 else max(0, size + asked))


def _folder(name: str) -> dict[str, Any]:
    return {"name": name.rstrip("/"), "size": 0, "type": "directory"}


def _file(ref: str, found: ObjectInfo) -> dict[str, Any]:
    return {
        "name": f"{ref}/{found.path}",
        "size": found.size_bytes,
        "type": "file",
        "mtime": found.mtime,
        "checksum": found.checksum,
        "content_type": found.content_type,
        "metadata": dict(found.metadata),
        "address": found.physical_address,
    }


def _is_marker(found: ObjectInfo | CommonPrefix) -> bool:
    """Whether an object is an empty one that stands for a folder, as consoles of object stores and Hadoop make them."""
    return isinstance(found, ObjectInfo) and found.path.endswith("/") and not found.size_bytes


def _goes(branch: Branch, path: str, copied: set[tuple[str, str]]) -> bool:
    """Whether an object goes with what moves: it was copied, or stands for a folder."""
    return (branch.id, path) in copied or (path.endswith("/") and not branch.object(path).stat().size_bytes)


def _described(ref: str, found: ObjectInfo | CommonPrefix) -> dict[str, Any]:
    if isinstance(found, CommonPrefix):
        return _folder(f"{ref}/{found.path}")
    return _file(ref, found)


fsspec.register_implementation(PROTOCOL, RepositoryFileSystem, clobber=True)
