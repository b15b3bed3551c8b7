"""Columns of Arrow's dictionary type whose items are large: batches share them, read or written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.peaks import PEAK

MB = 1 << 20
ITEMS = pa.array([chr(65 + number) * MB for number in range(20)])


def _column(rows: int, seed: int = 1) -> pa.Array:
    keys = pa.array(np.random.default_rng(seed).integers(0, len(ITEMS), rows), pa.int32())
    return pa.DictionaryArray.from_arrays(keys, ITEMS)


SHAPES: dict[str, Any] = {
    "flat": lambda column: column,
    "lists": lambda column: pa.ListArray.from_arrays(pa.array(range(len(column) + 1), pa.int32()), column),
    "structs": lambda column: pa.StructArray.from_arrays([column, pa.array(range(len(column)))], ["d", "n"]),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", [lance, esker])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_not_cut_by_the_items_that_they_share(tmp_path: Path, shape: str, writer: Any, version: str) -> None:
    rows = 20_000
    column = _column(rows)
    table = pa.table({"c": SHAPES[shape](column), "id": range(rows)})
    writer.write_dataset(table, tmp_path / "t", data_storage_version=version)
    found = esker.dataset(tmp_path / "t")
    for read in (found.to_table(), found.to_table(filter="id >= 0"), found.take(list(range(rows)))):
        assert read.num_rows == rows
        assert read["c"].num_chunks <= 16
        firsts = [value for chunk in read["c"].chunks for value in _firsts(chunk)]
        assert firsts == [ITEMS[key.as_py()].as_py()[0] for key in column.indices]


def _firsts(chunk: pa.Array) -> list[str]:
    """The first letters of all items of an array, without copies of the items."""
    values = (
        chunk.flatten() if pa.types.is_list(chunk.type) else chunk.field(0) if pa.types.is_struct(chunk.type) else chunk
    )
    letters = [item.as_py()[0] for item in values.dictionary]
    return [letters[key] for key in values.indices.to_pylist()]


WRITES = (
    PEAK
    + """
import sys
import numpy as np, pyarrow as pa, esker
uri, version, same = sys.argv[1], sys.argv[2], sys.argv[3] == "same"
pool = pa.array([chr(65 + number) * 200_000 for number in range(10)])
def batches():
    for number in range(150):
        items = pool if same else pa.array([chr(65 + n) * 200_000 + str(number) for n in range(10)])
        keys = pa.array(np.full(10, number % 10), pa.int32())
        yield pa.record_batch({"c": pa.DictionaryArray.from_arrays(keys, items)})
kind = pa.schema([("c", pa.dictionary(pa.int32(), pa.string()))])
esker.write_dataset(pa.RecordBatchReader.from_batches(kind, []), uri, data_storage_version=version)
before = peak()
esker.write_dataset(pa.RecordBatchReader.from_batches(kind, batches()), uri, mode="append")
print(peak() - before)
"""
)


@pytest.mark.parametrize("items", ["same", "others"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_batches_that_wait_for_their_page_share_the_items(tmp_path: Path, version: str, items: str) -> None:
    """Batches of ten rows, each with the same 2 MB of items, or with others: all waited with their own, 300 MB."""
    uri = str(tmp_path / "t")
    done = subprocess.run(
        [sys.executable, "-c", WRITES, uri, version, items], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 150 * MB
    for library in (lance, esker):
        read = library.dataset(uri).to_table()
        letters = [value for chunk in read["c"].chunks for value in _firsts(chunk)]
        assert letters == [chr(65 + number % 10) for number in range(150) for _ in range(10)]
    if items == "same":
        assert sum(path.stat().st_size for path in Path(uri, "data").iterdir()) < 8 * MB
