"""The files of a version of a Delta table, and their `add` actions as their writers wrote them.

An entry of the log says all of a file: statistics, tags, partition values as texts. What is read as columns does not.
Where the entry is gone, the checkpoint says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

import pyarrow as pa

from ..._native.delta import Snapshot, canonical_path
from ...delta.log.checkpoint_files import checkpoint_parts
from ...delta.log.entries import json_lines, read_actions
from ...delta.log.store_file import StoreFile
from ...exceptions import CorruptFileError, NotFoundError
from .table_change import TableChange, TableSide

FileKey: TypeAlias = tuple[str, str]
"""A file's canonical path, and which deletion vector it has; empty for none. A version has each path once."""

RESTORE = "RESTORE"
"""The operation that brings files back. All others that add files have written them."""


def vector_key(vector: Mapping[str, Any] | None) -> str:
    """Which deletion vector an action names.

    Example:
        >>> from esker.repo.tables.delta_files import vector_key
        >>> vector_key({"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "cardinality": 2}), vector_key(None)
        ('u:ab@1', '')
    """
    if vector is None:
        return ""
    return f"{vector['storageType']}:{vector['pathOrInlineDv']}@{vector.get('offset') or 0}"


def files_of(side: TableSide, snapshot: Snapshot) -> set[FileKey]:
    """The files of a version."""
    described = pa.record_batch(snapshot.select(side.store).describe())
    vectors = described.column("deletion_vector").to_pylist()
    return {
        (path, vector_key(vector)) for path, vector in zip(described.column("path").to_pylist(), vectors, strict=True)
    }


def add_actions(side: TableSide, snapshot: Snapshot, wanted: Set[FileKey]) -> dict[FileKey, dict[str, Any]]:
    """The `add` actions of files that a version has.

    Args:
        side: The table.
        snapshot: Its newest version.
        wanted: The files.

    Raises:
        CorruptFileError: The log says nothing of one of them.
    """
    found: dict[FileKey, dict[str, Any]] = {}
    for action in _newest_first(side, snapshot):
        if len(found) == len(wanted):
            break
        key = (canonical_path(snapshot.root, action["path"]), vector_key(action.get("deletionVector")))
        if key in wanted:
            found.setdefault(key, action)
    missing = wanted - found.keys()
    if missing:
        path = min(missing)[0]
        raise CorruptFileError(f"{side.folder}: expected an add action of {path!r} in the log, found none", path=path)
    return found


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


def _newest_first(side: TableSide, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    checkpoint = snapshot.checkpoint_version
    for number in range(snapshot.version, -1 if checkpoint is None else checkpoint, -1):
        yield from _adds(read_actions(side.store, number))
    if checkpoint is not None:
        for path in checkpoint_parts(side.store, checkpoint):
            yield from _checkpointed(side, path)


def _adds(actions: Iterator[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from (action for name, action in actions if name == "add")


def _checkpointed(side: TableSide, path: str) -> Iterator[dict[str, Any]]:
    if path.endswith(".json"):
        for _, row in json_lines(side.store.get(path)):
            yield from _adds(iter(row.items()))
        return
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(pa.PythonFile(StoreFile(side.store, path), mode="r"))
    if "add" not in parquet.schema_arrow.names:
        return
    for batch in parquet.iter_batches(columns=["add"]):
        for row in batch.column(0).drop_null().to_pylist(maps_as_pydicts="strict"):
            yield _as_logged(row)


def _as_logged(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a checkpoint as an entry spells it."""
    parsed = row.get("stats_parsed") or {}
    action = {key: value for key, value in row.items() if value is not None and not key.endswith("_parsed")}
    if "stats" not in action and parsed.get("numRecords") is not None:
        # Readers ask for the number of rows beside a deletion vector. Bounds are only there to skip files by.
        action["stats"] = json.dumps({"numRecords": parsed["numRecords"]}, separators=(",", ":"))
    vector = action.get("deletionVector")
    if vector is not None:
        action["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    return action
