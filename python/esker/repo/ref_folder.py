"""A folder of one content as a store, for reading: what the URI of a ref opens, where the ref is no live branch.

The ref is resolved once. What is pickled is the content that was found: another process reads the same, wherever the
ref leads by then.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from .._native.graveler import BranchStaging, StagedPaths
from .._native.store import Store
from ..store.staging import StagingStore
from .core.opening import origin_of
from .core.repository_core import RepositoryCore
from .table_address import address, parse, parsed


class RefFolder(StagingStore):
    """A folder of a content as a store that refuses to change.

    Example:
        `RefFolder.of(core, core.resolve("v1").meta_range_id, "tables/t", "esker://...@v1/tables/t")`
    """

    _core: RepositoryCore
    _content: str
    _path: str

    @classmethod
    def of(cls, core: RepositoryCore, content: str, path: str, uri: str) -> RefFolder:
        """The folder at a path of a content, whose metarange is given, called by a URI."""
        below = path.strip("/")
        over = BranchStaging(core.storage, content, uuid.uuid4().hex, StagedPaths(), storage_options=core.options)
        self = cls(uri, over=over.store(uri, f"{below}/" if below else "", read_only=True))
        self._core, self._content, self._path = core, content, below
        return self

    def put_entry(self, path: str, data: bytes, change: object, accompany: Callable[[], None]) -> bool:
        """Refuses, as every write here.

        Raises:
            UnsupportedError: Always.
        """
        return self.put_if_absent(path, data)

    def __reduce__(self) -> tuple[Any, ...]:
        return RefFolder.of, (self._core, self._content, self._path, self.uri)


def open_address(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    """Opens `esker://<repository>@<ref>/<path>` at the commit that the ref means now.

    Raises:
        InvalidArgumentError: It is no such URI.
        NotFoundError: There is no such repository, or no such ref.
    """
    return open_ref(*parsed(uri), uri, options)


def open_ref(repository: str, ref: str, path: str, uri: str, options: Mapping[str, str]) -> RefFolder:
    """Opens a folder of a ref, at the commit that the ref means now."""
    core = origin_of(repository, options).open()
    return RefFolder.of(core, core.resolve(ref).meta_range_id, path, uri)


def pinned(uri: str, storage_options: Mapping[str, str] | None = None) -> str:
    """The URI that goes on meaning what a URI means now: that of a commit for that of a ref; others as they are.

    Args:
        uri: Any.
        storage_options: Options of the repository's store.

    Example:
        >>> from esker.repo.ref_folder import pinned
        >>> pinned("s3://bucket/t")
        's3://bucket/t'
    """
    found = parse(uri)
    if found is None:
        return uri
    commit = origin_of(found.repository, storage_options).open().resolve(found.ref)
    return address(found.repository, commit.id, found.path)
