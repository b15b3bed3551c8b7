"""Stray versions: manifests that are no part of the history.

A writer that slept in its put may wake when a clean-up has freed the number that it put to. What it leaves there, until
it looks and takes it away, is younger than the version that follows, which was not built on it; and its files may be
deleted. With an external manifest store no number is given twice, but a reader that is held up while it copies a staged
manifest to its place may put it there after a clean-up has removed it. So nothing that lasts is made of a stray: no
restore, no tag, no branch.
"""

from __future__ import annotations

from itertools import pairwise

from .._native.store import Store
from .._native.table import Manifest, parse_manifest_name
from ..exceptions import IOFailedError, NotFoundError
from ..store.staging import StagingStore
from ..store.stores import is_behind_network
from .log import VERSIONS, LanceLog, NamingScheme, files_of, is_detached


def is_in_history(log: LanceLog, version: int, scheme: NamingScheme) -> bool:
    """Whether a version is there, and no stray. One request to a store behind a network, for a version of the newest
    thousand.

    Args:
        log: The log that has it.
        version: Its number.
        scheme: How the manifests are named.

    Example:
        `is_in_history(table.log, table.number, "V2")`
    """
    if _has_none(log, version):
        return _put_at(log.store, log.path_of(version, scheme)) is not None
    known = _listed(log, version) if is_behind_network(log.uri) else None
    ours, theirs, following = known or _looked_up(log, version, scheme)
    if ours is None:
        return False
    if theirs is None or ours <= theirs:
        return True
    try:
        made = log.manifest(version, scheme)
    except NotFoundError:
        return False
    return _is_below(log, made, following, scheme)


def check_no_stray(log: LanceLog, manifest: Manifest, scheme: NamingScheme) -> None:
    """Checks that a version which was read is part of the history.

    Raises:
        NotFoundError: It is a stray.
    """
    version = manifest.version
    if _has_none(log, version):
        return
    ours, theirs, following = _looked_up(log, version, scheme)
    if ours is None or theirs is None or ours <= theirs or _is_below(log, manifest, following, scheme):
        return
    raise NotFoundError(
        f"the table at {log.uri} has no version {version}: it was cleaned up, and what is there now, younger than "
        f"version {following}, is no part of the history; take another one",
        uri=log.uri,
        version=version,
    )


def numbers_come_once(log: LanceLog) -> bool:
    """Whether no number of a log is given twice: an external store keeps its entries, and a branch of a repository
    takes an entry only after the one before it.

    Args:
        log: The log.

    Example:
        `numbers_come_once(table.log)`
    """
    return log.manifest_store is not None or isinstance(log.store, StagingStore)


def _has_none(log: LanceLog, version: int) -> bool:
    """Whether a version cannot be a stray. The number of a detached one is random."""
    return isinstance(log.store, StagingStore) or is_detached(version)


def _is_below(log: LanceLog, made: Manifest, following: int, scheme: NamingScheme) -> bool:
    """Whether the following version was built on one that seems younger. A clock may have been set back: what was built
    on a version has its files."""
    return files_of(made.fragments()) <= files_of(log.manifest(following, scheme).fragments())


def _looked_up(log: LanceLog, version: int, scheme: NamingScheme) -> tuple[int | None, int | None, int]:
    """When a version and the one after it were put, by the store's clock, and the number of the latter."""
    ours = _put_at(log.store, log.path_of(version, scheme))
    following = version + 1
    theirs = None if ours is None else _put_at(log.store, log.path_of(following, scheme))
    if ours is not None and theirs is None:
        following = min((number for number in log.listing().versions if number > version), default=0)
        theirs = _put_at(log.store, log.path_of(following, scheme)) if following else None
    return ours, theirs, following


def _listed(log: LanceLog, version: int) -> tuple[int | None, int | None, int] | None:
    """The same from the first names of a listing, which sorts V2 names of new versions first; None if they do not
    tell."""
    try:
        batch = log.store.list_batches(VERSIONS).next_batch()
    except IOFailedError:
        # Of a listing in batches no page is asked for again.
        return None
    if batch is None:
        return None
    import pyarrow as pa

    found = pa.record_batch(batch).to_pydict()
    put: dict[int, int | None] = {}
    for path, time in zip(found["path"], found["modified_us"], strict=True):
        parsed = parse_manifest_name(path.removeprefix(VERSIONS))
        if parsed is not None and parsed[1] != "V2":
            return None
        if parsed is not None and not is_detached(parsed[0]):
            put[parsed[0]] = time
    if version not in put or any(one < other for one, other in pairwise(put)):
        return None
    following = min((number for number in put if number > version), default=0)
    ours, theirs = put[version], put.get(following)
    # Without times nothing is known of their order.
    return None if ours is None else (ours, theirs, following)


def _put_at(store: Store, path: str) -> int | None:
    """When an object was put; None if there is none."""
    try:
        return store.head(path).last_modified_us or 0
    except NotFoundError:
        return None
