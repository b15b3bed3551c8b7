"""Spark's types through tables of both formats, both ways and in several time zones, beside Spark's own Parquet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import deltalake
import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import esker.spark
from esker.exceptions import UnsupportedError
from esker.spark.options import WriteOptions, table_address
from esker.spark.source import batch_writer
from tests.spark.conftest import load

FORMATS = ["lance", "delta"]
ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]
COLUMNS = {
    "flag": ["true", "false"],
    "tiny": ["127Y", "-128Y"],
    "small": ["32767S", "-32768S"],
    "whole": ["2147483647", "-2147483648"],
    "big": ["9223372036854775807L", "-9223372036854775807L"],
    "single": ["1.5f", "float('-inf')"],
    "double": ["double('nan')", "-0.0d"],
    "money": ["99999999999999999999.999999999999999999BD", "-0.000000000000000001BD"],
    "digits": ["12345BD", "-1BD"],
    "text": ["''", "'gr\\u00fcn \\u0001'"],
    "bytes": ["X'00ff'", "X''"],
    "day": ["DATE'0001-01-01'", "DATE'9999-12-31'"],
    # In New York this hour is there twice, and that one is not there.
    "instant": ["TIMESTAMP'2024-11-03 05:30:00.123456Z'", "TIMESTAMP'2024-03-10 07:30:00Z'"],
    "old": ["TIMESTAMP'1883-11-18 12:00:00Z'", "TIMESTAMP'9999-12-30 23:59:59.999999Z'"],
    "local": ["TIMESTAMP_NTZ'2024-03-10 02:30:00'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'"],
    "list": ["array(1, NULL)", "array()"],
    "pair": ["named_struct('x', 1, 'y', 'a')", "named_struct('x', NULL, 'y', NULL)"],
    "pairs": ["array(named_struct('x', NULL, 'y', array('a', NULL)), NULL)", "array()"],
    "map": ["map('a', 1, 'b', NULL)", "map()"],
    "maps": ["map('k', array(named_struct('at', TIMESTAMP'2024-11-03 05:30:00Z')))", "map('k', NULL)"],
}
LANCE_ALONE = {
    "span": ["INTERVAL '1 02:03:04.000005' DAY TO SECOND", "INTERVAL '-1' DAY"],
    "time": ["TIME'23:59:59.999999'", "TIME'00:00:00'"],
}
REFUSED = {
    "variant": "parse_json('{\"a\": 1}')",
    "nested": "array(named_struct('v', parse_json('1')))",
    "months": "INTERVAL '1' MONTH",
    "calendar": "make_interval(1, 2, 3)",
}


def _other_columns(found: pa.Table, wanted: pa.Table) -> list[str]:
    assert found.schema == wanted.schema
    # As texts: no number is its own NaN, and zero has two signs.
    return [n for n in wanted.column_names if not found[n].equals(wanted[n]) and str(found[n]) != str(wanted[n])]


@pytest.fixture(params=ZONES)
def zoned(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_what_spark_writes_it_reads_as_from_parquet(zoned: SparkSession, tmp_path: Path) -> None:
    columns = {**COLUMNS, **LANCE_ALONE}
    rows = [", ".join(f"{values[n]} AS {name}" for name, values in columns.items()) for n in (0, 1)]
    nulls = ", ".join(f"NULL AS {name}" for name in columns)
    frame = zoned.sql(f"SELECT {rows[0]} UNION ALL SELECT {nulls} UNION ALL SELECT {rows[1]}").coalesce(1).cache()
    frame.write.parquet(str(tmp_path / "p"))
    model = zoned.read.parquet(str(tmp_path / "p"))
    expected = model.toArrow()
    for kind in FORMATS:
        uri = str(tmp_path / kind)
        there = frame if kind == "lance" else frame.drop(*LANCE_ALONE)
        esker.spark.write(there, uri, table_format=kind)
        wanted = expected.select(there.columns)
        for found in (load(zoned, uri), esker.spark.read(zoned, uri).to_df()):
            assert found.schema.simpleString() == model.select(*there.columns).schema.simpleString()
            assert _other_columns(found.toArrow(), wanted) == [], kind
    frame.unpersist()


def test_what_others_write_spark_reads_as_from_parquet(zoned: SparkSession, tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 11, 3, 5, 30), None, dt.datetime(1969, 12, 31, 23, 59, 59)]
    table = pa.table(
        {
            **{f"local_{unit}": pa.array(moments, pa.timestamp(unit)) for unit in ("ms", "us")},
            **{
                f"{unit}_{zone.replace('/', '_').replace('+', 'p').replace(':', '_')}": pa.array(
                    moments, pa.timestamp(unit, zone)
                )
                for unit in ("ms", "us")
                for zone in ("UTC", "America/New_York", "+05:30")
            },
            "amount": pa.array([1, None, -1], pa.decimal128(38, 10)),
            "nested": pa.array(
                [[{"at": moments[0]}], None, [None]], pa.list_(pa.struct({"at": pa.timestamp("us", "UTC")}))
            ),
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    # Delta has microseconds alone.
    lance.write_dataset(table, str(tmp_path / "lance"))
    deltalake.write_deltalake(str(tmp_path / "delta"), table)
    model = zoned.read.parquet(str(tmp_path / "p.parquet"))
    for kind in FORMATS:
        found = load(zoned, str(tmp_path / kind))
        assert found.schema.simpleString() == model.schema.simpleString(), kind
        assert _other_columns(found.toArrow(), model.toArrow()) == [], kind


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("column", REFUSED)
def test_types_that_no_table_can_hold_are_refused_by_name(
    spark: SparkSession, tmp_path: Path, kind: str, column: str
) -> None:
    schema = spark.sql(f"SELECT 1 AS id, {REFUSED[column]} AS {column}").schema
    with pytest.raises(UnsupportedError, match=f"column '{column}.*(variant|interval)") as caught:
        batch_writer(
            table_address({"path": str(tmp_path / "t")}), schema, False, WriteOptions.parse({"tableFormat": kind})
        )
    assert "cast it" in str(caught.value)


@pytest.mark.parametrize("column", LANCE_ALONE)
def test_types_that_delta_lacks_are_refused_by_name(spark: SparkSession, tmp_path: Path, column: str) -> None:
    schema = spark.sql(f"SELECT {LANCE_ALONE[column][0]} AS {column}").schema
    with pytest.raises(Exception, match=f"'{column}'"):
        batch_writer(
            table_address({"path": str(tmp_path / "t")}), schema, False, WriteOptions.parse({"tableFormat": "delta"})
        )


def test_chars_are_texts_as_spark_pads_them(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE chars (c CHAR(4), v VARCHAR(4)) USING parquet")
    try:
        spark.sql("INSERT INTO chars VALUES ('ab', 'ab'), (NULL, NULL)")
        frame = spark.table("chars").coalesce(1)
        for kind in FORMATS:
            esker.spark.write(frame, tmp_path / kind, table_format=kind)
            found = {tuple(row) for row in load(spark, str(tmp_path / kind)).collect()}
            assert found == {("ab  ", "ab"), (None, None)}
    finally:
        spark.sql("DROP TABLE chars")
