"""What a user does with a cluster, in a process of its own: `python -m tests.spark.cluster_job MASTER FOLDER`.

Executors are other processes: whatever goes to them is pickled. It prints `done` if all of it came out right.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import esker
import esker.spark

ROWS = 600


def job(master: str, folder: Path) -> None:
    """Writes, reads, streams and maps tables of both formats."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2")
    if master == "connect":
        spark = builder.remote("local[2]").getOrCreate()
    else:
        local = builder.master(master).config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        local = local.config("spark.ui.showConsoleProgress", "false").config("spark.executor.memory", "512m")
        spark = local.config("spark.cores.max", "2").config("spark.executor.cores", "1").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 7 AS n", "concat('x', id) AS s")
    for kind in ("lance", "delta"):
        uri = str(folder / kind)
        esker.spark.write(rows, uri, table_format=kind)
        table = esker.spark.read(spark, uri)
        assert table.count() == ROWS
        assert table.columns("N").where("id < 70").count() == 70
        assert table.columns("n").agg(F.sum("n")).collect()[0][0] == sum(i % 7 for i in range(ROWS))
        firsts = esker.spark.map_batches(uri, lambda batch: batch.slice(0, 1), ["id"], spark=spark)
        assert 0 in {row.id for row in firsts.collect()}
        _refused(spark, uri)
        _stream(spark, folder, uri, kind, None if master != "connect" else f"app-{kind}")
    found = esker.spark.lookup(spark.range(5), folder / "lance", on="id", columns=["s"])
    assert sorted(row.s for row in found.collect()) == [f"x{i}" for i in range(5)]
    print("done")
    spark.stop()


def _refused(spark: object, uri: str) -> None:
    """An error of esker's is the first line that its user reads, under Connect, too."""
    try:
        spark.read.format("esker").option("columns", "none").load(uri).collect()  # type: ignore[attr-defined]
    except Exception as error:
        if "esker.exceptions.InvalidArgumentError: " not in str(error).strip().splitlines()[0]:
            raise
    else:
        raise AssertionError("expected an error")


def _stream(spark: object, folder: Path, uri: str, kind: str, application: str | None) -> None:
    """The table as a stream into another one, and by key into a third one."""
    out, state = str(folder / f"{kind}-out"), str(folder / f"{kind}-state")
    read = spark.readStream.format("esker").load(uri)  # type: ignore[attr-defined]
    writer = read.writeStream.format("esker").option("tableFormat", kind).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / f"{kind}-c1")).start(out).awaitTermination()
    upsert = esker.spark.upsert_stream(read, state, keys=["id"], table_format=kind, application=application)
    upsert.option("checkpointLocation", str(folder / f"{kind}-c2")).trigger(
        availableNow=True
    ).start().awaitTermination()
    for there in (out, state):
        assert esker.spark.read(spark, there).count() == ROWS  # type: ignore[arg-type]


def main() -> None:
    """Runs the job; what it prints goes to a file as well, since clusters talk on the same channel."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = Path(sys.argv[2])
    job(sys.argv[1], folder)
    (folder / "done").write_text(json.dumps("done"))


if __name__ == "__main__":
    main()
