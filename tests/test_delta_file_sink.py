"""Data files on their way to a store: small ones at once, large ones in pieces, none of them before its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pytest

from esker._native.store import Store
from esker.delta import write_deltalake
from esker.delta.write.data_files import DataFileWriter
from esker.delta.write.file_sink import PIECE, FileSink


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, 3 * PIECE + 5])
def test_what_is_written_is_there_at_the_end_and_not_before(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    store = Store(str(tmp_path))
    sink = FileSink(store, "folder/part")
    for start in range(0, size, 1_000_003):
        sink.write(memoryview(data)[start : start + 1_000_003])
        assert sink.held <= 2 * PIECE + 1_000_003
    assert store.list_paths() == []
    assert sink.size == sink.tell() == size
    sink.finish()
    assert store.get("folder/part") == data
    assert sink.held == 0
    # After its end it is no longer its own.
    sink.abort()
    assert store.get("folder/part") == data


@pytest.mark.parametrize("size", [1, 2 * PIECE])
def test_a_file_without_an_end_leaves_nothing(tmp_path: Path, size: int) -> None:
    sink = FileSink(Store(str(tmp_path)), "part")
    sink.write(b"x" * size)
    sink.abort()
    assert files(tmp_path) == []
    assert sink.held <= PIECE


def test_what_stops_a_write_halfway_leaves_nothing_of_large_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1.0]}))
    before = files(tmp_path)
    encode, calls = DataFileWriter._encode, []

    def failing(self: DataFileWriter, *arguments: object) -> None:
        encode(self, *arguments)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 3:
            assert len(files(tmp_path)) == len(before) + 1, "the file has begun"
            raise OSError("the disk is full")

    monkeypatch.setattr(DataFileWriter, "_encode", failing)
    rows = np.random.default_rng(1)
    schema = pa.schema([("x", pa.float64())])
    stream = (pa.record_batch([rows.random(1 << 20)], schema=schema) for _ in range(8))
    with pytest.raises(OSError, match="the disk is full"):
        write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(schema, stream), mode="append")
    assert len(calls) == 3
    assert files(tmp_path) == before


CODE = """
import sys
import pyarrow as pa, pyarrow.dataset, pyarrow.parquet
from esker.delta import DeltaTable
import esker.delta.change.update

def told(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024

table = DeltaTable(sys.argv[1])
open("/proc/self/clear_refs", "w").write("5")
before = told("VmRSS")
table.delete("k % 1000 = 7")
table.update({"k": "k + 1"}, predicate="k % 1000 = 8")
print(told("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told by /proc")
def test_a_copy_of_large_files_takes_a_part_of_their_size_in_memory(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3)
    columns = {name: numbers.random(1 << 23) for name in "abc"}
    deltalake.write_deltalake(tmp_path, pa.table({"k": numbers.integers(0, 1 << 40, 1 << 23), **columns}))
    size = sum(path.stat().st_size for path in files(tmp_path)) >> 20
    assert size > 230
    told = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(told.stdout) < 300, "two files of 100 MiB, each of them twice in memory, would not fit"
