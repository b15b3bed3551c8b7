"""How small files are and what they take to read, column by column: `python -m benches.sizes --rows 1000000`.

Each column is a file of its own, of esker for each `compression`, of pylance, of Parquet with zstd and of Vortex.
Bytes stand beside pylance's. The time is that of the processor, of the best of several rounds in turns, in nanoseconds
a value: of esker reading each file of Lance, and of pylance reading it. Both must read the same values.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.everyday import TABLES
from esker.file import LanceFileReader, LanceFileWriter
from esker.lance.write.compression import Compression

GOALS: tuple[Compression, ...] = ("fast", "balanced", "small")


def write_vortex(table: pa.Table, path: Path) -> None:
    """Writes a column as Vortex."""
    import vortex

    vortex.io.write(vortex.array(table), str(path))


def write_lance(table: pa.Table, path: Path, writer: Callable[..., object], **options: object) -> None:
    """Writes a column with a writer of Lance files."""
    with writer(str(path), schema=table.schema, **options) as out:  # type: ignore[attr-defined]
        out.write_batch(table)


def writers(version: str) -> dict[str, Callable[[pa.Table, Path], None]]:
    """What writes the files that are compared."""

    def of_goal(goal: Compression) -> Callable[[pa.Table, Path], None]:
        return lambda table, path: write_lance(table, path, LanceFileWriter, version=version, compression=goal)

    return {
        "pylance": lambda table, path: write_lance(table, path, lance.file.LanceFileWriter, version=version),
        **{goal: of_goal(goal) for goal in GOALS},
        "parquet zstd": lambda table, path: pq.write_table(table, path, compression="zstd"),
        "vortex": write_vortex,
    }


def processor_seconds() -> float:
    """Seconds of the processor of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_times(table: pa.Table, paths: dict[str, Path], rounds: int) -> dict[tuple[str, str], float]:
    """Nanoseconds a value by file and reader."""
    readers: dict[str, Callable[[str], pa.Table]] = {
        "esker": lambda path: LanceFileReader(path).read_all().to_table(),
        "pylance": lambda path: lance.file.LanceFileReader(path).read_all().to_table(),
    }
    best: dict[tuple[str, str], float] = {}
    for turn in range(rounds):
        for name, path in paths.items():
            for reader, read in readers.items():
                before = processor_seconds()
                found = read(str(path))
                spent = (processor_seconds() - before) * 1e9 / max(1, table.num_rows)
                best[name, reader] = min(spent, best.get((name, reader), spent))
                if turn == 0 and not found.equals(table):
                    raise SystemExit(f"{reader} reads other values from the file of {name}: {table.column_names}")
    return best


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each column, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--version", default="2.2")
    parser.add_argument("--rounds", type=int, default=5, help="of reading; 0 measures sizes only")
    options = parser.parse_args(arguments)
    write = writers(options.version)
    timed = ["pylance", *GOALS]
    for number, name in enumerate(options.tables):
        table = TABLES[name](np.random.default_rng([1, number]), options.rows)
        bytes_of: dict[str, int] = defaultdict(int)
        time_of: dict[tuple[str, str], float] = defaultdict(float)
        print(f"\n{name:24}" + "".join(f"{engine:>16}" for engine in write) + "   ns: " + ", ".join(timed))
        for column in [*table.column_names, "all"]:
            with tempfile.TemporaryDirectory() as folder:
                sizes: dict[str, int] = {}
                times: dict[tuple[str, str], float] = {}
                if column == "all":
                    sizes, times = dict(bytes_of), dict(time_of)
                else:
                    only = pa.table({column: table[column].combine_chunks()})
                    paths = {engine: Path(folder, f"{engine}.lance") for engine in write}
                    for engine, path in paths.items():
                        write[engine](only, path)
                        sizes[engine] = path.stat().st_size
                        bytes_of[engine] += sizes[engine]
                    if options.rounds:
                        times = read_times(only, {engine: paths[engine] for engine in timed}, options.rounds)
                    for key, spent in times.items():
                        time_of[key] += spent
            peer = max(1, sizes["pylance"])
            line = "".join(f"{size / 1e6:10.3f} {size / peer:5.2f}" for size in sizes.values())
            told = "  ".join(
                f"{times[engine, 'esker']:.1f}/{times[engine, 'pylance']:.1f}" for engine in timed if times
            )
            print(f"{column:24}{line}   {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
