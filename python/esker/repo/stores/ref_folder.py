"""A folder of one content as a store, for reading: what the URI of a ref opens, where the ref is no live branch.

The ref is resolved once. What is pickled is the content that was found: another process reads the same, wherever the
ref leads by then.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from ..._native.graveler import StagedPaths
from ..._native.store import Store
from ...store.staging import StagingStore
from ..core.repository_core import RepositoryCore


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
        over = core.staging_over(content, uuid.uuid4().hex, StagedPaths())
        self = cls(uri, over=over.store(uri, f"{below}/" if below else "", read_only=True))
        self._core, self._content, self._path = core, content, below
        return self

    def put_entry(self, path: str, data: bytes, change: object, accompany: Callable[[Store], None]) -> bool:
        """Refuses, as every write here.

        Raises:
            UnsupportedError: Always.
        """
        return self.put_if_absent(path, data)

    def __reduce__(self) -> tuple[Any, ...]:
        return RefFolder.of, (self._core, self._content, self._path, self.uri)
