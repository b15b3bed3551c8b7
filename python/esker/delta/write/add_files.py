"""Commits files that another program wrote: `DeltaTable.create_write_transaction`, with deltalake's names.

Spec: "Add File and Remove File".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..definition.partition_text import encode_path
from ..definition.physical_names import PhysicalNames
from ..definition.table_state import TableState
from ..exceptions import AppendOnlyError
from ..log.commit import CommitRequest, DeltaCommit, LogEntry
from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from ..read.filters import FilterType
from ..read.selection import of_partitions
from ..schema import Schema
from .plan import MODES, WriteRequest
from .replacement import remove_actions


@dataclass
class AddAction:
    """A file that is there already and shall be in the table.

    Args:
        path: Relative to the table; a `/` before it is none of it, as in deltalake.
        size: Bytes.
        partition_values: Texts by column, None for null.
        modification_time: Milliseconds since the epoch.
        data_change: Whether its rows are new.
        stats: Its statistics as the log has them: JSON.

    Example:
        >>> from esker.delta import AddAction
        >>> AddAction("part-0.parquet", 100, {}, 0, True, '{"numRecords":1}').size
        100
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str

    def fields(self) -> dict[str, Any]:
        """The `add` action."""
        return {
            "path": encode_path(self.path.lstrip("/")),
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "modificationTime": self.modification_time,
            "dataChange": self.data_change,
            "stats": self.stats,
        }


def add_files(
    target: WriteTarget,
    actions: Sequence[AddAction],
    schema: Schema,
    request: WriteRequest,
    partition_filters: FilterType | None,
    commit: CommitRequest,
) -> None:
    """Commits added files, in mode `overwrite` with the removal of those that are there.

    In a mapped table, the columns within the files have their physical names, and partition values and statistics may
    have either.

    Args:
        target: The table.
        actions: The files.
        schema: Their columns.
        request: The mode, and the table's partition columns.
        partition_filters: In mode `overwrite`: which partitions are replaced; all if not given.
        commit: What the caller wants of the commit.

    Example:
        `add_files(target, [AddAction(...)], schema, WriteRequest(mode="append"), None, CommitRequest())`
    """
    mode, partition_by = request.mode, list(request.partition_columns or [])
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError(f"expected mode as append or overwrite, found {mode!r}")
    snapshot = target.base
    before = TableState.of(snapshot)
    before.check_writable()
    if partition_by != before.partition_by:
        raise InvalidArgumentError(
            f"expected files of the table's partition columns {before.partition_by}, found {partition_by}"
        )
    after = before
    if schema.to_plain_arrow() != before.schema.to_plain_arrow():
        if mode != "overwrite" or partition_filters is not None:
            raise SchemaMismatchError(
                f"expected the table's schema {before.schema!r}, found {schema!r}; "
                "only an overwrite of all rows changes it"
            )
        if before.mapped:
            raise UnsupportedError(
                f"the columns of {target.uri} have other names in its files (column mapping), which files with new "
                "columns cannot have yet; change the columns first"
            )
        after = before.with_schema(schema)
    names = PhysicalNames(after.schema, mapped=after.mapped)
    spelled = {names.of(name): name for name in partition_by}
    for action in actions:
        if {spelled.get(name, name) for name in action.partition_values} != set(partition_by):
            raise InvalidArgumentError(
                f"expected values of the partition columns {partition_by} for {action.path}, found "
                f"{sorted(action.partition_values)}"
            )
    removes: list[dict[str, Any]] = []
    if mode == "overwrite":
        if before.is_append_only:
            raise AppendOnlyError(target.uri, "an overwrite would remove rows")
        selection, kept = of_partitions(target.store, snapshot, partition_filters, target.session_timezone)
        removes = list(compress(remove_actions(snapshot, selection), kept))
    entry = LogEntry(
        "WRITE",
        {"mode": MODES[mode], "partitionBy": json.dumps(partition_by, separators=(",", ":"))},
        [
            *after.actions_after(before),
            *(("remove", action) for action in removes),
            *(("add", _with_physical_names(action.fields(), names)) for action in actions),
        ],
        ReadSet(whole_table=mode == "overwrite"),
    )
    target.committed(DeltaCommit(target, entry, commit).run())


def _with_physical_names(add: dict[str, Any], names: PhysicalNames) -> dict[str, Any]:
    """An `add` action whose partition values and statistics are of the columns' names in files."""
    if not names.mapped:
        return add
    add["partitionValues"] = {names.of(name): value for name, value in add["partitionValues"].items()}
    try:
        stats = json.loads(add["stats"]) if add["stats"] else {}
    except ValueError:
        return add
    for part in ("minValues", "maxValues", "nullCount"):
        if isinstance(stats, dict) and isinstance(stats.get(part), dict):
            stats[part] = _renamed(stats[part], (), names)
            add["stats"] = json.dumps(stats, separators=(",", ":"), ensure_ascii=False)
    return add


def _renamed(values: dict[str, Any], above: tuple[str, ...], names: PhysicalNames) -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        path = (*above, name)
        below = _renamed(value, path, names) if isinstance(value, dict) else value
        found[names.by_path.get(path, name)] = below
    return found
