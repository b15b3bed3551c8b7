"""Batches whose makers fill the same memory anew for the next one, beside pylance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import esker

ROWS, EACH = 5_000, 1_000
SCHEMA = pa.schema([("a", pa.int64()), ("l", pa.list_(pa.int64()))])


def _batches() -> Iterator[pa.RecordBatch]:
    numbers, offsets = np.empty(EACH, np.int64), np.arange(EACH + 1, dtype=np.int32)
    for first in range(0, ROWS, EACH):
        numbers[:] = np.arange(first, first + EACH)
        values = pa.array(numbers)
        yield pa.record_batch([values, pa.ListArray.from_arrays(pa.array(offsets), values)], schema=SCHEMA)


def _check(dataset: Any, column: str, expected: list[int]) -> None:
    assert dataset.to_table(columns=[column])[column].to_pylist() == expected


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_rows_are_those_that_were_there_when_they_came(tmp_path: Path, version: str) -> None:
    """In 0.1 pylance's are others."""
    for library in (esker, lance)[: 1 if version == "0.1" else 2]:
        peer: Any = library
        uri = str(tmp_path / peer.__name__)
        dataset = peer.write_dataset(_batches(), uri, schema=SCHEMA, data_storage_version=version)
        _check(dataset, "a", list(range(ROWS)))
        dataset = peer.write_dataset(_batches(), uri, schema=SCHEMA, mode="append")
        _check(dataset, "a", [*range(ROWS)] * 2)
        assert dataset.to_table()["l"].to_pylist() == [[row] for row in range(ROWS)] * 2


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_columns_are_those_that_a_function_returned(tmp_path: Path, version: str) -> None:
    for library in (esker, lance):
        peer: Any = library
        uri = str(tmp_path / peer.__name__)
        dataset = peer.write_dataset(pa.table({"a": range(ROWS)}), uri, data_storage_version=version)
        out = np.empty(EACH, np.int64)

        @peer.batch_udf(output_schema=pa.schema([("z", pa.int64())]))  # type: ignore[untyped-decorator]
        def doubled(batch: pa.RecordBatch, out: Any = out) -> pa.RecordBatch:
            np.multiply(batch["a"].to_numpy(), 2, out=out[: batch.num_rows])
            return pa.record_batch([pa.array(out[: batch.num_rows])], names=["z"])

        dataset.add_columns(doubled, batch_size=EACH)
        _check(dataset, "z", list(range(0, 2 * ROWS, 2)))
