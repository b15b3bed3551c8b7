"""Spark with its own Delta, asked line by line. Runs in the environment that delta-spark pins, without esker.

A question is one line of JSON, `{"do": ..., ...}`; an answer is one line, `@@` and JSON. Rows come as Parquet files and
go as Arrow files.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any


def session(jars: str, work: str) -> Any:
    """Spark, with Delta as its catalog."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(os.path.join(jars, name) for name in sorted(os.listdir(jars))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.warehouse.dir": os.path.join(work, "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={work}",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("delta")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def keep(rows: Any, path: str) -> None:
    """Rows as an Arrow file."""
    import pyarrow as pa

    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def answer(spark: Any, asked: dict[str, Any]) -> Any:
    """What one question asks for."""
    do = asked["do"]
    if do == "sql":
        for name, value in asked["settings"].items():
            spark.conf.set(name, value)
        found = spark.sql(asked["text"])
        for name in asked["settings"]:
            spark.conf.unset(name)
        # A statement's own report is not asked for.
        if asked["out"]:
            keep(found.toArrow(), asked["out"])
    elif do == "read":
        keep(spark.read.format("delta").options(**asked["options"]).load(asked["path"]).toArrow(), asked["out"])
    elif do == "write":
        writer = spark.read.parquet(asked["rows"]).coalesce(asked["files"]).write.format("delta").mode(asked["mode"])
        if asked["partition_by"]:
            writer = writer.partitionBy(*asked["partition_by"])
        writer.options(**asked["options"]).save(asked["path"])
    elif do == "checkpoint":
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, asked["path"])
        log.checkpoint()
    else:
        raise ValueError(do)
    return None


def main() -> None:
    """Answers until there are no more questions."""
    warnings.simplefilter("ignore")
    spark = session(sys.argv[1], sys.argv[2])
    print("@@" + json.dumps({"ready": spark.version}), flush=True)
    for line in sys.stdin:
        try:
            said = {"said": answer(spark, json.loads(line))}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:1000]}
        print("@@" + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
