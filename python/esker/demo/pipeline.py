"""The pipeline: read the CSV files with Spark, clean and join them, append the result to a table month by month."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from esker.demo.source import SourceFiles

FORMAT = "esker"

FLIGHTS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT,
    hour INT, minute INT, time_hour TIMESTAMP
"""
AIRLINES = "carrier STRING, name STRING"
AIRPORTS = "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING"
PLANES = """
    tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT,
    engine STRING
"""
WEATHER = """
    origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT,
    wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP
"""


def read_csv(spark: SparkSession, path: Path, schema: str) -> DataFrame:
    """Read one CSV file with stated types; R's ``NA`` becomes null, and a value that does not parse is an error."""
    return spark.read.csv(path.resolve().as_uri(), schema=schema, header=True, nullValue="NA", mode="FAILFAST")


def clean_flights(flights: DataFrame) -> DataFrame:
    """Give the flights real timestamps and drop the columns that only spell them out.

    The source writes a time of day as the number 1545 for 15:45, in New York's time, without a date: useless to a
    computation that crosses midnight. ``time_hour`` is the scheduled hour as a moment in UTC, so a schedule is that
    plus the minutes, and a departure is the schedule plus the delay. ``hour`` stays: people live by the local clock.
    """
    scheduled = F.col("time_hour") + F.make_dt_interval(mins=F.col("minute"))
    return flights.select(
        F.make_date("year", "month", "day").alias("date"),
        "month",
        "hour",
        scheduled.alias("scheduled"),
        (scheduled + F.make_dt_interval(mins=F.col("dep_delay"))).alias("departed"),
        F.col("dep_time").isNull().alias("cancelled"),
        "dep_delay",
        "arr_delay",
        "carrier",
        "flight",
        "tailnum",
        "origin",
        "dest",
        "air_time",
        "distance",
        "time_hour",
    )


def join_all(spark: SparkSession, source: SourceFiles) -> DataFrame:
    """Clean the flights and join what is known about each: airline, destination, plane and weather.

    Left joins, since a flight counts whether or not its plane is in the registry or the weather was recorded.
    """
    flights = clean_flights(read_csv(spark, source.flights, FLIGHTS))
    airlines = read_csv(spark, source.airlines, AIRLINES).select("carrier", F.col("name").alias("airline"))
    airports = read_csv(spark, source.airports, AIRPORTS).select(
        F.col("faa").alias("dest"),
        F.col("name").alias("dest_name"),
        F.col("lat").alias("dest_lat"),
        F.col("lon").alias("dest_lon"),
    )
    planes = read_csv(spark, source.planes, PLANES).select(
        "tailnum", F.col("year").alias("plane_year"), "manufacturer", "model", "seats"
    )
    weather = read_csv(spark, source.weather, WEATHER).select(
        "origin", "time_hour", "temp", "wind_speed", "precip", "visib"
    )
    return (
        flights.join(F.broadcast(airlines), "carrier", "left")
        .join(F.broadcast(airports), "dest", "left")
        .join(F.broadcast(planes), "tailnum", "left")
        .join(F.broadcast(weather), ["origin", "time_hour"], "left")
        .drop("time_hour")
    )


def append_months(flights: DataFrame, uri: str, months: int) -> Iterator[int]:
    """Append each month to the table at ``uri``; every append is one commit, and so one version.

    The first append creates the table. ``coalesce(1)`` makes a month one data file: by default every Spark partition
    writes its own.

    Yields:
        the number of each month, once it is committed.
    """
    for month in range(1, months + 1):
        rows = flights.where(F.col("month") == month).coalesce(1).sortWithinPartitions("scheduled", "carrier", "flight")
        rows.write.format(FORMAT).mode("append").save(uri)
        yield month
