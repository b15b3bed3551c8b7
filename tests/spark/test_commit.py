"""What a write leaves behind when a task fails, when a commit fails, and when only its reply is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from esker.spark import EskerSource
from tests.spark.conftest import by_pylance, data_files, load, save


def _failing_source(name: str, *, land: bool) -> type[EskerSource]:
    """The format under another name, whose commit always reports a failure: before it landed, or after.

    Defined in a function so that Spark ships the class itself: its processes cannot import this file.
    """
    from esker.spark.writer import EskerWriter

    class FailingWriter(EskerWriter):
        def commit(self, messages: Any) -> None:
            if land:
                super().commit(messages)
            raise OSError("the connection was lost")

    class FailingSource(EskerSource):
        @classmethod
        def name(cls) -> str:
            return name

        def writer(self, schema: Any, overwrite: bool) -> Any:
            writer = super().writer(schema, overwrite)
            writer.__class__ = FailingWriter
            return writer

    return FailingSource


@pytest.fixture
def written(spark: SparkSession, uri: str) -> Iterator[str]:
    save(spark.range(100), uri)
    yield uri
    # Whatever happened: the table opens, and the next writer goes on from there.
    before = by_pylance(uri).num_rows
    save(spark.range(1), uri)
    assert load(spark, uri).count() == before + 1


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_an_abort_after_a_commit_that_landed_deletes_nothing(spark: SparkSession, written: str, mode: str) -> None:
    spark.dataSource.register(_failing_source("esker_lost_reply", land=True))
    with pytest.raises(Exception, match="connection was lost"):
        spark.range(100, 150).write.format("esker_lost_reply").mode(mode).save(written)
    expected = list(range(150) if mode == "append" else range(100, 150))
    assert sorted(by_pylance(written)["id"].to_pylist()) == expected
    assert lance.dataset(written).version == 2


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_an_abort_after_a_commit_that_failed_leaves_files_to_a_clean_up(
    spark: SparkSession, written: str, mode: str
) -> None:
    spark.dataSource.register(_failing_source("esker_no_commit", land=False))
    before = data_files(written)
    with pytest.raises(Exception, match="connection was lost"):
        spark.range(100, 150).write.format("esker_no_commit").mode(mode).save(written)
    assert by_pylance(written)["id"].to_pylist() == list(range(100))
    # Another process made that commit, and its put may be on its way still: only it would know better.
    assert data_files(written) > before


def test_a_task_that_fails_leaves_the_table_as_it_was(spark: SparkSession, written: str) -> None:
    before = data_files(written)

    @F.udf(StringType())
    def fail_late(number: int) -> str:
        if number == 199:
            # The other task has finished by then, so that its files are there to be deleted.
            for _ in range(300):
                if data_files(written) > before:
                    break
                time.sleep(0.2)
            time.sleep(5)
            raise RuntimeError("bad row")
        return str(number)

    frame = spark.range(100, 200, 1, 2).select(fail_late("id").cast("bigint").alias("id"))
    with pytest.raises(Exception, match="bad row"):
        save(frame, written)
    assert lance.dataset(written).version == 1
    assert by_pylance(written).num_rows == 100
    assert data_files(written) == before


def test_a_value_that_does_not_fit_leaves_the_table_as_it_was(spark: SparkSession, uri: str) -> None:
    save(spark.sql("SELECT array(1f, 2f) AS v"), uri, vectors="v=2")
    before = data_files(uri)
    with pytest.raises(Exception, match="expected lists of 2 items, found one of 3"):
        save(spark.range(0, 100, 1, 1).selectExpr("slice(array(1f, 2f, 3f), 1, 2 + int(id = 99)) AS v"), uri)
    assert by_pylance(uri).num_rows == 1
    assert data_files(uri) == before


def test_a_landed_append_is_found_under_later_versions(spark: SparkSession, written: str) -> None:
    spark.dataSource.register(_failing_source("esker_lost_reply", land=True))
    with pytest.raises(Exception, match="connection was lost"):
        spark.range(100, 150).write.format("esker_lost_reply").mode("append").save(written)
    properties = [lance.dataset(written).read_transaction(v).transaction_properties for v in (1, 2)]
    tokens = [found["esker.dataset.write-token"] for found in properties]
    assert len(set(tokens)) == 2
