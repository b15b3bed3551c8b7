"""A change of a Delta table as a new version on a branch: RESTORE where nothing came after, else its files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._native.delta import Snapshot
from ...cached import cached_property
from ...delta.definition.protocol import features_of
from ...delta.definition.table_state import MAX_ID, TableState
from ...delta.log.commit import CommitRequest, DeltaCommit, LogEntry
from ...delta.log.conflict import ReadSet
from ...delta.log.full_adds import FileKey, full_adds
from ...delta.log.target import WriteTarget
from ...delta.properties import CommitProperties, PostCommitHookProperties
from ...exceptions import CommitConflictError, InvalidArgumentError, UnsupportedError
from .delta_files import RESTORE, changes_rows, check_not_there, files_of, has_written
from .references import action_references
from .table_change import BY_HAND, TableChange, TableSide

_FREE = ("name", "description", "domain metadata")
"""Settings that no file of rows relies on."""
_LEFT_OUT = ("baseRowId", "defaultRowCommitVersion")
"""Fields of an `add` that count versions of the log that it stood in."""


@dataclass(frozen=True, eq=False)
class DeltaVersion:
    """The newest version of a Delta table in a content."""

    side: TableSide
    snapshot: Snapshot

    @staticmethod
    def of(side: TableSide) -> DeltaVersion:
        """That of a content that has the table."""
        return DeltaVersion(side, Snapshot.load(side.store))

    @cached_property
    def files(self) -> set[FileKey]:
        """Its files."""
        return files_of(self.side, self.snapshot)

    @cached_property
    def state(self) -> TableState:
        """Its metadata and protocol."""
        return TableState.of(self.snapshot)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What files of rows rely on, and what a change of rows leaves as it is."""
        metadata = self.state.metadata
        return {
            "id": metadata["id"],
            "schema": json.loads(metadata["schemaString"]),
            "partition columns": metadata["partitionColumns"],
            # No file relies on what id the next column gets.
            "configuration": {key: value for key, value in self.state.configuration.items() if key != MAX_ID},
            "format": metadata.get("format"),
            "name": metadata.get("name"),
            "description": metadata.get("description"),
            "domain metadata": self.snapshot.domains,
            "protocol": {
                key: sorted(value) if isinstance(value, list) else value
                for key, value in self.state.protocol.items()
                if value is not None
            },
        }

    def differing(self, other: DeltaVersion) -> list[str]:
        """Which of its settings another version has not."""
        return [name for name, value in self.settings.items() if other.settings[name] != value]

    def is_like(self, other: DeltaVersion) -> bool:
        """Whether it holds the same rows, in the same files and with the same settings."""
        return self.files == other.files and self.settings == other.settings


@dataclass(frozen=True)
class FileChange:
    """What becomes of the files of a table.

    Attributes:
        added: Files of the source that come.
        removed: Files of the base that go.
        actions: What else the entry says.
        operation: Its operation, with its parameters.
    """

    added: set[FileKey]
    removed: set[FileKey]
    operation: tuple[str, dict[str, Any]]
    actions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def transplant_delta(change: TableChange) -> None:
    """Commits the change to the branch's table, in its workspace.

    Raises:
        TableConflictError: The table's own rules do not allow it.
    """
    base, source, dest = (DeltaVersion.of(side) for side in (change.base, change.source, change.dest))
    if base.settings["id"] != source.settings["id"]:
        change.refuse("replaced", f"the commit puts another table in the place of {change.name}", BY_HAND)
    if dest.settings["id"] != base.settings["id"]:
        change.refuse("replaced", f"{change.name} is another table on the branch than the one of the commit", BY_HAND)
    if source.is_like(base) or (not change.is_exact and source.is_like(dest)):
        return
    is_whole = change.is_exact or (dest.is_like(base) and base.differing(source))
    found = _restored(change, base, source, dest) if is_whole else _moved(change, base, source, dest)
    if found is not None:
        _commit(change, found, base, source, dest)


def _restored(change: TableChange, base: DeltaVersion, source: DeltaVersion, dest: DeltaVersion) -> FileChange | None:
    """What makes the branch's table what the source is."""
    actions: list[tuple[str, dict[str, Any]]] = []
    if "protocol" in base.differing(source) and _is_newer(source.state.protocol, base.state.protocol):
        actions.append(("protocol", source.state.protocol))
    if base.state.metadata != source.state.metadata:
        configuration = source.state.configuration
        # Feeds read files of a column that goes: none that is added later may have its id.
        ids = [int(found[MAX_ID]) for found in (dest.state.configuration, configuration) if MAX_ID in found]
        if ids:
            configuration[MAX_ID] = str(max(ids))
        actions.append(("metaData", {**source.state.metadata, "configuration": configuration}))
    for domain, said in source.snapshot.domains.items():
        if base.snapshot.domains.get(domain) != said:
            actions.append(("domainMetadata", {"domain": domain, "configuration": said, "removed": False}))
    for domain, said in base.snapshot.domains.items():
        if domain not in source.snapshot.domains:
            actions.append(("domainMetadata", {"domain": domain, "configuration": said, "removed": True}))
    if base.files == source.files and not actions:
        if "protocol" in base.differing(source):
            change.refuse(
                "unsupported",
                f"the commit gives {change.name} a newer protocol, and a protocol is never lowered",
                "leave the commit as it is, or drop the feature with another writer",
            )
        return None
    operation = (RESTORE, {"version": source.snapshot.version})
    return FileChange(source.files - base.files, base.files - source.files, operation, actions)


