"""Tables that deltalake creates with features of its own choice: they are read, appended to and overwritten."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, write_deltalake

_ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "10"]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    properties: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
    deltalake.DeltaTable.create(tmp_path, _ROWS.schema, configuration=properties)
    return tmp_path


def test_a_table_with_vectors_lists_variants_and_is_no_other_for_it(table: Path) -> None:
    assert "variantType" in (DeltaTable(table).protocol().reader_features or [])
    write_deltalake(table, _ROWS, mode="append")
    deltalake.write_deltalake(table, _ROWS, mode="append")
    assert DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == [1, 2, 3] * 2
    write_deltalake(table, _ROWS, mode="overwrite")
    write_deltalake(table, _ROWS.slice(0, 1), mode="overwrite", predicate="id = 1")
    DeltaTable(table).create_checkpoint()
    deltalake.DeltaTable(table).delete("id = 2")
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == [1, 3]
    assert "variantType" in (DeltaTable(table).protocol().writer_features or [])


@pytest.mark.parametrize(
    "sql",
    [
        "s > 5",
        "s = 10",
        "10 = s",
        "s <> 10",
        "s in (1, 10)",
        "s between 1 and 5",
        "s > 5.5",
        "s = -1",
        "id = '1'",
        "id in ('1', '3')",
        "cast(id as string) = 1",
        "lower(s) = 10",
        "trunc(id) = 2",
        "TRUNC(id, 0) = 3",
    ],
)
def test_numbers_beside_text_mean_what_they_mean_in_deltalakes_delete(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, _ROWS)
    kept = DeltaTable(tmp_path).to_pyarrow_table(filters=sql)["id"].to_pylist()
    assert DeltaTable(tmp_path).scan(["id"], sql).read_all()["id"].to_pylist() == kept
    deltalake.DeltaTable(tmp_path).delete(sql)
    assert set(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == {1, 2, 3} - set(kept)


def test_they_mean_the_same_in_an_overwrite(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _ROWS)
    write_deltalake(tmp_path, _ROWS.slice(2), mode="overwrite", predicate="s = 10")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]


_DAYS = [date(1899, 12, 31), date(1969, 12, 29), date(1970, 1, 1), date(2020, 6, 15), date(2024, 12, 30), None]


@pytest.mark.parametrize("unit", ["YEAR", "yyyy", "YY", "quarter", "MONTH", "mon", "MM", "week"])
def test_trunc_generates_the_days_that_deltalake_generates(tmp_path: Path, unit: str) -> None:
    fields = [("d", "date"), ("t", "timestamp")]
    generated = {"delta.generationExpression": f"TRUNC(d, '{unit}')"}
    for name, make in (("ours", DeltaTable), ("theirs", deltalake.DeltaTable)):
        there: Any = deltalake if name == "theirs" else esker.delta
        kinds = [there.Field(field, there.schema.PrimitiveType(kind)) for field, kind in fields]
        g = there.Field("g", there.schema.PrimitiveType("date"), metadata=generated)
        make.create(tmp_path / name, there.Schema([*kinds, g]))
        rows = pa.table({"d": _DAYS, "t": pa.array([None] * len(_DAYS), pa.timestamp("us", "UTC"))})
        there.write_deltalake(tmp_path / name, rows, mode="append")
    ours = DeltaTable(tmp_path / "ours").to_pyarrow_table()["g"].to_pylist()
    assert ours == DeltaTable(tmp_path / "theirs").to_pyarrow_table()["g"].to_pylist()
    # We write to theirs by the same rule.
    write_deltalake(tmp_path / "theirs", pa.table({"d": [date(2021, 5, 5)], "t": [None]}), mode="append")
    wrong = pa.table(
        {"d": [date(2021, 5, 5)], "t": pa.array([None], pa.timestamp("us", "UTC")), "g": [date(2021, 5, 5)]}
    )
    with pytest.raises(exceptions.InvalidArgumentError, match="generated column 'g'"):
        write_deltalake(tmp_path / "theirs", wrong, mode="append")


def test_trunc_of_times_is_of_their_day_in_utc(tmp_path: Path) -> None:
    generated = {"delta.generationExpression": "trunc(`t`, 'month')"}
    DeltaTable.create(tmp_path, Schema([Field("t", "timestamp"), Field("g", "date", metadata=generated)]))
    times = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2024, 2, 29, 23, 0, tzinfo=UTC)]
    write_deltalake(tmp_path, pa.table({"t": times}), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table()["g"].to_pylist() == [date(1969, 12, 1), date(2024, 2, 1)]
    other = {"delta.generationExpression": "trunc(t, 'century')"}
    schema = Schema([Field("t", "timestamp"), Field("g", "date", metadata=other)])
    with pytest.raises(exceptions.UnsupportedError, match=r"trunc\(\)"):
        DeltaTable.create(tmp_path / "o", schema)
