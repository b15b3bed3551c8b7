"""Clones: tables that share the files of another table (shallow) or copy them (deep)."""

from __future__ import annotations

import time
from contextlib import suppress

from .._native import table as native
from .._native.store import Store, path_at_home
from ..commit.certain import is_denied
from ..commit.loop import follow, is_refusal
from ..exceptions import AlreadyExistsError, CommitStateUnknownError, InvalidArgumentError, NotFoundError
from ..store.branch_places import check_no_branch_belongs
from ..store.staging import StagingStore
from ..store.stores import is_behind_network
from .log import TRANSACTIONS, LanceLog, is_detached, transaction_uuid
from .refs.marking import with_branch
from .stray import is_in_history
from .version import TableVersion


def clone(source: TableVersion, log: LanceLog, *, is_shallow: bool) -> None:
    """Creates a table with the contents of a version of another table.

    Args:
        source: The version to clone.
        log: The log of the new table.
        is_shallow: Whether the clone shares the files of `source`; otherwise it gets copies.

    Raises:
        AlreadyExistsError: There is a table at the place of the clone.
        CommitStateUnknownError: The store failed, and it is not known whether the clone is there.
        InvalidArgumentError: The version is detached: a table that has no other cannot be opened.
        NotFoundError: The version was cleaned up, or is no part of the history; or a branch of another table belongs
            there.
    """
    if is_detached(source.number):
        raise InvalidArgumentError(
            f"expected a version of the history to clone, found the detached version {source.number}; restore it first",
            uri=source.log.uri,
            version=source.number,
        )
    # A dataset that was opened before a clean-up still shows the version, whose files are gone.
    if not is_in_history(source.log, source.number, source.log.newest().scheme):
        raise NotFoundError(
            f"the table at {source.log.uri} has no version {source.number} to clone: it was cleaned up, and what may "
            "be there now is no part of the history; take another one",
            uri=source.log.uri,
            version=source.number,
        )
    if not log.listing().versions:
        check_no_branch_belongs(log.uri, storage_options=log.bases.storage_options)
        if not is_shallow:
            for path in files_of(source.store, source.manifest):
                source.store.copy(path, log.store, path_at_home(path))
        # Copying takes long.
        if (is_shallow or not log.listing().versions) and _commit_clone(source, log, is_shallow):
            return
    raise AlreadyExistsError(
        f"a table at {log.uri} exists already, expected none where a clone goes; choose another place", uri=log.uri
    )


def files_of(store: Store, manifest: native.Manifest) -> list[str]:
    """The paths of all files that a version refers to: data files, blobs, deletion files and indices."""
    paths: list[str] = []
    for fragment in manifest.fragments():
        if fragment.deletion_file is not None:
            paths.append(fragment.deletion_file)
        for data_file in fragment.files:
            paths.append(data_file.location)
            # The blobs of a 2.2 file are in a folder with the file's name.
            if (data_file.file_major_version, data_file.file_minor_version) >= (2, 2):
                paths += store.list_paths(data_file.location.removesuffix(".lance") + "/")
    for index in manifest.indices:
        paths += store.list_paths(index.folder)
    return paths


def _commit_clone(source: TableVersion, log: LanceLog, is_shallow: bool) -> bool:
    """Commits the clone; False if another writer has made a table meanwhile."""
    version = source.number
    branch = source.manifest.branch
    operation = native.Operation.clone_of(
        is_shallow=is_shallow, ref_name=branch, ref_version=version, ref_path=source.log.uri
    )
    transaction = native.Transaction(version, operation)
    made = transaction.apply_clone(source.manifest, timestamp_ns=time.time_ns())
    if branch is not None:
        # A table of its own, with a main line only.
        made = with_branch(made, None)
    name = f"{transaction.read_version}-{transaction.uuid}.txn"
    log.store.put(TRANSACTIONS + name, transaction.encode())
    if not _put(log, made, name):
        return False
    # With names of V2 there is no copy of the newest manifest.
    follow(lambda: log.landed(version, "V2"), f"version {version} of the clone at {log.uri}")
    return True


def _put(log: LanceLog, made: native.Manifest, transaction: str) -> bool:
    """Puts the clone's manifest; False if another one is there. After a lost reply it looks whose is there.

    Raises:
        CommitStateUnknownError: It could not be looked up; or nothing is there yet, and the store is behind a network,
            where a put may land after an error that is no refusal.
    """
    version = made.version
    is_there = False
    try:
        if log.put(version, "V2", made.encode()):
            return True
        # A retry within the store finds what its own first attempt has put.
        is_there = True
        return _is_ours(log, version, transaction) is True
    except CommitStateUnknownError:
        raise
    except OSError as error:
        is_ours, is_known = None, not is_there and is_denied(log.uri, error)
        with suppress(OSError):
            is_ours, is_known = _is_ours(log, version, transaction), True
        if is_ours is not None:
            return is_ours
        is_final = is_refusal(error) or not is_behind_network(log.uri)
        if isinstance(log.store, StagingStore) or (is_known and is_final):
            raise
        raise CommitStateUnknownError(
            f"{error}; whether the clone at {log.uri} was created is not known: open it before you clone again",
            uri=log.uri,
            version=version,
            transaction=transaction_uuid(transaction),
        ) from error


def _is_ours(log: LanceLog, version: int, transaction: str) -> bool | None:
    """Whether the manifest of a version names our transaction; None if there is none."""
    try:
        return log.manifest(version, "V2").transaction_file == transaction
    except NotFoundError:
        return None
