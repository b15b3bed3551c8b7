"""Delta tables of the peer, read with `spark.read.format("esker")`."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.spark.conftest import load

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "delta"


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    for part, name in enumerate(["a", "b", None]):
        data = pa.table({"p": pa.array([name] * 2), "n": [part, part + 10], "l": [[1], None]})
        deltalake.write_deltalake(uri, data, mode="append", partition_by=["p"])
    return uri


def test_files_are_partitions(spark: SparkSession, table: str) -> None:
    frame = load(spark, table)
    assert frame.schema.simpleString() == "struct<p:string,n:bigint,l:array<bigint>>"
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.n for row in frame.collect()) == [0, 1, 2, 10, 11, 12]
    assert frame.where("p is null").count() == 2


def test_columns_and_filters_are_options(spark: SparkSession, table: str) -> None:
    frame = load(spark, table, columns="n", filter="p = 'b' and n > 5")
    assert frame.rdd.getNumPartitions() == 1
    assert [tuple(row) for row in frame.collect()] == [(11,)]


def test_versions_by_number_and_time(spark: SparkSession, table: str) -> None:
    assert load(spark, table, versionAsOf=0).count() == 2
    assert load(spark, table, timestampAsOf="2100-01-01").count() == 6
    with pytest.raises(AnalysisException, match="no version 7"):
        load(spark, table, versionAsOf=7)
    with pytest.raises(AnalysisException, match="leave one out"):
        load(spark, table, versionAsOf=0, timestampAsOf="2100-01-01")
    with pytest.raises(AnalysisException, match="'zz'"):
        load(spark, table, columns="zz")


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the folder ../shared/fixtures is not there")
def test_deletion_vectors_and_mapped_columns_are_read(spark: SparkSession) -> None:
    assert load(spark, str(FIXTURES / "dv-partitioned-with-checkpoint" / "delta")).count() == 35
    frame = load(spark, str(FIXTURES / "table-with-columnmapping-mode-id" / "delta"))
    found = {(row["ByteType"], row["StringType"], str(row["decimal"])) for row in frame.collect()}
    assert found == {*((n, str(n), f"{n}.00") for n in range(5)), (None, None, "None")}
