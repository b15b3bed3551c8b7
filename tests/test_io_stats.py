"""What reading costs: requests and bytes, per dataset and per session."""

from __future__ import annotations

import lance
import pyarrow as pa

import esker
from tests.samples import people


def test_counts_start_anew_with_each_call(uri: str) -> None:
    dataset = esker.write_dataset(people(3000), uri)
    dataset.io_stats()
    dataset.to_table()
    snapshot = dataset.io_stats_snapshot()
    assert snapshot.read_bytes > 0
    assert dataset.io_stats() == snapshot
    assert dataset.io_stats() == esker.IOStats()


def test_writes_are_counted(uri: str) -> None:
    session = esker.Session()
    esker.write_dataset(people(3000), uri, session=session)
    cost = session.io_stats()
    assert cost.write_iops >= 3, "a data file, a transaction, a manifest"
    assert cost.write_bytes > 3000 * 8


def test_counts_have_pylances_names(uri: str) -> None:
    theirs = lance.write_dataset(people(3), uri).io_stats_snapshot()
    ours = esker.dataset(uri).io_stats_snapshot()
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert [name for name in names if not isinstance(getattr(ours, name, None), int)] == []
    assert ours.written_bytes == ours.write_bytes


def test_a_session_counts_over_all_its_datasets(uri: str) -> None:
    esker.write_dataset(people(3000), uri)
    session = esker.Session()
    first, second = (esker.dataset(uri, session=session) for _ in range(2))
    session.io_stats(), first.io_stats(), second.io_stats()
    first.to_table()
    one = session.io_stats()
    first.to_table()
    second.to_table()
    two = session.io_stats()
    own = first.io_stats(), second.io_stats()
    assert 0 < one.read_bytes < own[0].read_bytes, "a dataset's own account is apart from its session's"
    assert own[1].read_bytes > 0
    assert own[0] + own[1] == one + two
    assert session.io_stats().read_bytes == 0


def test_a_column_costs_its_own_bytes(uri: str) -> None:
    rows = 100_000
    table = pa.table({"small": pa.array(range(rows), pa.int64()), "wide": pa.array([b"x" * 64] * rows)})
    esker.write_dataset(table, uri, compression="fast")
    dataset = esker.dataset(uri)
    dataset.to_table(columns=["small"])
    cost = dataset.io_stats()
    # Packed: of the 8 bytes of a value those that differ.
    assert rows * 2 < cost.read_bytes < rows * 16
    assert cost.read_iops < 10
