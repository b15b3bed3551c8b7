"""`esker.spark.write`: all save modes, and the options of a write as arguments."""

from __future__ import annotations

from pathlib import Path

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import esker
import esker.spark
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, SchemaMismatchError
from tests.page_encodings import page_encodings
from tests.spark.jobs import planned, staged

NUMBERS = T.StructType([T.StructField("id", T.LongType())])


def _rows(uri: str) -> list[dict[str, object]]:
    return sorted(deltalake.DeltaTable(uri).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def test_every_mode_and_option_of_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = spark.sql("SELECT id, if(id < 2, 'a', 'b') AS p FROM range(4)").coalesce(1)
    esker.spark.write(
        rows,
        uri,
        table_format="delta",
        partition_by="p",
        configuration={"delta.appendOnly": "false"},
        user_metadata="x",
    )
    table = deltalake.DeltaTable(uri)
    assert table.metadata().partition_columns == ["p"]
    assert table.metadata().configuration == {"delta.appendOnly": "false"}
    assert table.history(1)[0]["userMetadata"] == "x"
    with pytest.raises(AlreadyExistsError):
        esker.spark.write(rows, uri)
    esker.spark.write(rows, uri, mode="ignore")
    for _ in range(2):
        esker.spark.write(spark.sql("SELECT 9L AS id, 'b' AS p"), uri, mode="append", txn_app_id="job", txn_version=3)
    assert [row["id"] for row in _rows(uri)] == [0, 1, 2, 3, 9]
    with pytest.raises(SchemaMismatchError, match="mergeSchema"):
        esker.spark.write(spark.sql("SELECT 5L AS id, 'b' AS p, 1 AS n"), uri, mode="append")
    esker.spark.write(spark.sql("SELECT 5L AS id, 'b' AS p, 1 AS n"), uri, mode="append", merge_schema=True)
    assert _rows(uri)[4] == {"id": 5, "p": "b", "n": 1}
    dynamic = spark.sql("SELECT 7L AS id, 'b' AS p, 2 AS n")
    esker.spark.write(dynamic, uri, mode="overwrite", partition_overwrite_mode="dynamic")
    assert [row["id"] for row in _rows(uri)] == [0, 1, 7]
    where = spark.sql("SELECT 1L AS id, 'a' AS p, 3 AS n")
    esker.spark.write(where, uri, mode="overwrite", replace_where="ID = 1")
    assert [(row["id"], row["n"]) for row in _rows(uri)] == [(0, None), (1, 3), (7, 2)]
    with pytest.raises(InvalidArgumentError, match="replaceWhere|predicate"):
        esker.spark.write(where, uri, mode="overwrite", replace_where="id = 2")
    esker.spark.write(spark.sql("SELECT 0 AS id, 'z' AS p"), uri, mode="overwrite", overwrite_schema=True)
    assert _rows(uri) == [{"id": 0, "p": "z"}]
    assert deltalake.DeltaTable(uri).to_pyarrow_table().schema.field("id").type == pa.int32()
    with pytest.raises(InvalidArgumentError, match="txnVersion"):
        esker.spark.write(rows, uri, mode="append", txn_app_id="job")
    assert deltalake.DeltaTable(uri).version() == 5


def test_values_that_do_not_fit_raise_eskers_error(spark: SparkSession, uri: str) -> None:
    esker.write_dataset(pa.table({"small": pa.array([1], pa.uint8())}), uri)
    with pytest.raises(SchemaMismatchError, match="^column 'small' expected values that fit uint8"):
        esker.spark.write(spark.sql("SELECT 256L AS small"), uri, mode="append")
    assert esker.dataset(uri).version == 1


def test_what_is_read_can_be_written(spark: SparkSession, uri: str) -> None:
    esker.spark.write(spark.range(10), uri)
    esker.spark.write(esker.spark.read(spark, uri).where("id < 5"), uri, mode="overwrite")
    assert esker.dataset(uri).to_table()["id"].to_pylist() == list(range(5))


def test_lengths_of_vectors_follow_sparks_case_rule(spark: SparkSession, uri: str) -> None:
    esker.spark.write(spark.sql("SELECT array(1f, 2f) AS v"), uri, vectors={"V": 2})
    assert esker.dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)


