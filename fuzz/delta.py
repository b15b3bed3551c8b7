"""Writes the corpus of Delta logs: `python -m fuzz.delta`. Entries and checkpoints of all actions, vectors, values."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from esker.delta import DeltaTable
from tests.delta_logs import PROTOCOL, add, commit, metadata, remove
from tests.test_delta_vectors import bitmap, z85

CORPUS = Path(__file__).parent / "corpus"
STATISTICS = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0, "p": 1}}


def actions() -> list[Any]:
    """One of each, with fields that nobody knows."""
    vector = {"storageType": "i", "pathOrInlineDv": z85(bitmap([1, 2])), "sizeInBytes": 34, "cardinality": 2}
    return [
        {"commitInfo": {"operation": "WRITE", "timestamp": 1}},
        PROTOCOL,
        metadata(partitionColumns=["p"], surprise={"x": [1, None]}),
        add("p=1/a%20b", partitionValues={"p": "1"}, stats=json.dumps(STATISTICS), tags={"k": "v"}),
        add("c", deletionVector=vector, baseRowId=7, odd=[{"deep": 1.5}]),
        remove("d", deletionTimestamp=2**41, partitionValues={"p": None}, size=3),
        {"txn": {"appId": "a", "version": 1, "lastUpdated": 3, "more": True}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        {"cdc": {"path": "_change_data/e", "partitionValues": {}, "size": 1, "dataChange": False}},
    ]


def put(target: str, name: str, data: bytes) -> None:
    """Writes an input."""
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main() -> None:
    """Writes all inputs."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder)
        put("delta_commit", "all", commit(table, 0, actions()).read_bytes())
        put("delta_commit", "bad_twice", b'{"add":{"path":"a"}}\n{"remove":{"path":"a"}}\n')
        log = table / "_delta_log"
        for version, struct in enumerate(("false", "true"), 1):
            properties = {"delta.checkpoint.writeStatsAsStruct": struct, "delta.checkpoint.writeStatsAsJson": "true"}
            commit(table, version, [metadata(configuration=properties, partitionColumns=["p"])])
            DeltaTable(table).create_checkpoint()
            data = (log / f"{version:020}.checkpoint.parquet").read_bytes()
            put("delta_checkpoint", f"struct_{struct}", data)
    for name, rows in {"few": [0, 7], "far": [1, 2**33], "many": list(range(0, 150_000, 50))}.items():
        put("delta_vector", name, bitmap(rows))
    inline = {"storageType": "i", "pathOrInlineDv": z85(bitmap([3])), "sizeInBytes": 30, "cardinality": 1}
    put("delta_vector_place", "inline", json.dumps(inline).encode())
    there = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    put("delta_vector_place", "relative", json.dumps({**there, "cardinality": 6}).encode())
    elsewhere = {**there, "storageType": "p", "pathOrInlineDv": "file:/elsewhere/x.bin", "cardinality": 6}
    put("delta_vector_place", "bad_elsewhere", json.dumps(elsewhere).encode())
    for name, text in {
        "number": "-1234567.890",
        "time": '"2024-01-31T12:34:56.789012Z"',
        "date": "2024-02-29",
        "object": '{"a":{"b":[1,2.5,null]},"c":"\\u00e9"}',
    }.items():
        put("delta_values", name, text.encode())


if __name__ == "__main__":
    main()
