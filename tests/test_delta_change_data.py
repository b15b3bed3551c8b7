"""Files of changes: what a partial overwrite leaves in the change data feed, beside deltalake."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}


def entry(table: Path, version: int, name: str) -> list[dict[str, Any]]:
    lines = (table / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [action[name] for action in map(json.loads, lines) if name in action]


def feed(changes: Any) -> list[tuple[Any, ...]]:
    found = pa.table(changes).drop_columns(["_commit_timestamp"]).to_pylist()
    return sorted(tuple(map(repr, row.values())) for row in found)


def both(table: Path, version: int) -> list[tuple[Any, ...]]:
    ours = feed(DeltaTable(table).load_cdf(version, version))
    theirs = pa.table(deltalake.DeltaTable(table).load_cdf(version, version))
    assert ours == feed(theirs.select(pa.table(DeltaTable(table).load_cdf(version, version)).column_names))
    return ours


def test_a_replacement_of_some_rows_of_a_file(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "s": ["a", "b", None]})
    write_deltalake(tmp_path, data, configuration=FEED)
    write_deltalake(tmp_path, pa.table({"id": [4], "s": ["d"]}), mode="append")
    new = pa.table({"id": [2, 5], "s": ["n", "m"]})
    write_deltalake(tmp_path, new, mode="overwrite", predicate="id >= 2")
    assert both(tmp_path, 2) == [
        ("2", "'b'", "'delete'", "2"),
        ("2", "'n'", "'insert'", "2"),
        ("3", "None", "'delete'", "2"),
        ("4", "'d'", "'delete'", "2"),
        ("5", "'m'", "'insert'", "2"),
    ]
    for change in entry(tmp_path, 2, "cdc"):
        assert (change["dataChange"], change["partitionValues"]) == (False, {})
        assert change["path"].startswith("_change_data/cdc-")
        assert (tmp_path / change["path"]).stat().st_size == change["size"]
        assert pq.read_schema(tmp_path / change["path"]).names == ["id", "s", "_change_type"]
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 5]
    assert sorted(deltalake.DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 5]


def test_where_files_tell_what_changed_there_are_no_others(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=FEED)
    write_deltalake(tmp_path, pa.table({"id": [3], "p": ["a"]}), mode="overwrite", predicate="p = 'a'")
    write_deltalake(tmp_path, pa.table({"id": [9], "p": ["z"]}), mode="overwrite", predicate="id > 2")
    write_deltalake(tmp_path, pa.table({"id": [5], "p": ["z"]}), mode="overwrite")
    assert [entry(tmp_path, version, "cdc") for version in (1, 2, 3)] == [[], [], []]
    assert not (tmp_path / "_change_data").exists()
    assert [len(both(tmp_path, version)) for version in (1, 2, 3)] == [2, 2, 3]


def test_new_rows_only_rewrite_what_they_touch_in_partitions(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3, 4], "p": ["a", "a", "b c", None]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=FEED)
    new = pa.table({"id": [7, 8], "p": ["b c", None]})
    write_deltalake(tmp_path, new, mode="overwrite", predicate="id >= 2")
    assert [row[0] + row[2] for row in both(tmp_path, 1)] == [
        *("2'delete'", "3'delete'", "4'delete'", "7'insert'", "8'insert'"),
    ]
    values = {change["partitionValues"]["p"] for change in entry(tmp_path, 1, "cdc")}
    assert values == {"a", "b c", None}
    assert len(entry(tmp_path, 1, "add")) == 3


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(tmp_path: Path, mode: str) -> None:
    data = pa.table({"id": [1, 2, 3], "p": ["x", "x", "y"], "s": [{"t": 1}, None, {"t": None}]})
    properties = {**FEED, "delta.columnMapping.mode": mode}
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=properties)
    write_deltalake(tmp_path, data.slice(0, 0), mode="overwrite", predicate="id = 1")
    found = DeltaTable(tmp_path).load_cdf(1, 1).read_all().to_pylist()
    assert [(row["id"], row["p"], row["s"], row["_change_type"]) for row in found] == [(1, "x", {"t": 1}, "delete")]
    (change,) = entry(tmp_path, 1, "cdc")
    names = pq.read_schema(tmp_path / change["path"]).names
    assert [name.startswith("col-") for name in names] == [True, True, False]


def test_files_of_a_write_that_fails_are_deleted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), configuration=FEED)
    ours = DeltaTable(tmp_path)
    # Its bounds leave room for the predicate's row.
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1, 3]}), mode="append")
    once = CommitProperties(max_commit_retries=0)
    with pytest.raises(exceptions.CommitConflictError):
        write_deltalake(ours, pa.table({"id": [2]}), mode="overwrite", predicate="id = 2", commit_properties=once)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


STEPS = st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=4)), min_size=1, max_size=5)


@settings(max_examples=int(os.environ.get("ESKER_TURNS", "12")), deadline=None)
@given(STEPS, st.booleans(), st.booleans())
def test_the_feed_leads_from_version_to_version(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[int]]], parts: bool, vectors: bool
) -> None:
    path = tmp_path_factory.mktemp("feed")
    properties = {**FEED, "delta.enableDeletionVectors": "true"} if vectors else FEED
    start = pa.table({"id": range(10), "p": [str(n % 2) for n in range(10)]})
    write_deltalake(path, start, partition_by=["p"] if parts else None, configuration=properties)
    there = sorted(start["id"].to_pylist())
    for least, new in steps:
        kept = [number for number in new if number >= least]
        rows = pa.table({"id": pa.array(kept, pa.int64()), "p": pa.array([str(n % 2) for n in kept], pa.string())})
        write_deltalake(path, rows, mode="overwrite", predicate=f"id >= {least}")
        version = DeltaTable(path).version()
        if not vectors:
            both(path, version)
        found = DeltaTable(path).load_cdf(version, version).read_all().to_pylist()
        for row in sorted(found, key=lambda row: row["_change_type"]):
            there.remove(row["id"]) if row["_change_type"] == "delete" else there.append(row["id"])
        assert sorted(there) == sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
