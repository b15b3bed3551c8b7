"""Delta logs of many files, without the files: checkpoints and commits, written by script.

Paths of 80 characters, one partition column of 500 values, statistics of eight columns: some 500 bytes a file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = ["id", "a", "b", "c", "d", "price", "name", "time"]
TYPES = {"price": "double", "name": "string", "time": "timestamp"}
DAYS = 500


def schema_string() -> str:
    """The schema as the log has it."""
    fields = [{"name": "day", "type": "string", "nullable": True, "metadata": {}}]
    fields += [{"name": n, "type": TYPES.get(n, "long"), "nullable": True, "metadata": {}} for n in COLUMNS]
    return json.dumps({"type": "struct", "fields": fields})


def head() -> list[dict[str, Any]]:
    """Protocol and metadata."""
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.UUID(int=7)),
                "name": None,
                "description": None,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_string(),
                "partitionColumns": ["day"],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]


def adds(files: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """As many add actions."""
    random = np.random.default_rng(seed)
    for index in range(files):
        day = f"2024-{index % DAYS // 28 % 12 + 1:02}-{index % 28 + 1:02}"
        low = index * 1000
        minimum: dict[str, object] = {name: low + at for at, name in enumerate(COLUMNS)}
        maximum: dict[str, object] = {name: low + 999 + at for at, name in enumerate(COLUMNS)}
        minimum |= {"price": index * 0.25, "name": f"name {index:09}", "time": "2024-01-01T00:00:00.000Z"}
        maximum |= {"price": index * 0.25 + 1, "name": f"name {index:09} zz", "time": "2024-01-02T00:00:00.000Z"}
        nulls = dict.fromkeys(COLUMNS, 0)
        name = uuid.UUID(bytes=random.bytes(16))
        yield {
            "path": f"day={day}/part-{index:05}-{name}-c000.snappy.parquet",
            "partitionValues": {"day": day},
            "size": 1_000_000 + index,
            "modificationTime": 1_700_000_000_000 + index,
            "dataChange": True,
            "stats": json.dumps(
                {"numRecords": 1000, "minValues": minimum, "maxValues": maximum, "nullCount": nulls},
                separators=(",", ":"),
            ),
        }


def write_commits(table: Path, files: int, per_commit: int) -> None:
    """A log of commits alone."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    actions: list[dict[str, Any]] = head()
    version = 0
    for index, add in enumerate(adds(files), 1):
        actions.append({"add": add})
        if index % per_commit == 0 or index == files:
            text = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
            (log / f"{version:020}.json").write_text(text + "\n")
            actions, version = [{"commitInfo": {"operation": "WRITE", "timestamp": version}}], version + 1


def write_later(table: Path, commits: int) -> None:
    """Commits of one file each, from version 0 on, on top of a checkpoint of it."""
    add = {"partitionValues": {"day": "2024-01-01"}, "size": 1, "modificationTime": 1, "dataChange": True}
    (table / "_delta_log" / f"{0:020}.json").write_text("")
    for version in range(1, commits + 1):
        line = json.dumps({"add": {"path": f"later-{version}", **add}})
        (table / "_delta_log" / f"{version:020}.json").write_text(line + "\n")


_MAP = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _MAP),
        ("stats", pa.string()),
    ]
)
_METADATA = pa.struct(
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
)
_FEATURES = pa.list_(pa.string())
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _FEATURES),
        ("writerFeatures", _FEATURES),
    ]
)
_REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
CHECKPOINT = pa.schema(
    [("txn", _TXN), ("add", _ADD), ("remove", _REMOVE), ("metaData", _METADATA), ("protocol", _PROTOCOL)]
)


def write_checkpoint(table: Path, files: int) -> None:
    """A log of one checkpoint, and the one commit that it was made from (which adds nothing more)."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    size = 100_000
    path = log / f"{0:020}.checkpoint.parquet"
    protocol, metadata = head()
    first = {"protocol": protocol["protocol"], "metaData": _pairs(metadata["metaData"])}
    with pq.ParquetWriter(path, CHECKPOINT) as writer:
        writer.write_table(_table([{name: value} for name, value in first.items()]))
        batch: list[dict[str, Any]] = []
        for add in adds(files):
            batch.append({"add": {**add, "partitionValues": list(add["partitionValues"].items())}})
            if len(batch) == size:
                writer.write_table(_table(batch))
                batch = []
        if batch:
            writer.write_table(_table(batch))
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": files + 2}))


def _pairs(metadata: dict[str, Any]) -> dict[str, Any]:
    return {**metadata, "format": {"provider": "parquet", "options": []}, "configuration": []}


def _table(actions: list[dict[str, Any]]) -> pa.Table:
    columns = [pa.array([action.get(field.name) for action in actions], field.type) for field in CHECKPOINT]
    return pa.Table.from_arrays(columns, schema=CHECKPOINT)
