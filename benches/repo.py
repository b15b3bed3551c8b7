"""Repositories: `python -m benches.repo`, with Pebble's writer (tests/interop/pebble) beside the first commit.

Each step starts from a storage that has nothing in memory, over a folder without fsync; read and written bytes are
those that reached the store. `--entries` is how many the repository has, in paths that are made up from a seed; it is
filled by one commit that takes them as a stream. `--synthetic` leaves addresses and hashes short, so that a hundred
million of them fit a disk.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import Store

CHUNK = 1_000_000
RULE = SplitRule()
HOURS = 1000
PER_HOUR = 100
STEPS = ["first", "steps", "hourly"]


def hexadecimal(chance: np.random.Generator, rows: int, digits: int) -> pa.Array:
    """Random strings of so many digits."""
    data = pa.py_buffer(chance.bytes(rows * digits // 2).hex().encode())
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(digits), rows, [None, data])
    return fixed.cast(pa.binary()).cast(pa.string())


def paths(numbers: np.ndarray) -> pa.Array:
    """Paths in the order of their numbers: a day of 10,000 parts, one of many."""

    def padded(values: np.ndarray, digits: int) -> pa.Array:
        return pc.utf8_lpad(pa.array(values).cast(pa.string()), digits, "0")

    return pc.binary_join_element_wise(
        "tables/events/day=", padded(numbers // 10_000, 6), "/part-", padded(numbers, 11), ".parquet", ""
    )


def entries(numbers: np.ndarray, seed: int, synthetic: bool = False) -> pa.Table:
    """Objects at these paths, as lakeFS would have written them; synthetic ones say little of themselves."""
    chance = np.random.default_rng(seed)
    rows = len(numbers)
    columns = {"path": paths(numbers), "size_bytes": chance.integers(1, 10**8, rows)}
    if synthetic:
        return pa.table({**columns, "physical_address": pa.repeat("data/a", rows)})
    address = pc.binary_join_element_wise("data/gk7b4lj3r3s72mqf/", hexadecimal(chance, rows, 20), "")
    return pa.table(
        {
            **columns,
            "physical_address": address,
            "checksum": hexadecimal(chance, rows, 32),
            "mtime": pa.array(1_700_000_000_000_000 + numbers * 1_000_000).cast(pa.timestamp("us", "UTC")),
        }
    )


class Lake:
    """The tables of one repository in a folder, opened anew for each question."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store(str(root), durable=False)

    def cold(self) -> Storage:
        """A storage that knows nothing yet; what is read and written is counted from here on."""
        self.store.io_stats()
        return Storage(self.store)

    def ranges(self, metarange: str) -> list[dict[str, Any]]:
        """What a content consists of."""
        return pa.record_batch(Storage(self.store).ranges(metarange)).to_pylist()

    def size(self, table: str) -> int:
        """Bytes of a table's file."""
        return self.store.head(f"_lakefs/{table}").size


