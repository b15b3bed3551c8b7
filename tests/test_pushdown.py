"""Filters that DuckDB, polars and pyarrow push into a dataset, by type: the same rows as from a table in memory."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest

import esker

_DAY = dt.date(1970, 1, 1)


def _at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def _moments(zone: dt.tzinfo | None = None) -> list[dt.datetime | None]:
    return [
        _at(0).replace(tzinfo=zone),
        _at(5).replace(tzinfo=zone),
        None,
        _at(86_400).replace(tzinfo=zone),
        _at(5).replace(tzinfo=zone),
    ]


def _dictionary(index: pa.DataType) -> pa.Array:
    return pa.array(["a", "b", None, "c", "b"]).dictionary_encode().cast(pa.dictionary(index, pa.string()))


NUMBERS = [1, 2, None, 3, 2]
TEXTS = ["a", "b", None, "c", "b"]
BYTES = [b"aa", b"bb", None, b"cc", b"bb"]
TIMES = [dt.time(0), dt.time(0, 0, 5), None, dt.time(23, 59), dt.time(0, 0, 5)]
SPANS = [dt.timedelta(0), dt.timedelta(seconds=5), None, dt.timedelta(days=1), dt.timedelta(seconds=5)]
DECIMALS = [decimal.Decimal(text) if text else None for text in ("0.50", "1.25", "", "2.00", "1.25")]

COLUMNS: dict[str, pa.Array] = {
    **{
        str(data_type): pa.array(NUMBERS, data_type)
        for data_type in (
            pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
        )
    },
    "float16": pa.array([0.5, 1.0, None, 2.5, 1.0], pa.float64()).cast(pa.float16()),
    "float32": pa.array([0.5, 0.9, None, 2.5, 0.9], pa.float32()),
    "float64": pa.array([0.5, 0.9, None, 2.5, 0.9], pa.float64()),
    "bool": pa.array([True, False, None, True, False]),
    "utf8": pa.array(TEXTS),
    "large_utf8": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array(BYTES),
    "large_binary": pa.array(BYTES, pa.large_binary()),
    "fixed_size_binary": pa.array(BYTES, pa.binary(2)),
    "date32": pa.array([_DAY, dt.date(1970, 1, 2), None, dt.date(2024, 2, 29), dt.date(1970, 1, 2)], pa.date32()),
    "date64": pa.array([_DAY, dt.date(1970, 1, 2), None, dt.date(2024, 2, 29), dt.date(1970, 1, 2)], pa.date64()),
    **{f"time32_{unit}": pa.array(TIMES, pa.time32(unit)) for unit in ("s", "ms")},
    **{f"time64_{unit}": pa.array(TIMES, pa.time64(unit)) for unit in ("us", "ns")},
    **{f"timestamp_{unit}": pa.array(_moments(), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"utc_{unit}": pa.array(_moments(dt.UTC), pa.timestamp(unit, "UTC")) for unit in ("s", "ms", "us", "ns")},
    "zone": pa.array(_moments(dt.UTC), pa.timestamp("us", "Europe/Paris")),
    **{f"duration_{unit}": pa.array(SPANS, pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "decimal128": pa.array(DECIMALS, pa.decimal128(9, 2)),
    "decimal128_wide": pa.array(DECIMALS, pa.decimal128(38, 2)),
    "decimal256": pa.array(DECIMALS, pa.decimal256(50, 2)),
    "dictionary_i8": _dictionary(pa.int8()),
    "dictionary_i32": _dictionary(pa.int32()),
    "dictionary_u16": _dictionary(pa.uint16()),
}  # fmt: skip
"""A column of each type: five rows, the second and the last alike, the third null."""

OPERATIONS = ["=", "!=", "<", "<=", ">", ">=", "in", "between", "null", "valid", "and", "or", "not"]
VERSIONS = ["2.0", "2.1", "2.2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By column: the dataset, of the file versions in turn, and the table in memory."""
    folder = tmp_path_factory.mktemp("pushdown")
    made = {}
    for (name, column), version in zip(COLUMNS.items(), itertools.cycle(VERSIONS), strict=False):
        table = pa.table({"id": range(5), "c": column})
        made[name] = (
            esker.write_dataset(
                table, str(folder / name), data_storage_version=version, max_rows_per_file=3, durable=False
            ),
            table,
        )
    return made


