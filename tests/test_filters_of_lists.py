"""Lists over a value that may be null, in conditions and computed columns: SQL's three values, as DuckDB has them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.delta import DeltaTable, write_deltalake
from tests.rounds import rounds

ROWS = pa.table({"id": range(12), "x": pa.array([1, 2, 3, 4, None, 5] * 2), "y": pa.array([1, None, 2] * 4)})

LISTS = st.lists(st.sampled_from(["1", "2", "3", "4", "NULL"]), min_size=1, max_size=5).map(", ".join)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["x", "y", "x + 1"]), st.sampled_from(["IN", "NOT IN"]), LISTS).map(
        lambda parts: f"{parts[0]} {parts[1]} ({parts[2]})"
    ),
    st.tuples(st.sampled_from("xy"), st.sampled_from(["=", "<>"]), st.sampled_from("123")).map(" ".join),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda part: f"NOT ({part})"),
    ),
    max_leaves=6,
)


def duck(condition: str) -> list[bool | None]:
    with duckdb.connect() as connection:
        connection.register("rows", ROWS)
        return [row[0] for row in connection.execute(f"SELECT {condition} FROM rows ORDER BY id").fetchall()]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> esker.LanceDataset:
    return esker.write_dataset(ROWS, tmp_path_factory.mktemp("lists") / "t", durable=False)


@settings(max_examples=rounds(80), deadline=None)
@given(condition=CONDITIONS)
def test_conditions_and_values_are_those_of_sql(table: esker.LanceDataset, condition: str) -> None:
    wanted = duck(condition)
    rows = [number for number, is_true in enumerate(wanted) if is_true]
    assert table.to_table(["id"], filter=condition)["id"].to_pylist() == rows
    assert table.count_rows(f"NOT ({condition})") == wanted.count(False)
    assert table.to_table({"found": condition})["found"].to_pylist() == wanted


@pytest.mark.parametrize(
    "condition",
    [
        "(x NOT IN (1)) OR (x NOT IN (2))",
        "NOT (x IN (1) AND x IN (2))",
        "NOT (x IN (1, 2, 3, 4) AND x IN (5, 6, 7, 8))",
        "NOT (x IN (1, 2, 3, 4) AND x NOT IN (1, 2, 3, 4))",
    ],
)
def test_a_delete_leaves_the_rows_for_which_it_is_unknown(tmp_path: Path, condition: str) -> None:
    left = [number for number, is_true in enumerate(duck(condition)) if not is_true]
    made = esker.write_dataset(ROWS, tmp_path / "lance", durable=False)
    made.delete(condition)
    assert made.to_table()["id"].to_pylist() == left
    write_deltalake(tmp_path / "delta", ROWS)
    DeltaTable(tmp_path / "delta").delete(condition)
    assert sorted(DeltaTable(tmp_path / "delta").to_pyarrow_table()["id"].to_pylist()) == left
