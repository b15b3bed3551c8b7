"""`register`: the format in a session by hand. What a session tells of its cluster; bytes of the driver in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from esker.spark.source import EskerSource

__all__ = ["frame_of_bytes", "parallelism_of", "register"]


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


def frame_of_bytes(spark: SparkSession, values: Sequence[bytes]) -> DataFrame | None:
    """A DataFrame of one binary column, with a Spark partition for each value, whose size Spark does not know.

    `createDataFrame` makes a table of the driver's of it, whose size Spark does know, or has Python workers unpickle
    each value; a data source has Python processes plan it and read it. This one is rows in the JVM.

    Args:
        spark: A session.
        values: The values.

    Returns:
        The DataFrame; None under Spark Connect, and in a release of Spark that works in another way.

    Example:
        `frame_of_bytes(spark, [b"a", b"b"])`
    """
    from pyspark.serializers import NoOpSerializer

    count = max(len(values), 1)
    try:
        context: Any = spark.sparkContext
        jvm = context._jvm
        rows = context._serialize_to_jvm(
            iter(values),
            NoOpSerializer(),
            lambda path: jvm.PythonRDD.readRDDFromFile(context._jsc, path, count),
            lambda: jvm.PythonParallelizeServer(context._jsc.sc(), count),
        )
        session: Any = spark
        binary = jvm.org.apache.spark.sql.Encoders.BINARY()
        return DataFrame(session._jsparkSession.createDataset(rows.rdd(), binary).toDF(), session)
    except Exception:
        # Spark Connect has no such things, and another release may have others: the data source does it, too.
        return None
