"""Spark on branches of one table, by the branch's URI."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

import esker


def test_spark_reads_and_writes_a_branch(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    branch = esker.write_dataset(pa.table({"id": [1, 2]}), uri).create_branch("team/feat")
    spark.createDataFrame([(10,)], "id bigint").write.format("esker").mode("append").save(branch.uri)
    rows = spark.read.format("esker").load(branch.uri).collect()
    assert sorted(row.id for row in rows) == [1, 2, 10]
    assert sorted(lance.dataset(branch.uri).to_table()["id"].to_pylist()) == [1, 2, 10]
    assert esker.dataset(uri).count_rows() == 2
    assert esker.dataset(uri, version=("team/feat", None)).version == 2
