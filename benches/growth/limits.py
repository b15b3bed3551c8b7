"""What the machine itself can do: copy memory with all cores, and read a file that is not in memory."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benches import page_cache
from benches.machine import describe

COPIED = 256 << 20
READ_AT_ONCE = 8 << 20


def memcpy_bytes_per_second(rounds: int = 5) -> float:
    """Bytes copied a second by all cores at once, each into memory that it has written before."""
    cores = int(str(describe()["cores"]))
    pairs = [(np.ones(COPIED, np.uint8), np.ones(COPIED, np.uint8)) for _ in range(cores)]
    speeds = []
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(rounds):
            began = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(pair[0], pair[1]), pairs))
            speeds.append(COPIED * cores / (time.perf_counter() - began))
    return statistics.median(speeds)


def disk_bytes_per_second(folder: Path, size: int = 1 << 30) -> float | None:
    """Bytes read a second of a file of which nothing is in memory; none where the system does not forget files."""
    if not page_cache.can_drop(folder):
        return None
    path = folder / "limits-probe"
    block = os.urandom(READ_AT_ONCE)
    try:
        with path.open("wb") as out:
            for _ in range(size // len(block)):
                out.write(block)
        page_cache.drop(path)
        began = time.perf_counter()
        with path.open("rb", buffering=0) as file:
            while file.read(READ_AT_ONCE):
                pass
        return size / (time.perf_counter() - began)
    finally:
        path.unlink(missing_ok=True)
