"""Tables of many columns with small pages take about as much memory as with pylance, and each byte is read once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.test_read_memory import PROGRAM

COLUMNS = 1_500
ROWS = 3_000
"""Of a fragment; a page of 60 bits has 22 KB."""
FRAGMENTS = 4

CASES = {
    "scan": ("drained()", ROWS * FRAGMENTS),
    "take": (f"dataset.take(list(range(0, {ROWS * FRAGMENTS}, 300))).num_rows", ROWS * FRAGMENTS // 300),
    "a few rows behind many": (f"dataset.to_table(limit=10, offset={ROWS * 2}).num_rows", 10),
    "a few rows by a filter": ("dataset.to_table(filter='r % 300 = 0').num_rows", ROWS * FRAGMENTS // 300),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small one, and one of 130 MB."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(1)
    for fragment in range(FRAGMENTS):
        rows = {"r": np.arange(ROWS) + fragment * ROWS}
        rows |= {f"c{number}": rng.integers(0, 1 << 60, ROWS) for number in range(COLUMNS)}
        table = pa.table(rows)
        mode = "append" if fragment else "overwrite"
        lance.write_dataset(table, folder / "wide", mode=mode, data_storage_version="2.1")
    lance.write_dataset(table.slice(0, 10), folder / "tiny", data_storage_version="2.1")
    return folder / "tiny", folder / "wide"


@pytest.mark.parametrize("case", CASES)
def test_a_wide_table_of_small_pages_takes_about_pylances_memory(tables: tuple[Path, Path], case: str) -> None:
    expression, expected = CASES[case]
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    found = {}
    for library in ("lance", "esker"):
        command = [sys.executable, "-c", PROGRAM, library, *map(str, tables), expression]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        rows, found[library] = map(int, done.stdout.split())
        assert rows == expected
    # Pages were read whole for each chunk, and kept: more than twice as much.
    assert found["esker"] < found["lance"] * 1.25 + (32 << 20), found


@pytest.mark.parametrize("case", CASES)
def test_a_wide_table_of_small_pages_is_read_once(tables: tuple[Path, Path], case: str) -> None:
    found = {}
    for library in (lance, esker):
        dataset = library.dataset(tables[1])
        dataset.io_stats_incremental()
        expression = CASES[case][0].replace("drained()", "[*dataset.to_batches()]")
        eval(expression, {"dataset": dataset})
        found[library.__name__] = dataset.io_stats_incremental().read_bytes
    assert found["esker"] < found["lance"] * 1.1, found
