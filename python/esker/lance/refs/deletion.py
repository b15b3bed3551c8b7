"""The deletion of branches.

A branch is deleted in this order: its ref goes, its tree is listed, tags and branches are read again, then its versions
go, and its other files, in one request where the store takes so many. Whoever names a version of it (`NamedVersion`)
puts the name, and then looks for the ref: one of the two notices the other. What a crash leaves is a tree without a
ref: the next `delete_branch` removes it, or the next `create_branch` takes it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from ..._native.table import Manifest, parse_manifest_name
from ...exceptions import CommitStateUnknownError, IOFailedError, NotFoundError, RefConflictError
from ...store.staging import flush
from ..log import LATEST_COPY, TRANSACTIONS, VERSIONS, LanceLog
from ..version import TableVersion
from .branches import no_branch, read_branches
from .contents import BranchContents
from .creation import put_first_version
from .names import branch_path, check_branch_name
from .places import log_of
from .putting import delete_ref, put_new
from .tags import read_tags, writable_main

OWN_FOLDERS = (VERSIONS, TRANSACTIONS, "data/", "_deletions/", "_indices/")
"""The folders of a table or a branch."""


def delete_branch(table: TableVersion, name: str) -> None:
    """Deletes a branch with its versions and files, or what a deletion that was broken off has left of it.

    Raises:
        NotFoundError: There is no such branch.
        RefConflictError: Branches or tags refer to it, or it is being created.
        IOFailedError: The store failed. The message says so where the branch is gone, and files of it are left.
    """
    log = writable_main(table)
    path = branch_path(check_branch_name(name))
    branches = read_branches(log)
    if name not in branches:
        _refuse_named(log, name, None, branches)
        _remove_leftovers(table, log, name, branches)
        return
    ours = branches[name]
    _refuse_named(log, name, ours, branches)
    delete_ref(log, path)
    with _telling_that_it_is_gone(log, name):
        listed = log_of(table, name, durable=True).store.list_paths("")
        branches = read_branches(log)
        try:
            _refuse_named(log, name, ours, branches)
        except RefConflictError:
            put_new(log, path, ours.encode(), lock=table.commit_lock, version=ours.parent_version)
            raise
        # Where another writer has made one of this name, what is left of ours is a clean-up's work, or its own already.
        if name not in branches:
            with suppress(RefConflictError):
                _remove_tree(table, log, name, branches, listed)
    flush(log.store, f"no branch {name}")


@contextmanager
def _telling_that_it_is_gone(log: LanceLog, name: str) -> Iterator[None]:
    """Says of an error of the store that it came after the ref of a branch went."""
    try:
        yield
    except IOFailedError as error:
        if isinstance(error, CommitStateUnknownError):
            # It says more: another writer refers to the branch, whose ref was to be put back.
            raise
        raise IOFailedError(
            f"{error}; branch {name} of {log.uri} is gone already, but files of it may be left: delete it again to "
            "remove them",
            uri=log.uri,
            path=branch_path(name),
        ) from error


def _remove_tree(
    table: TableVersion, main: LanceLog, name: str, others: Iterable[str], listed: list[str] | None = None
) -> None:
    """Removes the versions of a branch without a ref, and then its files. What belongs to branches in folders below it
    stays.

    The tree may by now be that of a branch which another writer makes, whose ref comes last: what is removed was listed
    before the ref was looked for, and the first version is put again if a ref is there by then. No file of a later
    version was listed.

    Args:
        table: A version of the table.
        main: The log of the main line.
        name: The branch.
        others: The names of other branches.
        listed: What was in the tree before the refs were read, among which there was none of this name.

    Raises:
        RefConflictError: It is being created, or is there again.
    """
    log, inner = log_of(table, name, durable=True), _inner(name, others)
    if listed is None:
        listed = log.store.list_paths("")
        _refuse_created(main, name)
    paths = _own(listed, inner)
    versions = _versions_among(paths)
    # In one request, where the store takes so many.
    log.store.delete_all([*versions, *sorted(set(paths) - set(versions))])
    log.forget_entries()
    try:
        _refuse_created(main, name)
    except RefConflictError:
        put_first_version(table, main, name, log)
        raise
    for folder in OWN_FOLDERS:
        for unfinished in log.store.list_unfinished(folder):
            if not _is_nested(unfinished.path, inner):
                log.store.delete_unfinished(unfinished.path)


def _remove_leftovers(table: TableVersion, main: LanceLog, name: str, others: Iterable[str]) -> None:
    """Finishes a deletion that was broken off after the ref went.

    Raises:
        NotFoundError: Nothing is left of such a branch.
        RefConflictError: It is being created.
    """
    log = log_of(table, name, durable=True)
    paths = _own(log.store.list_paths(""), _inner(name, others))
    manifests: list[Manifest] = []
    for path in filter(_is_manifest, _versions_among(paths)):
        # Another deletion may be at work.
        with suppress(NotFoundError):
            manifests.append(Manifest.decode(log.store.get(path), path))
    # A folder whose manifests name no branch is a table of its own.
    if not paths or any(manifest.branch != name for manifest in manifests):
        raise no_branch(main, name)
    _remove_tree(table, main, name, others)
    flush(main.store, f"no branch {name}")


def _refuse_created(main: LanceLog, name: str) -> None:
    try:
        main.store.head(branch_path(name))
    except NotFoundError:
        return
    raise RefConflictError(
        f"Ref conflict error: branch {name} of {main.uri} is being created by another writer, expected what a deletion "
        "has left; look at it before you delete it",
        uri=main.uri,
        path=branch_path(name),
    )


def _own(paths: list[str], inner: list[str]) -> list[str]:
    return [path for path in paths if _is_own(path) and not _is_nested(path, inner)]


def _versions_among(paths: list[str]) -> list[str]:
    return [path for path in paths if path.startswith(VERSIONS) or path == LATEST_COPY]


def _inner(name: str, others: Iterable[str]) -> list[str]:
    """The folders of the branches below a branch, from its own folder."""
    return [other.removeprefix(f"{name}/") + "/" for other in others if other.startswith(f"{name}/")]


def _is_manifest(path: str) -> bool:
    return parse_manifest_name(path.removeprefix(VERSIONS)) is not None


def _is_own(path: str) -> bool:
    return path == LATEST_COPY or path.startswith(OWN_FOLDERS)


def _is_nested(path: str, inner: list[str]) -> bool:
    """Whether a file in a folder of a branch belongs to another branch, which is perhaps only being created: one may be
    called `name/data`."""
    _, _, rest = path.partition("/")
    return path.startswith(tuple(inner)) or any(f"/{folder}" in f"/{rest}" for folder in OWN_FOLDERS)


def _refuse_named(log: LanceLog, name: str, ours: BranchContents | None, branches: dict[str, BranchContents]) -> None:
    children = {
        other: branch.parent_version
        for other, branch in branches.items()
        if other != name and (branch.parent_branch == name or (ours is not None and branch.descends_from(ours)))
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
