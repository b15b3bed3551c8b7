"""DataFrames to and from a bucket: every task opens the store with the options of the plan."""

from __future__ import annotations

import json

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
