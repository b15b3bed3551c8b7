"""`iops_counter` and `bytes_read_counter`: what a process has read, as pylance counts it."""

from __future__ import annotations

import pyarrow as pa

import esker


def test_counters_rise_with_every_read_and_only_then(uri: str) -> None:
    before = (esker.iops_counter(), esker.bytes_read_counter())
    table = pa.table({"a": list(range(1000))})
    dataset = esker.write_dataset(table, uri)
    assert dataset.to_table() == table
    after = (esker.iops_counter(), esker.bytes_read_counter())
    assert after[0] > before[0]
    assert after[1] - before[1] > 1000
    assert (esker.iops_counter(), esker.bytes_read_counter()) == after
    dataset.io_stats_incremental()
    esker.dataset(uri).to_table()
    assert esker.bytes_read_counter() > after[1]
