"""An external manifest store reaches Spark's driver and its workers by a storage option."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import esker
import esker.spark
from esker.commit.external import SqliteManifestStore
from tests.external import Failing, Killed


def test_dataframes_commit_through_a_manifest_store(spark: SparkSession, tmp_path: Path) -> None:
    uri, store = str(tmp_path / "t.lance"), SqliteManifestStore(tmp_path / "manifests.db")
    options = {"manifest_store": f"sqlite://{store.path}"}
    frame = spark.range(0, 100, numPartitions=3)
    frame.write.format("esker").option("storage_options", json.dumps(options)).mode("append").save(uri)
    esker.spark.write(spark.range(100, 120), uri, mode="append", storage_options=options)
    latest = store.get_latest(uri)
    assert latest is not None
    assert latest.version == 2
    # A version that is staged only is read by Spark too, and finished by it.
    dying = Failing(store, "kill_after", "put_if_not_exists")
    with pytest.raises(Killed):
        esker.write_dataset(pa.table({"id": [7]}), uri, mode="append", manifest_store=dying)
    assert esker.dataset(uri).version == 2
    assert esker.spark.read(spark, uri, storage_options=options).count() == 121
    assert spark.read.format("esker").option("storage_options", json.dumps(options)).load(uri).count() == 121
    assert esker.dataset(uri).version == 3
