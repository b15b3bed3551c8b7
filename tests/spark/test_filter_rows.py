"""The option `filter` beside Spark's own `where`: the same rows, on random data of every kind, for both formats.

The readers take no filters from Spark (`pushFilters`): this is what would be pushed down, said out loud.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import esker
import esker.delta
from esker.exceptions import InvalidArgumentError
from tests.spark.conftest import load
from tests.spark.jobs import read, wrote

FRAME = (
    T.StructType()
    .add("k", T.LongType())
    .add("n", T.IntegerType())
    .add("f", T.FloatType())
    .add("d", T.DoubleType())
    .add("m", T.DecimalType(10, 2))
    .add("w", T.StringType())
    .add("o", T.BooleanType())
    .add("day", T.DateType())
    .add("at", T.TimestampType())
    .add("local", T.TimestampNTZType())
    .add("s", T.StructType().add("a", T.IntegerType()).add("b", T.StringType()))
    .add("l", T.ArrayType(T.IntegerType()))
    .add("t", T.MapType(T.StringType(), T.IntegerType()))
)
NOON = dt.datetime(2024, 7, 1, 12)
KINDS: dict[str, list[Any]] = {
    "n": [-(2**31), -1, 0, 1, 7, 2**31 - 1],
    "f": [-math.inf, -1.5, -0.0, 0.0, 0.5, 1.5, math.inf, math.nan],
    "d": [-math.inf, -1.5, -0.0, 0.0, 0.1, 1.5, math.inf, math.nan],
    "m": [Decimal("-1.50"), Decimal("0.00"), Decimal("1.50"), Decimal("99999999.99")],
    "w": ["", "a", "A", "ab", "é", "x'y", "7"],
    "o": [True, False],
    "day": [dt.date(1969, 12, 31), dt.date(2024, 7, 1), dt.date(2024, 7, 2)],
    "at": [NOON.replace(tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in (-24, -1, 0, 1, 24)],
    "local": [NOON + dt.timedelta(hours=n) for n in (-24, -1, 0, 1, 24)],
    "s": [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 2, "b": None}],
    "l": [[], [1], [1, None], [2, 3]],
    "t": [[], [("a", 1)], [("b", None)]],
}
FILTERS = [
    *(
        f"{column} {operator} {value}"
        for column in "fd"
        for operator in ("=", "<>", "<", ">=")
        for value in ("0.5D", "1.5D")
    ),
    *(f"isnan({column})" for column in "fd"),
    "d > 1.5D OR n = 1",
    "NOT d < 1.5D",
    "d = 0.0D",
    "d < 0.0D",
    "f IN (0.0D, 0.5D)",
    "d = double('NaN')",
    "d >= double('NaN')",
    "d BETWEEN -1.5D AND 1.5D",
    "d IN (0.1D, 1.5D)",
    "f IS NULL OR f = -1.5D",
    *(f"m {operator} 1.50" for operator in ("=", "<>", "<", "<=", ">", ">=")),
    "m = 1.5 AND n > 0",
    "m IN (1.50, -1.50)",
    "n = 7",
    "n <> 7",
    "NOT n IN (1, 7)",
    "n IN (1, 7, NULL)",
    "n IS NOT NULL AND NOT n = 0",
    "n > 1 OR w = 'a'",
    "w = 'x''y'",
    "w >= 'a'",
    "w LIKE 'a%'",
    "w = ''",
    "o",
    "NOT o",
    "o = true OR o IS NULL",
    "day = date'2024-07-01'",
    "day < '2024-07-02'",
    "at = timestamp'2024-07-01 12:00:00'",
    "at > '2024-07-01 11:30:00'",
    "at <= timestamp'2024-07-01 12:00:00Z'",
    "local = timestamp'2024-07-01 12:00:00'",
    "local > '2024-07-01'",
    "at BETWEEN '2024-07-01' AND '2024-07-02'",
    "s IS NULL",
    "s.a = 1",
    "s.a IS NULL",
    "s.b > 'x' OR s.a = 2",
    "l IS NULL",
    "t IS NOT NULL",
    "n = NULL",
    "(n > 0) = o",
]
# Here numbers have no suffix, and types are no functions.
OURS = {sql: re.sub(r"(\d)D\b", r"\1", sql).replace("double('NaN')", "cast('NaN' AS double)") for sql in FILTERS}


def _rows(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for k in range(count):
        row = {name: draw.choice([*values, None]) for name, values in KINDS.items()}
        rows.append({"k": k, **row})
    return rows


@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_a_filter_keeps_the_rows_that_sparks_where_keeps(
    spark: SparkSession, tmp_path: Path, table_format: str
) -> None:
    uri = str(tmp_path / "t")
    maps = {"dataStorageVersion": "2.2"} if table_format == "lance" else {}
    # Files of few values, so that statistics rule some of them out.
    rows = sorted(_rows(240, 7), key=lambda row: str(row["n"]))
    for start in range(0, 240, 60):
        wrote(uri, FRAME, rows[start : start + 60], tableFormat=table_format, **maps)
    verdicts = [f"coalesce({sql}, false) AS c{number}" for number, sql in enumerate(FILTERS)]
    judged = load(spark, uri).coalesce(1).selectExpr("k", *verdicts).collect()
    assert len(judged) == 240
    wrong = {}
    for number, sql in enumerate(FILTERS):
        expected = {row["k"] for row in judged if row[f"c{number}"]}
        found = {row["k"] for row in read(uri, filter=OURS[sql], timezone="UTC", columns="k")}
        if found != expected:
            wrong[sql] = (sorted(found - expected)[:5], sorted(expected - found)[:5])
    assert wrong == {}


@pytest.mark.parametrize("kind", ["lance", "delta"])
@pytest.mark.parametrize(
    ("condition", "here", "of_spark"),
    [
        ("i / 3 > 33", [], [1]),
        ("i / 3.0 > 33", [1], [1]),
        ("f = 0.1", [0], []),
        (r"w = 'a\b'", [0], []),
        ("d > 1", [0, 2], [0, 1, 2]),
        ("d IN (cast('NaN' AS double))", [0], [0, 1]),
    ],
)
def test_what_filters_mean_otherwise_than_spark_is_what_the_guide_says(
    spark: SparkSession, kind: str, condition: str, here: list[int], of_spark: list[int], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    values = {"d": [math.nan, -math.nan, 2.0], "i": [3, 101, 9], "w": ["a\\b", "a", "b"]}
    rows = pa.table({"k": [0, 1, 2], **values, "f": pa.array([0.1, 0.2, 0.3], pa.float32())})
    if kind == "lance":
        esker.write_dataset(rows, uri)
    else:
        esker.delta.write_deltalake(uri, rows)
    assert [row["k"] for row in read(uri, filter=condition)] == here
    assert [row.k for row in load(spark, uri).where(condition).orderBy("k").collect()] == of_spark


@pytest.mark.parametrize(
    ("kind", "condition", "here", "of_spark"),
    [
        ("delta", "\"w\" = '1'", [1], []),
        ("lance", "\"w\" = '1'", [], []),
        ("delta", "w = 1", [1], [0, 1]),
        ("delta", "cast(w AS int) = 1", [0, 1], [0, 1]),
        ("lance", "cast(w AS int) = 1", [0, 1], [0, 1]),
    ],
)
def test_texts_of_a_delta_table_that_a_filter_takes_otherwise_than_spark(
    spark: SparkSession, kind: str, condition: str, here: list[int], of_spark: list[int], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    rows = T.StructType().add("k", T.LongType()).add("w", T.StringType())
    wrote(uri, rows, [{"k": 0, "w": "01"}, {"k": 1, "w": "1"}, {"k": 2, "w": None}], tableFormat=kind)
    assert [row["k"] for row in read(uri, filter=condition, timezone="UTC")] == here
    assert [row.k for row in load(spark, uri).where(condition).orderBy("k").collect()] == of_spark
    if kind == "lance":
        with pytest.raises(InvalidArgumentError, match="expected a literal to compare with w"):
            read(uri, filter="w = 1", timezone="UTC")


@pytest.mark.parametrize("kind", ["lance", "delta"])
@pytest.mark.parametrize(
    ("condition", "here", "of_spark"),
    [
        ("a[1] = 1", [0], [1]),
        ("concat(s, 'x') = 'x'", [1], []),
        ("s || 'x' IS NULL", [1], [1]),
        ("substring(s, -2) = 'ba'", [], [2]),
        ("substring(s, 0, 2) = 'ab'", [], [2]),
        ("right(s, 2) = 'ba' AND left(s, 2) = 'ab'", [2], [2]),
        ("regexp_replace(s, 'a', 'z') = 'zba'", [2], []),
        ("regexp_replace(s, 'a', 'z') = 'zbz'", [], [2]),
        ("initcap(s || '-b') = 'Ab-B'", [0], []),
        ("ln(d) IS NULL", [2], [1, 2]),
        ("NOT isnan(d)", [0, 1], [0, 1, 2]),
        ("extract(dow FROM dt) = 0", [0], []),
        ("extract(dow FROM dt) = 1", [1], [0]),
        ("date_format(dt, 'yyyy') = '2024'", [], [0, 1]),
        ("cast(ts AS string) = '2024-03-10 12:00:00'", [], [0]),
        ("cast(d * 4e19 AS string) = '1.0E20'", [], [0]),
        ("cast(p AS int) = 1", [1], [0, 1]),
        ("floor(p) = 1", [0, 1], [0, 1]),
        ("sqrt(d) > 0", [0], [0, 1]),
        ("cast(p AS decimal(10, 1)) = 1.3", [], [0]),
        ("p % 0.3 = 0.05", [], [0]),
        ("0.1 + 0.2 = 0.3", [], [0, 1, 2]),
        ("p / 3 = 0.416666", [0], []),
        ("p / 3 = 0.416667", [], [0]),
        ("extract(second FROM ts + interval '1.5' second) = 1", [0], []),
        ("date_part('second', ts + interval '1.5' second) = 1.5", [], [0]),
        ("left(s, -1) = 'ab'", [2], []),
        ("left(s, -1) = ''", [], [0, 2]),
    ],
)
def test_functions_that_mean_otherwise_than_in_spark_are_those_of_the_guide(
    spark: SparkSession, kind: str, condition: str, here: list[int], of_spark: list[int], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    days = [dt.date(2024, 3, 10), dt.date(2024, 3, 11), None]
    values = {"a": [[1, 2], [2, 1], None], "s": ["Ab", None, "aba"], "d": [2.5, -2.5, None], "dt": days}
    times = pa.array([dt.datetime(2024, 3, 10, 12), None, None], pa.timestamp("us", "UTC"))
    prices = pa.array([Decimal("1.25"), Decimal("1.00"), None], pa.decimal128(10, 2))
    rows = pa.table({"k": [0, 1, 2], **values, "ts": times, "p": prices})
    if kind == "lance":
        esker.write_dataset(rows, uri)
    else:
        esker.delta.write_deltalake(uri, rows)
    assert [row["k"] for row in read(uri, filter=condition)] == here
    assert [row.k for row in load(spark, uri).where(condition).orderBy("k").collect()] == of_spark


@pytest.mark.parametrize(
    "condition",
    [
        "i > interval '1 day'",
        "i < interval '1 day'",
        "i = interval '50 hours'",
        "i between interval '-3 days' and interval '2 days'",
    ],
)
def test_intervals_are_compared_by_their_lengths(spark: SparkSession, uri: str, condition: str) -> None:
    lengths = [dt.timedelta(hours=50), dt.timedelta(hours=-50), None]
    esker.write_dataset(pa.table({"k": [0, 1, 2], "i": pa.array(lengths, pa.duration("us"))}), uri)
    ours = [row["k"] for row in read(uri, filter=condition)]
    assert ours == [row.k for row in load(spark, uri).where(condition).orderBy("k").collect()]


@pytest.mark.parametrize(("kind", "ids"), [("lance", [1]), ("delta", [2])])
def test_what_stands_in_double_quotes_is_what_the_peer_has_it_for(kind: str, ids: list[int], tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = T.StructType().add("id", T.LongType()).add("s", T.StringType()).add("W", T.StringType())
    rows = [{"id": 1, "s": "W", "W": "x"}, {"id": 2, "s": "w", "W": "w"}, {"id": 3, "s": "x", "W": None}]
    wrote(uri, frame, rows, tableFormat=kind)
    # A text of Lance's, which is none of the names in any case; a column of Delta's, whatever its case.
    assert [row["id"] for row in read(uri, filter='S = "W"')] == ids
    assert [row["id"] for row in read(uri, filter='S = "w"')] == [2]
