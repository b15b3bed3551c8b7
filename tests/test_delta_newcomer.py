"""Writes that would make a Delta table which another writer makes meanwhile: they go to that one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake


def _meanwhile(rows: pa.Table, other: Callable[[], Any]) -> pa.RecordBatchReader:
    """The rows as a stream, in the midst of which another writer does something."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.slice(0, 1).to_batches()
        other()
        yield from rows.slice(1).to_batches()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _files(path: Path) -> set[str]:
    return {str(found.relative_to(path)) for found in path.rglob("*.parquet")}


ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "p": ["a/b", "", None],
        "t": pa.array([dt.datetime(2024, 1, day, 5, 6, 7, 8, dt.UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC")),
        "n": pa.array([Decimal("-1.50"), None, Decimal("2.25")], pa.decimal128(5, 2)),
        "s": pa.array([{"l": [1, None]}, None, {"l": []}], pa.struct([("l", pa.list_(pa.int64()))])),
    }
)


@pytest.mark.parametrize("ours", [None, ["p"], ["p", "t", "n"]], ids=str)
@pytest.mark.parametrize("theirs", [None, ["p"]], ids=str)
def test_an_append_goes_to_the_table_that_another_writer_made(
    tmp_path: Path, ours: list[str] | None, theirs: list[str] | None
) -> None:
    path = tmp_path / "t"
    other = ROWS.set_column(0, "id", pa.array([7, 8, 9]))
    data = _meanwhile(ROWS, lambda: write_deltalake(path, other, partition_by=theirs))
    if ours is not None and ours != theirs:
        with pytest.raises(exceptions.InvalidArgumentError, match="the table's partition columns"):
            write_deltalake(path, data, mode="append", partition_by=ours)
        expected = other.to_pylist()
    else:
        write_deltalake(path, data, mode="append", partition_by=ours)
        expected = [*ROWS.to_pylist(), *other.to_pylist()]
    table = DeltaTable(path)
    found = table.to_pyarrow_table().to_pylist()
    for row in expected:
        # An empty text is null as a partition value.
        row["p"] = row["p"] or (None if theirs else row["p"])
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len(_files(path)) == len(table.file_uris())


@pytest.mark.parametrize("mode", ["none", "name"])
def test_it_is_written_by_the_rules_of_that_table(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "t"

    def other(low: int) -> None:
        generated = Field("twice", "long", metadata={"delta.generationExpression": "id * 2"})
        schema = Schema([Field("id", "long"), generated])
        DeltaTable.create(path, schema, configuration={"delta.columnMapping.mode": "name"})
        DeltaTable(path).alter.add_constraint({"low": f"id > {low}"})

    rows = pa.table({"id": [1, 2, 3]})
    configuration = {"delta.columnMapping.mode": mode}
    write_deltalake(path, _meanwhile(rows, lambda: other(0)), mode="append", configuration=configuration)
    assert DeltaTable(path).to_pyarrow_table().to_pydict() == {"id": [1, 2, 3], "twice": [2, 4, 6]}
    path = tmp_path / "u"
    with pytest.raises(exceptions.InvalidArgumentError, match="constraint 'low'"):
        write_deltalake(path, _meanwhile(rows, lambda: other(1)), mode="append", configuration=configuration)
    assert (DeltaTable(path).count(), _files(path)) == (0, set())


def test_it_must_fit_that_table_or_be_merged(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "more": ["x", "y"]})
    path = tmp_path / "t"
    data = _meanwhile(rows, lambda: write_deltalake(path, pa.table({"id": [9]})))
    with pytest.raises(exceptions.SchemaMismatchError, match="'more' as well"):
        write_deltalake(path, data, mode="append")
    assert DeltaTable(path).to_pyarrow_table().to_pydict() == {"id": [9]}
    path = tmp_path / "u"
    data = _meanwhile(rows, lambda: write_deltalake(path, pa.table({"id": [9]})))
    write_deltalake(path, data, mode="append", schema_mode="merge")
    found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 9], "more": ["x", "y", None]}


