"""Rewrites of rows of which every few are deleted, whatever their encoding and however little is read at a time."""

from __future__ import annotations

from collections.abc import Callable

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker
from tests.rewriting import rewritten, same

ROWS = 60_000


def _texts(ids: np.ndarray) -> pa.Array:
    """Strings of symbols."""
    return pa.array([f"a note about {i} and what there is to say of it" for i in ids])


def _escaped(ids: np.ndarray) -> pa.Array:
    """Symbols among bytes that have none."""
    return pa.array([f"note {i}\u00e9\u4e2d{chr(0x4E00 + i % 3000)}" if i % 5 else None for i in ids])


def _long(ids: np.ndarray) -> pa.Array:
    """Texts that lie by themselves."""
    return pa.array([f"{i:08d} " * (20 + i % 60) for i in ids], pa.large_string())


def _many(ids: np.ndarray) -> pa.Array:
    """A dictionary of thousands, which is part of each page."""
    return pa.array([f"customer {i * 7919 % 10_003}" for i in ids])


def _vectors(ids: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(ids, 80).astype(np.float32)), 80)


COLUMNS: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "texts": _texts,
    "escaped": _escaped,
    "long": _long,
    "many": _many,
    "few": lambda ids: pa.array([f"city {i % 97}" for i in ids]),
    "numbers": lambda ids: pa.array(ids * 3),
    "runs": lambda ids: pa.array(ids // 500),
    "nulls": lambda ids: pa.array([int(i) if i % 3 else None for i in ids]),
    "lists": lambda ids: pa.array([[f"item {i}", "x"] if i % 4 else [] for i in ids]),
    "vectors": _vectors,
}


@pytest.mark.parametrize("memory_limit", [1 << 20, 512 << 20])
@pytest.mark.parametrize("writer", ["esker", "pylance"])
@pytest.mark.parametrize("column", COLUMNS)
def test_rows_of_which_every_few_are_deleted_are_rewritten(
    column: str, writer: str, memory_limit: int, uri: str
) -> None:
    ids = np.arange(ROWS)
    table = pa.table({"id": ids, column: COLUMNS[column](ids)})
    if writer == "esker":
        esker.write_dataset(table, uri, max_rows_per_file=ROWS // 2, data_storage_version="2.2", durable=False)
    else:
        lance.write_dataset(table, uri, max_rows_per_file=ROWS // 2, data_storage_version="2.2")
    esker.dataset(uri).delete("id % 10 = 3 or (id > 20000 and id % 3 = 1) or (id > 50000 and id % 7 > 0)")
    gone = (ids % 10 == 3) | ((ids > 20000) & (ids % 3 == 1)) | ((ids > 50000) & (ids % 7 > 0))
    expected = table.take(pa.array(ids[~gone]))
    outcome = rewritten(uri, memory_limit=memory_limit)
    assert outcome.num_rows == len(expected)
    for found in (esker.dataset(uri).to_table(), lance.dataset(uri).to_table()):
        assert same(found, expected) is None
