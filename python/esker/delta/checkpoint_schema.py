"""The columns of checkpoints, in Spark's order and with Spark's types.

Spec: "Checkpoint Schema", "Appendix: Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from .data_files import PhysicalNames
from .file_statistics import Path, encode, statistics_columns
from .schema import Schema

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


def action_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Actions, or a field of them, as a column of a type: maps from objects or pairs.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.checkpoint_schema import action_array
        >>> action_array([{"m": {"a": "b"}}], pa.struct([("m", pa.map_(pa.string(), pa.string()))])).to_pylist()
        [{'m': [('a', 'b')]}]
    """
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        # A column at a time: most fields of most actions are not there at all.
        there = set().union(*(value.keys() for value in values if value is not None))
        columns = [
            action_array([None if value is None else value.get(field.name) for value in values], field.type)
            if field.name in there
            else pa.nulls(len(values), field.type)
            for field in fields
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)
    if pa.types.is_map(kind):
        return pa.array([None if value is None else _pairs(value, kind) for value in values], kind)
    return pa.array(values, kind)


def _pairs(value: Any, kind: pa.DataType) -> list[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, Mapping) else value
    return [(key, _text(inner, kind.item_type)) for key, inner in pairs]


def _text(value: Any, kind: pa.DataType) -> Any:
    # Some writers put numbers and booleans where the protocol has texts.
    if value is None or isinstance(value, str) or not pa.types.is_string(kind):
        return value
    return json.dumps(value)


class StatisticsStruct:
    """`stats_parsed`: statistics as columns.

    Args:
        schema: The table's columns.
        partition_by: Its partition columns.
        configuration: Its properties.
        mapped: Whether column mapping is on.

    Example:
        `StatisticsStruct(schema, [], {}, mapped=False).type`
    """

    def __init__(
        self, schema: Schema, partition_by: list[str], configuration: Mapping[str, str], *, mapped: bool
    ) -> None:
        arrow = schema.to_arrow()
        kept = pa.schema([field for field in arrow if field.name not in partition_by])
        names = PhysicalNames(schema, mapped=mapped).by_path
        bounds: dict[str, Any] = {}
        counts: dict[str, Any] = {}
        for path in statistics_columns(kept, configuration):
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
        self.type = pa.struct(fields)

    def parse(self, texts: list[str | None]) -> pa.Array:
        """Statistics in JSON as columns; what does not have the column's type is null."""
        return pa.array([None if text is None else self._one(text) for text in texts], self.type)

    def _one(self, text: str) -> Any:
        try:
            found = json.loads(text, parse_float=Decimal)
        except ValueError:
            return None
        return _typed(found, self.type)


def statistics_json(values: Any) -> str | None:
    """Statistics out of columns as JSON, None if there are none.

    Example:
        >>> from esker.delta.checkpoint_schema import statistics_json
        >>> statistics_json({"numRecords": 3, "minValues": {"d": None}})
        '{"numRecords":3,"minValues":{}}'
    """
    if values is None:
        return None
    return encode(_plain(values))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, datetime):
        zoned = value.tzinfo is not None
        utc = value.astimezone(UTC).replace(tzinfo=None) if zoned else value
        return utc.isoformat(timespec="milliseconds") + ("Z" if zoned else "")
    if isinstance(value, date):
        return value.isoformat()
    return value


def _typed(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return {field.name: _typed(value.get(field.name), field.type) for field in fields}
    try:
        if value is None:
            return None
        if pa.types.is_timestamp(kind):
            moment = datetime.fromisoformat(value)
            if kind.tz is None:
                return moment.replace(tzinfo=None)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        if pa.types.is_date(kind):
            return date.fromisoformat(value[:10])
        if pa.types.is_floating(kind):
            return float(value)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(value), kind).as_py()
        if pa.types.is_integer(kind):
            return pa.scalar(int(value), kind).as_py()
        return value if isinstance(value, str) else None
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
        return None


def _put(tree: dict[str, Any], path: Path, names: Mapping[Path, str], kind: pa.DataType) -> None:
    for depth in range(1, len(path)):
        tree = tree.setdefault(names.get(path[:depth], path[depth - 1]), {})
    tree[names.get(path, path[-1])] = kind


def _struct(tree: dict[str, Any]) -> pa.DataType:
    return pa.struct(
        [pa.field(name, _struct(inner) if isinstance(inner, dict) else inner) for name, inner in tree.items()]
    )
