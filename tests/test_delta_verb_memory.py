"""What deletes, updates and merges take of memory and of temporary files: one budget, whatever table and source are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from esker import exceptions
from esker._native.merge import DiskQuota, MergeSource, RowPartitions
from esker.delta import DeltaTable, write_deltalake

LIMIT = 192
CODE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.dataset, pyarrow.parquet
from esker.delta import DeltaTable, WriterProperties, write_deltalake
import esker.delta.change.update, esker.delta.merge.run

path, case, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20
random = np.random.default_rng(1)

def told(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024

def merge(source, on="t.id = s.id"):
    merger = table.merge(source, on, "s", "t", memory_limit=limit)
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()["num_output_rows"]

def batches():
    for start in range(0, 3_000_000, 100_000):
        ids = np.arange(start, start + 100_000) * 2
        yield pa.record_batch([ids, random.random(100_000)], names=["id", "v"])

if case == "wide":
    columns = {f"c{n}": random.random(100_000) for n in range(120)}
    write_deltalake(path, pa.table({"id": np.arange(100_000), **columns}))
    del columns
    few = pa.table({"id": np.arange(0, 200_000, 40), **{f"c{n}": random.random(5_000) for n in range(120)}})
    run = lambda: merge(few)
elif case == "texts":
    words = pa.array([f"{n:05}" * 600 for n in range(50)])
    schema = pa.schema([("id", pa.int64()), ("t", pa.string())])
    rows = (
        pa.record_batch([np.arange(n, n + 5_000), words.take(pa.array(random.integers(0, 50, 5_000)))], schema=schema)
        for n in range(0, 150_000, 5_000)
    )
    one = WriterProperties(max_row_group_size=1 << 20)
    write_deltalake(path, pa.RecordBatchReader.from_batches(schema, rows), writer_properties=one)
    run = lambda: table.update({"t": "concat(t, '!')"}, predicate="id % 100 = 8", memory_limit=limit)
elif case == "pairs":
    write_deltalake(path, pa.table({"id": np.ones(20_000, int), "v": np.arange(20_000)}))
    many = pa.table({"id": np.ones(500, int), "v": np.arange(500)})
    run = lambda: (merge(many, "t.id = s.id and t.v = s.v + 1"), merge(many, "t.v > s.v + 50 and t.v < s.v + 52"))
else:
    write_deltalake(path, pa.table({"id": np.arange(500_000), "v": random.random(500_000)}))
    run = lambda: merge(pa.RecordBatchReader.from_batches(pa.schema([("id", "int64"), ("v", "float64")]), batches()))

table = DeltaTable(path)
pa.default_memory_pool().release_unused()
open("/proc/self/clear_refs", "w").write("5")
before = told("VmRSS")
run()
print(told("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told by /proc")
@pytest.mark.parametrize("case", ["wide", "texts", "pairs", "source"])
def test_a_verb_stays_within_its_limit(tmp_path: Path, case: str) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path / "table"), case, str(LIMIT)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(found.stdout) < LIMIT


def test_less_memory_than_a_verb_needs_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    with pytest.raises(exceptions.InvalidArgumentError, match="memory_limit of 201326592"):
        table.delete("id = 1", memory_limit=1000)
    with pytest.raises(exceptions.InvalidArgumentError, match="memory_limit"):
        table.update({"id": "2"}, memory_limit=0)
    with pytest.raises(exceptions.InvalidArgumentError, match="memory_limit"):
        table.merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t", memory_limit=1 << 20)
    assert table.delete("id = 1", memory_limit=192 << 20)["num_deleted_rows"] == 1


def test_temporary_files_share_their_limit() -> None:
    quota = DiskQuota(200_000)
    rows = pa.table({"t": ["x" * 5000] * 20})
    source = MergeSource(rows, memory_limit=100, disk=quota)
    assert quota.used == source.spilled_bytes > 100_000
    parts = RowPartitions(rows.schema, 2, memory_limit=10, disk=quota)
    (batch,) = rows.to_batches()
    with pytest.raises(exceptions.InvalidArgumentError, match="at most 200000 bytes of temporary files"):
        parts.push_to(batch, 1)
    del source
    assert quota.used == 0
    RowPartitions(rows.schema, 2, memory_limit=10, disk=quota).push_to(batch, 1)
