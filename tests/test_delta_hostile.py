"""Logs whose JSON is not what it should be: each way into a table gives a value or one of esker's errors."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esker.delta import CommitProperties, DeltaTable, Transaction, write_deltalake
from esker.exceptions import EskerError
from tests.delta_logs import checkpoint

ROUNDS = int(os.environ.get("ESKER_HOSTILE_ROUNDS", "30"))
JUNK = [
    None,
    True,
    -1,
    2**63,
    1e308,
    "",
    "x",
    "{}",
    "[]",
    [],
    {},
    [1],
    {"a": 1},
    "\u0000",
    "2021-13-45",
    "NaN",
    {"": None},
]
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def _changed(value: Any, numbers: random.Random, depth: int = 0) -> Any:
    """A value of which one part, at any depth and within texts that are JSON as well, is something else."""
    if depth and numbers.random() < 0.15:
        return numbers.choice(JUNK)
    if isinstance(value, dict) and value:
        name = numbers.choice(sorted(value))
        found = value[name]
        if (drawn := numbers.random()) < 0.12:
            return {key: item for key, item in value.items() if key != name}
        if drawn < 0.2:
            return {**value, numbers.choice(["x", "path", "stats", "deletionVector", ""]): numbers.choice(JUNK)}
        if isinstance(found, str) and found[:1] in ("{", "[") and numbers.random() < 0.7:
            return {**value, name: json.dumps(_changed(json.loads(found), numbers, 1))}
        return {**value, name: _changed(found, numbers, depth + 1)}
    if isinstance(value, list) and value:
        at = numbers.randrange(len(value))
        return [*value[:at], _changed(value[at], numbers, depth + 1), *value[at + 1 :]]
    return numbers.choice(JUNK)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Sound tables: with partitions, a feed of changes and a transaction; with a checkpoint in JSON and a sidecar."""
    rows = pa.table({"id": [1, 2, 3], "p": ["a", "b", None], "s": [{"t": 1.5}, None, {"t": None}]})
    feed = tmp_path_factory.mktemp("feed") / "table"
    write_deltalake(feed, rows, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    properties = CommitProperties({"userMetadata": "x"}, app_transactions=[Transaction("app", 1, 5)])
    write_deltalake(feed, rows, mode="append", commit_properties=properties)
    write_deltalake(feed, rows.slice(0, 1), mode="overwrite", predicate="id = 1")

    side = tmp_path_factory.mktemp("sidecar") / "table"
    write_deltalake(side, rows)
    write_deltalake(side, rows, mode="append")
    write_deltalake(side, rows, mode="append")
    log = side / "_delta_log"
    said = [json.loads(line) for n in (0, 1) for line in (log / f"{n:020}.json").read_text().splitlines()]
    checkpoint(side, "_sidecars/one.parquet", [action for action in said if "add" in action])
    top = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["v2Checkpoint"],
                "writerFeatures": ["v2Checkpoint"],
            }
        },
        *(action for action in said if "metaData" in action),
        {"checkpointMetadata": {"version": 1}},
        {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 0}},
        {"txn": {"appId": "app", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    ]
    (log / f"{1:020}.checkpoint.{UUID}.json").write_text("\n".join(map(json.dumps, top)) + "\n")
    (log / f"{0:020}.json").unlink()
    assert DeltaTable(feed).count() == 5
    assert DeltaTable(side).count() == 9
    return [feed, side]


def _uses(path: Path) -> dict[str, Callable[[], object]]:
    def prune() -> object:
        return DeltaTable(path).file_uris(file_pruning_predicate=pc.field("id") > 2)

    def append() -> None:
        write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 2), mode="append")

    return {
        "rows": lambda: DeltaTable(path).to_pyarrow_table(),
        "files": lambda: (DeltaTable(path).file_uris(), DeltaTable(path).partitions()),
        "prune": prune,
        "actions": lambda: pa.table(DeltaTable(path).get_add_actions(flatten=True)),
        "words": lambda: (
            DeltaTable(path).metadata(),
            DeltaTable(path).protocol(),
            DeltaTable(path).schema().to_json(),
        ),
        "history": lambda: DeltaTable(path).history(),
        "time travel": lambda: DeltaTable(path).load_as_version("2022-01-01T00:00:00Z"),
        "feed": lambda: DeltaTable(path).load_cdf(starting_version=0).read_all(),
        "checkpoint": lambda: DeltaTable(path).create_checkpoint(),
        "append": append,
        "property": lambda: DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"}),
        "clean-up": lambda: DeltaTable(path).cleanup_metadata(),
    }


@pytest.mark.parametrize("seed", range(4))
def test_changed_json_is_read_or_refused(tables: list[Path], tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    refused = 0
    for number in range(ROUNDS):
        path = tmp_path / str(number)
        shutil.copytree(numbers.choice(tables), path)
        entry = numbers.choice(sorted((path / "_delta_log").glob("*.json")))
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        at = numbers.randrange(len(lines))
        lines[at] = _changed(lines[at], numbers)
        entry.write_text("\n".join(map(json.dumps, lines)))
        for name, use in _uses(path).items():
            try:
                use()
            except EskerError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{name} after {entry.name} has {lines[at]}") from error
        shutil.rmtree(path)
    assert refused
