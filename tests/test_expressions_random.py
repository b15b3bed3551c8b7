"""Random conditions over random rows keep the rows that DuckDB and pyarrow keep, as SQL and as expressions."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest

import esker

ROWS = 60
NAN = math.nan


@dataclass(frozen=True)
class Column:
    """What values a column has, and how one of them is written."""

    type: pa.DataType
    draw: Callable[[random.Random], object]
    sql: Callable[[object], str] = str


def _number(value: object) -> str:
    return repr(value) if isinstance(value, float) and math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"


def _text(value: object) -> str:
    return f"'{value}'"


EPOCH = dt.datetime(2020, 1, 1)

COLUMNS = {
    "i8": Column(pa.int8(), lambda rng: rng.randint(-5, 5)),
    "i64": Column(pa.int64(), lambda rng: rng.choice([0, 3, -(2**62), 2**62, rng.randint(-5, 5)])),
    "u32": Column(pa.uint32(), lambda rng: rng.randint(0, 9)),
    "f64": Column(pa.float64(), lambda rng: rng.choice([0.0, -0.0, 1.5, -2.25, NAN, math.inf]), _number),
    "s": Column(pa.string(), lambda rng: rng.choice(["", "a", "ab", "b", "ä"]), _text),
    "dict": Column(pa.dictionary(pa.int32(), pa.string()), lambda rng: rng.choice(["a", "ab", "b"]), _text),
    "dec": Column(pa.decimal128(9, 2), lambda rng: Decimal(rng.randint(-300, 300)) / 100),
    "day": Column(
        pa.date32(), lambda rng: EPOCH.date() + dt.timedelta(days=rng.randint(-3, 3)), lambda value: f"DATE '{value}'"
    ),
    "ms": Column(
        pa.timestamp("ms"),
        lambda rng: EPOCH + dt.timedelta(hours=rng.randint(-30, 30)),
        lambda value: f"TIMESTAMP '{value}'",
    ),
    "us": Column(
        pa.timestamp("us"),
        lambda rng: EPOCH + dt.timedelta(hours=rng.randint(-30, 30)),
        lambda value: f"TIMESTAMP '{value}'",
    ),
}

ALIKE = [["i8", "i64", "u32"], ["f64"], ["s", "dict"], ["dec"], ["day", "ms", "us"], ["st.a"]]


def rows(rng: random.Random, nulls: float) -> pa.Table:
    data = {}
    for name, column in COLUMNS.items():
        values = [None if rng.random() < nulls else column.draw(rng) for _ in range(ROWS)]
        data[name] = pa.array(values, column.type.value_type if name == "dict" else column.type)
        if name == "dict":
            data[name] = data[name].dictionary_encode()
    a = pa.array([rng.randint(-3, 3) for _ in range(ROWS)])
    # Structs that are null have values below.
    data["st"] = pa.StructArray.from_arrays([a], ["a"], mask=pa.array([rng.random() < 0.3 for _ in range(ROWS)]))
    data["n"] = pa.array(range(ROWS))
    return pa.table(data)


@dataclass(frozen=True)
class Condition:
    """One condition twice, and whether pyarrow's own datasets take it otherwise: NaN and nulls in lists."""

    expression: pc.Expression
    sql: str
    is_sql_only: bool = False


def _field(name: str) -> pc.Expression:
    return pc.field(*name.split("."))


def _drawn(name: str, rng: random.Random) -> tuple[object, str]:
    column = COLUMNS.get(name, COLUMNS["i8"])
    value = column.draw(rng)
    return value, column.sql(value)


def _literal(name: str, value: object) -> pc.Expression:
    if isinstance(value, Decimal):
        return pc.scalar(pa.scalar(value, pa.decimal128(9, 2)))
    return pc.scalar(value)


