"""Delta logs beside deltalake: `python -m benches.delta`, with `--files 1000000` for the largest.

Each operation runs in a process of its own, the two libraries in turns: seconds and the growth of the process's memory,
from after the imports to the end, medians of three. Ratios are deltalake / esker.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benches.delta_logs import COLUMNS, DAYS, write_checkpoint, write_commits, write_later

ROUNDS = 3
PREDICATE = "id >= 5000500 and id < 5003500"
PARTITION = [("day", "=", "2024-03-03")]


def open_uris(library: Any, path: str) -> Callable[[], object]:
    """Opens a table and asks for the places of its files."""
    return lambda: len(library.DeltaTable(path).file_uris())


def prune_cold(library: Any, path: str) -> Callable[[], object]:
    """Opens a table and asks for the files that a filter on a column leaves."""
    return lambda: len(library.DeltaTable(path).file_uris(file_pruning_predicate=PREDICATE))


def prune_warm(library: Any, path: str) -> Callable[[], object]:
    """The same on a table that is open and has been asked before."""
    table = library.DeltaTable(path)
    table.file_uris(file_pruning_predicate=PREDICATE)
    return lambda: len(table.file_uris(file_pruning_predicate=PREDICATE))


def partition_warm(library: Any, path: str) -> Callable[[], object]:
    """Files of one partition of a table that is open."""
    table = library.DeltaTable(path)
    return lambda: len(table.file_uris(file_pruning_predicate=PARTITION))


def plan_scan(library: Any, path: str) -> Callable[[], object]:
    """The fragments of a filtered scan: in deltalake those of its dataset, of which the filter picks some."""
    table = library.DeltaTable(path)
    if library.__name__ == "deltalake":
        import pyarrow.compute as pc

        column = pc.field("id")
        where = (column >= 5000500) & (column < 5003500)
        return lambda: len(list(table.to_pyarrow_dataset().get_fragments(where)))
    return lambda: len(list(table.to_pyarrow_dataset(file_pruning_predicate=PREDICATE).get_fragments()))


def refresh(library: Any, path: str) -> Callable[[], object]:
    """One more commit of one file."""
    table = library.DeltaTable(path)
    version = table.version() + 1
    commit = Path(path) / "_delta_log" / f"{version:020}.json"
    add = {
        "path": "one",
        "partitionValues": {"day": "2024-01-01"},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    commit.write_text(json.dumps({"add": add}) + "\n")

    def run() -> object:
        table.update_incremental()
        return table.version() - version

    return run


def checkpoint(library: Any, path: str) -> Callable[[], object]:
    """The checkpoint of a table that is open."""
    table = library.DeltaTable(path)
    return lambda: table.create_checkpoint()


def append_checkpoint(library: Any, path: str) -> Callable[[], object]:
    """An append of one row, and the checkpoint that follows it: by itself, or asked for."""
    import pyarrow as pa

    columns = {name: pa.array([1], pa.int64()) for name in ("id", "a", "b", "c", "d")}
    columns |= {"day": pa.array(["2024-01-01"]), "price": pa.array([1.0]), "name": pa.array(["x"])}
    row = pa.table({**columns, "time": pa.array([0], pa.timestamp("us", "UTC"))})

    def run() -> object:
        library.write_deltalake(path, row.select(["day", *COLUMNS]), mode="append")
        newest = max((Path(path) / "_delta_log").glob("*.json"))
        if not newest.with_suffix(".checkpoint.parquet").exists():
            library.DeltaTable(path).create_checkpoint()
        return newest.name

    return run


def change_feed(library: Any, path: str) -> Callable[[], object]:
    """All changes of a table with a change data feed."""
    import pyarrow as pa

    return lambda: pa.table(library.DeltaTable(path).load_cdf(0)).num_rows


def read_all(library: Any, path: str) -> Callable[[], object]:
    """All rows."""
    return lambda: library.DeltaTable(path).to_pyarrow_table().num_rows


def read_filtered(library: Any, path: str) -> Callable[[], object]:
    """Two columns of a thousandth of the rows."""
    where = [("id", ">=", 500_000), ("id", "<", 501_000)]
    return lambda: library.DeltaTable(path).to_pyarrow_table(columns=["id", "name"], filters=where).num_rows


def write_rows(path: Path, files: int, rows: int) -> None:
    """A table with Parquet files, written by deltalake."""
    import deltalake
    import numpy as np
    import pyarrow as pa

    for part in range(files):
        ids = np.arange(part * rows, (part + 1) * rows)
        table = pa.table({"id": ids, "price": ids * 0.25, "name": np.char.add("name ", ids.astype(str))})
        deltalake.write_deltalake(path, table, mode="append")


def write_changes(path: Path, commits: int, rows: int) -> None:
    """A table with a change data feed, written by deltalake: appends, an update after every twentieth."""
    import deltalake
    import pyarrow as pa

    for number in range(commits):
        ids = list(range(number * rows, (number + 1) * rows))
        table = pa.table({"id": ids, "p": [f"p{i % 4}" for i in ids], "v": [float(number)] * rows})
        feed = {"delta.enableChangeDataFeed": "true"} if number == 0 else None
        deltalake.write_deltalake(path, table, mode="append", partition_by=["p"], configuration=feed)
        if number % 20 == 19:
            deltalake.DeltaTable(path).update(updates={"v": "v + 1"}, predicate=f"id = {ids[5]}")


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        open_uris,
        prune_cold,
        prune_warm,
        partition_warm,
        plan_scan,
        refresh,
        checkpoint,
        append_checkpoint,
        read_all,
        read_filtered,
        change_feed,
    )
}
WITH_ROWS = ("read_all", "read_filtered", "change_feed")
WITH_COMMITS = ("open_uris", "checkpoint", "append_checkpoint")


def child(library: str, operation: str, path: str) -> None:
    """Runs one operation and prints seconds, bytes and the result."""
    import time

    import psutil

    if library == "esker":
        import esker.delta as module
    else:
        import deltalake as module  # type: ignore[no-redef]
    import pyarrow.dataset  # noqa: F401

    process = psutil.Process()
    before = process.memory_info().rss
    run = OPERATIONS[operation](module, path)
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, process.memory_info().rss - before, result]))


def state_of(path: Path) -> tuple[set[Path], bytes | None]:
    """The files of a table, and what its log says of the last checkpoint."""
    hint = path / "_delta_log" / "_last_checkpoint"
    return set(path.rglob("*")), hint.read_bytes() if hint.exists() else None


def restore(path: Path, before: tuple[set[Path], bytes | None]) -> None:
    """Takes away what was written since. A checkpoint that was there before stays the one that it is."""
    files, hint = before
    for left in sorted(set(path.rglob("*")) - files, reverse=True):
        left.rmdir() if left.is_dir() else left.unlink()
    if hint is not None:
        (path / "_delta_log" / "_last_checkpoint").write_bytes(hint)


def measure(operation: str, path: Path, libraries: list[str]) -> dict[str, tuple[float, float]]:
    """Medians of seconds and MB for each library."""
    samples: dict[str, list[list[float]]] = {library: [] for library in libraries}
    before = state_of(path)
    for round_ in range(ROUNDS):
        for library in libraries if round_ % 2 else libraries[::-1]:
            command = [sys.executable, "-m", "benches.delta", "--child", library, operation, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            samples[library].append(json.loads(output))
            restore(path, before)
    results = {tuple({sample[2] for sample in found}) for found in samples.values()}
    if len(results) != 1:
        print(f"  results differ: {samples}", file=sys.stderr)
    return {
        library: (statistics.median(s[0] for s in found), statistics.median(s[1] for s in found) / 1e6)
        for library, found in samples.items()
    }


def report(title: str, operation: str, path: Path) -> None:
    """Measures and prints a line."""
    found = measure(operation, path, ["esker", "deltalake"])
    (ours, our_mb), (theirs, their_mb) = found["esker"], found["deltalake"]
    print(
        f"{title:44} {operation:15} {ours:9.4f} s {theirs:9.4f} s {theirs / ours:7.1f}x"
        f" {our_mb:8.0f} MB {their_mb:8.0f} MB {their_mb / max(our_mb, 0.1):6.1f}x",
        flush=True,
    )


def main() -> None:
    """Makes the logs and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--small-commits", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where logs are kept for the next run")
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS))
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="esker-delta-"))
    print(f"partitions: {DAYS}; columns are esker, deltalake, deltalake / esker")
    for files in arguments.files:
        path = folder / f"checkpoint-{files}"
        if not path.exists():
            write_checkpoint(path, files)
            (path / "_delta_log" / f"{0:020}.json").write_text("")
        for operation in arguments.operations:
            if operation in WITH_ROWS or operation in ("checkpoint", "append_checkpoint"):
                continue
            if operation == "plan_scan" and files > 20_000:
                continue
            report(f"{files:,} files, a checkpoint", operation, path)
        path = folder / f"commits-{files}"
        if files <= 200_000:
            if not path.exists():
                write_commits(path, files, 1000)
            for operation in WITH_COMMITS:
                if operation in arguments.operations:
                    report(f"{files:,} files, commits of 1,000", operation, path)
        path = folder / f"later-{files}"
        if not path.exists():
            write_checkpoint(path, files)
            write_later(path, 9)
        for operation in ("checkpoint", "append_checkpoint"):
            if operation in arguments.operations:
                report(f"{files:,} files, a checkpoint and 9 commits", operation, path)
    if arguments.small_commits and "open_uris" in arguments.operations:
        path = folder / f"small-{arguments.small_commits}"
        if not path.exists():
            write_commits(path, arguments.small_commits, 1)
        report(f"{arguments.small_commits:,} commits of one file", "open_uris", path)
    path = folder / "rows"
    if not path.exists():
        write_rows(path, 50, 40_000)
    for operation in ("read_all", "read_filtered"):
        if operation in arguments.operations:
            report("2,000,000 rows in 50 files", operation, path)
    path = folder / "changes"
    if "change_feed" in arguments.operations:
        if not path.exists():
            write_changes(path, 300, 100)
        report("changes of 315 commits", "change_feed", path)
    if arguments.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
