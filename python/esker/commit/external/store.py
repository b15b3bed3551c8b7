"""The interface of external manifest stores: five methods over (table, version) -> path of a manifest.

Spec: "External Manifest Store" of the Lance format; docs/external-manifest-stores.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ManifestEntry:
    """The store's entry of one version of one table.

    Args:
        version: The version's number.
        path: The path of its manifest: the table's base URI, `/_versions/` and the name, staged or final.
        size: The size of the manifest in bytes, None if the writer did not give it.
        e_tag: The e-tag of the manifest in the object store, None if the writer did not give it.
    """

    version: int
    path: str
    size: int | None = None
    e_tag: str | None = None


@runtime_checkable
class ExternalManifestStore(Protocol):
    """A store of `(base URI, version) -> path of the manifest` beside an object store that has no put-if-absent.

    Write a class with these methods for a database of your own, and pass an instance as `manifest_store` wherever a
    table is opened or written. Its contract:

    - `put_if_not_exists` is atomic: of several writers of one version exactly one gets True, even if processes crash.
    - When a put has returned True, its entry is durable, and the next `get` and `get_latest` of any process see it.
    - A method that failed, or does not know whether it succeeded, raises `OSError`. The caller reads back.
    - Instances can be pickled, if workers are to open the table, and can be called by several threads.

    The method names are those of the Lance format ("External Manifest Store" in its specification).

    Example:
        >>> from esker.commit.external import ExternalManifestStore, ManifestEntry
        >>> class InMemory:
        ...     def __init__(self):
        ...         self.entries = {}
        ...     def get(self, base_uri, version):
        ...         return self.entries.get((base_uri, version))
        ...     def get_latest(self, base_uri):
        ...         of_table = [number for uri, number in self.entries if uri == base_uri]
        ...         return self.get(base_uri, max(of_table)) if of_table else None
        ...     def put_if_not_exists(self, base_uri, version, path, size, e_tag=None):
        ...         entry = ManifestEntry(version, path, size, e_tag)
        ...         return self.entries.setdefault((base_uri, version), entry) is entry
        ...     def put_if_exists(self, base_uri, version, path, size, e_tag=None):
        ...         there = (base_uri, version) in self.entries
        ...         if there:
        ...             self.entries[base_uri, version] = ManifestEntry(version, path, size, e_tag)
        ...         return there
        ...     def delete(self, base_uri):
        ...         self.entries = {key: entry for key, entry in self.entries.items() if key[0] != base_uri}
        >>> isinstance(InMemory(), ExternalManifestStore)
        True
        >>> import esker, pyarrow as pa
        >>> store = InMemory()
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-external", manifest_store=store)
        >>> store.get_latest("memory://doc-external").path
        'memory://doc-external/_versions/18446744073709551614.manifest'
    """

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """The entry of a version, None if there is none."""

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        """The entry of the highest version below 2^63, None if there is none. Versions above are detached versions."""

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """Adds the entry of a version that has none. False: the version has one, which is unchanged."""

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """Replaces the entry of a version that has one. False: the version has none, and none is added."""

    def delete(self, base_uri: str) -> None:
        """Deletes the entries of a table. To be called after its files were deleted: otherwise a new table at the same
        URI would be taken for later versions of the old one."""
