"""The format and the helpers under Spark Connect, where there is no Java in the client's process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.spark.conftest import by_pylance

SCRIPT = """
import sys
import esker.spark
from esker.exceptions import AlreadyExistsError, UnsupportedError
from pyspark.sql import SparkSession

uri = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
frame = spark.range(1000).selectExpr("id", "array(0.5f, 1.5f) AS v")
frame.write.format("esker").mode("append").option("vectors", "v=2").save(uri)
esker.spark.register(spark)
esker.spark.write(frame, uri, mode="append")
try:
    esker.spark.write(frame, uri)
except AlreadyExistsError as error:
    print("refused:", error.kind)
try:
    esker.spark.upsert_stream(spark.readStream.format("rate").load(), uri, keys=["value"])
except UnsupportedError as error:
    print("refused:", "application" in str(error))
for find in (
    lambda: frame.write.format("esker").mode("append").save("relative.lance"),
    lambda: spark.read.format("esker").load("relative.lance").count(),
    lambda: spark.readStream.format("esker").load("relative.lance").schema,
):
    try:
        find()
    except Exception as error:
        print("relative:", "expected a whole path" in str(error))
twice = spark.readStream.format("esker").load(uri).selectExpr("id % 5 AS id")
upsert = esker.spark.upsert_stream(twice, f"{uri}.upserted", keys="id", application="a")
upsert = upsert.option("checkpointLocation", f"{uri}.checkpoint").trigger(availableNow=True)
try:
    upsert.start().awaitTermination()
except Exception as error:
    told = str(error).splitlines()
    print("upsert:", "InvalidArgumentError: expected one row for each key" in told[0], "Traceback" in str(error))
print("format:", spark.read.format("esker").option("filter", "id < 10").load(uri).count())
print("helper:", esker.spark.read(spark, uri, columns=["id"], rows_per_partition=100).count())
spark.stop()
"""


def test_tables_are_written_and_read_under_connect(uri: str) -> None:
    pytest.importorskip("grpc")
    # A process of its own: a classic session and a remote one don't go together.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, uri],
        capture_output=True,
        text=True,
        check=False,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SPARK_")},
            "PYSPARK_PYTHON": sys.executable,
        },
    )
    assert done.stdout.split("\n")[:8] == [
        "refused: already_exists",
        "refused: True",
        # The server would look for it in a folder that is removed with the session, and write it there.
        *["relative: True"] * 3,
        "upsert: True False",
        "format: 20",
        "helper: 2000",
    ], done.stderr[-3000:]
    table = by_pylance(uri)
    assert table.num_rows == 2_000
    assert str(table.schema.field("v").type) == "fixed_size_list<item: float>[2]"
