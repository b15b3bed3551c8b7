"""Reads of values that files hold in few bytes take about as much memory as pylance's: texts that repeat."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.peaks import PEAK

ROWS = 300_000
TEXT_BYTES = 1200

PROGRAM = (
    PEAK
    + """
import sys
library, tiny, uri, expression = sys.argv[1:]
module = __import__(library)
module.dataset(tiny).to_table(filter="r = 0")
dataset = module.dataset(uri)
def drained(**options):
    rows = 0
    for batch in dataset.scanner(**options).to_batches():
        rows += batch.num_rows
    return rows
before = peak()
rows = eval(expression)
print(rows, peak() - before)
"""
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small one, and one of 360 MB in memory that has 2 MB of files."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(1)
    texts = pa.array([f"{number:0{TEXT_BYTES}d}" for number in range(100)], pa.large_utf8())
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "r": rng.permutation(ROWS),
            "t": texts.take(pa.array(rng.integers(0, 100, ROWS))),
        }
    )
    lance.write_dataset(table.slice(0, 100), folder / "tiny", data_storage_version="2.1")
    lance.write_dataset(table, folder / "texts", data_storage_version="2.1")
    return folder / "tiny", folder / "texts"


CASES = {
    "scan": ("drained()", ROWS),
    "a few rows by a cheap column": ("drained(filter='r % 1000 = 0')", ROWS // 1000),
    "half of the rows by a cheap column": ("drained(filter='r % 2 = 0')", ROWS // 2),
    "small batches": ("drained(filter='r % 1000 = 0', batch_size=1000)", ROWS // 1000),
    "a filter of the texts alone": ("drained(columns=['id'], filter=\"t like '%zz%'\")", 0),
    "a filter of the texts or another": ("drained(filter=\"t = 'x' or r = 5\")", 1),
    "a count by the texts": (f"dataset.count_rows('length(t) < {TEXT_BYTES}')", 0),
    "an update of a few rows": ("dataset.update({'id': '0'}, where='r % 1000 = 0')['num_rows_updated']", ROWS // 1000),
}


@pytest.mark.parametrize("case", CASES)
def test_a_read_of_texts_that_repeat_takes_no_more_memory_than_pylances(tables: tuple[Path, Path], case: str) -> None:
    expression, expected = CASES[case]
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    found = {}
    for library in ("lance", "esker"):
        command = [sys.executable, "-c", PROGRAM, library, *map(str, tables), expression]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        rows, grown = map(int, done.stdout.split())
        assert rows == expected
        found[library] = grown
    # They took up to 450 MB.
    assert found["esker"] < found["lance"] * 1.5 + (32 << 20), found


def test_a_batch_that_grows_is_not_in_memory_twice(tables: tuple[Path, Path]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    command = [sys.executable, "-c", PROGRAM, "esker", *map(str, tables), f"drained(batch_size={ROWS})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows, grown = map(int, done.stdout.split())
    assert rows == ROWS
    assert grown < ROWS * TEXT_BYTES * 1.3, grown


SUDDEN = {
    "drained()": 100_000 + 2_000,
    "drained(filter='r % 2 = 0')": (100_000 + 2_000) // 2,
    "drained(batch_size=100)": 100_000 + 2_000,
    "drained(columns=['r'], filter=\"t like '%9'\")": (100_000 + 2_000) // 10,
    'drained(filter="length(t) > 5")': 100_000 + 2_000,
    "dataset.count_rows(\"t like '%7'\")": (100_000 + 2_000) // 10,
}


@pytest.mark.parametrize("writer", ["esker", "lance", "lance, of few texts"])
@pytest.mark.parametrize("expression", SUDDEN)
def test_texts_that_become_long_suddenly_are_read_in_parts(
    tables: tuple[Path, Path], tmp_path: Path, expression: str, writer: str
) -> None:
    # 200 MB in memory in few bytes of files: in all pages of one chunk, or in one page, they would be there at once.
    short, long, size = 100_000, 2_000, 100_000
    schema = pa.schema([("r", pa.int64()), ("t", pa.large_utf8())])

    def batches() -> Iterator[pa.RecordBatch]:
        few = 10 if writer.endswith("few texts") else short
        yield pa.record_batch([range(short), [f"text {number % few}" for number in range(short)]], schema=schema)
        for start in range(short, short + long, 100):
            texts = [f"{number % min(few, 50):0{size}d}" for number in range(100)]
            yield pa.record_batch([range(start, start + 100), texts], schema=schema)

    if writer == "esker":
        esker.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path / "t", durable=False)
    else:
        table = pa.Table.from_batches(batches(), schema).combine_chunks()
        lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    command = [sys.executable, "-c", PROGRAM, "esker", str(tables[0]), str(tmp_path / "t"), expression]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    rows, grown = map(int, done.stdout.split())
    assert rows == SUDDEN[expression]
    assert grown < 0.75 * long * size, grown
