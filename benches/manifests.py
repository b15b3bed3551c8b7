"""What a manifest costs: `python -m benches.manifests` opens and appends to tables of many fragments, beside pylance.

Each figure is a multiple of what the machine needs for the manifest's own bytes in the same process: to read them
(open), or to read, write and sync them (append of one row); memory is the growth of the peak by their size. A new
process each time, the median of several. Appends of esker are durable; pylance syncs nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

TABLES = [(1_000, 3), (10_000, 3), (100_000, 3), (1_000_000, 3), (1_000, 300), (10_000, 300), (100_000, 300)]
MEASURES = ["open", "append"]


def row_of(columns: int) -> pa.Table:
    """One row of int64 columns."""
    return pa.table({f"c{number}": pa.array([number], pa.int64()) for number in range(columns)})


def make(uri: str, fragments: int, columns: int) -> None:
    """A table of many fragments of a row each. They share one file: it is the manifest that counts."""
    import esker
    from esker.fragment import write_fragments

    row = row_of(columns)
    (one,) = write_fragments(row, uri, mode="create")
    esker.LanceDataset.commit(uri, esker.LanceOperation.Overwrite(row.schema, [one] * fragments))


def peak_and_now() -> tuple[int, int]:
    """The peak of this process's memory, and what it holds now, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS"))  # type: ignore[return-value]


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def measure(library: str, what: str, uri: str, columns: int) -> dict[str, float]:
    """One measurement, in this process."""
    peer: Any = importlib.import_module(library)
    (newest, *_) = sorted(Path(uri, "_versions").glob("*.manifest"))
    size = newest.stat().st_size
    with tempfile.TemporaryDirectory() as small:
        # What is loaded and started once per process does not count.
        for mode in ("create", "append"):
            peer.write_dataset(row_of(1), small + "/warm", mode=mode)
    before = peak_and_now()[1]
    if what == "open":
        took = seconds(lambda: peer.dataset(uri))
        grown = peak_and_now()[0] - before
        alone = seconds(newest.read_bytes)
    else:
        took = seconds(lambda: peer.write_dataset(row_of(columns), uri, mode="append"))
        grown = peak_and_now()[0] - before
        alone = seconds(lambda: copy_synced(newest, Path(uri, "copy")))
        max(Path(uri, "_versions").glob("*.manifest"), key=os.path.getmtime).unlink()
    return {"ms": took * 1e3, "times": took / alone, "memory": max(grown, 0) / size}


def copy_synced(source: Path, target: Path) -> None:
    """Reads a file, writes its bytes and syncs them."""
    data = source.read_bytes()
    with target.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    target.unlink()


def in_new_process(*arguments: str) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benches.manifests", "--one", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Prints a line per table and library."""
    parser = argparse.ArgumentParser(description=__doc__)
    one = ("LIBRARY", "MEASURE", "URI", "COLUMNS")
    parser.add_argument("--one", nargs=4, metavar=one, help="one measurement, as JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=1_000_000, help="leave larger tables out")
    parsed = parser.parse_args()
    if parsed.one:
        library, what, uri, columns = parsed.one
        print(json.dumps(measure(library, what, uri, int(columns))))
        return
    print("fragments columns     MB  what     esker ms  x bytes  memory   pylance ms  x bytes  memory")
    for fragments, columns in TABLES:
        if fragments > parsed.most:
            continue
        with tempfile.TemporaryDirectory() as folder:
            uri = f"{folder}/table"
            make(uri, fragments, columns)
            (manifest,) = Path(uri, "_versions").glob("*.manifest")
            megabytes = manifest.stat().st_size / 1e6
            for what in MEASURES:
                taken: dict[str, list[dict[str, float]]] = {"esker": [], "lance": []}
                for _ in range(parsed.rounds):
                    for library, found in taken.items():
                        found.append(in_new_process(library, what, uri, str(columns)))
                cells = [
                    statistics.median(one[figure] for one in found)
                    for found in taken.values()
                    for figure in ("ms", "times", "memory")
                ]
                ours, theirs = cells[:3], cells[3:]
                print(
                    f"{fragments:9} {columns:7} {megabytes:6.1f}  {what:7} {ours[0]:9.1f} {ours[1]:8.2f} {ours[2]:7.2f}"
                    f"  {theirs[0]:11.1f} {theirs[1]:8.2f} {theirs[2]:7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
