"""Compaction beside pylance: `python -m benches.compaction`.

Each measurement runs in a process of its own, the libraries in turns: seconds from the open table to the committed
version, what the process used of all processors (`processors` is the ratio of that), and the growth of its peak memory,
medians of three. Both leave files to the operating system
(`durable=False`), as pylance always does. Ratios are pylance / esker; the share is of written bytes that were copied
as whole pages.

| table | what is compacted |
|---|---|
| numbers | five columns of numbers |
| strings | texts of different lengths, and few of them |
| vectors | vectors of 768 floats |

| shape | how |
|---|---|
| small | 100 fragments of 10,000 rows (vectors: 1,000) |
| large | 4 fragments of 500,000 rows (vectors: 25,000), one row deleted |
| deleted | the same, every tenth row deleted |
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROUNDS = 3


def numbers(start: int, rows: int) -> pa.Table:
    """Numbers of five kinds."""
    rng = np.random.default_rng(start)
    ids = np.arange(start, start + rows)
    return pa.table(
        {
            "id": ids,
            "price": rng.random(rows),
            "count": rng.integers(0, 1000, rows).astype(np.int32),
            "at": pa.array(1_700_000_000_000_000 + ids * 1000, pa.timestamp("us")),
            "noise": rng.integers(0, 1 << 62, rows),
        }
    )


def strings(start: int, rows: int) -> pa.Table:
    """Texts."""
    ids = np.arange(start, start + rows)
    return pa.table(
        {
            "id": ids,
            "name": np.char.add("customer ", (ids * 7919 % 100_003).astype(str)),
            "city": np.char.add("city ", (ids % 97).astype(str)),
            "note": np.char.add(np.char.add("a note about ", ids.astype(str)), " and what there is to say of it"),
        }
    )


def vectors(start: int, rows: int) -> pa.Table:
    """Vectors."""
    values = np.random.default_rng(start).random(rows * 768, np.float32)
    return pa.table(
        {"id": np.arange(start, start + rows), "v": pa.FixedSizeListArray.from_arrays(pa.array(values), 768)}
    )


TABLES: dict[str, tuple[Callable[[int, int], pa.Table], int]] = {
    "numbers": (numbers, 1),
    "strings": (strings, 1),
    "vectors": (vectors, 20),
}
SHAPES = {"small": (100, 10_000, None), "large": (4, 500_000, "id = 7"), "deleted": (4, 500_000, "id % 10 = 3")}


def make(table: str, shape: str, path: str, scale: int) -> int:
    """Writes the table with pylance and returns its live rows."""
    import lance

    make_rows, smaller = TABLES[table]
    fragments, rows, deleted = SHAPES[shape]
    rows = max(rows // smaller // scale, 10)
    for number in range(fragments):
        mode = "append" if number else "create"
        lance.write_dataset(make_rows(number * rows, rows), path, mode=mode, data_storage_version="2.2")
    if deleted:
        lance.dataset(path).delete(deleted)
    return int(lance.dataset(path).count_rows())


def with_pylance(path: str) -> float:
    """pylance's compaction in its default mode."""
    import lance

    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=10_000_000)
    return 0.0


def with_esker(path: str) -> float:
    """The rewrite and its commit; returns the share of bytes that were copied."""
    import esker
    from esker import LanceOperation
    from esker._native import compaction
    from esker.lance.fragment_metadata import FragmentMetadata

    dataset = esker.dataset(path)
    old: Any = [fragment.metadata for fragment in dataset.get_fragments()]
    outcome = compaction.rewrite_fragments(
        dataset._table.writable_log(durable=False).store,
        dataset._table.manifest,
        [fragment.id for fragment in old],
        data_storage_version=dataset.data_storage_version,
        max_rows_per_file=10_000_000,
        max_bytes_per_file=90 << 30,
        memory_limit=512 << 20,
    )
    new = [FragmentMetadata.from_native(fragment) for fragment in outcome.fragments]
    rewrite = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], [])
    esker.LanceDataset.commit(path, rewrite, read_version=dataset.version, durable=False)
    return outcome.bytes_copied / max(outcome.bytes_written, 1)


LIBRARIES: dict[str, Callable[[str], float]] = {"esker": with_esker, "pylance": with_pylance}


def child(library: str, path: str) -> None:
    """Compacts and prints seconds, growth of the peak memory in megabytes, live rows, the share of copied bytes, and
    seconds of processors."""
    import lance
    import psutil

    import esker  # noqa: F401 - both are imported before memory is looked at

    # What a library loads when it first compacts is not measured.
    warm = f"{path}-warm"
    for _ in range(2):
        lance.write_dataset(pa.table({"x": range(10)}), warm, mode="append", data_storage_version="2.2")
    LIBRARIES[library](warm)
    process = psutil.Process()
    before, peak, done = process.memory_info().rss, [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    start, worked = time.perf_counter(), processor_seconds()
    share = LIBRARIES[library](path)
    seconds, worked = time.perf_counter() - start, processor_seconds() - worked
    done.set()
    watching.join()
    dataset = lance.dataset(path)
    if len(dataset.get_fragments()) != 1:
        raise SystemExit(f"{library}: expected one fragment, found {len(dataset.get_fragments())}")
    print(json.dumps([seconds, max(peak[0] - before, 0) / 1e6, dataset.count_rows(), share, worked]))


def processor_seconds() -> float:
    """What this process has used of all processors so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(table: str, shape: str, scale: int, scratch: str | None) -> dict[str, list[float]]:
    """Medians of each library: seconds, megabytes, rows, share, seconds of processors."""
    samples: dict[str, list[list[float]]] = {library: [] for library in LIBRARIES}
    with tempfile.TemporaryDirectory(prefix="esker-compaction-", dir=scratch) as folder:
        rows = make(table, shape, f"{folder}/made", scale)
        for turn in range(ROUNDS):
            for library in sorted(samples, reverse=turn % 2 == 0):
                copy = Path(folder) / "copy"
                shutil.copytree(f"{folder}/made", copy)
                command = [sys.executable, "-m", "benches.compaction", "--child", library, str(copy)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                samples[library].append(json.loads(output))
                shutil.rmtree(copy)
                shutil.rmtree(f"{copy}-warm")
    if any(sample[2] != rows for found in samples.values() for sample in found):
        raise SystemExit(f"rows differ: {samples}, expected {rows}")
    medians = {}
    for library, found in samples.items():
        medians[library] = [statistics.median(sample[place] for sample in found) for place in range(5)]
    return medians


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benches.compaction", description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--scale", type=int, default=1, help="so many times fewer rows")
    parser.add_argument("--scratch", help="where tables are written; default: the system's folder")
    parser.add_argument("--child", nargs=2)
    options: Any = parser.parse_args(arguments)
    if options.child:
        child(*options.child)
        return 0
    print(
        "| table | shape | esker | pylance | pylance / esker | processors | esker, memory | pylance, memory | copied |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for table in options.tables:
        for shape in options.shapes:
            found = measure(table, shape, options.scale, options.scratch)
            (ours, our_peak, _, share, our_work), (theirs, their_peak, _, _, their_work) = (
                found["esker"],
                found["pylance"],
            )
            print(
                f"| {table} | {shape} | {ours:.3f} s | {theirs:.3f} s | {theirs / ours:.2f} "
                f"| {their_work / our_work:.2f} "
                f"| {our_peak:.0f} MB | {their_peak:.0f} MB | {share:.0%} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
