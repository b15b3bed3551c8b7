"""Renames manifests from V1 names (`7.manifest`) to V2 names, which sort the newest version first."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .._native.table import manifest_name, parse_manifest_name
from ..exceptions import CorruptFileError, IOFailedError, UnsupportedError
from ..store.staging import flush
from .log import FINISH, LATEST_COPY, VERSIONS, LanceLog


def migrate_manifest_paths_v2(
    table: LanceLog | str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> None:
    """Gives all manifests of a table V2 names. Nobody else may use the table meanwhile. What a crash or an error left
    half done is done by the next call, by the table's address: with both kinds of names it does not open.

    Args:
        table: The address or the log of the table, or of one of its branches.
        storage_options: Options of the store of an address.

    Raises:
        NotFoundError: There is no table.
        UnsupportedError: The table has an external manifest store, whose entries hold the names.
        CorruptFileError: A version has two manifests that differ.
        IOFailedError: The store failed. There may be names of both kinds now.

    Example:
        `migrate_manifest_paths_v2("s3://lake/points.lance")`
    """
    log = table if isinstance(table, LanceLog) else LanceLog.at(table, storage_options=storage_options)
    if log.manifest_store is not None:
        raise UnsupportedError(
            f"{log.uri}: expected a table without an external manifest store, whose entries hold the names of the "
            "manifests, found one with it; copy the table instead",
            uri=log.uri,
        )
    names = log.store.list_paths(VERSIONS)
    parsed = [(parse_manifest_name(path.removeprefix(VERSIONS)), path) for path in names]
    found = [(*named, path) for named, path in parsed if named is not None]
    if not found:
        raise log.no_table()
    old = [(version, path) for version, scheme, path in found if scheme == "V1"]
    try:
        # The newest first: whoever looks finds the newest version.
        for version, path in sorted(old, reverse=True):
            _rename(log, path, VERSIONS + manifest_name(version, "V2"), frozenset(names))
        if old:
            # Writers of V2 names do not keep it up to date.
            log.store.delete(LATEST_COPY)
            flush(log.store, "manifests under V2 names")
    except OSError as error:
        raise IOFailedError(
            f"{error}; {log.uri} may have manifests under names of both kinds now, and does not open: {FINISH}",
            uri=log.uri,
        ) from error


def _rename(log: LanceLog, old: str, new: str, names: frozenset[str]) -> None:
    data = log.store.get(old)
    if new not in names:
        log.store.put(new, data)
    elif log.store.get(new) != data:
        # No earlier call has put it, but a writer of V2 names.
        raise CorruptFileError(
            f"{old} and {new} of {log.uri} differ, expected one manifest for each version; move the wrong one away",
            uri=log.uri,
            path=old,
        )
    log.store.delete(old)
