"""Renames manifests from V1 names (`7.manifest`) to V2 names, which sort the newest version first."""

from __future__ import annotations

from .._native.table import manifest_name, parse_manifest_name
from ..exceptions import UnsupportedError
from ..store.staging import flush
from .log import LATEST_COPY, VERSIONS, LanceLog


def migrate_manifest_paths_v2(log: LanceLog) -> None:
    """Gives all manifests of a table V2 names. Nobody else may use the table meanwhile. What a crash left half done is
    done by the next call: with a `LanceLog`, since a table with both kinds of names does not open.

    Args:
        log: The log of the table, or of one of its branches.

    Raises:
        UnsupportedError: The table has an external manifest store, whose entries hold the names.

    Example:
        `migrate_manifest_paths_v2(LanceLog.at("s3://lake/points.lance"))`
    """
    if log.manifest_store is not None:
        raise UnsupportedError(
            f"{log.uri}: expected a table without an external manifest store, whose entries hold the names of the "
            "manifests, found one with it; copy the table instead",
            uri=log.uri,
        )
    old: list[tuple[int, str]] = []
    for path in log.store.list_paths(VERSIONS):
        parsed = parse_manifest_name(path.removeprefix(VERSIONS))
        if parsed is not None and parsed[1] == "V1":
            old.append((parsed[0], path))
    # The newest first: whoever looks finds the newest version.
    for version, path in sorted(old, reverse=True):
        log.store.put(VERSIONS + manifest_name(version, "V2"), log.store.get(path))
        log.store.delete(path)
    if old:
        # Writers of V2 names do not keep it up to date.
        log.store.delete(LATEST_COPY)
        flush(log.store, "manifests under V2 names")