def _ids(rows: Any) -> list[int]:
    return sorted(rows)


def _differences(ask: Callable[[Any, str], list[int]], dataset: Any, table: pa.Table) -> list[str]:
    """The operations that are answered another way over the dataset than over the table."""
    told = []
    for operation in OPERATIONS:
        try:
            expected = ask(table, operation)
        except BaseException:  # The engine has no such operation on the type, in memory either; polars panics.
            continue
        try:
            found = ask(dataset, operation)
        except Exception as error:
            told.append(f"{operation}: {type(error).__name__} {str(error)[:200]}")
            continue
        if found != expected:
            told.append(f"{operation}: found rows {found}, expected {expected}")
    return told


def _duckdb(rows: Any, operation: str) -> list[int]:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("rows", rows)
    # Bounds of the column's own type, which DuckDB folds to literals before it pushes.
    kind = connection.sql("select typeof(c) from rows limit 1").fetchall()[0][0]
    texts = connection.sql("select distinct c::varchar from rows where c is not null order by 1").fetchall()
    low, middle, high = [
        f"{_quoted(text[0])}::{'varchar' if kind.startswith('ENUM') else kind}" for text in [*texts, texts[-1]][:3]
    ]
    condition = {
        "in": f"c in ({low}, {high})",
        "between": f"c between {low} and {middle}",
        "null": "c is null",
        "valid": "c is not null",
        "and": f"c > {low} and c < {high}",
        "or": f"c = {low} or c = {high}",
        "not": f"not (c = {middle})",
    }.get(operation, f"c {operation} {middle}")
    return _ids(row[0] for row in connection.sql(f"select id from rows where {condition}").fetchall())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("name", COLUMNS)
def test_duckdb_filters_as_over_a_table_in_memory(name: str, tables: dict[str, Any]) -> None:
    assert _differences(_duckdb, *tables[name]) == []


POLARS = [name for name in COLUMNS if name != "zone"]
"""Moments of zones other than UTC polars pushes as if they were of UTC, into pyarrow's own datasets too."""


def test_polars_still_pushes_moments_of_a_zone_as_other_ones() -> None:
    table = pa.table({"id": range(5), "c": COLUMNS["zone"]})
    frame = pl.DataFrame(table)
    condition = pl.col("c") > frame["c"].gather([1]).item()
    assert frame.filter(condition)["id"].to_list() == [3]
    assert pl.scan_pyarrow_dataset(pds.dataset(table)).filter(condition).collect()["id"].to_list() == [0, 1, 3, 4]


def _polars(rows: Any, operation: str) -> list[int]:
    table = rows if isinstance(rows, pa.Table) else rows.to_table()
    values = pl.from_arrow(table)["c"]
    # Of several bounds the first is the smallest: all columns rise up to the fourth row.
    low, middle, high = (values.gather([at]).item() for at in (0, 1, 3))
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        low, middle, high = "a", "b", "c"
    column = pl.col("c")
    bounds = [pl.lit(bound, dtype=None if isinstance(bound, str) else values.dtype) for bound in (low, middle, high)]
    first, second, third = bounds
    condition = {
        "=": column == second,
        "!=": column != second,
        "<": column < second,
        "<=": column <= second,
        ">": column > second,
        ">=": column >= second,
        "in": column.is_in([low, high]),
        "between": column.is_between(first, second),
        "null": column.is_null(),
        "valid": column.is_not_null(),
        "and": (column > first) & (column < third),
        "or": (column == first) | (column == third),
        "not": ~(column == second),
    }[operation]
    lazy = pl.from_arrow(rows).lazy() if isinstance(rows, pa.Table) else pl.scan_pyarrow_dataset(rows)
    return _ids(lazy.filter(condition).collect()["id"].to_list())


@pytest.mark.parametrize("name", POLARS)
def test_polars_filters_as_over_a_table_in_memory(name: str, tables: dict[str, Any]) -> None:
    assert _differences(_polars, *tables[name]) == []


