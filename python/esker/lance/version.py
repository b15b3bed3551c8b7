"""`TableVersion`: a table at one of its versions. Every operation takes one and returns one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from .._native import table as native
from .._native.scan import count_rows
from .._native.store import Store
from ..cached import cached_property
from ..commit.external import ExternalManifestStore
from ..commit.protocol import CommitLock
from ..exceptions import InvalidArgumentError
from ..store.staging import StagingStore, has_moved, refresh
from .log import LanceLog, is_detached

_STABLE_ROW_IDS = 2
"""The bit for stable row ids in the reader feature flags."""


@dataclass(frozen=True, eq=False)
class TableVersion:
    """A table at one of its versions. Immutable: a change returns another one.

    Args:
        uri: The table's URI, as the user gave it.
        log: The table's log, over a store in which the base paths of this version are mounted.
        manifest: The manifest of this version.
        storage_options: Options of the store, as the user gave them.
        commit_lock: Held around commits, for stores without put-if-absent.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance.version import TableVersion
        >>> _ = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-table-version")
        >>> TableVersion.open("memory://doc-table-version").num_rows
        2
    """

    uri: str
    log: LanceLog
    manifest: native.Manifest
    # Not in the repr: the options may hold passwords.
    storage_options: dict[str, str] | None = field(default=None, repr=False)
    commit_lock: CommitLock | None = None

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        version: int | None = None,
        *,
        storage_options: dict[str, str] | None = None,
        commit_lock: CommitLock | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
        base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    ) -> TableVersion:
        """The table at a URI, at a version or at its newest one.

        Raises:
            NotFoundError: There is no table, or no such version.
            CorruptFileError: The manifest is damaged.
            UnsupportedError: The table needs a newer reader.
        """
        log = LanceLog.at(
            uri, storage_options=storage_options, manifest_store=manifest_store, base_store_params=base_store_params
        )
        manifest, _ = log.open(version)
        return cls.of(os.fspath(uri), log, manifest, storage_options, commit_lock)

    @classmethod
    def of(
        cls,
        uri: str,
        log: LanceLog,
        manifest: native.Manifest,
        storage_options: dict[str, str] | None = None,
        commit_lock: CommitLock | None = None,
    ) -> TableVersion:
        """The version of a manifest that was read already. Mounts its base paths."""
        return cls(uri, log.mounted(manifest), manifest, storage_options, commit_lock)

    def at(self, manifest: native.Manifest) -> TableVersion:
        """The same table at the version of another manifest that was read already."""
        return replace(self, log=self.log.mounted(manifest), manifest=manifest)

    def newest(self) -> TableVersion:
        """The same table at its newest version.

        Raises:
            NotFoundError: The table is gone.
        """
        log = self.log
        refresh(log.store)
        if has_moved(log.store):
            # Its branch was reset, or holds another table there by now: what is cached of it is not this one's.
            log = LanceLog.at(
                log.uri,
                storage_options=self.storage_options,
                durable=log.bases.durable,
                base_store_params=log.bases.params,
            )
            log.store.join(self.log.store.session)
        manifest = log.open()[0]
        return replace(self, log=log.mounted(manifest), manifest=manifest)

    @property
    def store(self) -> Store:
        """The store of the table's files."""
        return self.log.store

    @property
    def number(self) -> int:
        """The version's number."""
        return self.manifest.version

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, with blob columns in the type that writes take."""
        return pa.schema(self.manifest.schema)

    @cached_property
    def described_schema(self) -> pa.Schema:
        """The columns as scans and filters have them: descriptions in place of blobs."""
        return pa.schema(self.manifest.schema.described())

    @property
    def fragments(self) -> list[native.Fragment]:
        """The fragments, in order."""
        return self.manifest.fragments()

    @property
    def num_rows(self) -> int:
        """The number of live rows."""
        known = self.manifest.num_rows
        # The manifests of old writers have no counts: read the files.
        return known if known is not None else count_rows(self.store, self.manifest)

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether the table has stable row ids: rows keep their ids when they move."""
        return bool(self.manifest.reader_feature_flags & _STABLE_ROW_IDS)

    def check_writable(self) -> None:
        """Checks that changes can be committed on top of this version.

        Raises:
            InvalidArgumentError: The version is detached.
            UnsupportedError: The table needs a newer writer.
        """
        if is_detached(self.number):
            raise InvalidArgumentError(
                f"expected a version of the history to write to, found the detached version {self.number}; "
                "restore it, or check another one out",
                version=self.number,
            )
        self.manifest.check_writable()

    def writable_log(
        self,
        *,
        durable: bool,
        storage_options: dict[str, str] | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
    ) -> LanceLog:
        """The table's log over a store with these options: this one's if they agree, since its store caches files.

        Args:
            durable: Whether a put returns only when its bytes are on stable storage.
            storage_options: Options of the store; by default those that the table was opened with.
            manifest_store: The external manifest store; by default that of this log.
        """
        if storage_options is None and manifest_store is None and self.log.bases.durable == durable:
            return self.log
        if isinstance(self.log.store, StagingStore) and manifest_store is None:
            # A branch's store knows what was read through it, and a repository is opened with its own options.
            return self.log
        log = LanceLog.at(
            # The absolute URI: the working folder may have changed since the table was opened.
            self.log.uri,
            storage_options=storage_options if storage_options is not None else self.storage_options,
            manifest_store=manifest_store if manifest_store is not None else self.log.manifest_store,
            durable=durable,
            base_store_params=self.log.bases.params,
        )
        log.store.join(self.log.store.session)
        log.mount(self.manifest)
        return log
