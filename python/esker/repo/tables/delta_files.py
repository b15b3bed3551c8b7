"""The files of a version of a Delta table: which it has, and which versions have written them or brought them back."""

from __future__ import annotations

from collections.abc import Set

import pyarrow as pa

from ..._native.delta import Snapshot, canonical_path
from ...delta.log.entries import read_actions, vector_id
from ...delta.log.full_adds import FileKey
from ...exceptions import NotFoundError
from .table_change import TableChange, TableSide

RESTORE = "RESTORE"
"""The operation that brings files back. All others that add files have written them."""


def files_of(side: TableSide, snapshot: Snapshot) -> set[FileKey]:
    """The files of a version."""
    described = pa.record_batch(snapshot.select(side.store).describe())
    vectors = described.column("deletion_vector").to_pylist()
    return {
        (path, vector_id(vector)) for path, vector in zip(described.column("path").to_pylist(), vectors, strict=True)
    }


def changes_rows(side: TableSide, first: int, last: int) -> bool:
    """Whether versions of a table change rows, or only where these lie. What is not known is taken to."""
    try:
        return any(
            action.get("dataChange", True)
            for number in range(first, last + 1)
            for name, action in read_actions(side.store, number)
            if name in ("add", "remove")
        )
    except NotFoundError:
        return True


def check_not_there(change: TableChange, root: str, paths: Set[str], *, are_new: bool) -> None:
    """Refuses files that come, while none goes, if the branch may have their rows in other files.

    Args:
        change: The change of the table.
        root: The table's, as `Snapshot.root` has it.
        paths: Their canonical paths.
        are_new: Whether the commit itself has written them.

    Raises:
        TableConflictError: It may have.
    """
    lost: set[str] = set()
    for entry in change.own_versions()[1:]:
        found: dict[str, set[str]] = {"add": set(), "remove": set()}
        for name, action in read_actions(change.dest.store, entry.number):
            if name in found:
                found[name].add(canonical_path(root, action["path"]))
        taken = found["remove"] & paths
        if taken and found["add"] - taken:
            change.refuse_moved(entry, min(taken))
        lost |= taken
    change.check_lost(paths, lost, are_new=are_new)


def has_written(side: TableSide, first: int, last: int, root: str, paths: Set[str]) -> bool:
    """Whether the versions that added files have written them, rather than brought them back."""
    try:
        for number in range(first, last + 1):
            actions = list(read_actions(side.store, number))
            added = {canonical_path(root, action["path"]) for name, action in actions if name == "add"}
            if added & paths and any(
                name == "commitInfo" and action.get("operation") == RESTORE for name, action in actions
            ):
                return False
    except NotFoundError:
        return False
    return True