@pytest.mark.parametrize("name", POLARS)
def test_polars_literals_of_python_filter_as_over_a_table_in_memory(name: str, tables: dict[str, Any]) -> None:
    dataset, table = tables[name]
    try:
        bound = pl.from_arrow(table)["c"].gather([1]).item()
        expected = _ids(pl.from_arrow(table).filter(pl.col("c") > bound)["id"].to_list())
    except BaseException:  # Not in memory either; polars panics.
        return
    found = pl.scan_pyarrow_dataset(dataset).filter(pl.col("c") > bound).collect()
    assert _ids(found["id"].to_list()) == expected


def _pyarrow(rows: Any, operation: str) -> list[int]:
    values = COLUMNS[_pyarrow.name]  # type: ignore[attr-defined]
    dense = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    low, middle, high = dense[0], dense[1], dense[3]
    if pa.types.is_boolean(dense.type):
        low, middle, high = pa.scalar(False), pa.scalar(True), pa.scalar(True)
    field = pc.field("c")
    condition = {
        "=": field == middle,
        "!=": field != middle,
        "<": field < middle,
        "<=": field <= middle,
        ">": field > middle,
        ">=": field >= middle,
        "in": field.isin(pa.array([low.as_py(), high.as_py()], dense.type)),
        "between": (field >= low) & (field <= middle),
        "null": field.is_null(),
        "valid": field.is_valid(),
        "and": (field > low) & (field < high),
        "or": (field == low) | (field == high),
        "not": ~(field == middle),
    }[operation]
    if isinstance(rows, pa.Table):
        return _ids(rows.filter(condition)["id"].to_pylist())
    found = _ids(rows.to_table(filter=condition)["id"].to_pylist())
    assert rows.count_rows(condition) == len(found)
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_pyarrow_filters_as_over_a_table_in_memory(name: str, tables: dict[str, Any]) -> None:
    _pyarrow.name = name  # type: ignore[attr-defined]
    assert _differences(_pyarrow, *tables[name]) == []


MIXED = {
    "i8 < 1000": pc.field("int8") < 1000,
    "i8 = u32": pc.field("int8") == pc.field("uint32"),
    "u32 > 1": pc.field("uint32") > 1,
    "u64 in": pc.field("uint64").isin([1, 3]),
    "f32 < 0.9": pc.field("float32") < 0.9,
    "f32 < f64": pc.field("float32") < pc.field("float64"),
    "i32 + u8 > 2": pc.field("int32") + pc.field("uint8") > 2,
    "i64 * 2 = 4": pc.field("int64") * 2 == 4,
    "cast": pc.field("int8").cast(pa.float64()) > 1.5,
    "date32 = date64": pc.field("date32") == pc.field("date64"),
    "timestamp_s < timestamp_ns": pc.field("timestamp_s") < pc.field("timestamp_ns"),
    "decimal > 1": pc.field("decimal128") > decimal.Decimal("1.00"),
    "negated": ~(pc.field("int8") > 1) | pc.field("utf8").is_null(),
    "if_else": pc.if_else(pc.field("bool"), pc.field("int8"), pc.field("int16")) > 1,
    "starts_with": pc.starts_with(pc.field("utf8"), "b"),
    "match_like": pc.match_like(pc.field("utf8"), "b%"),
    "length": pc.utf8_length(pc.field("utf8")) == 1,
    "coalesce": pc.coalesce(pc.field("int8"), 9) == 9,
    "is_nan": pc.is_nan(pc.field("float64")),
    "a literal": pc.scalar(True),
}


@pytest.mark.parametrize("name", MIXED)
def test_pyarrow_expressions_over_many_types_filter_as_over_a_table_in_memory(name: str, uri: str) -> None:
    columns = {column: values for column, values in COLUMNS.items() if not column.startswith("dictionary")}
    table = pa.table({"id": range(5), **columns})
    dataset = esker.write_dataset(table, uri, max_rows_per_file=3)
    expected = table.filter(MIXED[name])["id"].to_pylist()
    assert dataset.to_table(filter=MIXED[name])["id"].to_pylist() == expected
    assert dataset.count_rows(MIXED[name]) == len(expected)
