"""What an external manifest store must do: five verbs over (table, version) -> path of a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ManifestEntry:
    """What the store holds of one version of one table.

    Args:
        version: The version's number.
        path: Where its manifest lies: the table's base URI, `/_versions/` and the name, staged or final.
        size: Bytes of the manifest, None where the writer did not say.
        e_tag: What the object store calls these bytes, None where the writer did not say.
    """

    version: int
    path: str
    size: int | None = None
    e_tag: str | None = None


@runtime_checkable
class ExternalManifestStore(Protocol):
    """A store of `(base URI, version) -> path of the manifest` beside an object store that has no put-if-absent.

    Write a class with these methods for a database of your own, and pass an instance as `manifest_store` wherever a
    table is opened or written. All that is asked of it:

    - `put_if_not_exists` is atomic: of several writers of one version exactly one gets True, whatever dies when.
    - What a put returned True for is durable, and the next `get` and `get_latest`, of any process, see it.
    - A method that could not do its work, or does not know whether it did, raises `OSError`. The caller reads back.
    - Instances pickle, if workers are to open the table, and may be called by several threads.

    The names are those of the Lance format (`003` of the specification, "External Manifest Store") and of its readers.

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
        """The entry of the highest version below 2^63 (what is above is no part of the history), None for no entry."""

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """Makes the entry of a version that has none. False says that it has one, which is untouched."""

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """Replaces the entry of a version that has one. False says that it has none, and none is made."""

    def delete(self, base_uri: str) -> None:
        """Forgets all versions of a table: after its files were deleted, or another one in its place would be taken
        for a later version of it."""
