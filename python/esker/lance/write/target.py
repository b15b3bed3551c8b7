"""`LanceTarget`: the table that a write goes to, at its base version, or the place of a new table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..._native import table as native
from ...commit.external import ExternalManifestStore
from ...commit.protocol import CommitLock
from ...exceptions import NotFoundError
from ...store.branch_places import check_no_branch_belongs
from ..log import LanceLog
from ..version import TableVersion


@dataclass(frozen=True)
class LanceTarget:
    """The table that a write goes to, at its base version, or the place of a new table.

    Attributes:
        uri: The table's URI, as the user gave it.
        log: The table's log, over a store with the options of the write.
        base: The manifest of the base version, None if there is no table.
        storage_options: Options of the store, as the user gave them.
        lock: The lock that the table was opened with.
    """

    uri: str
    log: LanceLog
    base: native.Manifest | None
    storage_options: dict[str, str] | None = None
    lock: CommitLock | None = None

    @property
    def read_version(self) -> int:
        """The number of the base version, 0 if there is no table."""
        return self.base.version if self.base else 0

    def at(self, manifest: native.Manifest, lock: CommitLock | None = None) -> TableVersion:
        """The table at a version that was committed."""
        return TableVersion.of(self.uri, self.log, manifest, self.storage_options, lock or self.lock)


def open_target(
    table: str | os.PathLike[str] | TableVersion,
    *,
    storage_options: dict[str, str] | None = None,
    durable: bool = True,
    manifest_store: ExternalManifestStore | str | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
) -> LanceTarget:
    """The target of a write: a table at its newest version, or at the `TableVersion` that is given.

    Raises:
        InvalidArgumentError: The given version is detached.
        NotFoundError: There is no table, and a branch of another one belongs there.
        UnsupportedError: The table needs a newer writer.
    """
    if isinstance(table, TableVersion):
        log = table.writable_log(durable=durable, storage_options=storage_options, manifest_store=manifest_store)
        table.check_writable()
        options = storage_options if storage_options is not None else table.storage_options
        return LanceTarget(table.uri, log, table.manifest, options, table.commit_lock)
    if not isinstance(table, str | os.PathLike):
        raise TypeError(f"expected a str, a Path or a LanceDataset as uri, found {type(table).__name__}")
    uri = os.fspath(table)
    log = LanceLog.at(
        uri,
        storage_options=storage_options,
        manifest_store=manifest_store,
        durable=durable,
        base_store_params=base_store_params,
    )
    listing = log.newest()
    if not listing.versions:
        check_no_branch_belongs(uri, storage_options=storage_options)
        return LanceTarget(uri, log, None, storage_options)
    try:
        base = log.manifest(listing.latest, listing.scheme)
    except NotFoundError:
        # Others committed, and a clean-up removed it: there is a newer one. Or the table was dropped.
        base = log.open()[0]
    base.check_readable()
    base.check_writable()
    log.mount(base)
    return LanceTarget(uri, log, base, storage_options)
