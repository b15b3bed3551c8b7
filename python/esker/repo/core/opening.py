"""Opens a repository: the origin that all handles share, and that pickles of them carry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._native.store import Store
from ...commit.external import ExternalManifestStore, base_uri_of, open_manifest_store
from ...store.pickling import pickled_options, pickled_url
from ...store.stores import absolute, resolve
from ..refs.atomic_objects import AtomicObjects
from .read_only import open_core
from .repository_core import RepositoryCore

CACHE_BYTES = 256 << 20
"""Default bytes of ranges and metaranges that are cached in memory."""


@dataclass(frozen=True)
class Origin:
    """Where a repository is, and with which options it was opened.

    Example:
        `Origin("s3://bucket/lake", {"aws_region": "eu-west-1"}).open()`
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    cache_bytes: int = CACHE_BYTES
    cache_dir: str | os.PathLike[str] | None = None
    manifest_store: ExternalManifestStore | str | None = None

    @property
    def store(self) -> Store:
        """Its root."""
        return resolve(self.uri, storage_options=self.options)

    def atomic(self, store: Store) -> AtomicObjects:
        """The objects by which its refs move."""
        external = open_manifest_store(self.uri, self.options, self.manifest_store)
        return AtomicObjects(store, external, base_uri_of(external, self.uri) if external else "")

    def open(self) -> RepositoryCore:
        """Opens it.

        Raises:
            NotFoundError: There is none.
        """
        store = self.store
        core = open_core(
            store,
            self.uri,
            self.atomic(store),
            cache_bytes=self.cache_bytes,
            cache_dir=self.cache_dir,
            options=self.options,
        )
        core.reopen = (Origin.open, self)
        return core

    def __reduce__(self) -> tuple[Any, ...]:
        store = self.manifest_store
        named = pickled_url(store) if isinstance(store, str) else store
        return Origin, (self.uri, pickled_options(self.options), self.cache_bytes, self.cache_dir, named)


def origin_of(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None,
    cache_bytes: int = CACHE_BYTES,
    cache_dir: str | os.PathLike[str] | None = None,
    manifest_store: ExternalManifestStore | str | None = None,
) -> Origin:
    """The origin of what a user names, wherever another process has its working folder."""
    return Origin(absolute(uri), dict(storage_options or {}), cache_bytes, cache_dir, manifest_store)
