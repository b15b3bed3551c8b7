"""Merges by keys of every type, from sources of many batches, and by conditions that are never true; beside theirs."""

from __future__ import annotations

import shutil
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable
from tests.delta_rows import rows

KEYS: dict[str, pa.Array] = {
    "integer": pa.array([1, -1, None, 127], pa.int8()),
    "float": pa.array([float("nan"), -0.0, None, 0.1], pa.float32()),
    "text": pa.array(["", "ü", None, "O'Neil"]),
    "binary": pa.array([b"", b"\x00\xff", None, b"a"]),
    "decimal": pa.array([Decimal("1.10"), Decimal("-0.01"), None, Decimal("0.00")], pa.decimal128(10, 2)),
    "time": pa.array([datetime(2020, 1, 1), datetime(1969, 1, 1), None, datetime(9999, 1, 1)], pa.timestamp("us")),
    "instant": pa.array([0, 10**15, None, -1], pa.timestamp("us", "UTC")),
    "date": pa.array([date(2020, 1, 1), date(1, 1, 1), None, date(9999, 1, 1)]),
    "boolean": pa.array([True, False, None, None]),
    "struct": pa.array([{"x": 1}, {"x": None}, None, {"x": 2}], pa.struct([("x", pa.int64())])),
    "list": pa.array([[1], [], None, [None]], pa.list_(pa.int64())),
}


def merged(path: Path, table: Any, source: Any, predicate: str) -> list[Any]:
    shutil.copytree(path, place := path.with_name(f"{path.name}-{table.__module__}"))
    merger = table(str(place)).merge(source, predicate, source_alias="s", target_alias="t")
    merger = merger.when_matched_update({"n": "s.n"}).when_not_matched_insert({"id": "s.id", "n": "-1"})
    merger.when_not_matched_by_source_update({"n": "0"}).execute()
    return rows(DeltaTable(place).to_pyarrow_table())


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("size", [1, 3])
def test_a_key_of_any_type_comes_in_batches(kind: str, size: int, tmp_path: Path) -> None:
    data = pa.table({"id": range(4), "k": KEYS[kind], "n": [7] * 4})
    deltalake.write_deltalake(tmp_path / "t", data)
    source = data.slice(1).set_column(2, "n", pa.array([10, 11, 12]))

    def found(table: Any) -> list[Any]:
        return merged(tmp_path / "t", table, source.to_reader(size), "t.k = s.k and t.id = s.id")

    assert found(DeltaTable) == found(deltalake.DeltaTable)


def test_an_instant_of_another_zone_is_the_same_key(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "k": KEYS["instant"].slice(0, 2), "n": [7, 7]})
    deltalake.write_deltalake(tmp_path, data)
    kind = pa.timestamp("us", "Asia/Tokyo")
    assert ZoneInfo(kind.tz).key == "Asia/Tokyo"
    source = data.set_column(1, "k", data["k"].cast(kind)).set_column(2, "n", pa.array([10, 11]))
    merger = DeltaTable(tmp_path).merge(source.to_reader(1), "t.k = s.k", "s", "t").when_matched_update({"n": "s.n"})
    assert merger.execute()["num_target_rows_updated"] == 2


CONSTANT = ["t.id = null", "null = s.id", "t.id = s.id and 1 = 0", "t.id + null = s.id", "null", "false"]


@pytest.mark.parametrize("predicate", CONSTANT)
def test_a_condition_that_is_never_true_matches_nothing(predicate: str, tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "n": [7, 7]})
    deltalake.write_deltalake(tmp_path / "t", data)
    found = merged(tmp_path / "t", DeltaTable, data, predicate)
    assert found == merged(tmp_path / "t", deltalake.DeltaTable, data, predicate)
    assert len(found) == 4


def test_a_condition_of_a_clause_that_is_never_true_changes_nothing(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "n": [7, 7]})
    deltalake.write_deltalake(tmp_path, data)
    merger = DeltaTable(tmp_path).merge(data, "t.id = s.id", "s", "t").when_matched_delete("t.n = null")
    told = merger.when_matched_update({"n": "s.n + 1"}, "t.n = s.n and 1 = 0").execute()
    assert (told["num_target_rows_deleted"], told["num_target_rows_updated"]) == (0, 0)
