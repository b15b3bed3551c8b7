"""Conditions over different columns are asked one after the other; the rows are those of the whole condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.exceptions import EskerError
from tests.rounds import rounds

ROWS = 30_000


def rows() -> pa.Table:
    rng = np.random.default_rng(5)

    def nulls(values: pa.Array, share: float) -> pa.Array:
        return pa.compute.if_else(pa.array(rng.random(ROWS) < share), pa.scalar(None, values.type), values)

    small = rng.integers(0, 10, ROWS)
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "a": nulls(pa.array(small), 0.05),
            "b": pa.array(rng.integers(0, 1_000, ROWS).astype(np.int32)),
            "x": nulls(pa.array(rng.random(ROWS)), 0.1),
            "s": nulls(pa.array([f"word {value}" for value in small]), 0.02),
            "t": pa.StructArray.from_arrays(
                [pa.array(rng.integers(0, 50, ROWS)), pa.array([f"{n % 7}" for n in range(ROWS)])], ["n", "w"]
            ),
            "when": pa.array(1_700_000_000_000_000 + np.arange(ROWS) * 1_000_000, pa.timestamp("us")),
        }
    )


TABLE = rows()
CONDITIONS = [
    "a > 5",
    "a IS NOT NULL",
    "a IN (1, 2, 3)",
    "b < 20",
    "b >= 100",
    "NOT b BETWEEN 10 AND 900",
    "x > 0.5",
    "x IS NULL",
    "s = 'word 3'",
    "s LIKE '%rd 4'",
    "t.n < 5",
    "t.w <> '3'",
    "id >= 20000",
    "\"when\" > timestamp '2023-11-15 00:00:00'",
    "a > b",
    "a = 7 OR x < 0.1",
    "(a <> 0 AND 10 / a > 3)",
    "true",
]


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2", "legacy"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> esker.LanceDataset:
    folder = tmp_path_factory.mktemp("steps") / "table"
    kept = TABLE if request.param != "legacy" else TABLE.select(["id", "a", "b", "x", "s", "t", "when"])
    options: dict[str, Any] = {"data_storage_version": request.param, "max_rows_per_file": 11_000, "durable": False}
    if request.param == "legacy":
        options["allow_null_loss"] = True
        kept = kept.set_column(1, "a", kept["a"].fill_null(0)).set_column(3, "x", kept["x"].fill_null(0.0))
    made = esker.write_dataset(kept, folder, **options)
    made.delete("id % 10 = 3")
    return made


def expected(table: esker.LanceDataset, condition: str) -> list[int]:
    """DuckDB's answer over all rows of the table."""
    every = table.to_table()
    with duckdb.connect() as connection:
        connection.register("every", every)
        found = connection.execute(f"SELECT id FROM every WHERE {condition} ORDER BY id").fetchall()
    return [row[0] for row in found]


def sql(condition: str) -> str:
    return condition.replace('"when"', "when")


@settings(max_examples=rounds(25), deadline=None)
@given(picked=st.lists(st.sampled_from(CONDITIONS), min_size=2, max_size=5))
def test_rows_are_those_of_the_whole_condition(table: esker.LanceDataset, picked: list[str]) -> None:
    duck = " AND ".join(condition.replace("10 / a", "10 // a") for condition in picked)
    ours = sql(" AND ".join(picked))
    wanted = expected(table, duck)
    assert table.to_table(["id"], filter=ours)["id"].to_pylist() == wanted
    assert table.count_rows(ours) == wanted_count(wanted)
    whole = table.to_table(filter=ours)
    assert whole["id"].to_pylist() == wanted
    assert whole.equals(table.to_table().filter(pa.compute.is_in(table.to_table()["id"], pa.array(wanted, pa.int64()))))
    assert table.to_table(["id"], filter=ours, limit=5, offset=2)["id"].to_pylist() == wanted[2:7]
    assert table.to_table(["id"], filter=ours, batch_size=100)["id"].to_pylist() == wanted


def wanted_count(wanted: list[int]) -> int:
    return len(wanted)


def test_what_may_fail_is_asked_only_of_rows_for_which_all_before_it_is_true(table: esker.LanceDataset) -> None:
    guarded = "a <> 0 AND 10 / a > 3 AND b < 500"
    assert table.to_table(["id"], filter=guarded)["id"].to_pylist() == expected(table, guarded.replace("/", "//"))
    # It stands first: nothing before it keeps the zeros from it, whatever comes behind.
    with pytest.raises(EskerError, match=r"(?i)divi"):
        table.to_table(filter="10 / a > 3 AND b < 500 AND a <> 0")
    with pytest.raises(EskerError, match=r"(?i)divi"):
        table.count_rows("b < 500 AND 10 / a > 3")


def test_no_row_is_left_after_the_first_step(table: esker.LanceDataset) -> None:
    for condition in ["b < 0 AND s = 'word 3'", "s = 'nothing' AND b < 20 AND x > 0", "b < 0 AND 10 / a > 3"]:
        assert table.count_rows(condition) == 0
        empty = table.to_table(filter=condition)
        assert (empty.num_rows, empty.schema) == (0, table.schema)


def test_row_ids_and_addresses_go_with_the_rows(table: esker.LanceDataset) -> None:
    condition = "b < 20 AND s LIKE 'word%' AND id > 50"
    found = table.to_table(["id"], filter=condition, with_row_id=True, with_row_address=True)
    every = table.to_table(["id"], with_row_id=True, with_row_address=True)
    assert found.equals(every.filter(pa.compute.is_in(every["id"], found["id"])))
    by_system = table.to_table(["id"], filter="_rowaddr >= 5 AND b < 20")
    assert by_system["id"].to_pylist() == [n for n in expected(table, "b < 20") if n >= 6]


def test_columns_that_no_file_holds_are_null_in_a_step(tmp_path: Path) -> None:
    made = esker.write_dataset(TABLE.select(["id", "b"]), tmp_path / "t", durable=False, max_rows_per_file=7_000)
    made.add_columns({"late": "CASE WHEN id % 2 = 0 THEN id ELSE NULL END"})
    made = esker.write_dataset(TABLE.select(["id", "b"]).slice(0, 100), made, mode="append", durable=False)
    wanted = sorted(expected(made, "b < 300 AND late IS NULL AND id < 50"))
    assert sorted(made.to_table(filter="b < 300 AND late IS NULL AND id < 50")["id"].to_pylist()) == wanted
