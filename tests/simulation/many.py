"""Many processes that write to one table for some time, one of which is killed now and then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

PROCESSES = int(os.environ.get("ESKER_PROCESSES", "4"))
SECONDS = float(os.environ.get("ESKER_SECONDS", "3"))
KILL_EVERY_S = 2.0


def write_with_many(uri: str, folder: Path, options: dict[str, str], module: str = "process") -> int:
    """Lets processes write, and kills one now and then.

    Args:
        uri: The table.
        folder: Where their journals are.
        options: Of the table's store.
        module: Which of `tests.simulation` they run.

    Returns:
        How many were killed.
    """
    random_ = random.Random(0)
    until = time.monotonic() + SECONDS
    journals = (folder / f"{number}.journal" for number in range(10_000))

    def start(number: int, seconds: float) -> subprocess.Popen[str]:
        given = [uri, str(number), str(seconds), str(next(journals))]
        environment = {**os.environ, **{f"ESKER_OPTION_{key.upper()}": value for key, value in options.items()}}
        command = [sys.executable, "-m", f"tests.simulation.{module}", *given]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    running = {number: start(number, SECONDS) for number in range(PROCESSES)}
    killed = 0
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, KILL_EVERY_S))
        number = random_.randrange(PROCESSES)
        if until - time.monotonic() > 1 and running[number].poll() is None:
            running[number].send_signal(signal.SIGKILL)
            running[number].communicate()
            killed += 1
            running[number] = start(number, until - time.monotonic())
    for process in running.values():
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0, errors
    return killed
