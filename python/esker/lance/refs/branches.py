"""Branches: what is known of them."""

from __future__ import annotations

from contextlib import suppress

from ...exceptions import NotFoundError
from ...store.staging import flush, refresh
from ..log import LanceLog
from ..version import TableVersion
from .contents import BranchContents
from .names import BRANCHES, branch_path, check_branch_name, name_of
from .places import log_of
from .putting import looking_after_put, put_over
from .tags import check_metadata, writable_main


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
    log, path = writable_main(table), branch_path(name)
    found = read_branch(log, name).with_metadata(check_metadata(metadata))
    put_over(log, path, found.encode())
    with looking_after_put(log, path):
        is_there = bool(log_of(table, name).newest().versions)
        if not is_there:
            # It was deleted meanwhile: without versions its ref is that of no branch.
            log.store.delete(path)
    if not is_there:
        raise no_branch(log, name)
    flush(log.store, f"metadata of branch {name}")
