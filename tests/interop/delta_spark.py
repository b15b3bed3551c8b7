"""Spark with its own Delta as a peer: in a process and an environment of its own, since it pins another PySpark."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.servers.install import delta_spark

HERE = Path(__file__).resolve().parent


class SparkError(Exception):
    """What Spark says of a question that it refuses."""


class SparkDelta:
    """A session of Spark that reads and writes Delta tables by their paths.

    Args:
        work: A folder for what goes to and fro.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        self._numbers = itertools.count()
        python, jars = delta_spark()
        environment = {**os.environ, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        for name in ("SPARK_HOME", "PYTHONPATH"):
            environment.pop(name, None)
        self._log = (work / "spark.log").open("w")
        self._process = subprocess.Popen(
            [str(python), str(HERE / "delta_session.py"), str(jars), str(work)],
            cwd=work,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.version = self._reply()["ready"]

    def __enter__(self) -> SparkDelta:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)
        self._log.close()

    def run(self, statement: str, settings: dict[str, str] | None = None) -> None:
        """Runs a statement, with settings for it alone."""
        self._ask({"do": "sql", "text": statement, "out": None, "settings": settings or {}})

    def rows(self, query: str) -> pa.Table:
        """What a query gives."""
        out = self._path("arrow")
        self._ask({"do": "sql", "text": query, "out": str(out), "settings": {}})
        return _rows(out)

    def read(self, path: Path, **options: object) -> pa.Table:
        """The rows of a table."""
        out = self._path("arrow")
        said = {name: str(value) for name, value in options.items()}
        self._ask({"do": "read", "path": str(path), "options": said, "out": str(out)})
        return _rows(out)

    def write(
        self,
        path: Path,
        rows: pa.Table,
        *,
        mode: str = "append",
        partition_by: list[str] | None = None,
        files: int = 1,
        **options: object,
    ) -> None:
        """Writes rows to a table."""
        given = self._path("parquet")
        pq.write_table(rows, given)
        self._ask(
            {
                "do": "write",
                "rows": str(given),
                "path": str(path),
                "mode": mode,
                "partition_by": partition_by or [],
                "files": files,
                "options": {name: str(value) for name, value in options.items()},
            }
        )
        given.unlink()

    def checkpoint(self, path: Path) -> None:
        """Writes a checkpoint of the newest version."""
        self._ask({"do": "checkpoint", "path": str(path)})

    def _path(self, ending: str) -> Path:
        return self._work / f"rows-{next(self._numbers)}.{ending}"

    def _ask(self, question: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        said = self._reply()
        if "error" in said:
            raise SparkError(said["error"])

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@@"):
                found: dict[str, Any] = json.loads(line[2:])
                return found
        said = (self._work / "spark.log").read_text()[-3000:]
        raise RuntimeError(f"Spark has gone: {said}")


def _rows(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        found = pa.ipc.open_file(source).read_all()
    path.unlink()
    return found
