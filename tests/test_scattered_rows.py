"""Many scattered rows: taken in parts side by side, and tested by filters piece by piece, in every version and type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from tests.samples import TYPES, column, same

ROWS = 20_000


def all_types() -> pa.Table:
    columns = {name: column(name, ROWS, nulls=0.1) for name in TYPES}
    numbers = np.arange(ROWS)
    words = pa.array([None if n % 13 == 0 else f"{n % 7}-ü-{n}" for n in range(ROWS)])
    return pa.table(
        {
            "id": numbers,
            **columns,
            "words": words,
            "lists": pa.array([None if n % 17 == 0 else [f"{n}"] * (n % 4) for n in range(ROWS)]),
            "place": pa.StructArray.from_arrays([pa.array(numbers % 90), words], ["n", "w"]),
            "vector": pa.FixedSizeListArray.from_arrays(np.random.default_rng(1).random(ROWS * 4), 4),
        }
    )


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_many_rows_come_in_the_order_asked_for(version: str, stable: bool, tmp_path: Path) -> None:
    table = all_types() if version != "legacy" else all_types().drop_columns(["place"])
    if version == "legacy":
        table = pa.table({name: table[name] for name in ("id", "words", "vector")})
    uri = str(tmp_path / "t.lance")
    dataset = esker.write_dataset(
        table, uri, data_storage_version=version, max_rows_per_file=15_000, enable_stable_row_ids=stable
    )
    dataset.delete("id % 10 = 3")
    table = table.filter(pc.not_equal(pa.array(np.arange(ROWS) % 10), 3))
    asked = np.random.default_rng(2).integers(0, table.num_rows, 1_500)
    same(table.take(asked), dataset.take(asked.tolist()))
    same(table.slice(100, 900), dataset.take(list(range(100, 1000))))


def plain(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "double": rng.normal(size=rows),
            "hash": pa.array(rng.integers(0, 2**63 - 1, rows)),
            "single": rng.random(rows, dtype=np.float32),
            "uuid": pa.array([rng.bytes(16) for _ in range(rows)], pa.binary(16)),
            "pair": pa.FixedSizeListArray.from_arrays(rng.random(rows * 2), 2),
        }
    )


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_values_that_lie_by_themselves_are_read_without_their_neighbours(version: str, tmp_path: Path) -> None:
    rows = 200_000
    table = plain(rows)
    dataset = esker.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version=version, compression="fast")
    asked = np.sort(np.random.default_rng(4).integers(0, rows, 1_200))
    same(table.take(asked), dataset.take(asked.tolist()))
    # Neighbours, all of a chunk, over the end of a chunk, the last rows.
    for rows_asked in (range(4090, 4100), range(8192, 12288), range(12000, 13000, 7), [rows - 1, 0, rows - 2]):
        same(table.take(list(rows_asked)), dataset.take(list(rows_asked)))
    dataset.io_stats()
    dataset.take(list(range(500, rows, 2000)), columns=["double"])
    read = dataset.io_stats().read_bytes
    assert read < 100 * 128, f"expected 100 doubles to take a few bytes each, found {read}"


def test_a_filter_that_keeps_few_rows_keeps_the_same_ones_in_pieces(tmp_path: Path) -> None:
    rows = 300_000
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "id": np.arange(rows),
            "key": pc.if_else(pa.array(rng.random(rows) < 0.02), None, pa.array(rng.integers(0, 1000, rows))),
            "word": pa.array([None if n % 19 == 0 else f"w{n % 2000}" for n in range(rows)]),
            "x": rng.random(rows),
        }
    )
    dataset = esker.write_dataset(table, str(tmp_path / "t.lance"))
    dataset.delete("id % 1000 < 5")
    table = table.filter(pc.greater_equal(pa.array(np.arange(rows) % 1000), 5))
    key, word, x = (pc.field(name) for name in ("key", "word", "x"))
    conditions = [
        (key == 7, "key = 7"),
        (key.is_null(), "key IS NULL"),
        ((key < 20) & (x < 0.3), "key < 20 AND x < 0.3"),
        (word == "w1234", "word = 'w1234'"),
        ((word == "w77") & (key < 500) & (x > 0.1), "word = 'w77' AND key < 500 AND x > 0.1"),
        (key == -1, "key = -1"),
        (key >= 0, "key >= 0"),
    ]
    for columns in (None, ["id"], ["key", "word"], ["x", "key"]):
        for expression, condition in conditions:
            expected = table.filter(expression)
            expected = expected if columns is None else expected.select(columns)
            # Twice: what was seen of the condition decides how it is asked.
            for _ in range(2):
                same(expected, dataset.to_table(columns=columns, filter=condition))
            assert dataset.count_rows(filter=condition) == expected.num_rows
            limited = dataset.to_table(columns=columns, filter=condition, limit=5, offset=3)
            same(expected.slice(3, 5), limited)
