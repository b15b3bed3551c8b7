"""Expressions of constraints and generated columns beside Spark, which evaluates them row by row."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from esker._native.expr import Expression
from esker.delta.definition.expressions import TableExpression
from esker.exceptions import UnsupportedError

ROWS = pa.table(
    {
        "n": pa.array([0, 1, -7, 10_000_000_000, None, (1 << 53) + 1], pa.int64()),
        "i": pa.array([0, 1, -7, 100, None, 3], pa.int32()),
        "d": pa.array([Decimal(it) for it in ("0.00", "1.25", "-7.10", "0.30", "5.50", "0.01")], pa.decimal128(5, 2)),
        "wide": pa.array([Decimal(it) for it in ("0", "1.0000000001", "-1", "5", "7", "3.5")], pa.decimal128(38, 10)),
        "f": pa.array([0.0, 0.1, 1e10, math.inf, None, 16777217.0], pa.float32()),
        "x": pa.array([-0.0, 0.1, math.nan, math.inf, None, 2.0**53], pa.float64()),
        "s": ["", "a ", "\u0130\u03a3\u00df", None, "a%b", "10"],
        "b": pa.array([b"", b"a", "\u00df".encode(), None, b"ab", b"10"], pa.binary()),
        "day": pa.array(
            [date(1969, 12, 31), date(2020, 2, 29), None, date(1, 1, 1), date(2024, 1, 1), date(1900, 3, 1)]
        ),
        "t": pa.array([-1, 0, 1_582_934_399_999_999, None, -62_135_596_800_000_000, 1], pa.timestamp("us", "UTC")),
    }
)
ALIKE = [
    *("n % 3", "i % -3", "n + 1", "d * 2", "d + d - i", "d * d", "d % 2", "n * d", "x * 0.1", "f * 0.5"),
    *("x % 2", "f * x", "abs(d)", "-i", "n + i * 2"),
    *(
        "x = 0.0",
        "x > 1",
        "x <=> x",
        "x IN (0, 0.1)",
        "f > 0.1",
        "f = x",
        "x BETWEEN 0 AND f",
        "d = 0.3",
        "d >= 1",
        "n < 1.5",
    ),
    *("d IN (1.25, 0.3)", "d = wide", "n = x", "n > 9007199254740992.0", "wide < 100000000000000000000"),
    *(
        "s || i",
        "s || d",
        "s || day",
        "s || n || 'x'",
        "upper(s)",
        "lower(s)",
        "length(s)",
        "s LIKE 'a_'",
        "s LIKE 'a!%%' ESCAPE '!'",
    ),
    *(
        "i BETWEEN NULL AND 1",
        "i IN (1, NULL)",
        "i NOT IN (1, NULL)",
        "coalesce(d, 0.0)",
        "coalesce(n, i)",
        "coalesce(x, 0.5)",
    ),
    *("CASE WHEN i > 0 THEN d ELSE 2 END", "CASE i WHEN 1 THEN 'a' END", "CAST(d AS INT)", "CAST(d AS DECIMAL(10, 1))"),
    *("CAST(s AS BINARY)", "CAST(d AS STRING)", "CAST(t AS DATE)", "day < t", "CAST(0.1 AS DECIMAL(5, 2)) + d"),
]
ELSEWHERE = [
    *("d * 1.5", "n * 0.1", "0.1 + 0.2", "d % 0.1 = 0", "f + i", "f - d", "f + 1", "wide + n", "wide * d"),
    *("coalesce(n, 1.5)", "n = 9007199254740993.0", "i < 100000000000000000000", "s || x", "s || t", "length(x)"),
    *("length(b)", "CAST(d AS DECIMAL)", "CAST(1.005 AS DECIMAL(5, 2))"),
]


def plain(value: Any) -> Any:
    """A value that is equal to itself, and to no other type's but a float's."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return bytes(value) if isinstance(value, bytearray) else (type(value), value)


@pytest.fixture(scope="module")
def theirs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The values of all expressions to Spark, but for a remainder by zero, which is an error there."""
    path = tmp_path_factory.mktemp("rules") / "rows.parquet"
    pq.write_table(ROWS, path)
    asked = [*ALIKE, *ELSEWHERE]
    rows = spark.read.parquet(str(path)).selectExpr(*(f"{sql} AS v{at}" for at, sql in enumerate(asked))).collect()
    return {sql: [plain(row[f"v{at}"]) for row in rows] for at, sql in enumerate(asked)}


def ours(found: TableExpression | Expression) -> list[Any]:
    """The values here."""
    (batch,) = ROWS.combine_chunks().to_batches()
    return [plain(value) for value in pa.array(found.evaluate(batch)).to_pylist()]


@pytest.mark.parametrize("sql", ALIKE)
def test_what_is_taken_has_the_values_of_spark(theirs: dict[str, list[Any]], sql: str) -> None:
    assert ours(TableExpression(sql, ROWS.schema, "constraint")) == theirs[sql]


@pytest.mark.parametrize("sql", ELSEWHERE)
def test_what_has_other_values_in_spark_is_refused(theirs: dict[str, list[Any]], sql: str) -> None:
    with pytest.raises(UnsupportedError, match="as Spark does"):
        TableExpression(sql, ROWS.schema, "constraint")
    assert ours(Expression.parse_rule(sql, ROWS.schema)) != theirs[sql]
