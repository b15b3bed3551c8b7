"""Reading tables of the peer with `spark.read.format("esker")`."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from esker.exceptions import CommitConflictError
from esker.spark import EskerSource
from tests.spark.conftest import load
from tests.spark.jobs import wrote

ROWS = 1_000


@pytest.fixture
def numbers(uri: str) -> str:
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{i}" for i in range(ROWS)]})
    lance.write_dataset(table, uri, max_rows_per_file=400, data_storage_version="2.0")
    return uri


def ids(frame: DataFrame) -> list[int]:
    return [row.id for row in frame.collect()]


def test_all_rows_come_in_the_order_of_the_table(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers)
    assert ids(frame) == list(range(ROWS))
    assert frame.count() == ROWS
    assert frame.selectExpr("max(name)").first() == (f"n{ROWS - 1}",)


def test_columns_come_in_the_order_asked_for(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, columns="name, id")
    assert frame.columns == ["name", "id"]
    assert frame.first() == ("n0", 0)
    assert load(spark, numbers, columns='["id"]').columns == ["id"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("id >= 395 AND id < 405", list(range(395, 405))),
        ("name = 'n7' OR id IN (1, 999)", [1, 7, 999]),
        ("id < 0", []),
        ("name IS NULL", []),
    ],
)
def test_a_filter_gives_the_rows_that_the_peer_gives(
    spark: SparkSession, numbers: str, sql: str, expected: list[int]
) -> None:
    assert ids(load(spark, numbers, filter=sql)) == expected
    assert lance.dataset(numbers).to_table(filter=sql)["id"].to_pylist() == expected


def test_row_numbers_are_columns_that_one_asks_for(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, columns="_rowid,id,_rowaddr", filter="id IN (3, 401)", rows_per_partition=100)
    assert [tuple(row) for row in frame.collect()] == [(3, 3, 3), ((1 << 32) + 1, 401, (1 << 32) + 1)]
    assert "_rowid" not in load(spark, numbers).columns


def test_a_filter_may_use_columns_that_are_not_read(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, columns="name", filter="id = 500", rows_per_partition=50)
    assert [tuple(row) for row in frame.collect()] == [("n500",)]


def test_spark_filters_on_top_without_any_rows_lost_to_other_queries(spark: SparkSession, numbers: str) -> None:
    # What pushed filters break: two queries on one loaded DataFrame.
    frame = load(spark, numbers)
    assert frame.filter("id = 3").count() == 1
    assert frame.count() == ROWS
    assert ids(frame.filter("id = 3").union(frame.filter("id > 997"))) == [3, 998, 999]


@pytest.mark.parametrize("rows", [1, 7, 399, 400, 401])
def test_slices_cover_each_row_once(spark: SparkSession, numbers: str, rows: int) -> None:
    frame = load(spark, numbers, filter="id >= 350 AND id < 450", rows_per_partition=max(rows, 20))
    assert ids(frame) == list(range(350, 450))


def test_a_partition_is_a_fragment_or_a_slice_of_one(spark: SparkSession, numbers: str) -> None:
    assert load(spark, numbers).rdd.getNumPartitions() == 3
    assert load(spark, numbers, rows_per_partition=100).rdd.getNumPartitions() == 10
    assert load(spark, numbers, rowsPerPartition=250).rdd.getNumPartitions() == 5


def test_deleted_rows_do_not_come_back_in_slices(spark: SparkSession, numbers: str) -> None:
    lance.dataset(numbers).delete("id % 3 = 0")
    expected = [i for i in range(ROWS) if i % 3]
    assert ids(load(spark, numbers, rows_per_partition=150)) == expected


def test_a_loaded_frame_keeps_its_version(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers)
    lance.write_dataset(pa.table({"id": [-1], "name": ["new"]}), numbers, mode="append")
    assert frame.count() == ROWS
    assert load(spark, numbers).count() == ROWS + 1
    lance.write_dataset(pa.table({"other": [1]}), numbers, mode="overwrite")
    assert frame.count() == ROWS
    assert load(spark, numbers).columns == ["other"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("lance", {}), ("delta", {}), ("delta", {"readChangeFeed": "true", "startingVersion": "0"})],
)
def test_a_loaded_frame_reads_no_table_that_was_made_anew_at_its_place(
    tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    uri, schema = str(tmp_path / "t"), StructType().add("id", LongType())
    wrote(uri, schema, [{"id": 1}], tableFormat=kind)
    source = EskerSource({"path": uri, **options})
    shown = source.schema()
    loaded = pickle.dumps(source)
    planned = pickle.loads(loaded).reader(shown)
    shutil.rmtree(uri)
    wrote(uri, schema, [{"id": 2}], tableFormat=kind)
    with pytest.raises(CommitConflictError, match="was replaced meanwhile; load the DataFrame again"):
        pickle.loads(loaded).reader(shown)
    if kind == "lance" or options:
        with pytest.raises(CommitConflictError, match="was replaced meanwhile; load the DataFrame again"):
            [*planned.read(planned.partitions()[0])]


@pytest.mark.parametrize("option", ["version", "versionAsOf"])
def test_an_older_version_is_read_on_request(spark: SparkSession, numbers: str, option: str) -> None:
    lance.write_dataset(pa.table({"id": [-1], "name": ["new"]}), numbers, mode="append")
    assert load(spark, numbers, **{option: 1}).count() == ROWS
    assert load(spark, numbers, **{option: 2}).count() == ROWS + 1


def test_a_schema_of_the_user_chooses_columns_and_types_by_name(spark: SparkSession, numbers: str) -> None:
    frame = spark.read.format("esker").schema("name string, id int").load(numbers)
    assert frame.first() == ("n0", 0)
    assert spark.read.format("esker").schema("id bigint").load(numbers).selectExpr("sum(id)").first() == (499_500,)


def test_a_table_without_rows_has_its_columns(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), uri, data_storage_version="2.0")
    frame = load(spark, uri)
    assert frame.columns == ["id"]
    assert frame.collect() == []


def test_sql_reads_a_temporary_view(spark: SparkSession, numbers: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW numbers USING esker OPTIONS (path '{numbers}', filter 'id < 10')")
    assert spark.sql("SELECT count(*), max(id) FROM numbers").first() == (10, 9)


def test_a_file_uri_names_the_same_table(spark: SparkSession, numbers: str) -> None:
    for uri in (f"file://{numbers}", f"file:{numbers}"):
        assert load(spark, uri).count() == ROWS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "id,nope"}, "InvalidArgumentError.*nope"),
        ({"columns": ""}, "InvalidArgumentError.*columns"),
        ({"columns": "id,id"}, "InvalidArgumentError.*columns"),
        ({"filter": "id >"}, "InvalidArgumentError"),
        ({"filter": "nope = 1"}, "InvalidArgumentError.*nope"),
        ({"version": "99"}, "NotFoundError.*99"),
        ({"version": "x"}, "InvalidArgumentError.*version"),
        ({"fliter": "id = 1"}, "InvalidArgumentError.*fliter"),
        ({"rows_per_partition": "0"}, "InvalidArgumentError.*rows_per_partition"),
    ],
)
def test_a_wrong_option_is_an_error_when_the_table_is_loaded(
    spark: SparkSession, numbers: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException, match=f"(?s){message}"):
        load(spark, numbers, **options)


def test_a_path_without_a_table_is_an_error_when_it_is_loaded(spark: SparkSession, tmp_path: object) -> None:
    with pytest.raises(AnalysisException, match="NotFoundError"):
        load(spark, f"{tmp_path}/nothing.lance")
    with pytest.raises(AnalysisException, match="InvalidArgumentError.*one path"):
        spark.read.format("esker").load()
