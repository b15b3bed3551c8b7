"""A JVM that programs of Spark use one after the other: each is a process, and has a session of its own.

Most of the time of a short program is the start of a JVM. That a session starts one by itself is shown by the demo and
by `tests/spark/test_session.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.java_gateway import launch_gateway


class SparkPrograms:
    """Runs programs in a folder, which each of them finds empty.

    Spark resolves paths, and starts its Python workers, in the folder that its JVM was started in.
    """

    def __init__(self, gateway: Any, folder: Path) -> None:
        self._gateway = gateway
        self._folder = folder

    def run(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a program, and stops the session that it leaves."""
        given = self._gateway.gateway_parameters
        ours = {"PYSPARK_GATEWAY_PORT": str(given.port), "PYSPARK_GATEWAY_SECRET": str(given.auth_token)}
        try:
            return subprocess.run(
                [sys.executable, str(script), *arguments],
                cwd=self._folder,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, **ours},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        session = self._gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession()
        if session.isDefined():
            session.get().stop()
        for left in self._folder.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()


@contextmanager
def spark_programs(folder: Path) -> Iterator[SparkPrograms]:
    """Starts a JVM for programs that run in a folder."""
    with pytest.MonkeyPatch.context() as patch, folder.with_suffix(".log").open("w") as log:
        # Workers that plan a read or a write are those of the JVM's environment.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        gateway = launch_gateway(popen_kwargs={"cwd": str(folder), "stdout": log, "stderr": log})
        try:
            yield SparkPrograms(gateway, folder)
        finally:
            gateway.proc.stdin.close()
            gateway.proc.wait(60)
