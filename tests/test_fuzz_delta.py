"""Random Delta tables beside the peers, and that the peers still do wrong what is left out for it."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from esker.delta import DeltaTable, write_deltalake
from tests.fuzzing.delta import run_case

CASES, PARTS = 80, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_random_tables_have_the_rows_that_a_list_of_python_has(part: int) -> None:
    for seed in range(part, CASES, PARTS):
        run_case(seed)


def test_the_peer_does_not_read_the_negative_decimals_that_it_writes_as_partition_values(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "p": pa.array([Decimal("-1.50")], pa.decimal128(9, 2))})
    with pytest.raises(deltalake.exceptions.DeltaError, match=r"-1\.-50"):
        deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    # What it has written is there all the same.
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["p"].to_pylist() == [Decimal("-1.50")]


def test_the_peer_does_not_list_the_feature_of_clocks_within_others(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.timestamp("us"))
    with pytest.raises(deltalake.exceptions.DeltaError, match="timestampNtz"):
        deltalake.write_deltalake(tmp_path / "t", pa.table({"m": pa.array([[]], kind)}))
    write_deltalake(tmp_path / "u", pa.table({"m": pa.array([[]], kind)}))
    assert "timestampNtz" in (DeltaTable(tmp_path / "u").protocol().writer_features or [])


def test_the_peer_does_not_compare_clocks_with_its_statistics(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1], "t": [dt.datetime(2024, 1, 1)]}))
    with pytest.raises(deltalake.exceptions.DeltaError, match="Invalid comparison operation"):
        deltalake.DeltaTable(tmp_path / "t").delete("t > timestamp '2024-01-02 00:00:00'")


def test_the_peer_takes_null_for_an_empty_text_in_a_partition(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "p": ["", "a"]})
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    assert sorted(map(str, deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()["p"].to_pylist())) == ["None", "a"]
    deltalake.DeltaTable(tmp_path / "t").delete("p <= 'z'")
    assert deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 0
    write_deltalake(tmp_path / "u", rows, partition_by=["p"])
    write_deltalake(tmp_path / "u", rows.slice(1), mode="overwrite", predicate="p <= 'z'")
    assert DeltaTable(tmp_path / "u").count() == 2


def test_pyarrow_takes_nan_for_a_number_within_the_bounds_of_its_row_group(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [-2.25, math.nan]}), tmp_path / "a.parquet")
    rows = pq.read_table(tmp_path / "a.parquet")
    condition = pc.field("x") != -2.25
    assert rows.filter(condition).num_rows == 1
    assert ds.dataset(tmp_path / "a.parquet").to_table(filter=condition).num_rows == 0


def test_the_peer_does_not_partition_by_dictionaries(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "p": pa.array(["a", "b"]).dictionary_encode()})
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    with pytest.raises(deltalake.exceptions.DeltaError, match="partition column value as Scalar"):
        deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["p"], mode="append")
    write_deltalake(tmp_path / "t", rows, partition_by=["p"], mode="append")
    assert DeltaTable(tmp_path / "t").count() == 3


def test_pyarrow_finds_no_zeros_for_a_list_in_a_row_group_of_zeros(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"x": [0.0, 0.0]}))
    (uri,) = DeltaTable(tmp_path / "t").file_uris()
    assert ds.dataset(uri).to_table(filter=pc.field("x").isin([0.0])).num_rows == 0
    assert DeltaTable(tmp_path / "t").to_pyarrow_table(filters=[("x", "in", [0.0, 1.0])]).num_rows == 2
    assert DeltaTable(tmp_path / "t").to_pyarrow_table(filters="x in (0.0, 1.0)").num_rows == 2


def test_a_negated_list_keeps_nulls_in_every_file_as_pyarrow_does(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "x": pa.array([None, None], pa.int64())}))
    write_deltalake(tmp_path / "t", pa.table({"id": [3, 4, 5], "x": [1, 2, None]}), mode="append")
    table = DeltaTable(tmp_path / "t")
    for condition, expected in (
        (~pc.field("x").isin([1]), [1, 2, 4, 5]),
        (~(pc.field("x").isin([1]) | (pc.field("x") > 7)), [4]),
        (~((pc.field("x") > 0) & pc.field("x").isin([1])), [1, 2, 4, 5]),
        (pc.field("x").isin([1]), [3]),
        (pc.field("x").isin([1]) | pc.field("x").is_null(), [1, 2, 3, 5]),
    ):
        assert sorted(table.to_pyarrow_table(filters=condition)["id"].to_pylist()) == expected
        assert sorted(table.to_pyarrow_table().filter(condition)["id"].to_pylist()) == expected
    assert table.to_pyarrow_table(filters=[("x", "not in", [1])])["id"].to_pylist() == [4]
    assert table.to_pyarrow_table(filters="x not in (1)")["id"].to_pylist() == [4]
    assert len(table.file_uris(file_pruning_predicate=pc.field("x").isin([1]))) == 1
