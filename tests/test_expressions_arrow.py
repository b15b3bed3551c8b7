"""Expressions of pyarrow, and what DuckDB and polars push down as such, decoded from the form that pyarrow pickles."""

from __future__ import annotations

import contextlib
import datetime as dt
import pickle
import time
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest

import esker
from esker._native.expr import Predicate
from esker.arrow.predicate import portable_predicate
from esker.exceptions import EskerError, InvalidArgumentError, UnsupportedError
from esker.lance.scan.predicate import to_predicate

NAIVE = dt.datetime(2020, 5, 17, 3, 4, 5)


def every_type() -> pa.Table:
    """A column of each type that engines push filters on, two values and a null."""
    seconds = [0, 1_589_684_645, None]
    columns: dict[str, pa.Array] = {"n": pa.array([0, 1, 2])}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        columns[name] = pa.array([1, 100, None], getattr(pa, name)())
    columns |= {
        "float32": pa.array([0.5, 0.9, None], pa.float32()),
        "float64": pa.array([0.5, 0.9, None]),
        "bool": pa.array([True, False, None]),
        "string": pa.array(["a", "b", None]),
        "large_string": pa.array(["a", "b", None], pa.large_string()),
        "bytes": pa.array([b"ab", b"cd", None]),
        "fixed": pa.array([b"ab", b"cd", None], pa.binary(2)),
        "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
        "date32": pa.array([0, 18_399, None], pa.date32()),
        "date64": pa.array([0, 18_399 * 86_400_000, None], pa.date64()),
        "time_s": pa.array([0, 5, None], pa.time32("s")),
        "time_ms": pa.array([0, 5000, None], pa.time32("ms")),
        "time_us": pa.array([0, 5_000_000, None], pa.time64("us")),
        "duration": pa.array([1, 2, None], pa.duration("us")),
        "decimal": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(9, 2)),
        "struct": pa.array([{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}, None]),
    }
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        values = pa.array([None if s is None else s * scale for s in seconds], pa.timestamp(unit))
        columns[f"ts_{unit}"] = values
        columns[f"utc_{unit}"] = values.cast(pa.timestamp(unit, "UTC"))
    return pa.table(columns)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return every_type()


@pytest.fixture(scope="module")
def dataset(table: pa.Table) -> esker.LanceDataset:
    return esker.write_dataset(table, "memory://expressions-arrow")


