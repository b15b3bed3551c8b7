"""Delta logs by script: actions as they stand in commits, checkpoints as writers leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}
PROTOCOL: dict[str, Any] = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(**changes: Any) -> dict[str, Any]:
    """A metaData action."""
    fields = {
        "id": "7f1b8c8a-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    return {"metaData": {**fields, **changes}}


def add(path: str, **changes: Any) -> dict[str, Any]:
    """An add action."""
    fields: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 0,
        "dataChange": True,
    }
    return {"add": {**fields, **changes}}


def remove(path: str, **changes: Any) -> dict[str, Any]:
    """A remove action."""
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True, **changes}}


def commit(table: Path, version: int, actions: list[Any]) -> Path:
    """Writes an entry of the log; texts are lines as they are."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = [action if isinstance(action, str) else json.dumps(action) for action in actions]
    path = log / f"{version:020}.json"
    path.write_text("\n".join(lines) + "\n")
    return path


_MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("tags", _MAP),
                    ("stats", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        ("sidecar", pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])),
        ("checkpointMetadata", pa.struct([("version", pa.int64())])),
    ]
)


def checkpoint(table: Path, name: str, actions: list[Any], *, schema: pa.Schema = CHECKPOINT) -> Path:
    """Writes actions as a checkpoint in Parquet, under a name within `_delta_log`."""
    path = table / "_delta_log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([_maps(action.get(field.name)) for action in actions], field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
    return path


def _maps(value: Any) -> Any:
    """Objects of texts as the pairs that pyarrow wants for a map."""
    if not isinstance(value, dict):
        return value
    found = {key: _maps(inner) for key, inner in value.items()}
    for key in ("partitionValues", "tags", "configuration", "options"):
        if isinstance(found.get(key), dict):
            found[key] = list(found[key].items())
    return found
