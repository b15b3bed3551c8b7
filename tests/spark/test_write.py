"""Writing DataFrames with `df.write.format("esker")`; the peer reads what came of it."""

from __future__ import annotations

import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import esker.spark
from esker.exceptions import EskerError
from tests.spark.conftest import by_pylance, data_files, load, save
from tests.spark.jobs import wrote


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 1_000, 1, 3).selectExpr("id", "concat('n', id) AS name")


def test_an_append_makes_the_table_and_then_adds_to_it(numbers: DataFrame, uri: str) -> None:
    save(numbers, uri)
    save(numbers.selectExpr("id + 1000 AS id", "name"), uri)
    table = by_pylance(uri)
    assert table["id"].to_pylist() == list(range(2_000))
    assert table.schema == pa.schema({"id": pa.int64(), "name": pa.string()})
    assert lance.dataset(uri).version == 2
    assert by_pylance(uri, version=1)["name"].to_pylist() == [f"n{i}" for i in range(1_000)]


def test_one_write_is_one_version_with_a_fragment_for_each_task(numbers: DataFrame, uri: str) -> None:
    save(numbers, uri)
    assert [f.count_rows() for f in lance.dataset(uri).get_fragments()] == [333, 333, 334]
    save(numbers.coalesce(1), uri, max_rows_per_file=400)
    assert [f.count_rows() for f in lance.dataset(uri).get_fragments()][3:] == [400, 400, 200]
    assert lance.dataset(uri).version == 2


def test_an_overwrite_replaces_rows_and_columns(numbers: DataFrame, uri: str) -> None:
    save(numbers, uri)
    save(numbers.selectExpr("id AS other").limit(5), uri, mode="overwrite")
    assert by_pylance(uri).schema.names == ["other"]
    assert by_pylance(uri).num_rows == 5
    assert by_pylance(uri, version=1).num_rows == 1_000


def test_a_table_can_be_overwritten_with_what_is_read_from_it(
    spark: SparkSession, numbers: DataFrame, uri: str
) -> None:
    save(numbers, uri)
    save(load(spark, uri).where("id % 2 = 0"), uri, mode="overwrite")
    assert sorted(by_pylance(uri)["id"].to_pylist()) == list(range(0, 1_000, 2))


def test_columns_are_matched_by_name_and_not_by_position(spark: SparkSession, uri: str) -> None:
    save(spark.sql("SELECT 'x' AS a, 'y' AS b, named_struct('p', 1, 'q', 2) AS s"), uri)
    save(spark.sql("SELECT named_struct('q', 4, 'p', 3) AS s, 'b' AS b, 'a' AS a"), uri)
    assert by_pylance(uri).to_pylist()[1] == {"a": "a", "b": "b", "s": {"p": 3, "q": 4}}


def test_a_vector_column_is_made_by_an_option_and_stays_one(spark: SparkSession, uri: str) -> None:
    vectors = spark.range(10).select("id", F.expr("array(float(id), float(id + 1))").alias("v"))
    wanted = pa.list_(pa.float32(), 2)
    save(vectors, uri, vectors="v=2")
    assert by_pylance(uri).schema.field("v").type == wanted
    save(vectors, uri)
    save(vectors.select("id", F.expr("transform(v, x -> double(x))").alias("v")), uri)
    assert by_pylance(uri).schema.field("v").type == wanted
    assert by_pylance(uri)["v"].to_pylist()[20:] == [[float(i), float(i + 1)] for i in range(10)]
    save(load(spark, uri), uri, mode="overwrite")
    assert by_pylance(uri).schema.field("v").type == wanted
    save(load(spark, uri), uri, mode="overwrite", overwrite_schema="true")
    assert by_pylance(uri).schema.field("v").type == pa.list_(pa.float32())


def test_numbers_are_cast_to_the_table_as_far_as_they_fit(spark: SparkSession, uri: str) -> None:
    table = pa.table({"small": pa.array([1], pa.uint8()), "big": pa.array([1], pa.uint64())})
    lance.write_dataset(table, uri, data_storage_version="2.0")
    save(spark.sql("SELECT 255L AS small, 7 AS big"), uri)
    assert by_pylance(uri).to_pylist()[1] == {"small": 255, "big": 7}
    with pytest.raises(Exception, match="SchemaMismatchError.*small"):
        save(spark.sql("SELECT 256L AS small, 7 AS big"), uri)
    assert lance.dataset(uri).version == 2


