"""Values of filters that are tuples: texts as partition values, numbers and times that a column does not have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esker.delta import DeltaTable
from esker.exceptions import InvalidArgumentError

MIDNIGHT = dt.datetime(2024, 1, 1)
ROWS = pa.table(
    {
        "id": range(6),
        "n": pa.array([1, -2, None, 10, 0, 2], pa.int32()),
        "f": pa.array([0.5, 1.5, None, 2.5, -0.5, 3.5], pa.float32()),
        "x": pa.array([0.1, 1.5, None, 2.5, -0.5, 3.5], pa.float32()),
        "d": pa.array([MIDNIGHT.date(), None, dt.date(2024, 10, 1), dt.date(2001, 1, 1), None, dt.date(2030, 1, 1)]),
        "m": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("10.05"), Decimal(0), Decimal("1.51")]),
        "s": pa.array(["NaN", "b", None, "c", "1", ""]),
    }
)
ODD: list[tuple[str, list[Any]]] = [
    ("n", [1.5, 2**40, -(2**40), float("inf"), Decimal("1.5"), 1.0]),
    ("f", [0.5, 1e300, Decimal("1.5")]),
    ("x", [0.1, Decimal("0.1")]),
    ("d", [MIDNIGHT, MIDNIGHT.replace(hour=5), dt.datetime(2001, 1, 1, 0, 0, 1)]),
    ("m", [Decimal("1.505"), 1.505, Decimal("10.050"), 1e30, 1.5]),
    ("s", [b"b", None]),
]
PARTITIONS: list[tuple[pa.Array, list[Any]]] = [
    (pa.array([float("nan"), 1.5, None, -2.5]), ["NaN", "nan", float("nan"), "+1.5", 1.5, "-inf", ""]),
    (pa.array([0.1, 1.5, None, float("nan")], pa.float32()), [0.1, "0.1", "NaN"]),
    (pa.array(["NaN", "b", None, "1"]), ["NaN", "b", b"b", 1, ""]),
    (pa.array([1, -2, None, 10]), ["+1", "-02", "", 10]),
    (
        pa.array([MIDNIGHT.date(), None, dt.date(2024, 10, 1), dt.date(2001, 1, 1)]),
        ["2024-1-1", "+2024-01-01", "24-1-1", "", " 2024-10-1"],
    ),
    (pa.array([MIDNIGHT, None, MIDNIGHT.replace(hour=5)], pa.timestamp("us", "UTC")), ["2024-1-1 0:0:0", ""]),
]


@pytest.mark.parametrize(("column", "value"), [(name, value) for name, values in ODD for value in values], ids=str)
def test_what_a_type_does_not_have_is_compared_as_it_is(tmp_path: Path, column: str, value: Any) -> None:
    for start in range(0, 6, 3):
        deltalake.write_deltalake(tmp_path, ROWS.slice(start, 3), mode="append")
    ours, theirs = DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)
    for operator in ("=", "!=", "<", "<=", ">", ">="):
        if value is None and operator in ("=", "!="):
            # Null is equal to null here, as in filters over partitions.
            continue
        where: Any = [(column, operator, value)]
        expected = sorted(theirs.to_pyarrow_table(filters=where)["id"].to_pylist())
        assert sorted(ours.to_pyarrow_table(filters=where)["id"].to_pylist()) == expected
        assert sorted(ours.scan(["id"], where).read_all()["id"].to_pylist()) == expected


@pytest.mark.parametrize(("column", "value"), [("n", 1.5), ("n", 2**40), ("m", Decimal("1.505")), ("d", MIDNIGHT)])
def test_a_list_finds_what_its_type_has(tmp_path: Path, column: str, value: Any) -> None:
    deltalake.write_deltalake(tmp_path, ROWS)
    has = [number for number, found in enumerate(ROWS[column].to_pylist()) if found is not None]
    one = ROWS[column][3].as_py()
    kept = {3, 0} if value == MIDNIGHT else {3}
    table = DeltaTable(tmp_path)
    assert set(table.to_pyarrow_table(filters=[(column, "in", [value, one])])["id"].to_pylist()) == kept
    others = table.to_pyarrow_table(filters=[(column, "not in", [value, one])])["id"].to_pylist()
    assert sorted(others) == sorted(set(has) - kept)


@pytest.mark.parametrize(
    ("values", "value"),
    [(values, value) for values, given in PARTITIONS for value in given],
    ids=lambda given: str(given.type) if isinstance(given, pa.Array) else repr(given),
)
def test_a_text_is_the_partition_value_that_deltalake_takes_it_for(
    tmp_path: Path, values: pa.Array, value: Any
) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": range(len(values)), "p": values}), partition_by=["p"])
    ours, theirs = DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)
    listed = [] if value == "" else ["in", "not in"]
    for operator in ("=", "!=", "<", "<=", ">", ">=", *listed):
        where: Any = [("p", operator, [value] if operator in listed else value)]
        expected = sorted(theirs.file_uris(file_pruning_predicate=where))
        assert sorted(ours.file_uris(file_pruning_predicate=where)) == expected, where
        found = [table.partitions(file_pruning_predicate=where) for table in (ours, theirs)]
        assert sorted(map(repr, found[0])) == sorted(map(repr, found[1])), where
        kept = [table.to_pyarrow_dataset(file_pruning_predicate=where).to_table()["id"] for table in (ours, theirs)]
        assert sorted(kept[0].to_pylist()) == sorted(kept[1].to_pylist()), where
        assert sorted(ours.to_pyarrow_table(filters=where)["id"].to_pylist()) == sorted(kept[1].to_pylist()), where


@pytest.mark.parametrize("value", ["2024-13-1", "x", "2024-1", "1-1-1-1", b"x"])
def test_a_text_that_is_no_value_is_an_error(tmp_path: Path, value: Any) -> None:
    deltalake.write_deltalake(tmp_path, ROWS)
    for column in ("d", "n"):
        with pytest.raises(InvalidArgumentError, match=f"expected a value of type .* for column '{column}'"):
            DeltaTable(tmp_path).to_pyarrow_table(filters=[(column, "=", value)])


@pytest.mark.parametrize("column", ["id", "p"])
def test_a_list_without_values_leaves_nothing_as_in_deltalake(tmp_path: Path, column: str) -> None:
    for _ in range(2):
        deltalake.write_deltalake(
            tmp_path, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"], mode="append"
        )
    lists: list[list[tuple[str, str, Any]]] = [[(column, "in", [])], [(column, "in", []), ("p", "=", "a")]]
    for filters in lists:
        for library in (deltalake.DeltaTable(tmp_path), DeltaTable(tmp_path)):
            found: Any = library
            assert found.file_uris(file_pruning_predicate=filters) == []
            assert found.partitions(file_pruning_predicate=filters) == []
            assert found.to_pyarrow_dataset(file_pruning_predicate=filters).to_table().num_rows == 0
    table = DeltaTable(tmp_path)
    assert len(table.file_uris(file_pruning_predicate=[[(column, "in", [])], [("p", "=", "a")]])) == 2
    assert len(table.file_uris(file_pruning_predicate=[(column, "not in", [])])) == 4


def test_a_filter_that_is_false_for_every_row_leaves_no_file(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    table = DeltaTable(tmp_path)
    for sql in ("false", "1 = 0", "false and p = 'a'", "null"):
        assert table.file_uris(file_pruning_predicate=sql) == [], sql
        assert table.partitions(file_pruning_predicate=sql) == [], sql
    for sql in ("true", "1 = 1", "true or p = 'a'", "random() < 2", "random() < 0.0001"):
        assert len(table.file_uris(file_pruning_predicate=sql)) == 2, sql
    for where, rows in (
        (pc.scalar(False), 0),
        (pc.field("p").isin(pa.array([], pa.string())), 0),
        (pc.scalar(True), 2),
    ):
        assert table.to_pyarrow_table(filters=where).num_rows == rows
        assert len(table.file_uris(file_pruning_predicate=where)) == rows


def test_a_column_that_is_never_null_leaves_its_files(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1, 2]}, schema=schema))
    for sql, rows in (("id is not null", 2), ("id is null", 0), ("id is not null and true", 2)):
        assert DeltaTable(tmp_path).to_pyarrow_table(filters=sql).num_rows == rows
        assert len(DeltaTable(tmp_path).file_uris(file_pruning_predicate=sql)) == min(rows, 1)
