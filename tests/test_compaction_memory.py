"""A rewrite of fragments holds what it was allowed to: blobs, vectors, texts, thousands of columns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker

REWRITE = """
import os, sys, threading, psutil, pyarrow as pa, esker
from tests.rewriting import staged
uri, limit, copy = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
esker.write_dataset(pa.table({"x": range(100)}), uri + "-warm", mode="overwrite", max_rows_per_file=50)
staged(uri + "-warm")
process = psutil.Process()
before = process.memory_info().rss
peak = 0
done = threading.Event()
def watch():
    global peak
    while not done.wait(0.005):
        peak = max(peak, process.memory_info().rss)
thread = threading.Thread(target=watch); thread.start()
outcome = staged(uri, memory_limit=limit, copy_pages=copy)
done.set(); thread.join()
print(peak - before, outcome.num_rows, sum(os.path.getsize(uri + "/" + path) for path in outcome.files))
"""


def growth(uri: str, limit: int, *, copy: bool) -> tuple[int, int, int]:
    """How much the peak memory of a process of its own grew, and rows and bytes that it wrote."""
    # What the allocator keeps for a while after it was freed is not what a rewrite needs.
    environment = {**os.environ, "MIMALLOC_PURGE_DELAY": "0"}
    command = [sys.executable, "-c", REWRITE, uri, str(limit), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    grown, rows, written = done.stdout.split()
    return int(grown), int(rows), int(written)


def blobs() -> Iterator[pa.RecordBatch]:
    """Blobs of 1 MB, and one of 40 MB."""
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rng = np.random.default_rng(0)
    for number in range(30):
        values = [rng.bytes(1 << 20) for _ in range(8)]
        if number == 17:
            values[3] = rng.bytes(40 << 20)
        yield pa.RecordBatch.from_arrays([pa.array(values, pa.large_binary())], schema=pa.schema([field]))


def values_of_a_megabyte() -> Iterator[pa.RecordBatch]:
    """Binary values of 1 MB in pages."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        yield pa.RecordBatch.from_pydict({"b": pa.array([rng.bytes(1 << 20) for _ in range(8)], pa.large_binary())})


def vectors() -> Iterator[pa.RecordBatch]:
    """Vectors of 768 floats."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        numbers = rng.random(4000 * 768, np.float32)
        yield pa.RecordBatch.from_pydict({"v": pa.FixedSizeListArray.from_arrays(pa.array(numbers), 768)})


def texts() -> Iterator[pa.RecordBatch]:
    """Texts of 120 characters, many of them alike."""
    for number in range(50):
        rows = range(number * 40_000, (number + 1) * 40_000)
        yield pa.RecordBatch.from_pydict(
            {"s": [f"a text of some length: {i:080d}" for i in rows], "few": [f"{i % 7:0120d}" for i in rows]}
        )


def wide() -> Iterator[pa.RecordBatch]:
    """4,000 columns of numbers."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        yield pa.RecordBatch.from_pydict({f"c{i}": rng.integers(0, 1 << 60, 1000) for i in range(4000)})


CASES: dict[str, tuple[Callable[[], Iterator[pa.RecordBatch]], int, int]] = {
    "blobs": (blobs, 32 << 20, 72),
    "values of a megabyte": (values_of_a_megabyte, 32 << 20, 72),
    "vectors": (vectors, 32 << 20, 20_000),
    "texts": (texts, 32 << 20, 300_000),
    "wide": (wide, 32 << 20, 2_500),
}


@pytest.mark.parametrize("case", CASES)
def test_memory_stays_near_the_limit_whatever_the_data(case: str, uri: str) -> None:
    batches, limit, rows_per_file = CASES[case]
    schema = next(batches()).schema
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    # These texts would have hardly any bytes with general compression.
    goal: Literal["fast", "balanced"] = "fast" if case == "texts" else "balanced"
    esker.write_dataset(
        reader, uri, data_storage_version="2.2", max_rows_per_file=rows_per_file, durable=False, compression=goal
    )
    rows = lance.dataset(uri).count_rows()
    for copy in (True, False):
        grown, found, written = growth(uri, limit, copy=copy)
        assert found == rows
        # Far more than the limit went through; texts are compressed.
        assert written > (1 if case == "texts" else 3) * limit
        # Beside the limit: pages that are encoded, each with its values, its levels and its bytes; the metadata of
        # columns, of which a wide table has thousands.
        assert grown < limit + (100 << 20), f"{grown >> 20} MiB for {written >> 20} MiB, copied: {copy}"
