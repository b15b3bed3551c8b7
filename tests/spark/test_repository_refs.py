"""Tables on branches of a repository, by the URI of a ref: Spark's processes know nothing of repositories before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import esker
from esker.repo import Repository
from tests.spark.conftest import load


def test_a_table_at_a_ref_is_read_by_its_uri(spark: SparkSession, tmp_path: Path) -> None:
    main = Repository.create(tmp_path / "repo").branch("main")
    for n in range(2):
        with main.transact("rows") as tx:
            esker.write_dataset(
                pa.table({"id": [2 * n, 2 * n + 1]}), tx.store_uri("t"), mode="append" if n else "create"
            )
    frame = load(spark, main.store_uri("t"))
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3]
    assert frame.where("id > 2").count() == 1
    assert load(spark, main.head.store_uri("t")).count() == 4
