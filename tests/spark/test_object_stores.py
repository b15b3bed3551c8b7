"""DataFrames to and from a bucket: every task opens the store with the options of the plan."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest
from pyspark.sql import SparkSession

import esker
import esker.spark
from tests.servers import S3Server
from tests.spark.conftest import load, save


def test_a_dataframe_goes_to_a_bucket_and_back(spark: SparkSession, s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/frames.lance"
    options = {"storage_options": json.dumps(s3.storage_options)}
    frame = spark.range(0, 1000, numPartitions=3)
    save(frame, uri, **options)
    save(spark.range(1000, 1100), uri, **options)
    assert load(spark, uri, **options).count() == 1100
    assert load(spark, uri, filter="id >= 1090", **options).count() == 10
    assert lance.dataset(uri, storage_options=s3.storage_options).count_rows() == 1100
    assert esker.dataset(uri, storage_options=s3.storage_options).version == 2


def test_the_helpers_take_storage_options(spark: SparkSession, s3: S3Server) -> None:
    uri = f"s3://{s3.bucket()}/helped.lance"
    esker.spark.write(spark.range(50), uri, storage_options=s3.storage_options)
    read = esker.spark.read(spark, uri, storage_options=s3.storage_options)
    assert sorted(row.id for row in read.collect()) == list(range(50))


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_streams_go_to_a_bucket_and_back(spark: SparkSession, s3: S3Server, tmp_path: Path, kind: str) -> None:
    bucket, store = s3.bucket(), s3.storage_options
    source, out, state = (f"s3://{bucket}/{name}" for name in ("source", "out", "state"))
    esker.spark.write(spark.range(100), source, table_format=kind, storage_options=store)
    stream = spark.readStream.format("esker").option("storageOptions", json.dumps(store))
    rows = stream.option("maxRowsPerTrigger", 40).load(source)
    copied = rows.writeStream.format("esker").option("tableFormat", kind).option("path", out)
    copied = copied.option("storageOptions", json.dumps(store))
    upsert = esker.spark.upsert_stream(rows, state, keys="id", table_format=kind, storage_options=store)
    for _ in range(2):
        for number, writer in enumerate((copied, upsert)):
            # Spark itself has no access to the bucket: its checkpoint is elsewhere.
            checkpoint = str(tmp_path / f"c{number}")
            writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
        esker.spark.write(spark.range(100, 120), source, mode="append", storage_options=store)
    for uri in (out, state):
        assert sorted(row.id for row in esker.spark.read(spark, uri, storage_options=store).collect()) == [*range(120)]


def test_no_plan_and_no_error_shows_the_credentials(
    spark: SparkSession, s3: S3Server, capfd: pytest.CaptureFixture[str]
) -> None:
    uri = f"s3://{s3.bucket()}/nothing.lance"
    options = {"storage_options": json.dumps(s3.storage_options)}
    with pytest.raises(Exception, match="no table at") as raised:
        load(spark, uri, **options).count()
    assert s3.secret not in str(raised.value)
    save(spark.range(3), uri, **options)
    load(spark, uri, **options).explain("extended")
    printed = capfd.readouterr()
    assert "esker" in (printed.out + printed.err).lower()
    assert s3.secret not in printed.out + printed.err
