"""Changes of rows of Delta tables beside deltalake: `python -m benches.delta_verbs`, with `--rows 100000000` for more.

A table of five columns, with deletion vectors (which deltalake does not write: it rewrites files there) and without:

| verb | what it does |
|---|---|
| merge | random keys of 1 % of the rows are updated, or inserted |
| delete | 0.1 % of the rows, in all files |
| update | one column of 0.1 % of the rows, in all files |

Each run has a process of its own, the two libraries in turns: seconds, seconds of processors, and the growth of the
process's memory from before the verb to its peak, medians of three. Ratios are deltalake / esker.
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
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROUNDS = 3
PIECE = 1_000_000
LAYOUTS: dict[str, dict[str, str | None]] = {"vectors": {"delta.enableDeletionVectors": "true"}, "copy": {}}


def rows(ids: np.ndarray, seed: int) -> pa.Table:
    """Rows with these ids."""
    made = np.random.default_rng(seed)
    text = np.char.add("name-", (ids % 5000).astype(str))
    return pa.table(
        {
            "id": ids,
            "a": made.integers(0, 1000, len(ids)),
            "b": made.random(len(ids)),
            "c": pa.array(text),
            "d": made.integers(0, 2**40, len(ids)),
        }
    )


def prepare(path: str, layout: str, count: int) -> None:
    """A table of so many rows."""
    from esker.delta import write_deltalake

    for start in range(0, count, PIECE):
        ids = np.arange(start, min(start + PIECE, count))
        write_deltalake(path, rows(ids, start), mode="append", configuration=LAYOUTS[layout])


def status(key: str) -> int:
    """Megabytes that the system tells of this process."""
    return int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0]) // 1024


def child(library: str, path: str, count: int, verb: str) -> None:
    """Changes rows, and prints seconds, seconds of processors, megabytes and how many rows changed."""
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    table: Any
    if library == "esker":
        import esker.delta

        table = esker.delta.DeltaTable(path)
    else:
        import deltalake

        table = deltalake.DeltaTable(path)
    keys = np.random.default_rng(1).choice(count + count // 1000, count // 100, replace=False)
    source = rows(keys, 7) if verb == "merge" else None
    Path("/proc/self/clear_refs").write_text("5")
    memory, start, used = status("VmRSS"), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    told = run(table, verb, source)
    seconds, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    busy = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(json.dumps([seconds, busy, status("VmHWM") - memory, told]))


def run(table: Any, verb: str, source: pa.Table | None) -> list[int]:
    """Changes rows; how many."""
    if verb == "delete":
        return [table.delete("a = 7")["num_deleted_rows"]]
    if verb == "update":
        return [table.update({"d": "d + 1"}, predicate="a = 7")["num_updated_rows"]]
    merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
    told = merger.execute()
    return [told["num_target_rows_updated"], told["num_target_rows_inserted"]]


def measure(folder: str, verb: str, count: int) -> dict[str, list[float]]:
    """Medians for each library."""
    samples: dict[str, list[list[Any]]] = {"esker": [], "deltalake": []}
    for turn in range(ROUNDS):
        for library in sorted(samples, reverse=turn % 2 == 0):
            shutil.copytree(f"{folder}/table", f"{folder}/copy")
            command = [sys.executable, "-m", "benches.delta_verbs", verb, "--child", library, f"{folder}/copy"]
            output = subprocess.run([*command, "--rows", str(count)], check=True, capture_output=True, text=True)
            samples[library].append(json.loads(output.stdout.splitlines()[-1]))
            shutil.rmtree(f"{folder}/copy")
    if len({str(sample[3]) for found in samples.values() for sample in found}) != 1:
        print(f"  rows differ: {samples}", file=sys.stderr)
    return {name: [statistics.median(s[i] for s in found) for i in range(3)] for name, found in samples.items()}


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "PATH"))
    parser.add_argument("--layouts", nargs="*", default=list(LAYOUTS))
    parser.add_argument("verbs", nargs="*", default=["merge", "delete", "update"])
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], given.rows, given.verbs[0])
        return
    print("| verb | esker s | deltalake s | ratio | of processors | esker MB | deltalake MB |")
    print("|---|---|---|---|---|---|---|")
    for layout in given.layouts:
        with tempfile.TemporaryDirectory(prefix="esker-delta-") as folder:
            prepare(f"{folder}/table", layout, given.rows)
            for verb in given.verbs:
                found = measure(folder, verb, given.rows)
                ours, theirs = found["esker"], found["deltalake"]
                ratios = [theirs[i] / ours[i] for i in range(2)]
                print(
                    f"| {verb}, {layout} | {ours[0]:.2f} | {theirs[0]:.2f} | {ratios[0]:.1f} | {ratios[1]:.1f} "
                    f"| {ours[2]:.0f} | {theirs[2]:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