@pytest.mark.parametrize("partitioned", [False, True])
def test_predicate_overwrites_land_beside_appends_of_other_ranges(tmp_path: Path, partitioned: bool) -> None:
    uri = str(tmp_path / "t")
    schema = T.StructType([*NUMBERS.fields, T.StructField("p", T.LongType())]) if partitioned else NUMBERS
    given = {"partition_by": ["p"]} if partitioned else {}

    def rows(*ids: int) -> pa.Table:
        return pa.table({"id": pa.array(ids, pa.int64()), **({"p": pa.array([1] * len(ids))} if partitioned else {})})

    deltalake.write_deltalake(uri, rows(0, 1, 2), **given)
    for number in range(25):
        writer = planned(uri, schema, overwrite=True, replaceWhere="id < 3")
        messages = staged(writer, [rows(0, number % 3).to_batches()])
        deltalake.write_deltalake(uri, rows(100 + number), mode="append")
        writer.commit(messages)
    found = sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())
    assert found == [0, 0, *range(100, 125)]
    # Rows of the range itself that others have appended meanwhile are replaced with those that were there.
    writer = planned(uri, schema, overwrite=True, replaceWhere="id < 3")
    messages = staged(writer, [rows(0).to_batches()])
    deltalake.write_deltalake(uri, rows(2, 500), mode="append")
    writer.commit(messages)
    found = sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())
    assert found == [0, *range(100, 125), 500]


def test_a_lance_table_keeps_its_compression_through_writes_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = spark.sql("SELECT id, concat('text ', id % 1000, repeat('x', 20)) AS s FROM range(40000)").coalesce(1)

    def encodings(known: set[Path]) -> list[str]:
        fresh = [path for path in (tmp_path / "t" / "data").glob("*.lance") if path not in known]
        known.update(fresh)
        return [page_encodings(path) for path in fresh]

    known: set[Path] = set()
    esker.spark.write(rows, uri, compression="small")
    assert esker.dataset(uri).config()["esker.compression"] == "small"
    assert all("zstd" in found for found in encodings(known))
    esker.spark.write(rows, uri, mode="append")
    rows.write.format("esker").mode("append").save(uri)
    assert [("zstd" in found) for found in encodings(known)] == [True, True]
    esker.spark.write(rows, uri, mode="append", compression="fast")
    assert ["zstd" in found for found in encodings(known)] == [False]
    assert esker.dataset(uri).config()["esker.compression"] == "small"
    rows.write.format("esker").mode("overwrite").option("compression", "fast").save(uri)
    assert esker.dataset(uri).config()["esker.compression"] == "fast"
    assert ["zstd" in found for found in encodings(known)] == [False]
    assert lance.dataset(uri).count_rows() == 40_000
    with pytest.raises(InvalidArgumentError, match="tiny"):
        esker.spark.write(rows, uri, mode="append", compression="tiny")  # type: ignore[arg-type]


def test_arguments_of_other_kinds_are_refused_in_words(spark: SparkSession, uri: str) -> None:
    frame = spark.range(3)
    for given, told in (
        ({"mode": None}, "expected a mode of append, overwrite, error, ignore, found None"),
        ({"vectors": "id=2"}, "vectors: expected a dict such as"),
        ({"storage_options": ["region"]}, "storage_options: expected a dict such as"),
        ({"configuration": "delta.appendOnly"}, "configuration: expected a dict such as"),
    ):
        with pytest.raises(InvalidArgumentError, match=told):
            esker.spark.write(frame, uri, **given)
    for rows in (None, pa.table({"id": [1]})):
        with pytest.raises(InvalidArgumentError, match="expected a DataFrame of Spark, found a .*write_dataset"):
            esker.spark.write(rows, uri)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="storage_options: expected a dict"):
        esker.spark.read(spark, uri, storage_options="region=x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="storage_options: expected a dict"):
        esker.spark.map_batches(uri, lambda batch: batch, storage_options="region=x")  # type: ignore[arg-type]
