"""Rows, and the ends of batches, wherever scans cut chunks: fixed widths, long values, gaps of deleted rows."""

from __future__ import annotations

import threading

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker

ROWS = 60_000
GAPS = {
    "none": [],
    "every other row": ["id % 2 = 1"],
    "whole chunks, first and last rows": ["id >= 8192 AND id < 24576", "id < 10", "id >= 59000"],
    "nearly all": ["id % 1000 < 990"],
}
FIXED = ["id", "none", "flag", "nothing", "one", "vector", "pair", "empty"]


def _table() -> pa.Table:
    random = np.random.RandomState(7)
    lengths = random.randint(0, 9, ROWS)
    # Long values without warning: alone, and so many that they are pages of their own.
    lengths[[50, 30_000]] = 100_000
    lengths[40_000:40_150] = 20_000
    texts = pa.array(["lorem ipsum " * (length // 12) + "x" * (length % 12) for length in lengths])
    floats = pa.array(random.standard_normal(ROWS * 16).astype(np.float32))
    numbers = pa.array(random.randint(0, 50, ROWS), pa.int32(), mask=random.random_sample(ROWS) < 0.1)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "none": pa.nulls(ROWS, pa.decimal128(20, 3)),
            "flag": random.randint(0, 2, ROWS).astype(bool),
            "nothing": pa.nulls(ROWS),
            "one": pa.array([bytes([row % 251]) for row in range(ROWS)], pa.binary(1)),
            "vector": pa.FixedSizeListArray.from_arrays(floats, 16),
            "pair": pa.StructArray.from_arrays([numbers, numbers.cast(pa.float64())], ["x", "y"]),
            "empty": pa.array([""] * ROWS),
            "text": texts,
        }
    )


TABLE = _table()


@pytest.fixture(scope="module", params=[(version, gaps) for version in ("2.0", "2.1", "2.2") for gaps in GAPS])
def scanned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    """A table of two fragments, with deleted rows and a column in files of its own, and its rows."""
    version, gaps = request.param
    uri = str(tmp_path_factory.mktemp("chunks") / "t.lance")
    dataset = esker.write_dataset(TABLE, uri, max_rows_per_file=50_000, data_storage_version=version, durable=False)
    dataset.add_columns({"late": "id * 2"})
    model = TABLE.append_column("late", pc.multiply(TABLE["id"], 2))
    for gap in GAPS[gaps]:
        dataset.delete(gap)
    ids = esker.dataset(uri).to_table(columns=["id"])["id"]
    assert ids.equals(lance.dataset(uri).to_table(columns=["id"])["id"])
    return uri, model.take(ids)


@pytest.mark.parametrize("columns", [FIXED, ["late", "text"], None], ids=["fixed", "texts", "all"])
def test_batches_end_where_their_size_says(scanned: tuple[str, pa.Table], columns: list[str] | None) -> None:
    """As pylance's do: at multiples of the size within each fragment."""
    uri, model = scanned
    expected = model if columns is None else model.select(columns)
    dataset = esker.dataset(uri)
    counts = [fragment.count_rows() for fragment in dataset.get_fragments()]
    held = []
    for size in (None, 300, 1000, 8192, 70_000):
        batches = list(dataset.to_batches(columns=columns, batch_size=size))
        if size is not None:
            ends = [min(size, count - start) for count in counts for start in range(0, count, size)]
            assert [batch.num_rows for batch in batches] == ends
        held.append(batches)
    theirs = [batch.num_rows for batch in lance.dataset(uri).to_batches(columns=["id"], batch_size=1000)]
    assert [batch.num_rows for batch in held[2]] == theirs
    # None was written over by what was read after it.
    for batches in held:
        assert pa.Table.from_batches(batches, expected.schema).equals(expected)


@pytest.mark.parametrize("size", [None, 1000])
def test_filters_and_limits_cut_the_same_rows(scanned: tuple[str, pa.Table], size: int | None) -> None:
    uri, model = scanned
    dataset = esker.dataset(uri)
    ids = model["id"].to_numpy()
    for condition, mask in {
        "id % 997 = 5": ids % 997 == 5,
        "id >= 8000 AND id < 41000": (ids >= 8000) & (ids < 41_000),
        "text >= 'lorem' AND flag": pc.and_(pc.greater_equal(model["text"], "lorem"), model["flag"]).to_numpy(),
        "pair.x < 25": pc.fill_null(pc.less(pc.struct_field(model["pair"].combine_chunks(), "x"), 25), False).to_numpy(
            zero_copy_only=False
        ),
    }.items():
        kept = model.filter(pa.array(mask))
        assert dataset.to_table(filter=condition, batch_size=size).equals(kept)
        assert dataset.count_rows(condition) == kept.num_rows
        assert dataset.to_table(filter=condition, batch_size=size, limit=50, offset=3).equals(kept.slice(3, 50))
    for offset, limit in [(0, 1), (49_000, 2000), (len(model) - 1, None), (37, 20_000)]:
        assert dataset.to_table(offset=offset, limit=limit, batch_size=size).equals(model.slice(offset, limit))


def test_threads_that_scan_at_once_keep_their_batches(scanned: tuple[str, pa.Table]) -> None:
    uri, model = scanned
    held: list[list[pa.RecordBatch]] = []

    def scan(size: int | None) -> None:
        dataset = esker.dataset(uri)
        held.extend(list(dataset.to_batches(batch_size=size)) for _ in range(2))

    threads = [threading.Thread(target=scan, args=(size,)) for size in (None, 1000, 8192)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 6
    assert all(pa.Table.from_batches(batches, model.schema).equals(model) for batches in held)
