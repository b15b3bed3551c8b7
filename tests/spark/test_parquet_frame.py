"""Plain files of Delta tables are read by Spark's own Parquet reader, with the values that esker reads."""

from __future__ import annotations

import datetime as dt
import io
import json
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import esker.spark
from esker.delta import DeltaTable, convert_to_deltalake, write_deltalake

NAN = float("nan")
ZONE = dt.UTC
VALUES: dict[str, pa.Array] = {
    "long": pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "int": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
    "short": pa.array([1, None, -(2**15), 2**15 - 1], pa.int16()),
    "byte": pa.array([1, None, -128, 127], pa.int8()),
    "flag": pa.array([True, None, False, True]),
    "double": pa.array([NAN, None, -0.0, 1e308]),
    "float": pa.array([NAN, None, -0.0, 1.5], pa.float32()),
    "text": pa.array(["", None, "日本", "x" * 300]),
    "bytes": pa.array([b"", None, b"\x00\xff", b"x" * 300]),
    "day": pa.array([dt.date(1, 1, 1), None, dt.date(1582, 10, 10), dt.date(9999, 12, 31)]),
    "time": pa.array(
        [
            dt.datetime(1500, 1, 1, tzinfo=ZONE),
            None,
            dt.datetime(1899, 1, 1, 1, 2, 3, 4, ZONE),
            dt.datetime(2026, 10, 25, 0, 30, tzinfo=ZONE),
        ],
        pa.timestamp("us", "UTC"),
    ),
    "zoneless": pa.array(
        [dt.datetime(1, 1, 1), None, dt.datetime(2026, 3, 29, 2, 30), dt.datetime(9999, 12, 31)], pa.timestamp("us")
    ),
    "small": pa.array([Decimal("1.05"), None, Decimal("-999.99"), Decimal("0.00")], pa.decimal128(5, 2)),
    "large": pa.array([Decimal("1." + "0" * 10), None, Decimal("-" + "9" * 28), Decimal(0)], pa.decimal128(38, 10)),
    "list": pa.array([[1, None], None, [], [2]], pa.list_(pa.int64())),
    "map": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int64())),
    "row": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}, {"a": 2, "b": {"c": None}}]),
    "rows": pa.array([[{"v": NAN}], None, [], [None]], pa.list_(pa.struct([("v", pa.float64())]))),
    "a.b": pa.array([1, None, 2, 3]),
}
BY_SPARK = "FileScan parquet"


def written(uri: str, table: pa.Table, writer: str = "esker", **options: Any) -> str:
    write: Any = write_deltalake if writer == "esker" else deltalake.write_deltalake
    write(uri, table, **options)
    return uri


def is_by_spark(frame: Any) -> bool:
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain()
    return BY_SPARK in shown.getvalue()


def through_esker(spark: Any, uri: str, **options: Any) -> Any:
    frame = esker.spark.read(spark, uri, bytes_per_partition=2**30, **options).to_df()
    assert not is_by_spark(frame)
    return frame


def check_same(spark: Any, uri: str, *, by_spark: bool, **options: Any) -> None:
    frame = esker.spark.read(spark, uri, **options).to_df()
    expected = through_esker(spark, uri, **options)
    assert is_by_spark(frame) == by_spark
    assert frame.schema == expected.schema
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, expected.collect()))


