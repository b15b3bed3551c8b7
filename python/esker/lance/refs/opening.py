"""Opens a table at any reference: a number, a tag, or a version of a branch."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...commit.external import ExternalManifestStore
from ...commit.protocol import CommitLock
from ...exceptions import NotFoundError
from ..log import LanceLog
from ..version import TableVersion
from .names import branch_path
from .places import (
    Place,
    Reference,
    check_branch,
    check_number,
    log_beside,
    main_log,
    place_of,
    place_of_tuple,
    table_at,
    uri_of,
)


def open_at(
    uri: str | os.PathLike[str],
    reference: Reference | None = None,
    *,
    storage_options: dict[str, str] | None = None,
    commit_lock: CommitLock | None = None,
    manifest_store: ExternalManifestStore | str | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
) -> TableVersion:
    """The table at a URI, at a reference or at its newest version.

    Args:
        uri: The table, or one of its branches: the folder `tree/{branch}` in it.
        reference: The version; a number means one on the branch of the URI.
        storage_options: Options of the store.
        commit_lock: Held around commits, for stores without put-if-absent.
        manifest_store: The external manifest store.
        base_store_params: Options by the path of a base path.

    Raises:
        NotFoundError: There is no table, or no such version, tag or branch.
        CorruptFileError: The manifest is damaged.
        UnsupportedError: The table needs a newer reader.

    Example:
        `open_at("s3://lake/points.lance", ("experiment", None))`
    """
    log = LanceLog.at(
        uri, storage_options=storage_options, manifest_store=manifest_store, base_store_params=base_store_params
    )
    if reference is None or not isinstance(reference, str | tuple):
        number = None if reference is None else check_number(reference)
        return TableVersion.of(os.fspath(uri), log, log.open(number)[0], storage_options, commit_lock)
    if isinstance(reference, tuple):
        branched = _on_branch(os.fspath(uri), log, place_of_tuple(reference), storage_options, commit_lock)
        if branched is not None:
            return branched
    # The newest version tells whether the URI is that of a branch, and so where the tags and the other branches are.
    newest = TableVersion.of(os.fspath(uri), log, log.open()[0], storage_options, commit_lock)
    place = place_of(newest, reference)
    if place == Place(newest.manifest.branch, None):
        return newest
    if isinstance(reference, tuple):
        check_branch(main_log(newest), place.branch)
    return table_at(newest, place)


def _on_branch(
    uri: str, main: LanceLog, place: Place, storage_options: dict[str, str] | None, commit_lock: CommitLock | None
) -> TableVersion | None:
    """The table on a branch whose ref is below the URI; None if the URI is perhaps that of a branch itself.

    The ref tells, in one request: without it a tree is what a deletion has left.
    """
    if place.branch is None:
        return None
    try:
        main.store.head(branch_path(place.branch))
    except NotFoundError:
        return None
    log = log_beside(main, None, place.branch, storage_options, durable=main.bases.durable)
    manifest = log.open(place.version)[0]
    return TableVersion.of(uri_of(uri, None, place.branch), log, manifest, storage_options, commit_lock)
