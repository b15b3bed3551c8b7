"""What the driver holds and sends: numbers of fragments and paths of files, and nothing that every task gets again."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker._native.table import DataFile, Fragment, Transaction
from esker.commit import commit
from esker.delta import write_deltalake
from esker.lance import LanceCommit, LanceLog
from esker.spark.partitions import descriptions
from esker.spark.planned_read import plan_read
from esker.spark.source import EskerSource
from tests.peaks import forget_peak, peak
from tests.spark.jobs import planned, staged

FRAGMENTS = 100_000
ROW = pa.table({"id": pa.array([1], pa.int64())})
_ADD = {
    "partitionValues": {},
    "size": 1 << 20,
    "modificationTime": 1,
    "dataChange": True,
    "stats": json.dumps({"numRecords": 1000, "minValues": {"id": 0}, "maxValues": {"id": 9}, "nullCount": {"id": 0}}),
}


def _lance(uri: str) -> None:
    (like,) = esker.write_dataset(ROW, uri)._table.fragments[0].files
    known = (like.fields, like.column_indices, like.file_major_version, like.file_minor_version, 1 << 20, None)
    made = [Fragment(0, files=[DataFile(f"{n:032x}.lance", *known)], physical_rows=1000) for n in range(FRAGMENTS)]
    commit(LanceCommit(LanceLog.at(uri), Transaction.append(1, made)))


def _delta(uri: str) -> None:
    write_deltalake(uri, ROW)
    lines = (json.dumps({"add": {**_ADD, "path": f"part-{n:032x}.parquet"}}) for n in range(FRAGMENTS))
    Path(uri, "_delta_log", f"{1:020}.json").write_text("\n".join(lines))


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_hundred_thousand_fragments_are_planned_in_seconds_and_little_memory(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    (_lance if kind == "lance" else _delta)(uri)
    before = forget_peak()
    started = time.process_time()
    source = EskerSource({"path": uri})
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    parts = reader.partitions()
    sizes = [len(pickle.dumps(part)) for part in parts]
    # Processor time: the machine may be busy with other tests.
    assert time.process_time() - started < 5
    assert peak() - before < 500_000_000
    # 26 of a MiB each, and what it costs to open them, make a partition.
    assert len(parts) == -(-(FRAGMENTS + 1) // 26)
    # What every task gets, and what each of them gets.
    assert len(pickle.dumps(reader)) < 4096
    assert max(sizes) < 8192
    # The same by `esker.spark.read`.
    started = time.process_time()
    plan = plan_read({"path": uri})
    told = [value for part in plan.partitions(None) for value in descriptions(part)]
    assert time.process_time() - started < 5
    assert len(told) == len(parts)
    assert max(map(len, told)) < 8192


def test_files_of_a_task_that_died_are_found_by_a_clean_up(tmp_path: Path) -> None:
    from datetime import timedelta

    from pyspark.sql import types as T

    uri = str(tmp_path / "t")
    esker.write_dataset(ROW, uri)
    writer = planned(uri, T.StructType().add("id", T.LongType()))
    # Two attempts of one task, of which one is lost with its executor: nobody commits its files, nobody deletes them.
    lost, won = (staged(writer, [ROW.to_batches()])[0] for _ in range(2))
    writer.commit([won])
    dataset = esker.dataset(uri)
    assert dataset.count_rows() == 2
    files = {path.name for path in Path(uri, "data").iterdir()}
    assert len(files) == 3
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert len(list(Path(uri, "data").iterdir())) == 2
    assert esker.dataset(uri).to_table()["id"].to_pylist() == [1, 1]
    assert lost != won


def test_files_of_a_task_that_died_are_found_by_a_vacuum_of_deltalake(tmp_path: Path) -> None:
    import deltalake
    from pyspark.sql import types as T

    uri = str(tmp_path / "t")
    write_deltalake(uri, ROW)
    writer = planned(uri, T.StructType().add("id", T.LongType()))
    lost, won = (staged(writer, [ROW.to_batches()])[0] for _ in range(2))
    writer.commit([won])
    assert len(list(Path(uri).glob("*.parquet"))) == 3
    vacuum = deltalake.DeltaTable(uri).vacuum
    gone = vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert [path for path in gone if path in lost.adds] == gone != []
    assert len(list(Path(uri).glob("*.parquet"))) == 2
    assert deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist() == [1, 1]