def test_each_mode_does_what_it_does_to_a_table_that_is_there(tmp_path: Path) -> None:
    rows, theirs = pa.table({"id": [1, 2]}), pa.table({"id": [9]})
    modes: list[tuple[Literal["append", "overwrite", "ignore", "error"], list[int]]]
    modes = [("append", [1, 2, 9]), ("overwrite", [1, 2]), ("ignore", [9]), ("error", [9])]
    for mode, ids in modes:
        path = tmp_path / mode
        data = _meanwhile(rows, partial(write_deltalake, path, theirs))
        if mode == "error":
            with pytest.raises(exceptions.AlreadyExistsError, match="created by another writer meanwhile"):
                write_deltalake(path, data, mode=mode)
        else:
            write_deltalake(path, data, mode=mode)
        table = DeltaTable(path)
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == ids
    data = _meanwhile(rows, lambda: write_deltalake(tmp_path / "p", pa.table({"id": [1, 9]})))
    write_deltalake(tmp_path / "p", data, mode="overwrite", predicate="id < 5")
    assert sorted(DeltaTable(tmp_path / "p").to_pyarrow_table()["id"].to_pylist()) == [1, 2, 9]


def test_a_write_with_a_number_happens_once(tmp_path: Path) -> None:
    def write(data: Any) -> None:
        write_deltalake(tmp_path / "t", data, mode="append", txn_app_id="nightly", txn_version=1)

    rows = pa.table({"id": [1, 2]})
    write(_meanwhile(rows, lambda: write(rows)))
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "error"])
def test_of_many_that_make_a_table_at_once_none_is_told_to_do_what_it_did(tmp_path: Path, mode: Any) -> None:
    writers, barrier = 6, Barrier(6)

    def write(number: int) -> str:
        barrier.wait()
        try:
            write_deltalake(tmp_path / "t", pa.table({"id": [number]}), mode=mode)
        except exceptions.AlreadyExistsError:
            return "exists"
        except exceptions.CommitConflictError:
            return "conflict"
        return "ok"

    with ThreadPoolExecutor(writers) as pool:
        found = sorted(pool.map(write, range(writers)))
    there = DeltaTable(tmp_path / "t").to_pyarrow_table()["id"].to_pylist()
    if mode == "append":
        assert (found, sorted(there)) == (["ok"] * writers, list(range(writers)))
    elif mode == "ignore":
        assert (found, len(there)) == (["ok"] * writers, 1)
    elif mode == "error":
        assert (found, len(there)) == (["exists"] * (writers - 1) + ["ok"], 1)
    else:
        # Overwrites of one version at the same time are conflicts, as ever.
        assert ("ok" in found, "exists" in found, len(there)) == (True, False, 1)


def test_tables_without_rows_are_made_at_once_as_well(tmp_path: Path) -> None:
    schema = Schema([Field("id", "long")])
    barrier = Barrier(4)
    for mode in ("ignore", "error", "overwrite"):

        def create(number: int, mode: Any = mode) -> str:
            barrier.wait()
            try:
                return type(DeltaTable.create(tmp_path / mode, schema, mode=mode)).__name__
            except exceptions.EskerError as error:
                return type(error).__name__

        with ThreadPoolExecutor(4) as pool:
            found = sorted(pool.map(create, range(4)))
        if mode == "error":
            assert found == [*["AlreadyExistsError"] * 3, "DeltaTable"]
        elif mode == "ignore":
            assert found == ["DeltaTable"] * 4
        else:
            assert "DeltaTable" in found
            assert "AlreadyExistsError" not in found
    (tmp_path / "convert").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "convert" / "a.parquet")

    def convert(_: int) -> None:
        barrier.wait()
        convert_to_deltalake(tmp_path / "convert", mode="ignore")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(convert, range(4)))
    assert DeltaTable(tmp_path / "convert").to_pyarrow_table()["id"].to_pylist() == [1]
