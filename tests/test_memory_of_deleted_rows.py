"""Where most rows are deleted, reads and compactions take no more memory than pylance's, or little."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.test_read_memory import PROGRAM

LITTLE = 64 << 20
NUMBERS, TEXTS, TEXT_BYTES = 1_200_000, 60_000, 6_000

COMPACTED = "(dataset.optimize.compact_files(materialize_deletions_threshold=0.0), module.dataset(uri).count_rows())[1]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers, of which few live behind many, and long texts, of which one in thirty does."""
    folder = tmp_path_factory.mktemp("tables")
    ids = np.arange(NUMBERS)
    numbers = esker.write_dataset(
        pa.table({"id": ids} | {f"c{i}": ids % (i + 2) for i in range(12)}), folder / "numbers"
    )
    numbers.delete(f"id >= {NUMBERS // 4} and id % 300 != 0")
    esker.write_dataset(pa.table({"r": [0]}), folder / "tiny")
    field = pa.field("text", pa.string(), metadata={"lance-encoding:compression": "zstd"})
    schema = pa.schema([pa.field("id", pa.int64()), field])

    def batch(start: int) -> pa.RecordBatch:
        rows = range(start, start + 2000)
        texts = [f"{row // 500:06d}" * (TEXT_BYTES // 6) for row in rows]
        return pa.record_batch([pa.array(rows, pa.int64()), pa.array(texts)], schema=schema)

    for version in ("2.0", "2.1"):
        batches = pa.RecordBatchReader.from_batches(schema, map(batch, range(0, TEXTS, 2000)))
        texts = esker.write_dataset(batches, folder / f"texts-{version}", data_storage_version=version)
        texts.delete("id % 30 != 1")
    return folder


@pytest.mark.parametrize(
    ("table", "expression"),
    [
        *(("numbers", expression) for expression in ("drained()", "drained(batch_size=1024)", COMPACTED)),
        ("numbers", "drained(filter='c3 >= 0', batch_size=1024)"),
        *((f"texts-{version}", "drained()") for version in ("2.0", "2.1")),
        *((f"texts-{version}", "drained(batch_size=64)") for version in ("2.0", "2.1")),
        *((f"texts-{version}", COMPACTED) for version in ("2.0", "2.1")),
    ],
)
def test_what_is_left_out_takes_little_memory(table: str, expression: str, folder: Path, tmp_path: Path) -> None:
    taken = []
    for library in ("esker", "lance"):
        uri = tmp_path / library
        shutil.copytree(folder / table, uri)
        arguments = [sys.executable, "-c", PROGRAM, library, str(folder / "tiny"), str(uri), expression]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True)
        rows, bytes_ = map(int, done.stdout.split())
        assert rows == (TEXTS // 30 if "texts" in table else NUMBERS // 4 + NUMBERS * 3 // 4 // 300)
        taken.append(bytes_)
    assert taken[0] <= max(taken[1], LITTLE), taken
