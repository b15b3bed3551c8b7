"""Repositories beside a Pebble writer: `python -m benches.repo [--entries 1000000]`.

Figures are ratios in the same run: of the writer to Pebble's with lakeFS's options, hashing and break rule (built by
Go; left out where there is no Go), of a change to the first commit, and of requests and bytes. Nothing is made
durable: what is measured is work, not a disk.
"""

from __future__ import annotations

import argparse
import random
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import IoStats, Store
from esker.repo.objects import ENTRY_SCHEMA, rows, table
from tests.interop import tools

RULE = SplitRule()
ROUNDS = 3


def paths(count: int) -> list[str]:
    """Paths of a lake by day, sorted."""
    return [f"events/day={n // 5000:05}/part-{n:010}.snappy.parquet" for n in range(count)]


def columns(ordered: list[str], seed: int) -> pa.Table:
    """Entries of about 127 bytes as they are stored: random addresses and hashes do not shrink."""
    draw = random.Random(seed)
    count = len(ordered)
    data = draw.randbytes(36 * count)
    hashes = [data[36 * n : 36 * n + 16].hex() for n in range(count)]
    tails = [data[36 * n + 16 : 36 * n + 36].hex() for n in range(count)]
    names = [f"data/gk{tail[:20]}/{tail[20:]}" for tail in tails]
    said = {
        "path": ordered,
        "physical_address": names,
        "size_bytes": [1000 + n % 99_991 for n in range(count)],
        "checksum": hashes,
        "mtime": [1_700_000_000_000_000 + n for n in range(count)],
    }
    schema = pa.schema([field for field in ENTRY_SCHEMA if field.name in said])
    return pa.Table.from_pydict(said, schema=schema)


def best(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """The least seconds of some rounds, and what the last returned."""
    least, result = float("inf"), None
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        least = min(least, time.perf_counter() - start)
    return least, result


def pebble_rate(storage: Storage, metarange: str) -> float | None:
    """Records a second that Pebble writes of the same records."""
    try:
        program = tools.pebble()
    except RuntimeError:
        return None
    records = bytearray()
    for described in table(storage.ranges(metarange)).to_pylist():
        for row in rows(storage.records(described["id"])):
            value = _framed(row["identity"], row["data"])
            records += struct.pack("<I", len(row["key"])) + row["key"] + struct.pack("<I", len(value)) + value
    numbers = [str(RULE.min_size), str(RULE.max_size), str(RULE.raggedness)]
    rates = []
    for _ in range(ROUNDS):
        said = subprocess.run([str(program), "time", *numbers], input=bytes(records), capture_output=True, check=True)
        rates.append(float(said.stdout))
    return max(rates)


def _framed(identity: bytes, data: bytes) -> bytes:
    out = bytearray()
    for part in (identity, data):
        folded = 2 * len(part)
        while folded > 127:
            out.append(folded & 127 | 128)
            folded >>= 7
        out.append(folded)
        out += part
    return bytes(out)


def main() -> None:
    """Prints one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    count = parser.parse_args().entries
    with tempfile.TemporaryDirectory(prefix="esker-bench-repo-") as folder:
        store = Store(folder, durable=False)
        ordered = paths(count)
        said = columns(ordered, 1)
        encoding, changes = best(lambda: Changes.of_entries(said))
        writing, first = best(lambda: Storage(store).apply(None, changes, rule=RULE))
        size = first.bytes_written / count
        print(f"first commit of {count} entries: {first.ranges_written} ranges, {size:.0f} bytes an entry")
        rates = [count / writing, count / (writing + encoding)]
        print(f"  {rates[0]:,.0f} entries/s encoded and put; with the step from Arrow {rates[1]:,.0f}")
        rate = pebble_rate(Storage(store), first.metarange_id)
        if rate is not None:
            print(f"  Pebble, on one core as it always is: {rate:,.0f}; ratio {rates[0] / rate:.2f}")
        for changed in (1, 1000):
            change(store, first.metarange_id, ordered, changed, writing)
        seconds, _, io = _cold(store, lambda s: s.get(first.metarange_id, [ordered[count // 3]]))
        print(f"cold get: {seconds * 1e3:.2f} ms, {_io(io)}")
        seconds, found, io = _cold(store, lambda s: _all(s.list(first.metarange_id, prefix="events/day=00007/")))
        print(f"cold listing of {found} paths: {seconds * 1e3:.1f} ms, {_io(io)}")


def change(store: Store, base: str, ordered: list[str], changed: int, whole: float) -> None:
    """A commit of some keys, its difference, and its merge with another of as many."""
    draw = random.Random(changed)

    def edits(seed: int) -> Changes:
        return Changes.of_entries(columns(sorted(draw.sample(ordered, changed)), seed))

    mine, others = edits(3), edits(4)
    seconds, applied, io = _cold(store, lambda s: s.apply(base, mine, rule=RULE))
    print(f"commit of {changed} keys: {seconds / whole:.3f} of the first commit, {seconds * 1e3:.0f} ms, {_io(io)}")
    seconds, found, io = _cold(store, lambda s: _all(s.diff(base, applied.metarange_id)))
    print(f"  diff: {seconds / whole:.3f}, {found} paths, {_io(io)}")
    theirs = Storage(store).apply(base, others, rule=RULE).metarange_id
    ours = applied.metarange_id
    seconds, merged, io = _cold(store, lambda s: s.merge(base, ours, theirs, rule=RULE, strategy="source-wins"))
    print(f"  merge with as many: {seconds / whole:.3f}, {_io(io)}, {merged.ranges_written} ranges written")


def _all(batches: Any) -> int:
    found = 0
    while (batch := batches.next_batch(4096)) is not None:
        found += batch.num_rows
    return found


def _cold(store: Store, work: Callable[..., Any]) -> tuple[float, Any, Any]:
    least, result, io = float("inf"), None, None
    for _ in range(ROUNDS):
        storage = Storage(store)
        store.io_stats()
        start = time.perf_counter()
        result = work(storage)
        least = min(least, time.perf_counter() - start)
        io = store.io_stats()
    return least, result, io


def _io(io: IoStats) -> str:
    written = f", {io.write_bytes / 1e6:.2f} MB written" if io.write_bytes else ""
    return f"{io.read_iops} reads of {io.read_bytes / 1e6:.2f} MB{written}"


if __name__ == "__main__":
    main()
