"""The `add` actions of a version as its log has them, with statistics and tags.

A replayed version keeps of a file what reading takes. Who adds a file once more has to say all that its action says.

Spec: "Add File and Remove File", "Checkpoint Schema".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

import pyarrow as pa

from ..._native.delta import Snapshot, canonical_path
from ..._native.store import Store
from ...exceptions import CorruptFileError, NotFoundError
from .checkpoint_files import checkpoint_parts
from .entries import commit_path, json_lines, read_actions, vector_id
from .snapshots import load_snapshot
from .store_file import StoreFile

FileKey: TypeAlias = tuple[str, str]
"""A file as the protocol knows it: its canonical path, and its deletion vector's id."""
_KEY = ("add.path", "add.deletionVector")
_PARSED = ("stats_parsed", "partitionValues_parsed")


def full_adds(store: Store, snapshot: Snapshot, wanted: Set[FileKey]) -> dict[FileKey, dict[str, Any]]:
    """The `add` actions of some files of a version.

    Args:
        store: The table's.
        snapshot: The version.
        wanted: The files.

    Raises:
        CorruptFileError: The log has not all of them.

    Example:
        `full_adds(store, snapshot, {("part-0.parquet", "")})`
    """
    found: dict[FileKey, dict[str, Any]] = {}
    for action in _newest_first(store, snapshot):
        if len(found) == len(wanted):
            break
        key = (canonical_path(snapshot.root, action["path"]), vector_id(action.get("deletionVector")))
        if key in wanted and key not in found:
            found[key] = _as_logged(action)
    if len(found) < len(wanted):
        path = min(wanted - found.keys())[0]
        raise CorruptFileError(f"expected the action that added {path!r} in the log of {store.uri}, found none")
    return found


def tags_of(store: Store, snapshot: Snapshot, wanted: Set[FileKey]) -> dict[FileKey, dict[str, Any]]:
    """The tags of some files of a version, of those that have some.

    Args:
        store: The table's.
        snapshot: The version.
        wanted: The files.

    Example:
        `tags_of(store, snapshot, {("part-0.parquet", "")})`
    """
    try:
        return _tags_of(store, snapshot, wanted)
    except NotFoundError:
        # Entries were cleaned up since, below a newer checkpoint.
        return _tags_of(store, load_snapshot(store, version=snapshot.version), wanted)


def _tags_of(store: Store, snapshot: Snapshot, wanted: Set[FileKey]) -> dict[FileKey, dict[str, Any]]:
    if not wanted or not _may_have_tags(store, snapshot):
        return {}
    found: dict[FileKey, dict[str, Any]] = {}
    for action in _newest_first(store, snapshot, (*_KEY, "add.tags")):
        if len(found) == len(wanted):
            break
        key = (canonical_path(snapshot.root, action["path"]), vector_id(action.get("deletionVector")))
        if key in wanted and key not in found:
            found[key] = action.get("tags") or {}
    return {key: tags for key, tags in found.items() if tags}


def _may_have_tags(store: Store, snapshot: Snapshot) -> bool:
    """Whether the log speaks of tags at all: mostly it does not, and no action needs to be read."""
    import pyarrow.parquet as pq

    first = -1 if snapshot.checkpoint_version is None else snapshot.checkpoint_version
    if any(b'"tags"' in store.get(commit_path(version)) for version in range(snapshot.version, first, -1)):
        return True
    if snapshot.checkpoint_version is None:
        return False
    for path in checkpoint_parts(store, snapshot.checkpoint_version):
        if path.endswith(".json"):
            return True
        file = pq.ParquetFile(pa.PythonFile(StoreFile(store, path), mode="r"))
        if "add" not in file.schema_arrow.names or file.schema_arrow.field("add").type.get_field_index("tags") < 0:
            continue
        for batch in file.iter_batches(columns=["add.tags"]):
            tags = batch.column("add").field("tags")
            if tags.null_count < len(tags):
                return True
    return False


def _newest_first(store: Store, snapshot: Snapshot, columns: Sequence[str] = ("add",)) -> Iterator[dict[str, Any]]:
    first = -1 if snapshot.checkpoint_version is None else snapshot.checkpoint_version
    for version in range(snapshot.version, first, -1):
        yield from (action for name, action in read_actions(store, version) if name == "add")
    if snapshot.checkpoint_version is not None:
        for path in checkpoint_parts(store, snapshot.checkpoint_version):
            yield from _of_checkpoint(store, path, columns)


def _of_checkpoint(store: Store, path: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    if path.endswith(".json"):
        for _, action in json_lines(store.get(path)):
            if action.get("add") is not None:
                yield action["add"]
        return
    try:
        file = pq.ParquetFile(pa.PythonFile(StoreFile(store, path), mode="r"))
        if "add" not in file.schema_arrow.names:
            return
        for batch in file.iter_batches(columns=list(columns)):
            for action in batch.column("add").to_pylist(maps_as_pydicts="strict"):
                if action is not None and action["path"] is not None:
                    yield _without_nulls(action)
    except pa.ArrowException as error:
        raise CorruptFileError(f"corrupt {path}: expected a checkpoint, found: {error}", path=path) from error


def _as_logged(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action as an entry spells it: what a checkpoint has in columns is left out."""
    found = {name: value for name, value in action.items() if name not in _PARSED}
    parsed = action.get("stats_parsed") or {}
    if "stats" not in found and parsed.get("numRecords") is not None:
        # Readers ask for the number of rows beside a deletion vector. Bounds are only there to skip files by.
        found["stats"] = json.dumps({"numRecords": parsed["numRecords"]}, separators=(",", ":"))
    return found


def _without_nulls(action: dict[str, Any]) -> dict[str, Any]:
    """An action as an entry has it: without the fields that it does not have. Values of partitions may be null."""
    found = {name: value for name, value in action.items() if value is not None}
    vector = found.get("deletionVector")
    if vector is not None:
        found["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    return found
