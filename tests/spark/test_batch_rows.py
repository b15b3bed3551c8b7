"""How large batches are that a read of a Lance table hands to Spark, where rows are far larger than in their files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import esker
from esker.spark import EskerSource
from esker.spark.planned_read import plan_read
from tests.spark.streams import Query

ROWS = 12_000
MOST = 64 * 1024 * 1024


def _repeating(uri: str, kind: str) -> None:
    """Rows of 5 KB or more, which all have the same values."""
    if kind == "text":
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), ["ab" * 5000])
        columns = {"text": text.dictionary_decode()}
    else:
        columns = {f"n{number}": pa.array(np.zeros(ROWS, np.int64)) for number in range(700)}
    esker.write_dataset(pa.table({"id": range(ROWS), **columns}), uri)
    assert sum(path.stat().st_size for path in Path(uri).rglob("*.lance")) < 10_000_000


@pytest.mark.parametrize("kind", ["text", "columns"])
def test_rows_that_are_larger_than_in_their_files_come_in_several_batches(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    _repeating(uri, kind)
    source = EskerSource({"path": uri})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    found = [
        (batch.num_rows, batch.nbytes) for part in parts for batch in pickle.loads(pickle.dumps(reader)).read(part)
    ]
    assert sum(rows for rows, _ in found) == ROWS
    assert max(size for _, size in found) <= MOST
    # What is decoded at once, whose rows a function of `map_batches` gets.
    plan = plan_read({"path": uri, "filter": "id >= 0"})
    decoded = [batch.num_rows for batch in plan.reader.rows(plan.partitions(None))]
    assert sum(decoded) == ROWS
    assert max(decoded) <= 8192
    # What is not read makes no batches small.
    plan = plan_read({"path": uri, "columns": "id"})
    assert [batch.num_rows for batch in plan.reader.rows(plan.partitions(None))] == [ROWS]


def test_a_stream_reads_such_rows_in_several_batches_as_well(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _repeating(uri, "text")
    query = Query(uri)
    query.start()
    start = query.reader.initialOffset()
    parts = query.reader.partitions(start, query.reader.latestOffset(start))
    found = [batch.num_rows for part in parts for batch in query.reader.read(part)]
    assert sum(found) == ROWS
    assert max(found) <= 8192
