"""`register`: the format in a session by hand, and what a session tells of its cluster."""

from __future__ import annotations

from pyspark.sql import SparkSession

from esker.spark.source import EskerSource

__all__ = ["parallelism_of", "register"]


def register(spark: SparkSession) -> None:
    """Registers the format `esker` in a session.

    Spark finds the format by itself if the package `pyspark_esker` is on the driver's path. Call this if it is not, or
    if another package of that kind is broken, which hides all of them. Spark looks for formats in the session of the
    calling thread: a thread of your own must call this, too, before it writes.

    Args:
        spark: A session, classic or Connect.

    Example:
        `esker.spark.register(spark)`
    """
    try:
        spark.dataSource.register(EskerSource)
    except Exception as error:
        # Spark 4.0 registers no format that it has found by itself, which is as good.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    java = getattr(spark, "_jvm", None)
    if java is not None:
        # As Spark does in `createDataFrame`: a new thread of Java has no active session before this.
        java.SparkSession.setActiveSession(spark._jsparkSession)


def parallelism_of(spark: SparkSession) -> int | None:
    """How many tasks a session runs at once; None under Spark Connect, which does not tell.

    Example:
        `parallelism_of(spark)`
    """
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        # Spark Connect has no such thing.
        return None
