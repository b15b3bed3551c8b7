"""Where a change goes: the table's URI, its store, and the base version that the change is computed from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from ..._native.delta import Snapshot
from ..._native.store import Store
from ...commit.loop import follow
from ...exceptions import CorruptFileError, NotFoundError
from ...store.branch_places import check_no_branch_belongs
from ...store.stores import absolute
from .entries import NO_TABLE, newest_version
from .external import ExternalLog
from .snapshots import load_snapshot, refresh_snapshot
from .store import resolve_for_writing


@dataclass(frozen=True)
class WriteTarget:
    """A table that is written to, or a place where there is none yet.

    Args:
        uri: Its place.
        store: Its store.
        snapshot: The base version, None if there is no table.
        storage_options: Options of the store. They may hold passwords.
        session_timezone: What times without a zone mean in filters of an open table.
        refresh: Has an open table go to its newest version.

    Example:
        `WriteTarget.of("s3://lake/events", None).snapshot is None`
    """

    uri: str
    store: Store
    snapshot: Snapshot | None
    storage_options: dict[str, str] | None = field(default=None, repr=False)
    session_timezone: str | None = None
    refresh: Callable[[], object] | None = field(default=None, repr=False)

    @staticmethod
    def of(
        table_or_uri: str | os.PathLike[str] | OpenTable, options: dict[str, str] | None, *, durable: bool = True
    ) -> WriteTarget:
        """The target that an open table is, or that a URI names, in its newest version.

        Raises:
            NotFoundError: There is no table, and a branch of a Lance table belongs there.
            UnsupportedError: Its store is not one that commits can be put to safely.
            CorruptFileError: The external store knows a version that is not there.
        """
        if isinstance(table_or_uri, OpenTable):
            return table_or_uri._write_target()
        uri = absolute(table_or_uri)
        store = resolve_for_writing(uri, options, durable=durable)
        external = ExternalLog.of(store, uri, options)
        known = external.latest() if external is not None else NO_TABLE
        newest = newest_version(store)
        if external is not None and known > newest:
            external.check_there(known)
        if newest == NO_TABLE:
            check_no_branch_belongs(uri, storage_options=options)
            return WriteTarget(uri, store, None, options)
        return WriteTarget(uri, store, load_snapshot(store), options)

    def at(self, version: int) -> WriteTarget:
        """The same table with another base version."""
        return replace(self, snapshot=load_snapshot(self.store, version=version))

    def later(self, version: int) -> WriteTarget:
        """The same table in a version after its base, of which only the entries between the two are read.

        It is a newer one where that was cleaned up meanwhile.
        """
        try:
            if self.snapshot is not None:
                found = refresh_snapshot(self.snapshot, self.store, version=version)
                if found.version == version:
                    return replace(self, snapshot=found)
        except (CorruptFileError, NotFoundError):
            # Entries between the two were cleaned up, or that version.
            pass
        try:
            return self.at(version)
        except NotFoundError:
            newest = load_snapshot(self.store)
            if newest.version <= version:
                raise
            return replace(self, snapshot=newest)

    @property
    def base(self) -> Snapshot:
        """The base version of a table that is there.

        Raises:
            NotFoundError: There is no table.
        """
        if self.snapshot is None:
            raise NotFoundError(f"no Delta table at {self.uri}; create it first", uri=self.uri)
        return self.snapshot

    @property
    def read_version(self) -> int:
        """The number of the base version, -1 if there is no table."""
        return self.snapshot.version if self.snapshot is not None else NO_TABLE

    def has(self, application: tuple[str, int]) -> bool:
        """Whether an application has committed this number of its own, or a later one, by the base version."""
        found = self.snapshot.transactions.get(application[0]) if self.snapshot is not None else None
        return found is not None and found[0] >= application[1]

    def committed(self, version: int) -> None:
        """Has an open table go to the version that was committed."""
        if self.refresh is not None:
            follow(self.refresh, f"version {version}")


@runtime_checkable
class OpenTable(Protocol):
    """A table that is open, and knows where a write to it goes."""

    def _write_target(self) -> WriteTarget: ...
