"""One Spark session for all tests of this folder that run in one process."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # The workers of Spark must be this interpreter, which has esker.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", message=".*pandas >= 3.*")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("esker tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    # Tests that fail a task on purpose would fill the report with Java's stack traces.
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "table.lance")


def by_pylance(uri: str, version: int | None = None) -> pa.Table:
    """The table as the peer reads it."""
    return lance.dataset(uri, version=version).to_table()


def save(frame: DataFrame, uri: str, mode: str = "append", **options: object) -> None:
    frame.write.format("esker").mode(mode).options(**{k: str(v) for k, v in options.items()}).save(uri)


def load(spark: SparkSession, uri: str, **options: object) -> DataFrame:
    return spark.read.format("esker").options(**{k: str(v) for k, v in options.items()}).load(uri)


def data_files(uri: str) -> set[str]:
    folder = Path(uri) / "data"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()