DUCKDB = [
    "dictionary = 'a'",
    "dictionary IN ('a', 'c')",
    "time_s = time '00:00:05'",
    "time_ms > time '00:00:01'",
    "time_us = time '00:00:05'",
    "fixed = 'ab'::blob",
    "bytes <> 'ab'::blob",
    "duration IS NOT NULL",
    "duration IS NULL",
    "decimal > 1.6",
    "decimal = 2.25",
    "bool",
    "NOT bool",
    "struct.a > 1",
    "struct.b.c = 'x'",
    "date32 > date '1999-01-01'",
    "date64 > date '1999-01-01'",
    "float32 < 0.9",
    "float64 < 0.9",
    "float32 IN (0.5, 1, 2, 3)",
    "large_string >= 'b'",
    "string LIKE 'a%'",
    *[f"{name} > 1" for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")],
    *[f"{name} IN (1, 2, 3, 4, 5)" for name in ("int8", "uint32", "uint64")],
    *[f"ts_{unit} > timestamp '2000-01-01'" for unit in ("s", "ms", "us", "ns")],
    *[f"utc_{unit} > timestamptz '2000-01-01'" for unit in ("s", "ms", "us")],
    "int8 = 1 OR (uint32 > 5 AND ts_us IS NOT NULL)",
    "int64 NOT IN (1, 7, 8, 9)",
    "int64 IS DISTINCT FROM 1",
]


@pytest.mark.parametrize("where", DUCKDB)
def test_filters_that_duckdb_pushes_keep_its_own_rows(table: pa.Table, dataset: esker.LanceDataset, where: str) -> None:
    own, pushed = (duckdb.from_arrow(rows).filter(where).order("n").project("n") for rows in (table, dataset))
    assert pushed.fetchall() == own.fetchall()


POLARS = [
    *[
        pl.col(name) > 1
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
    ],
    *[pl.col(f"ts_{unit}") > dt.datetime(2000, 1, 1) for unit in ("ms", "us", "ns")],
    pl.col("dictionary") == "a",
    pl.col("string").is_in(["a", "c"]),
    pl.col("date32") > dt.date(1999, 1, 1),
    pl.col("uint32").is_in([1, 2, 3, 4, 5]),
    pl.col("float64").is_in([0.5, 2.0, 3.0, 4.0]),
    pl.col("int64").is_null(),
    ~pl.col("int64").is_in([1]),
    ~(pl.col("bool")),
    (pl.col("int8") > 0) & (pl.col("uint8") < 50) | pl.col("string").is_null(),
    pl.col("duration") > dt.timedelta(microseconds=1),
    pl.col("float64").is_nan(),
    pl.col("float64") > 0.6,
    pl.col("time_us") > dt.time(0, 0, 1),
    pl.col("decimal") > Decimal("1.60"),
]


@pytest.mark.parametrize("number", range(len(POLARS)))
def test_filters_that_polars_pushes_keep_its_own_rows(
    table: pa.Table, dataset: esker.LanceDataset, number: int
) -> None:
    # Polars reads no times of 32 bits and no dates of 64.
    columns = [name for name in table.column_names if name not in ("time_s", "fixed", "struct")]
    expected = pl.from_arrow(table.select(columns)).filter(POLARS[number])["n"].to_list()
    assert pl.scan_pyarrow_dataset(dataset).filter(POLARS[number]).select("n").collect()["n"].to_list() == expected


def field(name: str) -> pc.Expression:
    return pc.field(name)


PYARROW = [
    field("int8") < 1000,
    field("int8") > -1000,
    field("float32") < 0.9,
    field("float32") == 0.9,
    field("float32") <= 0.5,
    field("uint32") > 1,
    field("int8") == field("uint32"),
    field("uint64") == field("float64"),
    field("int64") > 1.5,
    field("uint64") >= 100,
    field("decimal") > Decimal("1.6"),
    field("dictionary") == "b",
    field("dictionary").isin(["b"]),
    field("large_string") == "a",
    field("fixed") == b"ab",
    field("bytes").isin([b"ab", b"zz"]),
    field("time_s") > dt.time(0, 0, 1),
    field("time_ms") == pa.scalar(5000, pa.time32("ms")),
    field("duration") > dt.timedelta(microseconds=1),
    field("date32") > dt.date(2000, 1, 1),
    field("date64") == dt.date(2020, 5, 17),
    field("date32") < NAIVE,
    field("ts_us") < field("date32"),
    field("ts_s") == field("ts_ns"),
    *[field(f"ts_{unit}") >= NAIVE for unit in ("s", "ms", "us", "ns")],
    *[field(f"ts_{unit}") == NAIVE for unit in ("s", "ms", "us", "ns")],
    *[
        field(f"utc_{unit}") > pa.scalar(NAIVE.replace(year=2019), pa.timestamp("us", "UTC"))
        for unit in ("s", "ms", "us", "ns")
    ],
    pc.field("struct", "a") > 1,
    pc.field("struct", "b", "c") == "x",
    pc.field("struct", "b").is_null(),
    pc.struct_field(field("struct"), "a") == 2,
    pc.struct_field(field("struct"), [1, 0]) == "x",
    field("string").is_valid(),
    ~field("bool"),
    field("bool") | (field("int8") > 50),
    field("int8").isin([1, None]),
    field("int8").isin(pa.array([1, 5], pa.uint64())),
    ~field("int8").isin([1, None]),
    pc.is_in(field("int8"), value_set=pa.array([1, None]), skip_nulls=True),
    field("int8").isin(pa.array([], pa.int8())),
    field("int64").cast(pa.float64()) > 1.5,
    field("int64").cast(pa.string()) == "100",
    field("string").cast(pa.large_string()) == "a",
    field("int64") + 1 == 2,
    field("int64") * 2 - 1 > 150,
    field("int64") / 3 == 33,
    pc.negate(field("int64")) < -50,
    pc.abs(field("int8")) > 50,
    pc.starts_with(field("string"), "a"),
    pc.ends_with(field("string"), "A", ignore_case=True),
    pc.match_substring(field("string"), "b"),
    pc.match_substring_regex(field("string"), "^[AB]$", ignore_case=True),
    pc.match_like(field("string"), "a%"),
    pc.utf8_upper(field("string")) == "A",
    pc.utf8_length(field("string")) == 1,
    pc.binary_length(field("string")) == 1,
    pc.utf8_slice_codeunits(field("string"), 0, 1) == "a",
    pc.find_substring(field("string"), "b") == 0,
    pc.replace_substring(field("string"), "a", "b") == "b",
    pc.utf8_trim(field("string"), "a") == "",
    pc.year(field("ts_us")) == 2020,
    pc.month(field("date32")) == 5,
    pc.day(field("ts_ns")) == 17,
    pc.hour(field("ts_s")) == 3,
    pc.second(field("ts_ms")) == 5,
    pc.if_else(field("bool"), field("int8"), 0) == 1,
    pc.coalesce(field("int8"), 7) == 7,
    pc.case_when(pc.make_struct(field("bool"), field("int8") > 5), 1, 2, 3) >= 2,
    pc.xor(field("bool"), True),
    pc.and_not_kleene(field("int8") > 0, field("bool")),
    pc.Expression._call("and", [field("bool"), field("int8") > 0]),
    ~pc.Expression._call("or", [field("bool"), field("int8") > 500]),
    pc.is_finite(field("float64")),
    pc.is_nan(field("float64")),
    pc.is_null(field("float64"), nan_is_null=True),
    pc.sqrt(field("float64")) > 0.8,
    pc.floor(field("float64")) == 0,
    pc.power(field("float64"), 2) < 0.5,
    pc.max_element_wise(field("int8"), 50) == 50,
    pc.scalar(True),
    pc.scalar(2) > field("int8"),
    pc.bit_wise_and(field("int64"), 4) == 4,
    pc.shift_left(field("int64"), 1) == 2,
    pc.sign(field("int64")) == 1,
    field("utc_s") == field("utc_ns"),
]


@pytest.mark.parametrize("number", range(len(PYARROW)))
def test_expressions_keep_the_rows_that_pyarrow_keeps(
    table: pa.Table, dataset: esker.LanceDataset, number: int
) -> None:
    expression = PYARROW[number]
    expected = pds.dataset(table).to_table(filter=expression)["n"].to_pylist()
    assert dataset.to_table(filter=expression)["n"].to_pylist() == expected, expression


def test_nan_and_nulls_are_as_in_sql_and_in_polars() -> None:
    nan = float("nan")
    rows = pa.table({"x": [1.0, 5.0, nan, None, -0.0], "n": [0, 1, 2, 3, 4]})
    dataset = esker.write_dataset(rows, "memory://expressions-nan")
    x, frame = pc.field("x"), pl.from_arrow(rows)
    for ours, theirs in [
        (x > 2, pl.col("x") > 2),
        (~(x > 2), ~(pl.col("x") > 2)),
        (x.isin([0.0, 3.0, 4.0, nan]), pl.col("x").is_in([0.0, 3.0, 4.0, nan])),
        (~x.isin([1.0]), ~pl.col("x").is_in([1.0])),
        (x == nan, pl.col("x") == nan),
    ]:
        expected = frame.filter(theirs)["n"].to_list()
        assert dataset.to_table(filter=ours)["n"].to_pylist() == expected, ours
        assert pl.scan_pyarrow_dataset(dataset).filter(theirs).select("n").collect()["n"].to_list() == expected
    assert dataset.to_table(filter=x.isin([1.0, None]))["n"].to_pylist() == [0, 3]


def test_what_rules_out_delta_files_takes_nan_and_nulls_as_pyarrow_does() -> None:
    schema = pa.schema([("x", pa.float64())])
    assert "isnan" in str(portable_predicate(~(pc.field("x") > 2), schema))
    assert "isnan" not in str(to_predicate(~(pc.field("x") > 2), schema))
    predicate = portable_predicate(~pc.field("x").isin([1.0]), schema)
    assert pickle.loads(pickle.dumps(predicate)).__str__() == str(predicate)


@pytest.mark.parametrize("depth", [25, 3000])
def test_a_filter_of_many_conditions_is_as_fast_as_long(depth: int) -> None:
    rows = pa.table({f"c{i}": [1, 2, 3] for i in range(30)})
    dataset = esker.write_dataset(rows, f"memory://expressions-deep-{depth}")
    conditions = [pc.field(f"c{i % 30}") > 1 for i in range(depth)]
    left = conditions[0]
    for condition in conditions[1:]:
        left = left & condition
    right = conditions[-1]
    for condition in reversed(conditions[:-1]):
        right = condition | right
    started = time.monotonic()
    assert dataset.count_rows(left) == 2
    assert dataset.count_rows(right) == 2
    assert time.monotonic() - started < 20


def test_a_query_of_many_conditions_is_pushed_at_once() -> None:
    dataset = esker.write_dataset(pa.table({f"c{i}": [1, 2, 3] for i in range(30)}), "memory://expressions-many")
    where = " AND ".join(f"c{i} > 1" for i in range(30))
    started = time.monotonic()
    assert duckdb.from_arrow(dataset).filter(where).count("*").fetchall() == [(2,)]
    assert time.monotonic() - started < 10


def test_a_list_of_a_hundred_thousand_values_is_decoded_at_once() -> None:
    dataset = esker.write_dataset(pa.table({"x": list(range(1000))}), "memory://expressions-long")
    started = time.monotonic()
    assert dataset.count_rows(pc.field("x").isin(pa.array(range(500, 100_500)))) == 500
    assert time.monotonic() - started < 15


def test_an_expression_that_nests_deep_is_refused() -> None:
    expression = pc.field("x")
    for _ in range(2000):
        expression = pc.negate(expression)
    with pytest.raises(InvalidArgumentError, match="at most 100 levels"):
        to_predicate(expression > 1, pa.schema([("x", pa.int64())]))


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (pc.strftime(pc.field("t")) == "x", "strftime"),
        (pc.round(pc.field("x"), 1) > 1, "round"),
        (pc.utf8_capitalize(pc.field("s")) == "A", "utf8_capitalize"),
        (pc.index_in(pc.field("x"), value_set=pa.array([1.0])) == 0, "index_in"),
    ],
)
def test_a_function_that_esker_lacks_is_refused_by_its_name(expression: pc.Expression, name: str) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("x", pa.float64()), ("s", pa.string())])
    with pytest.raises(UnsupportedError, match=f"Arrow function {name}"):
        to_predicate(expression, schema)


