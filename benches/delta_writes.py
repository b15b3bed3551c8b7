"""Committed writes to Delta tables beside deltalake: `python -m benches.delta_writes`.

Each measurement runs in a process of its own, the two libraries in turns, in a folder of its own: seconds and the
process's peak memory, medians of three. Ratios are deltalake / esker.
Neither waits for stable storage, which deltalake never does; `--durable` lets esker do it. esker writes a checkpoint
every 10 versions.

| operation | what it does |
|---|---|
| small | 50 appends of 10 rows each to an open table |
| large | one append of 2,000,000 rows of five columns |
| parted | one append of 500,000 rows to 100 partitions |
| stream | 5,000,000 rows from a stream, the size of a file bounded |
| replace | one of 20 partitions of 1,000,000 rows is overwritten |
| part of a file | rows of a file are overwritten by a predicate, the others are written anew |
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

ROUNDS = 3


def rows(count: int, start: int = 0) -> pa.Table:
    """Numbers, texts of different lengths, times."""
    ids = np.arange(start, start + count)
    return pa.table(
        {
            "id": ids,
            "price": ids * 0.25,
            "name": np.char.add("customer ", (ids * 7919 % 100_003).astype(str)),
            "part": np.char.add("p", (ids % 100).astype(str)),
            "at": pa.array(1_700_000_000_000_000 + ids * 1000, pa.timestamp("us", "UTC")),
        }
    )


def small(library: Any, path: str) -> Callable[[], object]:
    """Many small commits."""
    library.write_deltalake(path, rows(10))
    table = library.DeltaTable(path)
    parts = [rows(10, 10 * number) for number in range(1, 51)]

    def run() -> object:
        for part in parts:
            library.write_deltalake(table, part, mode="append")
        return 50

    return run


def large(library: Any, path: str) -> Callable[[], object]:
    """One large append."""
    library.write_deltalake(path, rows(1))
    data = rows(2_000_000)
    return lambda: library.write_deltalake(path, data, mode="append")


def parted(library: Any, path: str) -> Callable[[], object]:
    """One append to many partitions."""
    library.write_deltalake(path, rows(1), partition_by=["part"])
    data = rows(500_000)
    return lambda: library.write_deltalake(path, data, mode="append")


def stream(library: Any, path: str) -> Callable[[], object]:
    """More rows than a process should hold."""
    library.write_deltalake(path, rows(1))
    schema = rows(1).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            yield rows(100_000, number * 100_000).combine_chunks().to_batches()[0]

    return lambda: library.write_deltalake(
        path, pa.RecordBatchReader.from_batches(schema, batches()), mode="append", target_file_size=32 * 1024 * 1024
    )


def replace(library: Any, path: str) -> Callable[[], object]:
    """One partition of many."""
    data = rows(1_000_000)
    data = data.set_column(3, "part", pa.array(np.char.add("p", (np.arange(1_000_000) % 20).astype(str))))
    library.write_deltalake(path, data, partition_by=["part"])
    part = data.filter(pa.array(np.arange(1_000_000) % 20 == 7))
    return lambda: library.write_deltalake(path, part, mode="overwrite", predicate="part = 'p7'")


def part_of_a_file(library: Any, path: str) -> Callable[[], object]:
    """Some rows of one file."""
    library.write_deltalake(path, rows(1_000_000))
    part = rows(1000, 999_000)
    return lambda: library.write_deltalake(path, part, mode="overwrite", predicate="id >= 999000")


OPERATIONS = {operation.__name__: operation for operation in (small, large, parted, stream, replace, part_of_a_file)}


class NotDurable:
    """esker, leaving files to the operating system as deltalake does."""

    def __init__(self, library: Any) -> None:
        self.DeltaTable = functools.partial(library.DeltaTable, durable=False)
        self.write_deltalake = functools.partial(library.write_deltalake, durable=False)


def child(library: str, operation: str, path: str) -> None:
    """Runs one operation and prints seconds, peak megabytes and the rows that are there then."""
    import time

    if library.startswith("esker"):
        import esker.delta as module

        module = module if library == "esker, durable" else NotDurable(module)  # type: ignore[assignment]
    else:
        import deltalake as module  # type: ignore[no-redef]

    run = OPERATIONS[operation](module, path)
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    import deltalake

    print(json.dumps([seconds, peak, deltalake.DeltaTable(path).to_pyarrow_dataset().count_rows()]))


def measure(operation: str, ours: str) -> dict[str, tuple[float, float]]:
    """Medians of seconds and peak megabytes for each library."""
    samples: dict[str, list[list[float]]] = {ours: [], "deltalake": []}
    for turn in range(ROUNDS):
        for library in sorted(samples, reverse=turn % 2 == 0):
            with tempfile.TemporaryDirectory(prefix="esker-delta-") as folder:
                command = [sys.executable, "-m", "benches.delta_writes", "--child", library, operation, f"{folder}/t"]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                samples[library].append(json.loads(output))
    if len({sample[2] for found in samples.values() for sample in found}) != 1:
        print(f"  rows differ: {samples}", file=sys.stderr)
    return {
        library: (statistics.median(s[0] for s in found), statistics.median(s[1] for s in found))
        for library, found in samples.items()
    }


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS))
    parser.add_argument("--durable", action="store_true", help="esker waits until files are on stable storage")
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    print("| operation | esker | deltalake | deltalake / esker | esker, peak | deltalake, peak |")
    print("|---|---|---|---|---|---|")
    for operation in arguments.operations:
        name = "esker, durable" if arguments.durable else "esker"
        found = measure(operation, name)
        (ours, our_peak), (theirs, their_peak) = found[name], found["deltalake"]
        name = operation.replace("_", " ")
        print(
            f"| {name} | {ours:.3f} s | {theirs:.3f} s | {theirs / ours:.2f} "
            f"| {our_peak:.0f} MB | {their_peak:.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
