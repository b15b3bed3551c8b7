"""The versions of a Lance table: manifests and transactions in a store.

```
_versions/{u64 max - version:020}.manifest   V2 names; {version}.manifest in V1 tables, which stay V1
_versions/{one of these}-{uuid}              a staged manifest, in tables with an external manifest store
_versions/d{version}.manifest                a detached version (bit 63 is set): not part of the history
_transactions/{read version}-{uuid}.txn      the transaction of a version; its manifest refers to it
_latest.manifest                             a copy of the newest manifest, in tables of the earliest writers
data/*.lance                                 data files, staged before; visible once a manifest refers to them
```

docs/commit-protocol.md, "What lies where".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._native.store import Store
from .._native.table import Fragment, Manifest, Transaction, manifest_name, parse_manifest_name
from ..commit.external import ExternalManifests, ExternalManifestStore, base_uri_of, open_manifest_store
from ..commit.external.naming import NamingScheme as NamingScheme
from ..commit.external.naming import parse_staged_manifest
from ..exceptions import CorruptFileError, EskerError, InvalidArgumentError, NotFoundError, UnsupportedError
from ..store.base_stores import BaseStores
from ..store.kinds import LANCE, found_instead
from ..store.staging import StagingStore, put_entry, refresh
from ..store.stores import absolute, resolve

VERSIONS = "_versions/"
TRANSACTIONS = "_transactions/"
LATEST_COPY = "_latest.manifest"

FINISH = "finish it by esker.lance.migration.migrate_manifest_paths_v2(uri)"
"""What to do about a table with manifests of both schemes."""

FIRST_NAMES = 20
"""How many names are listed to find the newest version: V2 names sort it first."""

_DETACHED = 1 << 63
_TAIL = 4096
"""Bytes at the end of a manifest within which the name of its transaction file mostly lies."""


def is_detached(version: int) -> bool:
    """Whether a version is detached: not part of the history.

    Example:
        >>> from esker.lance.log import is_detached
        >>> is_detached(3), is_detached(3 | 1 << 63)
        (False, True)
    """
    return bool(version & _DETACHED)


@dataclass(frozen=True)
class VersionListing:
    """A listing of `_versions/`: the versions in rising order, and the naming scheme of their manifests."""

    versions: tuple[int, ...]
    scheme: NamingScheme

    @property
    def latest(self) -> int:
        """The newest version, 0 if there is none."""
        return self.versions[-1] if self.versions else 0


class LanceLog:
    """The versions of one table in its store.

    Args:
        store: The store, rooted at the table.
        uri: The table's URI, for error messages.
        manifest_store: The external manifest store, None if the store itself does put-if-absent of manifests.
        bases: How the table's base paths are opened.

    Example:
        `LanceLog(store, uri).listing().latest`
    """

    def __init__(
        self,
        store: Store,
        uri: str,
        manifest_store: ExternalManifestStore | None = None,
        bases: BaseStores | None = None,
    ) -> None:
        self.store = store
        self.uri = uri
        self.bases = bases or BaseStores()
        self._external: ExternalManifests | None = None
        if manifest_store is not None:
            self._external = ExternalManifests(store, manifest_store, base_uri_of(manifest_store, uri), uri)

    @classmethod
    def at(
        cls,
        uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
        durable: bool = True,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    ) -> LanceLog:
        """The log of the table at a URI.

        Args:
            uri: A path, or a URI of a registered scheme.
            storage_options: Options of the store; `manifest_store` among them is the URI of an external manifest store.
            manifest_store: The external manifest store as an object or a URI; overrides the option.
            durable: Whether a put returns only when its bytes are on stable storage.
            base_store_params: Options by the path of a base path; they replace `storage_options` for it.

        Example:
            >>> from esker.lance import LanceLog
            >>> LanceLog.at("memory://doc-log").listing().latest
            0
        """
        text = absolute(uri)
        external = open_manifest_store(text, storage_options, manifest_store)
        bases = BaseStores(storage_options, base_store_params, durable)
        store = resolve(text, storage_options=storage_options, durable=durable)
        if external is not None and isinstance(store, StagingStore):
            raise UnsupportedError(
                f"{text}: expected no manifest_store for a table on a branch, found one: the repository's own commits "
                "decide there; leave it out",
                uri=text,
            )
        return cls(store, text, external, bases)

    @property
    def manifest_store(self) -> ExternalManifestStore | None:
        """The external manifest store, None for a table without one."""
        return self._external.external if self._external else None

    def mount(self, manifest: Manifest) -> None:
        """Mounts the base paths of a version in the store.

        Raises:
            InvalidArgumentError: An id is mounted already, with another path: versions before and after a restore can
                differ in this.
        """
        if manifest.base_paths:
            self.bases.mount(self.store, manifest.base_paths)

    def mounted(self, manifest: Manifest) -> LanceLog:
        """This log with the base paths of a version mounted; over a new store if other ones are mounted in this one."""
        try:
            self.mount(manifest)
            return self
        except InvalidArgumentError:
            store = resolve(self.uri, storage_options=self.bases.storage_options, durable=self.bases.durable)
            store.join(self.store.session)
            other = LanceLog(store, self.uri, self.manifest_store, self.bases)
            other.mount(manifest)
            return other

    def listing(self) -> VersionListing:
        """Lists the versions.

        Raises:
            CorruptFileError: V1 and V2 names are mixed.
        """
        refresh(self.store)
        return self._sorted(self.store.list_paths(VERSIONS))

    def _sorted(self, paths: Iterable[str]) -> VersionListing:
        versions: list[int] = []
        schemes: dict[NamingScheme, str] = {}
        for path in paths:
            parsed = parse_manifest_name(path.removeprefix(VERSIONS))
            if parsed is not None:
                versions.append(parsed[0])
                schemes.setdefault(parsed[1], path)
        # After the listing: every version listed was in the external store before.
        newest = self._external.latest() if self._external else None
        if newest is not None and newest.version not in versions:
            versions.append(newest.version)
            schemes.setdefault(newest.scheme, newest.path)
        if len(schemes) > 1:
            raise CorruptFileError(
                f"the table at {self.uri} mixes V1 and V2 manifest names ({schemes['V1']}, {schemes['V2']}), "
                f"expected one scheme; if its migration was broken off, {FINISH}",
                uri=self.uri,
                path=schemes["V1"],
            )
        return VersionListing(tuple(sorted(versions)), next(iter(schemes), "V2"))

    def newest(self) -> VersionListing:
        """A listing that holds the newest version, and perhaps not all of the others.

        V2 names sort the newest version first, so that the first page of a listing has it, however long the history.
        V1 names need the whole listing, and so does a store that does not list in byte order.
        """
        refresh(self.store)
        paths, complete = self.store.list_first(VERSIONS, FIRST_NAMES)
        parsed = [parse_manifest_name(path.removeprefix(VERSIONS)) for path in paths]
        named = [found for found in parsed if found is not None]
        if complete or not named or any(scheme != "V2" for _, scheme in named):
            return self._sorted(paths) if complete else self.listing()
        return self._sorted(path for path, found in zip(paths, parsed, strict=True) if found is not None)

    def open(self, version: int | None = None) -> tuple[Manifest, VersionListing]:
        """The manifest of a version, the latest by default, and a listing that holds the newest version.

        Raises:
            NotFoundError: There is no table here, or no such version.
            CorruptFileError: The manifest is damaged.
            UnsupportedError: The version needs a newer reader.
        """
        listing = self.newest()
        if version is not None and is_detached(version):
            detached = self.manifest(version, listing.scheme)
            detached.check_readable()
            return detached, listing
        if not listing.versions:
            raise self.no_table()
        chosen = listing.latest if version is None else version
        try:
            manifest = self.manifest(chosen, listing.scheme)
        except NotFoundError:
            fresh = self.listing()
            there = fresh.versions
            if version is None and fresh.latest > chosen:
                # After the look others committed, and a clean-up removed what was the newest.
                return self.open()
            if not there:
                # It was dropped after the first look.
                raise self.no_table() from None
            if chosen in there:
                raise NotFoundError(
                    f"the external manifest store has version {chosen} of the table at {self.uri}, whose manifest is "
                    "not there: the files were deleted, and its entries were left; restore them, or delete the entries "
                    "by LanceDataset.drop with the same options, to make another table there",
                    uri=self.uri,
                    version=chosen,
                ) from None
            raise NotFoundError(
                f"the table at {self.uri} has no version {chosen}, expected one of {_ranges(there)}",
                uri=self.uri,
                version=chosen,
            ) from None
        manifest.check_readable()
        return manifest, listing

    def no_table(self) -> NotFoundError:
        """The error that says that there are no versions here, and what is there instead."""
        nothing = NotFoundError(
            f"no table at {self.uri}: expected manifests in its folder _versions, found none; check the path",
            uri=self.uri,
        )
        return found_instead(nothing, self.store, self.uri, LANCE)

    def manifest(self, version: int, scheme: NamingScheme) -> Manifest:
        """Reads one manifest without checking its feature flags. A staged one is copied to its final path first.

        Raises:
            NotFoundError: There is no such manifest.
            IOFailedError: It is only staged, and cannot be copied to its final path.
        """
        path = self.path_of(version, scheme)
        manifest = Manifest.read(self.store, path)
        if manifest.version != version:
            raise CorruptFileError(
                f"{path} of {self.uri} holds version {manifest.version}, expected {version}",
                uri=self.uri,
                path=path,
                version=version,
            )
        return manifest

    def put(
        self,
        version: int,
        scheme: NamingScheme,
        data: bytes,
        *,
        locked: bool = False,
        change: object = None,
    ) -> bool:
        """Puts the manifest of a version if absent, which commits the version. False if there is one already.

        With `locked`, the caller holds a lock, and the store need not have conditional puts. `change` is the commit
        that is behind it, for a branch of a repository.
        """
        name = manifest_name(version, scheme)
        if isinstance(self.store, StagingStore):

            def accompany(store: Store) -> None:
                LanceLog(store, self.uri).refresh_latest_copy(scheme, is_landed=False)

            return put_entry(self.store, VERSIONS + name, data, change, accompany)
        if self._external is not None and not is_detached(version):
            return self._external.put(version, name, data)
        # No other writer uses the random number of a detached version: it needs no put-if-absent.
        put = put_under_lock if locked or self._external is not None else Store.put_if_absent
        return put(self.store, VERSIONS + name, data)

    def put_first(self, version: int, data: bytes, *, locked: bool) -> bool:
        """Puts the first manifest of a branch if absent, without an entry in an external manifest store.

        The branch's ref decides which creation counts, and nobody needs an entry of it: readers find the manifest at
        its final path, as that of a version from before there was an external store. An entry could not be taken away
        from a creation that lost, as all entries of a branch are deleted at once.
        """
        path = VERSIONS + manifest_name(version, "V2")
        try:
            return (put_under_lock if locked else Store.put_if_absent)(self.store, path, data)
        except UnsupportedError:
            if self._external is None:
                raise
            return put_under_lock(self.store, path, data)

    def landed(self, version: int, scheme: NamingScheme | None = None) -> None:
        """Does what follows the commit of a version. A failure in here does not undo the commit."""
        if self._external is not None:
            self._external.finish(version)
        self.refresh_latest_copy(scheme)

    def has_entries(self) -> bool:
        """Whether an external manifest store has entries of the table, whatever lies in the store."""
        return self._external is not None and self._external.latest() is not None

    def forget_entries(self) -> None:
        """Deletes the entries of the external manifest store, if there is one: the versions are to go."""
        if self._external is not None:
            self._external.forget()

    def path_of(self, version: int, scheme: NamingScheme) -> str:
        """The path of a version's manifest, whether that exists or not. A staged one is copied to its final path."""
        if self._external is not None and not is_detached(version):
            located = self._external.locate(version)
            if located is not None:
                return located
        # The table has no external store, or had none when the version was committed.
        return VERSIONS + manifest_name(version, scheme)

    def is_staged(self, path: str) -> bool:
        """Whether a path is that of a staged manifest; False for a table that was opened without an external store.

        Without the table's external store a staged manifest that is a commit cannot be told from an orphan.
        """
        return self._external is not None and parse_staged_manifest(path.removeprefix(VERSIONS)) is not None

    def is_staged_commit(self, path: str) -> bool:
        """Whether a staged manifest is a commit that is not finished: whether the external store has it as an entry."""
        staged = parse_staged_manifest(path.removeprefix(VERSIONS))
        return self._external is not None and staged is not None and self._external.names(staged.version, path)

    def refresh_latest_copy(self, scheme: NamingScheme | None = None, *, is_landed: bool = True) -> None:
        """Updates `_latest.manifest`, the copy of the newest manifest, if the table has one.

        Releases of Lance from before 2024 find the newest version by it; they knew no V2 names. Writers may get here in
        another order than they committed, so the copy is made again until it agrees with the listing.
        """
        # On a branch it goes with the commit itself.
        if scheme == "V2" or (is_landed and isinstance(self.store, StagingStore)):
            return
        try:
            self.store.head(LATEST_COPY)
        except NotFoundError:
            return
        copied = 0
        while (listing := self._sorted(self.store.list_paths(VERSIONS))).latest > copied:
            self.store.put(LATEST_COPY, self.store.get(self.path_of(listing.latest, listing.scheme)))
            copied = listing.latest

    def is_replaced(self, manifest: Manifest, scheme: NamingScheme, *, or_gone: bool = False) -> bool:
        """Whether the manifest of this version is another one by now: another table was made in this one's place.

        Its last bytes are read, in one request if its size is known, and no more if they name the same transaction.
        `or_gone` is the answer where there is none: by default it was cleaned up.
        """
        path = self.path_of(manifest.version, scheme)
        name = manifest.transaction_file
        try:
            size = manifest.size_in_file or self.store.head(path).size
            if name and name.encode() in self._tail(path, size):
                return False
            return entry_of(self.manifest(manifest.version, scheme)) != entry_of(manifest)
        except NotFoundError:
            return or_gone

    def _tail(self, path: str, size: int) -> bytes:
        """The last bytes of a manifest that was so large when it was read; nothing if it is shorter by now."""
        try:
            return self.store.get_ranges(path, [(max(0, size - _TAIL), size)])[0]
        except NotFoundError:
            raise
        except (EskerError, OSError):
            return b""

    def transaction(self, manifest: Manifest) -> Transaction | None:
        """The transaction of a version: from within the manifest, else from its file, else None."""
        inline = manifest.inline_transaction()
        if inline is not None or not manifest.transaction_file:
            return inline
        try:
            return Transaction.decode(self.store.get(TRANSACTIONS + manifest.transaction_file))
        except NotFoundError:
            return None


