"""Read the table again: all of it, random rows of it, and earlier versions."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

import esker
from esker.demo.pipeline import FORMAT


@dataclass(frozen=True)
class Version:
    """One version of the table as it reads today."""

    number: int
    committed: str
    fragments: int
    rows: int


def read_with_spark(spark: SparkSession, uri: str) -> pa.Table:
    """The whole table through Spark, as Arrow."""
    return spark.read.format(FORMAT).load(uri).toArrow()


def read_with_python(uri: str) -> pa.Table:
    """The whole table through Python, with no Spark around."""
    return esker.dataset(uri).to_table()


def list_versions(uri: str) -> list[Version]:
    """Open every version of the table. Counting reads no data: the manifest has the number of rows of each fragment."""
    history = []
    for entry in esker.dataset(uri).versions():
        snapshot = esker.dataset(uri, version=entry["version"])
        history.append(
            Version(
                number=entry["version"],
                committed=f"{entry['timestamp']:%H:%M:%S.%f}"[:-3],
                fragments=len(snapshot.get_fragments()),
                rows=snapshot.count_rows(),
            )
        )
    return history


def take_random_rows(uri: str, *, rows: int, seed: int) -> tuple[list[int], pa.Table]:
    """Take rows by their number, in random order and with repetitions allowed.

    Returns:
        the row numbers that were asked for, and the rows in that order.
    """
    dataset = esker.dataset(uri)
    generator = random.Random(seed)
    total = dataset.count_rows()
    numbers = [generator.randrange(total) for _ in range(rows)]
    return numbers, dataset.take(numbers)


@dataclass(frozen=True)
class PastCounts:
    """How many rows an earlier version has, by each way of opening it."""

    opened: int
    checked_out: int
    spark: int


def count_at_version(spark: SparkSession, uri: str, version: int) -> PastCounts:
    """Go back to ``version`` in three ways; none of them changes the table."""
    opened = esker.dataset(uri, version=version)
    checked_out = esker.dataset(uri).checkout_version(version)
    through_spark = spark.read.format(FORMAT).option("version", version).load(uri)
    return PastCounts(opened=opened.count_rows(), checked_out=checked_out.count_rows(), spark=through_spark.count())
