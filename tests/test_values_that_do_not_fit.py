"""New values that their column cannot hold: an error that leaves the table as it was, never another value."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, SchemaMismatchError

MAX64 = 2**63 - 1
ROWS = pa.table(
    {
        "i8": pa.array([100, None], pa.int8()),
        "u8": pa.array([200, None], pa.uint8()),
        "i32": pa.array([2**31 - 1, 0], pa.int32()),
        "least": pa.array([-(2**31), 0], pa.int32()),
        "i64": [MAX64, 0],
        "u64": pa.array([2**64 - 1, 0], pa.uint64()),
        "f": [1e300, 0.5],
        "nan": [float("nan"), 0.5],
        "f32": pa.array([1.5, 2.5], pa.float32()),
        "f16": pa.array([1.5, 2.5], pa.float16()),
        "d": [Decimal("999.99"), Decimal("0.01")],
        "big": pa.array([Decimal(10**37), Decimal(0)], pa.decimal128(38, 0)),
        "s": ["text", "300"],
        "fixed": [b"abc", b"def"],
        "long": [b"abcd", b"def"],
        "day": pa.array([datetime.date(2500, 1, 1), datetime.date(2020, 1, 1)]),
        "ns": pa.array([0, 1], pa.timestamp("ns")),
        "sec": pa.array([2**40, 1], pa.timestamp("s")),
    }
).set_column(13, pa.field("fixed", pa.binary(3)), pa.array([b"abc", b"def"], pa.binary(3)))


def _files(table: Path) -> list[str]:
    """The data files of a table, whether a version names them or not."""
    return sorted(path.name for path in (table / "data").iterdir())


TOO_LARGE = [
    *[("i8", "i8 + i8"), ("u8", "u8 + u8"), ("u8", "u8 * u8"), ("u8", "u8 - u8 - u8"), ("i32", "i32 + i32")],
    *[("i32", "i32 + 1"), ("i64", "i64 + 1"), ("i64", "i64 * 2"), ("i64", "-i64 - 2"), ("least", "-least")],
    *[("u64", "u64 + u64"), ("i64", "9223372036854775807 + 1"), ("i64", "9223372036854775807 * i64")],
    *[("u8", "300"), ("u8", "-1"), ("u8", "i32"), ("i8", "u8"), ("i32", "i64"), ("i64", "u64"), ("u64", "-1")],
    *[("i64", "f"), ("i64", "nan"), ("i32", "f"), ("u8", "f32 - 3"), ("i8", "f32 * 100")],
    *[("f32", "f"), ("f16", "100000"), ("f16", "i32"), ("d", "d * 2"), ("d", "1000"), ("d", "f"), ("big", "big * 10")],
    *[("i32", "s"), ("u8", "'300'"), ("d", "'x'"), ("fixed", "long"), ("fixed", "s")],
    *[("ns", "day"), ("ns", "sec"), ("ns", "timestamp '2500-01-01'"), ("day", "'no date'")],
    ("i8", "CASE WHEN i8 > 0 THEN i8 + i8 ELSE i8 END"),
]


@pytest.mark.parametrize(("column", "sql"), TOO_LARGE)
def test_a_value_that_does_not_fit_is_an_error_and_changes_nothing(column: str, sql: str, tmp_path: Path) -> None:
    dataset = esker.write_dataset(ROWS, tmp_path / "t")
    before = _files(tmp_path / "t")
    with pytest.raises((InvalidArgumentError, SchemaMismatchError)):
        dataset.update({column: sql})
    found = esker.dataset(tmp_path / "t")
    assert (dataset.version, found.version, _files(tmp_path / "t")) == (1, 1, before)
    # NaN is not equal to itself.
    assert found.to_table().drop_columns("nan") == ROWS.drop_columns("nan")


@pytest.mark.parametrize(
    ("column", "sql", "values"),
    [
        ("i8", "i8 + 27", [127, None]),
        ("u8", "u8 + 55", [255, None]),
        ("i64", "i64 - 1", [MAX64 - 1, -1]),
        ("u8", "f32 * 2", [3, 5]),
        ("least", "-i32", [-(2**31) + 1, 0]),
        ("i32", "CASE WHEN i32 > 0 THEN 0 ELSE i32 + 1 END", [0, 1]),
        ("f32", "f32 * 2", [3.0, 5.0]),
        ("d", "d - 999", [Decimal("0.99"), Decimal("-998.99")]),
        ("ns", "timestamp '2020-01-01'", [datetime.datetime(2020, 1, 1)] * 2),
        ("f", "f * 1e300", [float("inf"), 0.5 * 1e300]),
    ],
)
def test_a_value_that_fits_is_stored(column: str, sql: str, values: list[object], uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    dataset.update({column: sql})
    assert dataset.to_table()[column].to_pylist() == values


@pytest.mark.parametrize(
    "sql", ["i8 + i8", "u8 * u8", "i32 + i32", "i64 + 1", "i64 * 2", "-least", "u64 + u64", "big * 10"]
)
def test_new_columns_do_not_wrap_either_as_in_duckdb(sql: str, tmp_path: Path) -> None:
    rows = ROWS.drop_columns("f16")
    with pytest.raises(duckdb.OutOfRangeException):
        duckdb.sql(f"SELECT {sql} FROM rows").fetchall()
    dataset = esker.write_dataset(rows, tmp_path / "t")
    before = _files(tmp_path / "t")
    with pytest.raises(InvalidArgumentError, match=r"[Oo]verflow"):
        dataset.add_columns({"new": sql})
    with pytest.raises(InvalidArgumentError, match=r"[Oo]verflow"):
        dataset.get_fragments()[0].merge_columns({"new": sql})
    assert (esker.dataset(tmp_path / "t").version, _files(tmp_path / "t")) == (1, before)


def test_a_column_of_another_type_holds_all_values_or_stays(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    for column, type_ in [("i32", pa.int8()), ("i64", pa.float64()), ("nan", pa.int64()), ("sec", pa.timestamp("ns"))]:
        with pytest.raises(SchemaMismatchError, match=f"column '{column}' cannot become"):
            dataset.alter_columns({"path": column, "data_type": type_})
    assert dataset.version == 1