def fill(lake: Lake, count: int, synthetic: bool = False) -> str:
    """A content of so many entries, written by one commit that never holds them all."""

    def chunks() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, CHUNK // 4):
            numbers = 2 * np.arange(start, min(count, start + CHUNK // 4))  # Odd numbers are free for what comes later.
            yield from entries(numbers, start, synthetic).to_batches()

    schema = entries(np.arange(1), 0, synthetic).schema
    stream = pa.RecordBatchReader.from_batches(schema, chunks())
    metarange = Storage(lake.store, cache_bytes=0).apply(None, stream, rule=RULE).metarange_id
    assert metarange is not None
    return metarange


def peak_memory() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def seconds(run: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def length(count: int) -> bytes:
    """A length as values have it: twice the count, seven bits a byte."""
    folded, out = 2 * count, bytearray()
    while folded > 127:
        out.append(folded & 127 | 128)
        folded >>= 7
    return bytes([*out, folded])


def records(lake: Lake, metarange: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Key, identity and data of all entries."""
    for described in lake.ranges(metarange):
        found = Storage(lake.store).records(described["id"])
        while (batch := found.next_batch(50_000)) is not None:
            columns = pa.record_batch(batch).to_pydict()
            yield from zip(columns["key"], columns["identity"], columns["data"], strict=True)


def first_commit(folder: Path, pebble: Path, rounds: int) -> None:
    """A million entries into an empty repository, in turns with Pebble, which gets the same records."""
    lake = Lake(folder / "first")
    table = entries(2 * np.arange(CHUNK), 0)
    metarange = fill(lake, CHUNK)
    keys, identities, data = zip(*records(lake, metarange), strict=True)
    framed = [length(len(i)) + i + length(len(d)) + d for i, d in zip(identities, data, strict=True)]
    parts = (part for pair in zip(keys, framed, strict=True) for part in pair)
    stream = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    columns = [pa.array(column, pa.binary()) for column in (keys, identities, data)]
    given = pa.table(columns, names=["key", "identity", "data"])
    del keys, identities, data, framed
    samples: dict[str, list[tuple[float, float]]] = {"records": [], "entries": [], "pebble": []}
    size = sum(lake.size(one["id"]) for one in lake.ranges(metarange))

    def timed(run: Callable[[], object]) -> tuple[float, float]:
        processor = time.process_time()
        return seconds(run), time.process_time() - processor

    for _ in range(rounds):
        changes = Changes.of_records(given)
        samples["records"].append(timed(partial(applied, lake, changes)))
        del changes
        samples["entries"].append(timed(partial(applied, lake, table)))
        words: list[str | Path] = [pebble, "time", "0", str(20 << 20), "50000"]
        wall, _, written, processor = subprocess.run(
            words, input=stream, capture_output=True, check=True
        ).stdout.split()
        samples["pebble"].append((float(wall), float(processor)))
        if int(written) != size:
            raise RuntimeError(f"expected tables of {size} bytes, as esker's, found {int(written)} by Pebble")
    theirs = [statistics.median(times) for times in zip(*samples["pebble"], strict=True)]
    ranges = len(lake.ranges(metarange))
    print(f"\nfirst commit of {CHUNK:,} entries, {size / CHUNK:.0f} bytes each in {ranges} ranges")
    print(f"{'':48}{'entries/s':>12}{'beside Pebble':>15}{'by processor time':>19}")
    titles = {
        "records": "esker: records as Pebble gets them, files put",
        "entries": "esker: from columns, with identities, files put",
        "pebble": "Pebble: tables and ids, nothing put",
    }
    for name, title in titles.items():
        ours = [statistics.median(times) for times in zip(*samples[name], strict=True)]
        ratios = [peer / own for peer, own in zip(theirs, ours, strict=True)]
        print(f"{title:48}{CHUNK / ours[0]:>12,.0f}{ratios[0]:>15.2f}{ratios[1]:>19.2f}")


def measured(lake: Lake, title: str, run: Callable[[Storage], Any], rounds: int) -> Any:
    """Runs something on a storage without memory, and says what it took: the median time, and the bytes of one run."""
    taken, stats, result = [], None, None
    for _ in range(rounds):
        storage = lake.cold()
        start = time.perf_counter()
        result = run(storage)
        taken.append(time.perf_counter() - start)
        stats = lake.store.io_stats()
    assert stats is not None
    print(
        f"{title:44}{statistics.median(taken) * 1000:>11.2f} ms{stats.read_bytes / 1e6:>10.3f} MB{stats.read_iops:>6}"
        f"{stats.write_bytes / 1e6:>10.3f} MB{stats.write_iops:>6}"
    )
    return result


def applied(lake: Lake, changes: Any) -> object:
    """Makes a first metarange of changes."""
    return lake.cold().apply(None, changes, rule=RULE)


def listed_whole(lake: Lake, metarange: str) -> int:
    """Lists all entries."""
    return drained(lake.cold().list(metarange))


def drained(batches: Any) -> int:
    """Rows of all batches."""
    rows = 0
    while (batch := batches.next_batch(10_000)) is not None:
        rows += batch.num_rows
    return rows


def steps(folder: Path, count: int, rounds: int, synthetic: bool) -> None:
    """What is done with a repository of so many entries."""
    lake = Lake(folder / f"of-{count}")
    before = peak_memory()
    start = time.perf_counter()
    metarange = fill(lake, count, synthetic)
    filled = time.perf_counter() - start
    ranges = lake.ranges(metarange)
    size = sum(one["estimated_size"] for one in ranges)
    print(
        f"\n{count:,} entries of {size / count:.0f} bytes in {len(ranges)} ranges, metarange of"
        f" {lake.size(metarange):,} bytes; written in {filled:.1f} s, memory {before:.0f} to {peak_memory():.0f} MB"
    )
    print(f"{'':44}{'time':>14}{'read':>13}{'gets':>6}{'written':>13}{'puts':>6}")
    chance = random.Random(1)
    odd = np.array(sorted(chance.sample(range(count), 1000))) * 2 + 1
    # The one key falls into the largest range.
    largest = max(ranges, key=lambda one: one["count"])["min_key"]
    number = int(largest.rpartition("-")[2].partition(".")[0]) + 1
    one, many = (Changes.of_entries(entries(numbers, 7, synthetic)) for numbers in (np.array([number]), odd))
    few = Changes.of_entries(entries(odd[::100], 8, synthetic))
    with_one = measured(lake, "commit one key", lambda s: s.apply(metarange, one, rule=RULE), rounds).metarange_id
    with_many = measured(
        lake, "commit 1,000 scattered keys", lambda s: s.apply(metarange, many, rule=RULE), rounds
    ).metarange_id
    with_few = Storage(lake.store).apply(metarange, few, rule=RULE).metarange_id
    measured(lake, "diff after one key", lambda s: drained(s.diff(metarange, with_one)), rounds)
    measured(lake, "diff after 1,000 keys", lambda s: drained(s.diff(metarange, with_many)), rounds)
    measured(
        lake, "merge one key into nothing else", lambda s: s.merge(metarange, with_one, metarange, rule=RULE), rounds
    )
    measured(
        lake,
        "merge 1,000 keys with 10 others",
        lambda s: s.merge(metarange, with_many, with_few, rule=RULE, strategy="source-wins"),
        rounds,
    )
    wanted = paths(2 * np.array(chance.sample(range(count), 20))).to_pylist()
    measured(lake, "get one path, cold", lambda s: s.get(metarange, [chance.choice(wanted)]).num_rows, 20)
    warm = lake.cold()
    warm.get(metarange, wanted)
    taken = statistics.median(seconds(lambda: warm.get(metarange, [chance.choice(wanted)])) for _ in range(200))
    print(f"{'get one path, warm':44}{taken * 1000:>11.3f} ms")
    day = f"tables/events/day={count // 10_000:06d}/"
    rows = measured(lake, "list a day", lambda s: drained(s.list(metarange, prefix=day)), rounds)
    print(f"{'':4}({rows:,} paths)")
    days = measured(
        lake, "list the days", lambda s: drained(s.list(metarange, prefix="tables/events/", delimiter="/")), 1
    )
    print(f"{'':4}({days:,} days)")
    measured(lake, "the metarange itself", lambda s: s.ranges(metarange).num_rows, rounds)
    packed = measured(lake, "repack", lambda s: s.repack(metarange, rule=RULE), 1)
    print(f"{'':4}({packed.ranges_written} ranges written, memory {peak_memory():.0f} MB)")


def hourly(folder: Path, hours: int) -> None:
    """A commit an hour below a sorted prefix, plain and with a repack each day."""
    print(f"\n{hours:,} hourly commits of {PER_HOUR} objects")
    print(f"{'':24}{'ranges':>8}{'metarange':>12}{'commit, last 50':>18}{'written in all':>16}{'list all':>12}")
    for title, daily in (("plain", False), ("repacked each day", True)):
        lake = Lake(folder / f"hours-{daily}")
        storage = Storage(lake.store)
        metarange, taken, written = None, [], 0
        for hour in range(hours):
            changes = Changes.of_entries(entries(np.arange(hour * PER_HOUR, (hour + 1) * PER_HOUR), hour))
            start = time.perf_counter()
            applied = storage.apply(metarange, changes, rule=RULE)
            taken.append(time.perf_counter() - start)
            written += applied.bytes_written
            metarange = applied.metarange_id
            assert metarange is not None
            if daily and hour % 24 == 23:
                packed = storage.repack(metarange, rule=RULE)
                written += packed.bytes_written
                metarange = packed.metarange_id or metarange
        assert metarange is not None
        listed = seconds(partial(listed_whole, lake, metarange))
        print(
            f"{title:24}{len(lake.ranges(metarange)):>8}{lake.size(metarange):>12,}"
            f"{statistics.median(taken[-50:]) * 1000:>15.2f} ms{written / 1e6:>13.1f} MB{listed * 1000:>9.1f} ms"
        )


def main(arguments: list[str] | None = None) -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--hours", type=int, default=HOURS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--pebble", type=Path, help="Pebble's writer; default: built by Go from tests/interop/pebble")
    parser.add_argument(
        "--steps", nargs="+", choices=["first", "steps", "hourly"], default=["first", "steps", "hourly"]
    )
    parser.add_argument("--scratch", help="folder for the repositories; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        if "first" in options.steps:
            first_commit(folder, options.pebble or built(), options.rounds)
        if "steps" in options.steps:
            for count in options.entries:
                steps(folder, count, options.rounds, options.synthetic)
        if "hourly" in options.steps:
            hourly(folder, options.hours)


def built() -> Path:
    """Pebble's writer."""
    from tests.interop import tools

    return tools.pebble()


if __name__ == "__main__":
    main()