def test_a_column_that_does_not_exist_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="found nope: there are x"):
        to_predicate(pc.field("nope") > 1, pa.schema([("x", pa.int64())]))


def test_columns_by_number_are_found() -> None:
    assert to_predicate(pc.field(1) > 1, pa.schema([("x", pa.int64()), ("y", pa.int64())])).columns == ["y"]


def test_types_that_no_filter_names_do_not_matter() -> None:
    schema = pa.schema(
        [
            ("x", pa.int64()),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("d", pa.duration("s")),
            ("u", pa.list_(pa.uint64(), 3)),
        ]
    )
    assert to_predicate(pc.field("x") > 1, schema).columns == ["x"]
    assert to_predicate(pc.field("m").is_valid(), schema).columns == ["m"]


def test_a_pickled_predicate_is_the_same() -> None:
    schema = pa.schema([("x", pa.float32())])
    predicate = to_predicate((pc.field("x") < 0.9) & pc.field("x").is_valid(), schema)
    assert str(pickle.loads(pickle.dumps(predicate))) == str(predicate)


def test_damaged_expressions_are_errors() -> None:
    schema = pa.schema([("x", pa.int64())])
    _, (data,) = ((pc.field("x") > 1) & pc.field("x").isin([1, 2])).__reduce__()
    whole = bytes(data)
    for end in range(0, len(whole), 7):
        with pytest.raises(EskerError):
            Predicate.from_arrow_expression(whole[:end], schema)
    for at in range(0, len(whole), 5):
        damaged: Any = bytearray(whole)
        damaged[at] ^= 0x41
        with contextlib.suppress(EskerError):
            assert str(Predicate.from_arrow_expression(bytes(damaged), schema))