def entry_of(manifest: Manifest) -> str:
    """What tells the entry of a version from another one with its number: the id of its transaction, and when."""
    inline = None if manifest.transaction_file else manifest.inline_transaction()
    name = manifest.transaction_file or (inline.uuid if inline is not None else "")
    return f"{name}@{manifest.timestamp_ns}"


def transaction_file_name(transaction: Transaction) -> str:
    """The name of a transaction's file within `_transactions/`."""
    return f"{transaction.read_version}-{transaction.uuid}.txn"


def transaction_uuid(name: str) -> str | None:
    """The uuid in the name of a transaction file; None for any other name.

    Example:
        >>> from esker.lance.log import transaction_uuid
        >>> transaction_uuid("3-5e3c-aa.txn")
        '5e3c-aa'
    """
    version, dash, rest = name.partition("-")
    return rest.removesuffix(".txn") if dash and version.isdigit() and rest.endswith(".txn") else None


def files_of(fragments: list[Fragment]) -> set[str]:
    """The data and deletion files of fragments."""
    found = {file.path for fragment in fragments for file in fragment.files}
    return found | {fragment.deletion_file for fragment in fragments if fragment.deletion_file is not None}


def put_under_lock(store: Store, path: str, data: bytes) -> bool:
    """Puts an object if absent while a lock keeps other writers away: the store may have no put-if-absent."""
    try:
        store.head(path)
    except NotFoundError:
        pass
    else:
        return False
    try:
        return store.put_if_absent(path, data)
    except UnsupportedError:
        store.put(path, data)
        return True


def _ranges(versions: tuple[int, ...]) -> str:
    """Versions as a short text: "1-12", "1, 3-7"."""
    parts: list[str] = []
    start = previous = versions[0]
    for version in (*versions[1:], None):
        if version is not None and version == previous + 1:
            previous = version
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if version is not None:
            start = previous = version
    return ", ".join(parts if len(parts) <= 6 else [*parts[:3], "...", *parts[-2:]])
