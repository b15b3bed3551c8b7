"""Executors in processes of their own: a cluster within a JVM, a standalone master with two workers, and Connect.

By hand: `python -m pytest tests/spark/clusters.py`. Spark gives a Python process ten seconds to start, which a busy
machine with six JVMs does not keep.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    paths = [str(ROOT), kept.get("PYTHONPATH", "")]
    return {
        **kept,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
    }


def _run(master: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster_job", master, str(folder)],
        env=_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert (folder / "done").exists(), done.stderr[-4000:]


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, log: str, *arguments: str) -> None:
        command = [
            str(HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{name}",
            "--host",
            "127.0.0.1",
            *arguments,
        ]
        started.append(
            subprocess.Popen(
                command,
                env=_environment() | {"SPARK_WORKER_DIR": str(tmp_path / log), "SPARK_DAEMON_MEMORY": "256m"},
                stdout=subprocess.DEVNULL,
                stderr=(tmp_path / f"{log}.log").open("wb"),
                start_new_session=True,
            )
        )

    try:
        start("master.Master", "master", "--port", str(port), "--webui-port", "0")
        for number in range(2):
            start("worker.Worker", f"w{number}", "--cores", "1", "--memory", "600m", "--webui-port", "0", url)
        deadline = time.monotonic() + 120
        while (tmp_path / "master.log").read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, (tmp_path / "master.log").read_text()[-2000:]
            time.sleep(0.2)
        yield url
    finally:
        for process in started:
            # Executors are of their worker's group.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_job_on_a_standalone_master_with_two_workers(standalone: str, tmp_path: Path) -> None:
    _run(standalone, tmp_path)
    logs = (tmp_path / "master.log").read_text()
    assert len(set(re.findall(r"Launching executor \S+ on worker (\S+)", logs))) == 2


def test_a_job_on_a_cluster_within_a_jvm(tmp_path: Path) -> None:
    _run("local-cluster[2,1,1024]", tmp_path)


def test_a_job_under_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    _run("connect", tmp_path)
