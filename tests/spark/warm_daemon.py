"""The process that Spark forks its Python workers from, with esker imported: one that was killed is back at once."""

from pyspark.daemon import manager

import esker.spark.source
import esker.spark.streaming.upsert  # noqa: F401

if __name__ == "__main__":
    manager()