def test_empty_frames_make_a_table_and_a_version(numbers: DataFrame, uri: str) -> None:
    nothing = numbers.where("id < 0")
    save(nothing, uri)
    assert by_pylance(uri).schema.names == ["id", "name"]
    assert by_pylance(uri).num_rows == 0
    save(numbers, uri)
    save(nothing, uri)
    assert (lance.dataset(uri).version, by_pylance(uri).num_rows) == (3, 1_000)
    save(nothing, uri, mode="overwrite")
    assert by_pylance(uri).num_rows == 0


def test_sql_inserts_into_a_temporary_view(spark: SparkSession, numbers: DataFrame, uri: str) -> None:
    save(numbers, uri)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING esker OPTIONS (path '{uri}')")
    spark.sql("INSERT INTO target VALUES (1000, 'inserted')")
    assert by_pylance(uri).to_pylist()[-1] == {"id": 1000, "name": "inserted"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("id", "SchemaMismatchError.*name missing"),
        ("id, name, 1 AS extra", "SchemaMismatchError.*extra unknown"),
        ("id, upper(name) AS names", "SchemaMismatchError.*name missing and names unknown"),
        ("cast(id AS string) AS id, name", "SchemaMismatchError.*'id' expected bigint, found string"),
        ("current_timestamp() AS id, name", "SchemaMismatchError.*'id' expected bigint, found timestamp"),
        ("id, make_ym_interval(1) AS name", "SchemaMismatchError.*'name' expected string"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_before_any_task_runs(
    numbers: DataFrame, uri: str, change: str, message: str
) -> None:
    save(numbers, uri)
    before = data_files(uri)
    with pytest.raises(AnalysisException, match=f"(?s){message}"):
        save(numbers.selectExpr(*_split(change)), uri)
    assert lance.dataset(uri).version == 1
    assert data_files(uri) == before


def _split(change: str) -> list[str]:
    return [part.strip() for part in change.split(", ")]


def test_a_type_that_no_table_can_hold_is_refused_by_column(spark: SparkSession, uri: str) -> None:
    with pytest.raises(AnalysisException, match="(?s)UnsupportedError.*'span'"):
        save(spark.sql("SELECT make_ym_interval(1) AS span"), uri)
    with pytest.raises(AnalysisException, match="(?s)InvalidArgumentError.*vectors"):
        save(spark.sql("SELECT 1 AS n"), uri, vectors="n=3")


def test_nulls_are_refused_where_the_table_has_none(spark: SparkSession, uri: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lance.write_dataset(pa.table({"id": [1]}, schema=schema), uri, data_storage_version="2.0")
    save(spark.range(1), uri)
    with pytest.raises(Exception, match="SchemaMismatchError.*'id'.*nulls"):
        save(spark.sql("SELECT cast(null AS bigint) AS id"), uri)
    assert by_pylance(uri).num_rows == 2


def test_frames_that_race_to_make_a_table_both_land(spark: SparkSession, uri: str) -> None:
    errors: list[BaseException] = []

    def append(first: int) -> None:
        try:
            # A thread of our own: it has no session of Spark until it is told.
            esker.spark.register(spark)
            save(spark.range(first, first + 100, 1, 1), uri)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(by_pylance(uri)["id"].to_pylist()) == list(range(400))
    assert lance.dataset(uri).version == 4


def test_an_overwrite_keeps_types_whatever_the_case_of_names(uri: str) -> None:
    table = pa.table({"v": pa.array([[0.5, 1.5]], pa.list_(pa.float32(), 2)), "n": pa.array([1], pa.uint8())})
    esker.write_dataset(table, uri)
    frame = T.StructType().add("N", T.ShortType()).add("V", T.ArrayType(T.FloatType()))
    wrote(uri, frame, [{"N": 2, "V": [2.5, 3.5]}], overwrite=True)
    assert by_pylance(uri).schema == pa.schema({"N": pa.uint8(), "V": pa.list_(pa.float32(), 2)})
    assert by_pylance(uri).to_pylist() == [{"N": 2, "V": [2.5, 3.5]}]


@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_rows_without_columns_are_refused_and_take_no_table_away(
    spark: SparkSession, numbers: DataFrame, tmp_path: Path, table_format: str
) -> None:
    uri = str(tmp_path / "t")
    for _ in range(2):
        for mode in ("append", "overwrite"):
            with pytest.raises(EskerError, match="at least one column, found none|found id, name missing"):
                esker.spark.write(spark.range(3).select(), uri, mode=mode, table_format=table_format)
        esker.spark.write(numbers, uri, mode="ignore", table_format=table_format)
    assert esker.spark.read(spark, uri).count() == numbers.count()
