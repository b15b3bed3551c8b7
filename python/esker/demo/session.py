"""A Spark session on this machine, quiet and in UTC."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from esker.demo.source import MissingPart

LOG = "spark.log"
"""The log of Spark and its Java, in the scratch folder."""


def start_spark(scratch: Path) -> SparkSession:
    """Start Spark in this process, with one worker thread per core.

    Nothing here is about esker: Spark finds the format by itself as soon as the package is installed.

    Args:
        scratch: a folder for Spark's own files, its log among them; it is made if it is missing.

    Raises:
        MissingPart: there is no Java.
    """
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise MissingPart(
            "expected Java 17 or newer for Spark, found none: install it and set JAVA_HOME, or `make demo`"
        )
    scratch.mkdir(parents=True, exist_ok=True)
    # Workers must be this interpreter: by default Spark starts the first `python3` on PATH, which need not have esker.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", message=".*pandas.*", module="pyspark.*")
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("esker demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    with standard_error_to(scratch / LOG):
        return builder.getOrCreate()


@contextmanager
def standard_error_to(path: Path) -> Iterator[None]:
    """Send standard error to a file; a Java process started meanwhile keeps writing its many log lines there."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
