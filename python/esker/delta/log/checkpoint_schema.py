"""The Parquet schema of checkpoints: columns in Spark's order, with Spark's types.

Spec: "Checkpoint Schema", "Appendix: Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..definition.physical_names import PhysicalNames
from ..definition.protocol import features_of
from ..definition.statistics_columns import Path, statistics_columns
from ..definition.table_state import TableState

_TEXTS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.field("element", pa.string()))
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _TEXTS),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
        ("stats", pa.string()),
    ]
)
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", _LIST),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _LIST),
        ("writerFeatures", _LIST),
    ]
)
DOMAIN_METADATA = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", _TEXTS)])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _TEXTS)]
)
ACTIONS: dict[str, pa.DataType] = {
    "txn": TXN,
    "add": ADD,
    "remove": REMOVE,
    "metaData": METADATA,
    "protocol": PROTOCOL,
    "domainMetadata": DOMAIN_METADATA,
    "checkpointMetadata": CHECKPOINT_METADATA,
    "sidecar": SIDECAR,
}
"""The actions of checkpoints, in the order of their columns."""


SINGLE_CHECKPOINT: tuple[str, ...] = ("txn", "add", "remove", "metaData", "protocol", "domainMetadata")
"""The columns of a checkpoint in one file, or in parts."""
SIDECAR_CHECKPOINT: tuple[str, ...] = (
    "txn",
    "add",
    "remove",
    "metaData",
    "protocol",
    "domainMetadata",
    "checkpointMetadata",
    "sidecar",
)
"""The columns of a checkpoint of version 2: its adds and removes stand in a sidecar."""


def action_columns(state: TableState, actions: Sequence[str]) -> pa.Schema:
    """The columns of a table's checkpoint: statistics as the table's properties say.

    Args:
        state: The table.
        actions: Their names.

    Example:
        `action_columns(state, SINGLE_CHECKPOINT).field("add")`
    """
    configuration = state.configuration
    add = [ADD.field(i) for i in range(ADD.num_fields)]
    if configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() == "false":
        add = [field for field in add if field.name != "stats"]
    if configuration.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true":
        if state.partition_by:
            arrow, names = state.schema.to_plain_arrow(), PhysicalNames(state.schema, mapped=state.mapped)
            partition = pa.struct([pa.field(names.of(name), arrow.field(name).type) for name in state.partition_by])
            add.append(pa.field("partitionValues_parsed", partition))
        add.append(pa.field("stats_parsed", statistics_type(state)))
    return pa.schema([(name, pa.struct(add) if name == "add" else ACTIONS[name]) for name in actions])


def statistics_type(state: TableState) -> pa.DataType:
    """The type of `stats_parsed`, by physical names.

    Example:
        `statistics_type(state).field("numRecords")`
    """
    kept = pa.schema([field for field in state.schema.to_plain_arrow() if field.name not in state.partition_by])
    names = PhysicalNames(state.schema, mapped=state.mapped).by_path
    bounds: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for path in statistics_columns(kept, state.configuration):
        kind = kept.field(path[0]).type
        for part in path[1:]:
            kind = kind.field(part).type
        _put(counts, path, names, pa.int64())
        if not (pa.types.is_boolean(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind)):
            _put(bounds, path, names, kind)
    fields = [pa.field("numRecords", pa.int64())]
    for name, tree in [("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]:
        if tree:
            fields.append(pa.field(name, _struct(tree)))
    if "deletionVectors" in features_of(state.protocol):
        # Readers take bounds for exact where nothing says that they are not.
        fields.append(pa.field("tightBounds", pa.bool_()))
    return pa.struct(fields)


def _put(tree: dict[str, Any], path: Path, names: Mapping[Path, str], kind: pa.DataType) -> None:
    for depth in range(1, len(path)):
        tree = tree.setdefault(names.get(path[:depth], path[depth - 1]), {})
    tree[names.get(path, path[-1])] = kind


def _struct(tree: dict[str, Any]) -> pa.DataType:
    return pa.struct(
        [pa.field(name, _struct(inner) if isinstance(inner, dict) else inner) for name, inner in tree.items()]
    )
