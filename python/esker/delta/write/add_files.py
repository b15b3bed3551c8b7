"""Commits of files that somebody else wrote: `DeltaTable.create_write_transaction`, with deltalake's names.

Spec: "Add File and Remove File".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...commit.loop import follow
from ...exceptions import InvalidArgumentError, SchemaMismatchError
from ..definition.partition_text import directories, encode_path, partition_text
from ..definition.table_state import TableState
from ..log.commit import DeltaCommit
from ..log.conflict import ReadSet
from ..log.post_commit import PostCommit
from ..properties import CommitProperties, PostCommitHookProperties
from ..read.filters import FilterType
from ..schema import Schema
from .plan import MODES
from .replacement import remove_actions

if TYPE_CHECKING:
    from ..table import DeltaTable


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


def write_transaction(
    table: DeltaTable,
    actions: Sequence[AddAction],
    mode: str,
    schema: Schema,
    partition_by: list[str],
    partition_filters: FilterType | None,
    properties: CommitProperties | None,
    hooks: PostCommitHookProperties | None,
) -> None:
    """Commits added files, in mode `overwrite` with the removal of those that are there.

    Example:
        `write_transaction(table, [AddAction(...)], "append", table.schema(), [], None, None, None)`
    """
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError(f"expected mode as append or overwrite, found {mode!r}")
    snapshot = table._snapshot
    before = TableState.of(snapshot)
    before.check_writable()
    if partition_by != before.partition_by:
        raise InvalidArgumentError(
            f"expected the table's partition columns {before.partition_by}, found {partition_by}"
        )
    after = before
    if schema.to_arrow() != before.schema.to_arrow():
        if mode != "overwrite" or partition_filters is not None:
            raise SchemaMismatchError(
                f"expected the table's schema {before.schema!r}, found {schema!r}; "
                "only an overwrite of all rows changes it"
            )
        after = before.with_schema(schema)
    for action in actions:
        if set(action.partition_values) != set(partition_by):
            raise InvalidArgumentError(
                f"expected values of the partition columns {partition_by} for {action.path}, found "
                f"{sorted(action.partition_values)}"
            )
    removes: list[dict[str, Any]] = []
    if mode == "overwrite":
        if before.configuration.get("delta.appendOnly", "").lower() == "true":
            raise InvalidArgumentError("the table is append-only (delta.appendOnly): an overwrite would remove rows")
        selection = table._select(partition_filters)
        removes = remove_actions(snapshot, selection)
    version = DeltaCommit(
        table._store,
        table.table_uri,
        snapshot,
        "WRITE",
        {"mode": MODES[mode], "partitionBy": json.dumps(partition_by, separators=(",", ":"))},
        [
            *after.actions_after(before),
            *(("remove", action) for action in removes),
            *(("add", action.fields()) for action in actions),
        ],
        options=table._storage_options,
        read=ReadSet(whole_table=True) if mode == "overwrite" else None,
        properties=properties,
        after=PostCommit(table._store, after.configuration, hooks),
    ).run()
    follow(table.update_incremental, f"version {version}")


def selection_vectors(table: DeltaTable) -> pa.RecordBatchReader:
    """For each file with deleted rows which of its rows are there.

    Example:
        `selection_vectors(DeltaTable("t")).read_all().column_names`
    """
    schema = pa.schema([("filepath", pa.string()), ("selection_vector", pa.list_(pa.bool_()))])
    scan = table._scan()

    def batches() -> Any:
        uris = table._select(None).uris()
        for file, uri in zip(scan.data_files(), uris, strict=True):
            deleted = scan.deleted(file)
            if deleted is None:
                continue
            rows = sum(batch.num_rows for batch in scan.read(replace(file, deletion_vector=None), []))
            gone = set(deleted.to_pylist())
            place = uri if "://" in uri else f"file://{uri}"
            yield pa.record_batch([[place], [[row not in gone for row in range(rows)]]], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def symlink_manifests(table: DeltaTable) -> None:
    """Writes lists of the table's files, for engines that read no log: one a partition, under
    `_symlink_format_manifest/`.

    Example:
        `symlink_manifests(DeltaTable("t"))`
    """
    selection = table._select(None)
    if any(file.deletion_vector is not None for file in table._scan().data_files()):
        raise InvalidArgumentError("expected a table without deletion vectors: a list of files does not tell of them")
    lists: dict[str, list[str]] = {}
    described = pa.record_batch(selection.describe()).column("partition")
    names = [described.type.field(i).name for i in range(described.type.num_fields)]
    columns = [described.field(i) for i in range(len(names))]
    for row, uri in enumerate(selection.uris()):
        values = {name: partition_text(column[row]) for name, column in zip(names, columns, strict=True)}
        lists.setdefault(directories(values), []).append(uri)
    for folder, uris in lists.items():
        table._store.put(f"_symlink_format_manifest/{folder}manifest", "".join(f"{uri}\n" for uri in uris).encode())
