"""Branches: what is known of them, and their deletion.

A branch is deleted in this order: its ref goes, then tags and branches are read again, then its versions go, then its
other files. Whoever names a version of it (`NamedVersion`) puts the name, and then looks for the ref: one of the two
notices the other. What a crash leaves is a tree without a ref, which the next `create_branch` takes over.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ...exceptions import NotFoundError, RefConflictError
from ...store.staging import flush, refresh
from ..log import LATEST_COPY, TRANSACTIONS, VERSIONS, LanceLog
from ..version import TableVersion
from .contents import BranchContents
from .names import BRANCHES, branch_path, check_branch_name, name_of
from .places import log_of
from .putting import put_new
from .tags import check_metadata, read_tags, writable_main

OWN_FOLDERS = (VERSIONS, TRANSACTIONS, "data/", "_deletions/", "_indices/")
"""The folders of a table or a branch."""


def read_branches(log: LanceLog) -> dict[str, BranchContents]:
    """All branches by their names.

    Args:
        log: The log of the main line.

    Raises:
        CorruptFileError: One of them cannot be read.
    """
    refresh(log.store)
    found: dict[str, BranchContents] = {}
    for path in log.store.list_paths(BRANCHES):
        name = name_of(path, BRANCHES)
        # One that was deleted meanwhile is none.
        with suppress(NotFoundError):
            if name is not None:
                found[name] = BranchContents.read(log.store.get(path), path, name)
    return found


def read_branch(log: LanceLog, name: str) -> BranchContents:
    """A branch.

    Args:
        log: The log of the main line.
        name: Its name.

    Raises:
        NotFoundError: There is none of this name.
        CorruptFileError: It cannot be read.
    """
    path = branch_path(check_branch_name(name))
    refresh(log.store)
    try:
        return BranchContents.read(log.store.get(path), path, name)
    except NotFoundError:
        raise no_branch(log, name) from None


def no_branch(log: LanceLog, name: str) -> NotFoundError:
    """The error that says that there is no such branch."""
    return NotFoundError(
        f"Ref not found error: Branch {name} does not exist in {log.uri}; branches.list() names those that do",
        uri=log.uri,
    )


def replace_branch_metadata(table: TableVersion, name: str, metadata: dict[str, str]) -> None:
    """Replaces the metadata of a branch.

    Raises:
        NotFoundError: There is no such branch.
    """
    log = writable_main(table)
    found = read_branch(log, name).with_metadata(check_metadata(metadata))
    log.store.put(branch_path(name), found.encode())
    flush(log.store, f"metadata of branch {name}")


def delete_branch(table: TableVersion, name: str) -> None:
    """Deletes a branch with its versions and files.

    Raises:
        NotFoundError: There is no such branch.
        RefConflictError: Branches or tags refer to it.
    """
    log = writable_main(table)
    path = branch_path(check_branch_name(name))
    branches = read_branches(log)
    if name not in branches:
        raise no_branch(log, name)
    ours = branches[name]
    _refuse_named(log, name, ours, branches)
    log.store.delete(path)
    branches = read_branches(log)
    try:
        _refuse_named(log, name, ours, branches)
    except RefConflictError:
        put_new(log, path, ours.encode())
        raise
    remove_tree(log_of(table, name, durable=True), name, branches)
    flush(log.store, f"no branch {name}")


def remove_tree(log: LanceLog, name: str, others: Iterable[str]) -> None:
    """Removes the versions of a branch, and then its files. What belongs to branches in folders below it stays.

    Args:
        log: The log of the branch.
        name: The branch.
        others: The names of other branches.
    """
    inner = [other.removeprefix(f"{name}/") + "/" for other in others if other.startswith(f"{name}/")]
    paths = [path for path in log.store.list_paths("") if _is_own(path) and not _is_nested(path, inner)]
    versions = [path for path in paths if path.startswith(VERSIONS) or path == LATEST_COPY]
    log.store.delete_all(versions)
    log.forget_entries()
    log.store.delete_all([path for path in paths if path not in set(versions)])
    for folder in OWN_FOLDERS:
        for unfinished in log.store.list_unfinished(folder):
            if not _is_nested(unfinished.path, inner):
                log.store.delete_unfinished(unfinished.path)


def _is_own(path: str) -> bool:
    return path == LATEST_COPY or path.startswith(OWN_FOLDERS)


def _is_nested(path: str, inner: list[str]) -> bool:
    """Whether a file in a folder of a branch belongs to another branch, which is perhaps only being created: one may be
    called `name/data`."""
    _, _, rest = path.partition("/")
    return path.startswith(tuple(inner)) or any(f"/{folder}" in f"/{rest}" for folder in OWN_FOLDERS)


def _refuse_named(log: LanceLog, name: str, ours: BranchContents, branches: dict[str, BranchContents]) -> None:
    children = {
        other: branch.parent_version
        for other, branch in branches.items()
        if other != name and (branch.parent_branch == name or branch.descends_from(ours))
    }
    if children:
        raise RefConflictError(
            f"Ref conflict error: Branch {name} is referenced by {sorted(children.items())} versions, can not delete; "
            "delete these branches first",
            uri=log.uri,
            path=branch_path(name),
        )
    tags = sorted((tag, found.version) for tag, found in read_tags(log).items() if found.branch == name)
    if tags:
        raise RefConflictError(
            f"Ref conflict error: Branch {name} is referenced by tags {tags}, can not delete; delete these tags first",
            uri=log.uri,
            path=branch_path(name),
        )