@pytest.mark.parametrize("writer", ["esker", "deltalake"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_values_of_all_types_are_those_that_esker_reads(spark: Any, tmp_path: Path, writer: str, zone: str) -> None:
    uri = written(str(tmp_path / "t"), pa.table(VALUES), writer)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        check_same(spark, uri, by_spark=True)
        check_same(spark, uri, by_spark=True, columns=["A.B", "row", "Time", "double"])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("condition", ["x > 5", "x >= 5", "x != 1", "NOT (x < 5)", "x = double('NaN')", "y > 5"])
def test_no_filter_loses_nan(spark: Any, tmp_path: Path, condition: str) -> None:
    values = [1.0, NAN, 2.0, None]
    table = pa.table({"x": values, "y": pa.array(values, pa.float32())})
    uri = written(str(tmp_path / "t"), table)
    frame = esker.spark.read(spark, uri).to_df()
    assert is_by_spark(frame)
    assert frame.where(condition).count() == through_esker(spark, uri).where(condition).count() >= 1


def test_floating_point_fields_of_structs_are_read_by_esker(spark: Any, tmp_path: Path) -> None:
    rows = pa.array([{"v": NAN}, {"v": 1.0}])
    uri = written(str(tmp_path / "t"), pa.table({"s": rows}))
    check_same(spark, uri, by_spark=False)
    assert esker.spark.read(spark, uri).where(F.col("s.v") > 5).count() == 1


def test_columns_that_older_files_lack_are_null_and_older_versions_are_read(spark: Any, tmp_path: Path) -> None:
    uri = written(str(tmp_path / "t"), pa.table({"a": [1]}))
    write_deltalake(uri, pa.table({"a": [2], "b": ["x"]}), mode="append", schema_mode="merge")
    check_same(spark, uri, by_spark=True)
    check_same(spark, uri, by_spark=True, version=0)
    assert [tuple(row) for row in esker.spark.read(spark, uri).where("a = 1").collect()] == [(1, None)]


def test_spark_prunes_columns_and_filters_by_itself(spark: Any, tmp_path: Path) -> None:
    uri = written(str(tmp_path / "t"), pa.table({"a": range(100), "b": [str(i) for i in range(100)]}))
    frame = esker.spark.read(spark, uri).where(F.col("a") > 97).select("b")
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain()
    assert "GreaterThan(a,97)" in shown.getvalue()
    assert sorted(row.b for row in frame.collect()) == ["98", "99"]


@pytest.mark.parametrize(
    "folder", ["a b", "a%20b", "a[b]", "a*b", "a{b,c}", "a#b", "a?b", "a:b", "ä", "a\\b", "a'b", "_a", ".a"]
)
def test_places_that_spark_would_take_for_others(spark: Any, tmp_path: Path, folder: str) -> None:
    uri = written(str(tmp_path / folder / "t"), pa.table({"a": [1, 2]}))
    rows = esker.spark.read(spark, uri).collect()
    assert sorted(row.a for row in rows) == [1, 2]


def test_tables_that_are_not_plain_are_read_by_esker(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", "y", "z"]})
    partitioned = written(str(tmp_path / "partitioned"), table, partition_by="b")
    check_same(spark, partitioned, by_spark=False)
    mapped = written(str(tmp_path / "mapped"), table, configuration={"delta.columnMapping.mode": "name"})
    check_same(spark, mapped, by_spark=False)
    vectors = written(str(tmp_path / "vectors"), table, configuration={"delta.enableDeletionVectors": "true"})
    check_same(spark, vectors, by_spark=True)
    DeltaTable(vectors).delete("a = 2")
    check_same(spark, vectors, by_spark=False)
    plain = written(str(tmp_path / "plain"), table)
    assert not is_by_spark(esker.spark.read(spark, plain, filter="a > 1").to_df())
    assert esker.spark.read(spark, plain).where("a > 1").count() == 2


def rewritten(uri: str, table: pa.Table, *, name: str | None = None, **options: Any) -> None:
    """Another file in the place of the one that a table has."""
    file = next(Path(uri).glob("*.parquet"))
    pq.write_table(table, file, **options)
    entry = Path(uri, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size
            action["add"].pop("stats", None)
            if name is not None:
                action["add"]["path"] = name
                file.rename(Path(uri, name))
    entry.write_text("\n".join(map(json.dumps, actions)) + "\n")


def test_files_that_differ_from_the_table_are_read_by_esker(spark: Any, tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2026, 1, 1, tzinfo=ZONE)], pa.timestamp("us", "UTC"))
    table = pa.table({"a": pa.array([1], pa.int64()), "t": times})

    def fresh(name: str) -> str:
        return written(str(tmp_path / name), table)

    narrow = fresh("narrow")
    rewritten(narrow, table.set_column(0, "a", pa.array([1], pa.int32())))
    check_same(spark, narrow, by_spark=False)
    int96 = fresh("int96")
    rewritten(int96, table, use_deprecated_int96_timestamps=True)
    check_same(spark, int96, by_spark=False)
    more = fresh("more")
    rewritten(more, table.append_column("A", pa.array([7], pa.int64())))
    check_same(spark, more, by_spark=False)
    for name in ("_hidden.parquet", ".hidden.parquet", "sub/_hidden.parquet"):
        hidden = fresh(name.replace("/", "-"))
        Path(hidden, "sub").mkdir()
        rewritten(hidden, table, name=name)
        check_same(spark, hidden, by_spark=False)
        assert esker.spark.read(spark, hidden).to_df().count() == 1


@pytest.mark.parametrize("how", ["LEGACY", "spark 2", "CORRECTED", "unknown"])
def test_days_of_old_calendars_are_those_that_esker_reads(spark: Any, tmp_path: Path, how: str) -> None:
    uri = str(tmp_path / "t")
    mode = "LEGACY" if how == "LEGACY" else "CORRECTED"
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = spark.sql("SELECT 1L AS id, date'1000-01-01' AS d, timestamp'1000-01-01 00:00:00' AS t")
        frame.coalesce(1).write.parquet(uri)
        if how in ("spark 2", "unknown"):
            (file,) = Path(uri).glob("*.parquet")
            rows = pq.read_table(file)
            with pq.ParquetWriter(file, rows.schema.remove_metadata(), store_schema=False) as writer:
                writer.write_table(rows.replace_schema_metadata(None))
                if how == "spark 2":
                    writer.add_key_value_metadata({"org.apache.spark.version": "2.4.8"})
            Path(uri, f".{file.name}.crc").unlink(missing_ok=True)
        convert_to_deltalake(uri)
        check_same(spark, uri, by_spark=how in ("CORRECTED", "unknown"))
        all_rows = esker.spark.read(spark, uri).to_df().collect()
        assert esker.spark.read(spark, uri).where("id = 1").collect() == all_rows
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_a_file_that_is_gone_is_an_error_that_names_it(spark: Any, tmp_path: Path) -> None:
    uri = written(str(tmp_path / "t"), pa.table({"a": [1]}))
    next(Path(uri).glob("*.parquet")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(FileNotFoundError, match=r"\.parquet"):
            esker.spark.read(spark, uri).collect()
        other = written(str(tmp_path / "u"), pa.table({"a": [1]}))
        frame = esker.spark.read(spark, other).to_df()
        next(Path(other).glob("*.parquet")).unlink()
        with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_file_that_is_gone_is_an_error_of_sparks_own(spark: Any, tmp_path: Path) -> None:
    uri = written(str(tmp_path / "t"), pa.table({"a": [1, 2]}))
    frame = esker.spark.read(spark, uri).to_df()
    assert is_by_spark(frame)
    written(uri, pa.table({"a": [3]}), mode="overwrite")
    deltalake.DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(Exception, match=r"FAILED_READ_FILE\.FILE_NOT_EXIST"), esker.spark.errors():
        frame.collect()
    assert [row.a for row in esker.spark.read(spark, uri).collect()] == [3]
