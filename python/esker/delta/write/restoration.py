"""The entry that restores the content which a table has on another branch of a repository.

Both logs went on from one version. The entry removes the files that the other side has not, and adds those that only
the other side has; columns and properties become the other side's. What may never go back stays: the protocol's
features, the ids of columns, times of commits, and the last numbers of applications.

Spec: "Add File and Remove File", "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..._native.delta import FileSelection, Snapshot
from ..._native.store import Store
from ...exceptions import UnsupportedError
from ..definition.physical_names import FIELD_ID, PHYSICAL_NAME
from ..definition.protocol import features_of, fields_of, protocol_with
from ..definition.table_state import MAX_ID, MODE, TableState
from ..log.commit import LogEntry
from ..log.conflict import ReadSet
from ..log.entries import vector_id
from ..log.full_adds import FileKey, full_adds
from ..log.target import WriteTarget
from .replacement import remove_actions

_TIMES = "delta.inCommitTimestampEnablement"
_HAS_TIMES = "delta.enableInCommitTimestamps"


def restoration(target: WriteTarget, store: Store, other: Snapshot, origin: str) -> LogEntry:
    """The entry that makes a table what it is on another branch.

    Args:
        target: The table, in its newest version.
        store: The same folder on the other branch.
        other: The version there.
        origin: What the entry says of where it comes from.

    Raises:
        UnsupportedError: The table is append-only, has what this release does not write, or has one id for two columns.

    Example:
        `DeltaCommit(target, restoration(target, store, Snapshot.load(store), "feature")).run()`
    """
    base = target.base
    here, there = base.select(target.store), other.select(store)
    ours, theirs = _keys(here), _keys(there)
    before, after = TableState.of(base), _state(TableState.of(base), TableState.of(other))
    after.check_writable()
    _check_ids(before, after, target.uri)
    gone = set(ours) - set(theirs)
    if gone and (before.is_append_only or after.is_append_only):
        raise UnsupportedError(
            f"the table at {target.uri} is append-only (delta.appendOnly), and a restore would remove "
            f"{len(gone)} files of it",
            uri=target.uri,
        )
    removes = [action for key, action in zip(ours, remove_actions(base, here), strict=True) if key in gone]
    adds = full_adds(store, other, set(theirs) - set(ours))
    actions = [
        *after.actions_after(before),
        *_applications(base, other),
        *_domains(base.domains, other.domains),
        *(("remove", action) for action in removes),
        *(("add", {**action, "dataChange": True}) for action in adds.values()),
    ]
    metrics = {
        "numRestoredFiles": len(adds),
        "numRemovedFiles": len(removes),
        "restoredFilesSize": sum(add["size"] for add in adds.values()),
    }
    parameters = {"version": other.version, "origin": origin}
    return LogEntry("RESTORE", parameters, actions, ReadSet(whole_table=True), metrics)


def _keys(selection: FileSelection) -> list[FileKey]:
    described = pa.record_batch(selection.describe())
    vectors = described.column("deletion_vector").to_pylist()
    return [(path, vector_id(one)) for path, one in zip(described.column("path").to_pylist(), vectors, strict=True)]


def _state(before: TableState, other: TableState) -> TableState:
    configuration = dict(other.configuration)
    highest = [int(state.configuration[MAX_ID]) for state in (before, other) if MAX_ID in state.configuration]
    if highest:
        configuration[MAX_ID] = str(max(highest))
    if before.configuration.get(_HAS_TIMES, "").lower() == "true":
        kept = {key: value for key, value in before.configuration.items() if _is_of_times(key)}
        configuration = {**{key: value for key, value in configuration.items() if not _is_of_times(key)}, **kept}
    metadata = {**other.metadata, "id": before.metadata["id"], "configuration": configuration}
    if "createdTime" in before.metadata:
        metadata["createdTime"] = before.metadata["createdTime"]
    return TableState(metadata, _protocol(before.protocol, other.protocol), other.schema)


def _check_ids(before: TableState, after: TableState, uri: str) -> None:
    """Refuses ids that are those of other columns on the other branch, where files have columns by their ids.

    Raises:
        UnsupportedError: There is one: feeds and streams would find its values in older files of the other column.
    """
    if "id" not in (state.configuration.get(MODE, "none").lower() for state in (before, after)):
        return
    ours, theirs = (
        {
            field.metadata[FIELD_ID]: (field.metadata.get(PHYSICAL_NAME), path)
            for path, field in fields_of(state.schema.fields)
            if FIELD_ID in field.metadata
        }
        for state in (before, after)
    )
    for id in sorted(ours.keys() & theirs.keys()):
        if ours[id][0] != theirs[id][0]:
            raise UnsupportedError(
                f"the table at {uri} has columns by their ids ({MODE}=id), and {id} is that of {ours[id][1]!r} here "
                f"and of {theirs[id][1]!r} on the other branch",
                uri=uri,
            )


def _is_of_times(key: str) -> bool:
    return key == _HAS_TIMES or key.startswith(_TIMES)


def _protocol(before: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What both ask for: a table whose features would go needs more than an entry."""
    reader, writer = other["minReaderVersion"], other["minWriterVersion"]
    is_covered = reader <= before["minReaderVersion"] and writer <= before["minWriterVersion"]
    if before == other or (is_covered and features_of(other) <= features_of(before)):
        return before
    return protocol_with(before, features_of(other), reader=reader, writer=writer)


def _applications(base: Snapshot, other: Snapshot) -> list[tuple[str, dict[str, Any]]]:
    """The last numbers of applications that the other side has heard of later."""
    actions: list[tuple[str, dict[str, Any]]] = []
    known = base.transactions
    for name, (number, updated) in other.transactions.items():
        if name not in known or known[name][0] < number:
            said = {"appId": name, "version": number}
            actions.append(("txn", said if updated is None else {**said, "lastUpdated": updated}))
    return actions


def _domains(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    changed = {name: (text, False) for name, text in theirs.items() if ours.get(name) != text}
    gone = {name: (text, True) for name, text in ours.items() if name not in theirs}
    return [
        ("domainMetadata", {"domain": name, "configuration": text, "removed": removed})
        for name, (text, removed) in {**changed, **gone}.items()
    ]
