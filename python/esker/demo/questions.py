"""Three questions to the table, with Spark's DataFrames and SQL; each answer comes back as Arrow."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from esker.demo.pipeline import FORMAT

LATE_AFTER = 15
"""Minutes of arrival delay from which a flight counts as late."""

WEATHER_SQL = """
SELECT CASE WHEN visib IS NULL THEN 'not recorded'
            WHEN visib < 1     THEN 'fog, below 1 mile'
            WHEN visib < 5     THEN 'mist, 1 to 5 miles'
            WHEN visib < 10    THEN 'haze, 5 to 10 miles'
            ELSE                    'clear, 10 miles'
       END                                        AS visibility,
       count(*)                                   AS flights,
       avg(CASE WHEN cancelled THEN 1 ELSE 0 END) AS cancelled,
       avg(dep_delay)                             AS dep_delay
FROM flights
GROUP BY visibility
ORDER BY dep_delay
"""


@dataclass(frozen=True)
class Answers:
    """The three answers."""

    airlines: pa.Table
    weather: pa.Table
    hours: pa.Table


def ask_airlines(flights: DataFrame) -> DataFrame:
    """Which airline brings its passengers there on time? (DataFrame)"""
    return (
        flights.groupBy("airline")
        .agg(
            F.count("*").alias("flights"),
            F.avg(F.col("cancelled").cast("int")).alias("cancelled"),
            F.avg((F.col("arr_delay") > LATE_AFTER).cast("int")).alias("late"),
            F.avg("arr_delay").alias("arr_delay"),
        )
        .orderBy("late")
    )


def ask_weather(spark: SparkSession, flights: DataFrame) -> DataFrame:
    """What does poor visibility do to a departure? (SQL)"""
    flights.createOrReplaceTempView("flights")
    return spark.sql(WEATHER_SQL)


def ask_hours(spark: SparkSession, uri: str) -> DataFrame:
    """When should one fly? (DataFrame over a pruned read)

    There is no pushdown from Spark to this data source. The options ``columns`` and ``filter`` do the same: only three
    columns are read here, and only of the flights that left.
    """
    departures = (
        spark.read.format(FORMAT)
        .option("columns", "month,hour,dep_delay")
        .option("filter", "dep_delay IS NOT NULL")
        .load(uri)
    )
    return (
        departures.groupBy("month", "hour")
        .agg(F.count("*").alias("flights"), F.avg("dep_delay").alias("dep_delay"))
        .orderBy("month", "hour")
    )


def ask_all(spark: SparkSession, uri: str) -> Answers:
    """Ask the three questions."""
    flights = spark.read.format(FORMAT).load(uri)
    return Answers(
        airlines=ask_airlines(flights).toArrow(),
        weather=ask_weather(spark, flights).toArrow(),
        hours=ask_hours(spark, uri).toArrow(),
    )
