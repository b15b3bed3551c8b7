"""Reads that a value of 2.1 and 2.2 costs, once what leads to it is cached: one for fixed width, two for variable."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker

ROWS = 40_000
RANDOM = np.random.RandomState(3)
NULLS = RANDOM.random_sample(ROWS) < 0.1


def _lists(items: pa.Array) -> pa.Array:
    offsets = pa.array(np.arange(0, len(items) + 1, 4), pa.int32())
    return pa.ListArray.from_arrays(offsets, items)


def _structs(field: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([field], names=["x"], mask=pa.array(np.arange(len(field)) % 11 == 5))


NUMBERS = pa.array(RANDOM.randint(0, 1 << 60, size=ROWS), mask=NULLS)
WORDS = pa.array([None if null else f"{RANDOM.randint(0, 1 << 30):x}" for null in NULLS], pa.string())
FEW = pa.array(np.array(["red", "green", "blue"], object)[RANDOM.randint(0, 3, size=ROWS)], pa.string())
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array(RANDOM.random_sample(2000 * 128).astype(np.float32)), 128)
LARGE = pa.array([None if i % 9 == 0 else RANDOM.bytes(2000) for i in range(4000)], pa.binary())

COLUMNS = {
    "numbers": (NUMBERS, 1),
    "words": (WORDS, 2),
    "dictionary": (FEW, 1),
    "vectors": (VECTORS, 1),
    "nullable vectors": (
        pa.array([None if i % 5 == 0 else v for i, v in enumerate(VECTORS.to_pylist())], VECTORS.type),
        1,
    ),
    "large": (LARGE, 2),
    "structs": (_structs(NUMBERS), 1),
    "lists": (_lists(NUMBERS), 1),
    "lists of words": (_lists(WORDS), 2),
    "lists of structs of lists": (_lists(_structs(_lists(NUMBERS))), 1),
    "lists of vectors": (_lists(VECTORS), 1),
    "lists of large": (_lists(LARGE), 2),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_value_costs_as_many_reads_as_promised(version: str, name: str, uri: str) -> None:
    column, most = COLUMNS[name]
    lance.write_dataset(pa.table({"c": column}), uri, data_storage_version=version)
    dataset = esker.dataset(uri)
    # What leads to values: the file's metadata, and of each page the sizes of its chunks, its index, its dictionary.
    dataset.take(list(range(0, len(column), max(2, len(column) // 500))))
    for row in RANDOM.randint(0, len(column), size=20).tolist():
        dataset.io_stats()
        found = dataset.take([row])
        cost = dataset.io_stats()
        assert found["c"].to_pylist() == column.slice(row, 1).to_pylist()
        assert cost.read_iops <= most
        assert cost.read_bytes < 80_000, "the chunk that holds the value, not its page"


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_scan_reads_each_page_once(version: str, uri: str) -> None:
    table = pa.table({"a": NUMBERS, "b": WORDS, "c": FEW})
    lance.write_dataset(table, uri, data_storage_version=version)
    dataset = esker.dataset(uri)
    dataset.count_rows()
    dataset.io_stats()
    assert dataset.to_table().equals(lance.dataset(uri).to_table())
    cost = dataset.io_stats()
    # A small table: one request for its end, which is its metadata, and no more than one for each column and chunk (a
    # dictionary is another), of which there are two: the first one tells how long texts are.
    assert cost.read_iops <= 8
    assert dataset.to_table(columns=["a", "c"]).num_rows == table.num_rows
    assert dataset.io_stats().read_iops <= 2