OPERATORS: dict[str, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def leaf(rng: random.Random) -> Condition:
    family = rng.choice(ALIKE)
    name = rng.choice(family)
    kind = rng.choice(["compare", "compare", "columns", "in", "null", "between"])
    is_float = name == "f64"
    if kind == "null":
        negated = rng.random() < 0.5
        expression = _field(name).is_valid() if negated else _field(name).is_null()
        return Condition(expression, f"{name} IS {'NOT ' if negated else ''}NULL")
    if kind == "in":
        drawn = [_drawn(name, rng) for _ in range(rng.randint(1, 7))]
        # Lists have the type of their column here.
        type_ = {"dict": pa.string(), "st.a": pa.int64()}.get(name) or COLUMNS[name].type
        values = pa.array([value for value, _ in drawn], type_)
        return Condition(
            _field(name).isin(values), f"{name} IN ({', '.join(sql for _, sql in drawn)})", is_sql_only=True
        )
    operator = rng.choice(list(OPERATORS))
    if kind == "columns":
        other = rng.choice(family)
        return Condition(OPERATORS[operator](_field(name), _field(other)), f"{name} {operator} {other}", is_float)
    if kind == "between":
        (low, low_sql), (high, high_sql) = _drawn(name, rng), _drawn(name, rng)
        expression = (_field(name) >= _literal(name, low)) & (_field(name) <= _literal(name, high))
        return Condition(expression, f"{name} BETWEEN {low_sql} AND {high_sql}", is_float)
    value, sql = _drawn(rng.choice(family), rng)
    return Condition(OPERATORS[operator](_field(name), _literal(name, value)), f"{name} {operator} {sql}", is_float)


def condition(rng: random.Random, depth: int) -> Condition:
    if depth == 0 or rng.random() < 0.2:
        return leaf(rng)
    left = condition(rng, depth - 1)
    kind = rng.choice(["and", "or", "not", "case"])
    if kind == "not":
        return Condition(~left.expression, f"NOT ({left.sql})", left.is_sql_only)
    right = condition(rng, depth - 1)
    is_sql_only = left.is_sql_only or right.is_sql_only
    if kind == "and":
        return Condition(left.expression & right.expression, f"({left.sql}) AND ({right.sql})", is_sql_only)
    if kind == "or":
        return Condition(left.expression | right.expression, f"({left.sql}) OR ({right.sql})", is_sql_only)
    case = pc.case_when(pc.make_struct(left.expression), right.expression, left.expression)
    return Condition(case, f"CASE WHEN {left.sql} THEN {right.sql} ELSE {left.sql} END", is_sql_only)


@pytest.mark.parametrize("seed", range(6))
def test_random_conditions_keep_the_rows_that_duckdb_and_pyarrow_keep(seed: int) -> None:
    rng = random.Random(seed)
    version = ["2.1", "2.2", "legacy"][seed % 3]
    # Files of 0.1 have statistics, and keep neither nulls of numbers nor empty texts that may be null.
    table = rows(rng, 0 if version == "legacy" else 0.2)
    stored = table.drop_columns("st") if version == "legacy" else table
    if version == "legacy":
        stored = stored.cast(pa.schema([field.with_nullable(False) for field in stored.schema]))
    dataset = esker.write_dataset(stored, f"memory://random-{seed}", data_storage_version=version, max_rows_per_group=8)
    relation = duckdb.from_arrow(table)
    for _ in range(60):
        asked = condition(rng, 3)
        if version == "legacy" and "st.a" in asked.sql:
            continue
        expected = [n for (n,) in relation.filter(asked.sql).order("n").project("n").fetchall()]
        assert dataset.to_table(filter=asked.sql, columns=["n"])["n"].to_pylist() == expected, asked.sql
        assert dataset.to_table(filter=asked.expression, columns=["n"])["n"].to_pylist() == expected, asked.expression
        if not asked.is_sql_only:
            try:
                arrow = pds.dataset(table).to_table(filter=asked.expression)["n"].to_pylist()
            except pa.ArrowException:
                # It casts no large number to a narrower type.
                continue
            assert arrow == expected, asked.expression
