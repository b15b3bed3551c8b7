"""Scans of tables of which many short runs of rows are deleted: what is read to be left out never comes out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.random_columns import RandomColumns
from tests.rewriting import same
from tests.test_compaction_files import ALL_VERSIONS, VERSIONS, random_table

SEEDS = [0, 1, 3, 4]


def gone_rows(rng: random.Random, rows: int) -> np.ndarray:
    """Which rows to delete: short runs, alone or behind long ones that live or do not."""
    gone = np.zeros(rows, bool)
    at = rng.choice([0, 0, rows // 3])
    lives, dies = rng.choice([(1, 1), (1, 4), (9, 1), (1, 90), (700, 1), (3, 3)])
    while at < rows:
        at += rng.randint(1, 2 * lives)
        end = at + rng.randint(1, 2 * dies)
        gone[at:end] = True
        at = end
        if rng.random() < 0.002:
            at += rng.randint(0, 6000)
        elif rng.random() < 0.002:
            gone[at : at + 6000] = True
    gone[rng.randrange(rows)] = False
    return gone


def table_with_gaps(uri: str, seed: int, version: str) -> pa.Table:
    """Writes a random table, deletes rows of it, and returns the others."""
    source, rng = RandomColumns(seed), random.Random(seed)
    rows = rng.choice([3000, 20_000])
    table = random_table(source, rng, version, rows)
    size = rng.choice([rows, rows // 3])
    esker.write_dataset(table, uri, max_rows_per_file=size, data_storage_version=version, durable=False)
    gone = gone_rows(rng, rows)
    dataset = esker.dataset(uri)
    numbers = np.flatnonzero(gone)
    dataset.delete(f"id in ({', '.join(map(str, numbers))})")
    return table.take(np.flatnonzero(~gone))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_live_come_out(tmp_path: Path, seed: int, version: str) -> None:
    uri = str(tmp_path / "t")
    kept = table_with_gaps(uri, seed, version)
    rng = random.Random(seed)
    dataset = esker.dataset(uri)
    names = rng.sample(kept.column_names, rng.randint(1, kept.num_columns))
    ids = kept["id"].to_numpy()
    first, last = sorted((int(rng.choice(ids)), int(rng.choice(ids))))
    filters: dict[str | None, np.ndarray] = {
        None: np.ones(len(ids), bool),
        "id % 3 = 1": ids % 3 == 1,
        "id % 97 = 5": ids % 97 == 5,
        f"id >= {first} and id <= {last}": (ids >= first) & (ids <= last),
    }
    for condition, mask in filters.items():
        expected = kept.filter(pa.array(mask))
        assert dataset.count_rows(condition) == expected.num_rows
        for columns in (None, names, ["id"]):
            wanted = expected if columns is None else expected.select(columns)
            for size in (None, rng.choice([100, 1000])):
                options: dict[str, Any] = {"filter": condition, "columns": columns, "batch_size": size}
                assert same(dataset.to_table(**options), wanted) is None
                offset, limit = rng.randint(0, len(wanted)), rng.randint(1, len(wanted) + 1)
                found = dataset.to_table(**options, offset=offset, limit=limit)
                assert same(found, wanted.slice(offset, limit)) is None
    if version != "0.1":
        assert lance.dataset(uri).to_table(columns=["id"]).equals(kept.select(["id"]))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_keep_their_addresses(tmp_path: Path, seed: int, version: str) -> None:
    """Those of one fragment, whose addresses are what `id` was."""
    uri = str(tmp_path / "t")
    rows = 30_000
    table = pa.table({"id": np.arange(rows), "text": [f"text {row % 700}" for row in range(rows)]})
    esker.write_dataset(table, uri, data_storage_version=version, durable=False)
    gone = gone_rows(random.Random(seed), rows)
    esker.dataset(uri).delete(f"id in ({', '.join(map(str, np.flatnonzero(gone)))})")
    dataset = esker.dataset(uri)
    for condition in (None, "id % 5 = 2", "_rowaddr % 2 = 1", "text = 'text 7'"):
        found = dataset.to_table(filter=condition, with_row_id=True, with_row_address=True)
        assert found["_rowaddr"].equals(found["id"].cast(pa.uint64()))
        assert found["_rowid"].equals(found["_rowaddr"])
        assert not gone[found["id"].to_numpy()].any()
    assert dataset.count_rows() == int((~gone).sum())
    everything = dataset.scanner(columns=["id"], with_row_id=True, include_deleted_rows=True).to_table()
    assert everything["id"].to_pylist() == list(range(rows))
    assert everything["_rowid"].null_count == int(gone.sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_leaves_out_what_was_deleted(tmp_path: Path, seed: int, version: str) -> None:
    uri = str(tmp_path / "t")
    kept = table_with_gaps(uri, seed + 50, version)
    esker.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0, num_threads=2)
    dataset = esker.dataset(uri)
    assert all(fragment.num_deletions == 0 for fragment in dataset.get_fragments())
    assert same(dataset.to_table(), kept) is None
