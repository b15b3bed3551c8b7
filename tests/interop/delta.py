"""Delta tables beside Spark with its own Delta: each writes on top of what the other wrote. Part of `make interop`.

`ESKER_INTEROP_TURNS` is how many turns each kind of table has.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

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


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["one", "partitioned"])
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_spark_reads_our_deletion_vectors_and_adds_to_them(
    spark: SparkDelta, tmp_path: Path, mapping: str, partition_by: list[str] | None
) -> None:
    path = tmp_path / "table"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": mapping}
    rows = pa.table({"id": range(20_000), "p": [number % 2 for number in range(20_000)]})
    write_deltalake(path, rows, partition_by=partition_by, configuration=properties)
    left = set(range(20_000))

    def same() -> None:
        assert (
            set(spark.read(path)["id"].to_pylist())
            == left
            == set(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
        )
        (counted,) = spark.rows(f"SELECT count(*) AS n, max(id) AS m FROM delta.`{path}`").to_pylist()
        assert counted == {"n": len(left), "m": max(left)}

    # Few rows are in the log itself, many in a file.
    DeltaTable(path).delete("id in (3, 4, 19999)")
    left -= {3, 4, 19999}
    assert not list(path.glob("*.bin"))
    same()
    DeltaTable(path).delete("id % 7 = 0 and id > 100")
    left -= {number for number in left if number % 7 == 0 and number > 100}
    assert list(path.glob("*.bin"))
    same()
    spark.run(f"DELETE FROM delta.`{path}` WHERE id % 11 = 0")
    left -= {number for number in left if number % 11 == 0}
    same()
    DeltaTable(path).update({"id": "id + 100000"}, predicate="id < 10")
    left = {number + 100_000 if number < 10 else number for number in left}
    same()
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).delete("id > 15000")
    left = {number for number in left if number <= 15_000}
    same()
