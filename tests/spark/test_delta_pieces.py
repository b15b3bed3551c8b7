"""Large files of Delta tables are cut between row groups: each row is read once, whatever the log says of sizes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import esker.spark
from esker.delta import DeltaTable, write_deltalake
from esker.delta.read.open_parquet import OpenParquet
from esker.spark import delta_reader
from esker.spark.partitions import descriptions, from_descriptions
from esker.spark.planned_read import plan_read

ROWS = 1_000


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_reader, "_LEAST_PIECE_BYTES", 1)


def made(path: Path, group: int, *, nested: bool = False, vectors: bool = False) -> str:
    uri = str(path / "t")
    numbers = pa.array(range(ROWS), pa.int64())
    table = pa.table({"id": numbers, "name": [f"n{i}" for i in range(ROWS)]})
    if nested:
        rows = pa.array([{"x": [i, None]} if i % 3 else None for i in range(ROWS)])
        table = pa.table({"s": rows, "id": numbers})
    configuration = {"delta.enableDeletionVectors": "true"} if vectors else {}
    write_deltalake(uri, table, configuration=configuration)
    # As other writers have it: one file with many row groups.
    file = next(Path(uri).glob("*.parquet"))
    pq.write_table(pq.read_table(file), file, row_group_size=group)
    entry = Path(uri, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size
    entry.write_text("\n".join(map(json.dumps, actions)) + "\n")
    return uri


def read(uri: str, size: int, **options: str) -> tuple[list[dict[str, Any]], int]:
    plan = plan_read({"path": uri, "bytesPerPartition": str(size), **options})
    rows, parts = [], plan.partitions(1)
    for part in parts:
        # As a task gets it.
        for batch in plan.reader.batches(from_descriptions(_described(part))):
            rows += batch.to_pylist()
    return rows, len(parts)


def _described(part: Any) -> Any:
    for value in descriptions(part):
        yield pa.RecordBatch.from_arrays([pa.array([value], pa.binary())], names=["partition"])


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(group=st.integers(1, ROWS), size=st.integers(1_000, 40_000), nested=st.booleans())
def test_each_row_is_in_one_piece(tmp_path_factory: Any, group: int, size: int, nested: bool) -> None:
    uri = made(tmp_path_factory.mktemp("pieces"), group, nested=nested)
    rows, _ = read(uri, size)
    assert [row["id"] for row in rows] == list(range(ROWS))
    assert rows == DeltaTable(uri).to_pyarrow_table().to_pylist()


@pytest.mark.usefixtures("small_pieces")
def test_pieces_keep_filters_deleted_rows_and_counts(tmp_path: Path) -> None:
    uri = made(tmp_path, 100, vectors=True)
    DeltaTable(uri).delete("id % 2 = 0 OR id >= 900")
    rows, pieces = read(uri, 1_000)
    assert pieces > 5
    assert [row["id"] for row in rows] == list(range(1, 900, 2))
    rows, _ = read(uri, 1_000, filter="id > 250 AND name != 'n301'", columns="id")
    assert [row["id"] for row in rows] == [i for i in range(251, 900, 2) if i != 301]
    plan = plan_read({"path": uri, "bytesPerPartition": "1000", "filter": "id > 250"})
    assert plan.reader.count(plan.partitions(1)) == 325


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("told", [1, 3_000, 10**9])
def test_a_log_that_is_wrong_about_a_size_loses_no_row(tmp_path: Path, told: int) -> None:
    uri = made(tmp_path, 50)
    entry = Path(uri, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = told
    entry.write_text("\n".join(map(json.dumps, actions)) + "\n")
    rows, _ = read(uri, max(500, told // 7))
    assert [row["id"] for row in rows] == list(range(ROWS))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("by", ["read", "option"])
def test_spark_reads_one_file_by_several_tasks(spark: Any, tmp_path: Path, by: str) -> None:
    uri = made(tmp_path, 100)
    if by == "read":
        frame = esker.spark.read(spark, uri, bytes_per_partition=2_000).to_df()
        assert frame.rdd.getNumPartitions() > 3
    else:
        frame = spark.read.format("esker").option("bytesPerPartition", 2_000).load(uri)
    assert sorted(row.id for row in frame.collect()) == list(range(ROWS))


def test_small_files_are_whole(tmp_path: Path) -> None:
    assert read(made(tmp_path, 100), 1)[1] == 1


@pytest.mark.parametrize(("dictionary", "data", "place"), [(4, 90, 4), (None, 90, 90), (-7, 90, 0), (None, -7, 0)])
def test_a_row_group_of_a_footer_that_lies_has_a_place_in_some_piece(
    dictionary: int | None, data: int, place: int
) -> None:
    column = SimpleNamespace(
        dictionary_page_offset=dictionary, data_page_offset=data, has_dictionary_page=dictionary is not None
    )
    group = SimpleNamespace(num_rows=1, num_columns=1, column=lambda _: column)
    metadata = SimpleNamespace(num_row_groups=1, row_group=lambda _: group)
    opened: Any = SimpleNamespace(metadata=metadata)
    assert OpenParquet(opened).place(0) == place
