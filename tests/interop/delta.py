"""Delta tables beside Spark with its own Delta: each writes on top of what the other wrote. Part of `make interop`.

`ESKER_INTEROP_TURNS` is how many turns each kind of table has.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .delta_spark import SparkDelta
from .delta_turns import Turns

TURNS = int(os.environ.get("ESKER_INTEROP_TURNS", "12"))
SEED = int(os.environ.get("ESKER_INTEROP_SEED", "1"))
KINDS = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "mapped by id": {"delta.columnMapping.mode": "id"},
    "times": {"delta.enableInCommitTimestamps": "true"},
    "checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "structs": {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
    "all": {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "4",
        "delta.enableChangeDataFeed": "true",
        "delta.enableTypeWidening": "true",
    },
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDelta]:
    """The peer."""
    with SparkDelta(tmp_path_factory.mktemp("spark")) as peer:
        yield peer


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "theirs"])
@pytest.mark.parametrize("kind", KINDS)
def test_turns(spark: SparkDelta, tmp_path: Path, kind: str, ours: bool) -> None:
    numbers = random.Random(f"{SEED} {kind} {ours}")
    partition_by = numbers.choice([[], ["p"], ["day", "p"]])
    turns = Turns(spark, tmp_path / "table", numbers, partition_by, KINDS[kind], ours)
    turns.create()
    for number in range(TURNS):
        turns.turn()
        if number % 5 == 4:
            turns.compare()
    turns.compare()
