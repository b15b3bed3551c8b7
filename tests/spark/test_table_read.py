"""`esker.spark.read`: columns and rows are chosen before a table becomes a DataFrame, and a count reads none."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections import OrderedDict
from pathlib import Path

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

import esker.spark
from esker.exceptions import CommitConflictError, InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.spark import table_read, width, worker_tables
from esker.spark.options import ReadOptions
from esker.spark.packing import OPEN_BYTES
from esker.spark.planned_read import plan_read
from esker.spark.reader import plan_slices
from esker.spark.source import EskerSource
from esker.spark.table import FragmentSize
from tests.spark.conftest import load
from tests.spark.jobs import read, wrote

ROWS = 1_000
FORMATS = ["lance", "delta"]


def _numbers(uri: str, kind: str, files: int = 4) -> None:
    for number in range(files):
        first, last = ROWS * number // files, ROWS * (number + 1) // files
        table = pa.table(
            {"Id": pa.array(range(first, last), pa.int64()), "name": [f"n{i}" for i in range(first, last)]}
        )
        if kind == "delta":
            deltalake.write_deltalake(uri, table, mode="append")
        else:
            lance.write_dataset(table, uri, mode="append" if number else "create", data_storage_version="2.0")


def reader_schema(options: dict[str, str]) -> StructType:
    return EskerSource(options).schema()


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def numbers(uri: str, kind: str) -> str:
    _numbers(uri, kind)
    return uri


def test_columns_and_rows_are_chosen_before_it_becomes_a_frame(spark: SparkSession, numbers: str) -> None:
    table = esker.spark.read(spark, numbers)
    chosen = table.columns("NAME", "id").where("ID >= 398").where("id < 402 OR `iD` < 0")
    assert chosen.schema.names == ["name", "Id"]
    assert chosen.count() == 4
    assert sorted(tuple(row) for row in chosen.collect()) == [(f"n{i}", i) for i in range(398, 402)]
    assert chosen.where(F.col("Id") == 400).count() == 1
    # Whatever a DataFrame has, it has.
    other = spark.range(399, 401).withColumnRenamed("id", "other")
    assert chosen.join(other, F.col("other") == F.col("Id")).count() == 2
    assert other.join(chosen, F.col("other") == F.col("Id")).count() == 2
    with pytest.raises(InvalidArgumentError, match="'other'"):
        table.columns("other")
    with pytest.raises(InvalidArgumentError):
        table.where("id >")


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_condition_may_end_in_a_comment_and_a_text_names_one_column(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    uri = str(tmp_path / "t")
    esker.spark.write(spark.sql("SELECT id, '--' AS sign FROM range(9)"), uri, table_format=kind)
    table = esker.spark.read(spark, uri, columns="id")
    assert table.schema.names == ["id"]
    both = table.where("id > 2 -- three and above").where("sign = '--' -- and all").where("id < 5 /* -- */")
    assert sorted(row.id for row in both.collect()) == [3, 4]
    with pytest.raises(InvalidArgumentError, match="found an empty string|an expression, found: EOF"):
        esker.spark.read(spark, uri, filter="--").count()


def test_columns_are_chosen_by_a_list_too_and_each_once(spark: SparkSession, numbers: str) -> None:
    read = esker.spark.read(spark, numbers)
    first, second = read.to_df().columns[:2]
    assert read.columns([second, first]).to_df().columns == [second, first]
    assert read.columns([second], first).to_df().columns == [second, first]
    with pytest.raises(InvalidArgumentError, match=f"'{first}', '{first.upper()}', which case does not tell apart"):
        read.columns(first, first.upper()).to_df()


def test_a_count_reads_no_column(spark: SparkSession, numbers: str) -> None:
    table = esker.spark.read(spark, numbers)
    filtered = esker.spark.read(spark, numbers, filter="name = 'n7'")
    for path in [*Path(numbers).rglob("*.lance"), *Path(numbers).rglob("*.parquet")]:
        if "_delta_log" not in str(path):
            path.unlink()
    assert table.count() == ROWS
    with pytest.raises(Exception, match=r"(?i)no such|not found|found nothing|failed"):
        filtered.count()


def test_deleted_rows_are_not_counted(spark: SparkSession, numbers: str, kind: str) -> None:
    if kind == "delta":
        deltalake.DeltaTable(numbers).delete("Id % 3 = 0")
    else:
        lance.dataset(numbers).delete("Id % 3 = 0")
    expected = sum(1 for i in range(ROWS) if i % 3)
    assert esker.spark.read(spark, numbers).count() == expected
    assert esker.spark.read(spark, numbers).where("id < 100").count() == 66


def test_a_small_table_is_broadcast_if_one_says_so(spark: SparkSession, numbers: str, kind: str) -> None:
    for said in (False, True):
        table = esker.spark.read(spark, numbers, columns=["Id"], broadcast=said)
        # The other side is of unknown size, too.
        plan = esker.spark.read(spark, numbers).join(table.to_df(), "Id")
        # Spark knows the size of plain Delta tables.
        expected = said or kind == "delta"
        assert ("Broadcast" in plan._jdf.queryExecution().executedPlan().toString()) == expected


def test_the_driver_plans_a_read_alone_where_a_session_lets_it(
    spark: SparkSession, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for is_classic in (True, False):
        if not is_classic:
            # As under Connect: the data source tells the partitions.
            monkeypatch.setattr(table_read, "frame_of_bytes", lambda *_: None)
        frame = esker.spark.read(spark, numbers).where("iD < 300").to_df()
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert ("BatchScan" in plan) != is_classic
        found.append((frame.rdd.getNumPartitions(), sorted(row["Id"] for row in frame.collect())))
    assert found[0] == found[1]
    assert found[0][1] == list(range(300))


def test_small_fragments_share_a_partition_and_large_ones_are_cut() -> None:
    small = [FragmentSize(number, 100, 1 << 20) for number in range(300)]
    options = ReadOptions(parallelism=2)
    parts = plan_slices(small, options)
    assert len(parts) < 20
    assert [part[0] for each in parts for part in each.slices] == list(range(300))
    assert all(len(part.slices) * (OPEN_BYTES + (1 << 20)) <= (128 << 20) + OPEN_BYTES for part in parts)
    # 1 GiB in one fragment, and one that has no size.
    large = plan_slices([FragmentSize(0, 1 << 20, 1 << 30), FragmentSize(1, 10, None)], options)
    covered = sorted(part for each in large for part in each.slices)
    assert [part[0] for part in covered] == [0] * 8 + [1]
    assert [part[1:] for part in covered[:8]] == [(n << 17, (n + 1) << 17) for n in range(8)]
    # As many tasks as there are cores, where the table is small.
    assert len(plan_slices([FragmentSize(0, 1000, 64 << 20)], ReadOptions(parallelism=4))) == 4


def test_small_files_share_a_partition(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    _numbers(uri, kind, files=40)
    options = {"path": uri, "parallelism": "2"}
    reader = EskerSource(options).reader(reader_schema(options))
    assert len(reader.partitions()) == 2
    assert sorted(row["Id"] for row in read(uri, parallelism=2)) == list(range(ROWS))
    if kind == "delta":
        # Files as small as these are not cut.
        assert len(EskerSource({**options, "bytesPerPartition": "1"}).reader(reader_schema(options)).partitions()) == 40


def test_a_schema_of_the_user_follows_sparks_case_rule(tmp_path: Path, kind: str) -> None:
    from pyspark.sql import types as T

    uri = str(tmp_path / "t")
    _numbers(uri, kind)
    found = read(uri, T.StructType().add("NAME", T.StringType()).add("iD", T.LongType()), filter="ID = 7")
    assert found == [{"NAME": "n7", "iD": 7}]


def test_a_scan_of_all_columns_of_a_wide_table_says_so_once(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "wide")
    lance.write_dataset(pa.table({f"c{n}": [n] for n in range(width.WIDE_COLUMNS)}), uri)
    lance.write_dataset(pa.table({"id": [1], "v": [b"x" * 4096]}), uri + "2")
    with pytest.warns(UserWarning, match=r"reads all of .*\(50 columns\).*columns"):
        esker.spark.read(spark, uri).to_df()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="reads all of")
        esker.spark.read(spark, uri).to_df()
        esker.spark.read(spark, uri + "2").columns("id").to_df()
        assert esker.spark.read(spark, uri + "2").count() == 1
    with pytest.warns(UserWarning, match="bytes a row"):
        EskerSource({"path": uri + "2"}).schema()


def test_a_table_that_was_replaced_under_a_frame_is_an_error(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _numbers(uri, "lance", files=1)
    planned = plan_read({"path": uri}).reader
    parts = plan_slices([FragmentSize(0, ROWS, None)], ReadOptions())
    assert pickle.loads(pickle.dumps(planned)).count(parts) == ROWS
    shutil.rmtree(uri)
    _numbers(uri, "lance", files=1)
    # A worker that has the table open reads what it has opened; another one sees that it is another table.
    monkeypatch.setattr(worker_tables, "_OPEN", OrderedDict())
    with pytest.raises(CommitConflictError, match="replaced"):
        list(planned.batches(parts))


def test_errors_of_tasks_are_one_line_of_eskers(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "times")
    lance.write_dataset(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), uri)
    with pytest.raises(Exception, match="SchemaMismatchError") as caught:
        load(spark, uri).collect()
    assert len(str(caught.value).strip().splitlines()) == 2
    with pytest.raises(SchemaMismatchError, match="^column 't' expected"), esker.spark.errors():
        esker.spark.read(spark, uri).collect()
    with pytest.raises(UnsupportedError, match=r"esker\.spark\.write"), esker.spark.errors():
        spark.range(1).write.format("esker").save(uri)
    with pytest.raises(ZeroDivisionError), esker.spark.errors():
        _ = 1 / 0


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_table_that_was_made_anew_is_not_read_on_as_the_one_before(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    uri, schema = str(tmp_path / "t"), StructType().add("id", LongType())
    wrote(uri, schema, [{"id": 1}], tableFormat=kind)
    found = esker.spark.read(spark, uri)
    looked_up = esker.spark.lookup(spark.range(3), uri, on="id", how="inner") if kind == "lance" else None
    shutil.rmtree(uri)
    wrote(uri, schema, [{"id": 2}], tableFormat=kind)
    for choose in (lambda: found.where("id = 2"), lambda: found.columns("id")):
        with pytest.raises(CommitConflictError, match="was replaced meanwhile; load the DataFrame again"):
            choose()
    if looked_up is not None:
        with pytest.raises(PythonException, match="was replaced meanwhile; load the DataFrame again"):
            looked_up.collect()
