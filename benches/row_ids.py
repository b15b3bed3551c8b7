"""Rows by stable row id, beside pylance: `python -m benches.row_ids`.

One table that pylance wrote: `--rows` rows in `--fragments` fragments, first as they were appended, then with every
tenth row updated. For both states, and both libraries in turn: what it takes to open the table, to take the first ten
rows by id, ten more, and then 10,000.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import esker


def write(uri: str, rows: int, fragments: int) -> None:
    """The table, by pylance."""
    per_fragment = rows // fragments

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, per_fragment):
            keys = np.arange(start, min(rows, start + per_fragment))
            yield pa.record_batch({"k": keys, "v": keys * 0.5})

    schema = pa.schema([("k", pa.int64()), ("v", pa.float64())])
    lance.write_dataset(
        batches(),
        uri,
        schema=schema,
        max_rows_per_file=per_fragment,
        enable_stable_row_ids=True,
        data_storage_version="2.0",
    )


def seconds(run: Callable[[], Any]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def once(library: Any, uri: str, version: int, few: pa.Array, many: pa.Array) -> dict[str, float]:
    """Seconds of each step, from a table that is not open."""
    opened: list[Any] = []
    times = {"open": seconds(lambda: opened.append(library.dataset(uri, version=version)))}
    dataset = opened[0]
    times["first take of 10"] = seconds(lambda: dataset._take_rows(few))
    times["second take of 10"] = seconds(lambda: dataset._take_rows(few))
    times["take of 10,000"] = seconds(lambda: dataset._take_rows(many))
    return times


def measure(uri: str, version: int, rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of each step for each library, which take turns."""
    chance = np.random.default_rng(3)
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds + 1):
        few = pa.array(np.sort(chance.choice(rows, 10, replace=False)).astype(np.uint64))
        many = pa.array(chance.choice(rows, 10_000, replace=False).astype(np.uint64))
        for name, library in [("esker", esker), ("pylance", lance)][:: 1 if number % 2 else -1]:
            times = once(library, uri, version, few, many)
            if number:  # The first round warms the page cache.
                for step, taken in times.items():
                    found.setdefault(name, {}).setdefault(step, []).append(taken)
    return {name: {step: statistics.median(taken) for step, taken in steps.items()} for name, steps in found.items()}


def report(title: str, found: dict[str, dict[str, float]]) -> None:
    """One table of what was measured."""
    print(f"\n{title}\n{'':22}{'esker':>12}{'pylance':>12}{'ratio':>9}")
    for step, ours in found["esker"].items():
        theirs = found["pylance"][step]
        print(f"{step:22}{ours * 1000:>9.2f} ms{theirs * 1000:>9.2f} ms{theirs / ours:>9.2f}")


def main() -> None:
    """Writes the table and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--fragments", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--table", help="where the table is, or shall be; a temporary folder by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        uri = arguments.table or str(Path(folder, "rows.lance"))
        if not Path(uri).exists():
            write(uri, arguments.rows, arguments.fragments)
            lance.dataset(uri).update({"v": "v + 1"}, where="k % 10 = 3")
        for version, title in [(1, "as appended"), (2, "every tenth row updated")]:
            report(title, measure(uri, version, arguments.rows, arguments.rounds))


if __name__ == "__main__":
    main()