def _is_newer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a protocol has all that another one has."""
    versions = ("minReaderVersion", "minWriterVersion")
    return all(one[name] >= other[name] for name in versions) and features_of(other) <= features_of(one)


def _moved(change: TableChange, base: DeltaVersion, source: DeltaVersion, dest: DeltaVersion) -> FileChange | None:
    """The same change on top of the branch's version."""
    added, removed = source.files - base.files, base.files - source.files
    # Where files only go, nothing tells whether their rows are gone as well, or lie in other files by now.
    is_there = bool(added) and added <= dest.files and removed.isdisjoint(dest.files)
    if is_there and not source.differing(dest):
        return None
    changed = base.differing(source)
    if changed:
        change.refuse(
            "unsupported",
            f"the commit changes the {' and the '.join(changed)} of {change.name}, which went another way on the "
            "branch",
            BY_HAND,
        )
    others = [name for name in base.differing(dest) if name not in _FREE]
    if others:
        change.refuse(
            "changed",
            f"on the branch {change.name} has not the {' and the '.join(others)} that it has where the commit "
            "changed it",
            BY_HAND,
        )
    gone = removed - dest.files
    if gone:
        change.refuse(
            "changed",
            f"the file {min(gone)[0]!r} of {change.name}, which the commit touches, is gone or changed on the branch",
            BY_HAND,
        )
    free = {path for path, _ in removed}
    taken = {path for path, _ in added} & ({path for path, _ in dest.files} - free)
    if taken:
        change.refuse("changed", f"the branch has {min(taken)!r} of {change.name} already", BY_HAND)
    paths = {path for path, _ in added}
    first, last, root = base.snapshot.version + 1, source.snapshot.version, dest.snapshot.root
    are_new = not change.transplant.is_revert and has_written(source.side, first, last, root, paths)
    if added and not removed:
        check_not_there(change, root, paths, are_new=are_new)
    return FileChange(added, removed, _operation(change, dest, added, removed, are_new=are_new))


def _operation(
    change: TableChange, dest: DeltaVersion, added: set[FileKey], removed: set[FileKey], *, are_new: bool
) -> tuple[str, dict[str, Any]]:
    if not added:
        return "DELETE", {"predicate": "[]"}
    if not are_new:
        return RESTORE, {"commit": change.transplant.commit_id}
    partitions = json.dumps(dest.state.partition_by, separators=(",", ":"))
    return "WRITE", {"mode": "Overwrite" if removed else "Append", "partitionBy": partitions}


def _commit(
    change: TableChange, found: FileChange, base: DeltaVersion, source: DeltaVersion, dest: DeltaVersion
) -> None:
    older, newer = sorted((base, source), key=lambda one: one.snapshot.version)
    moves = not changes_rows(newer.side, older.snapshot.version + 1, newer.snapshot.version)
    adds = list(full_adds(source.side.store, source.snapshot, found.added).values())
    removes = list(full_adds(base.side.store, base.snapshot, found.removed).values())
    _check_rules(change, found, dest, source, moves=moves)
    needed, there = action_references(source.snapshot.root, adds), action_references(dest.snapshot.root, removes)
    change.bring(replace(needed, files=needed.files - there.files))
    actions = [
        *found.actions,
        *(("remove", _remove(action, moves)) for action in removes),
        *(("add", _add(action, moves)) for action in adds),
    ]
    metrics = {"numRemovedFiles": len(removes), "numRestoredFiles": len(adds)}
    if found.operation[0] != RESTORE:
        metrics = {"numRemovedFiles": len(removes), "numFiles": len(adds)}
    # Only what is new to the table was written without a look at it.
    read = ReadSet(whole_table=found.operation[0] == RESTORE)
    entry = LogEntry(*found.operation, actions, read, metrics)
    request = CommitRequest(
        CommitProperties(custom_metadata={change.transplant.key: change.transplant.commit_id}),
        # The branch's log keeps its entries.
        PostCommitHookProperties(cleanup_expired_logs=False),
    )
    try:
        dest.state.check_writable()
        DeltaCommit(WriteTarget(change.uri, change.dest.store, dest.snapshot), entry, request).run()
    except (UnsupportedError, InvalidArgumentError, CommitConflictError) as error:
        change.refuse("unsupported", f"{change.name} does not take the change: {error}", BY_HAND)


def _check_rules(
    change: TableChange, found: FileChange, dest: DeltaVersion, source: DeltaVersion, *, moves: bool
) -> None:
    if found.removed and not moves and dest.state.is_append_only:
        change.refuse("unsupported", f"{change.name} is append-only (delta.appendOnly), and rows would go", BY_HAND)
    feeds = dest.state.keeps_change_feed or source.state.keeps_change_feed
    if feeds and found.added and found.removed and not moves:
        change.refuse(
            "unsupported",
            f"{change.name} keeps a change data feed, which would have to tell rows that stay in other files from "
            "those that change",
            BY_HAND,
        )


def _add(action: Mapping[str, Any], moves: bool) -> dict[str, Any]:
    kept = {key: value for key, value in action.items() if key not in _LEFT_OUT}
    return {**kept, "dataChange": not moves}


def _remove(action: Mapping[str, Any], moves: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "path": action["path"],
        "deletionTimestamp": time.time_ns() // 1_000_000,
        "dataChange": not moves,
        "extendedFileMetadata": True,
        "partitionValues": action.get("partitionValues") or {},
        "size": action["size"],
    }
    return {**made, **{key: action[key] for key in ("tags", "deletionVector") if action.get(key) is not None}}
