"""Compares repositories' tables with those of the peers: `python -m tests.interop [ENTRIES]`."""

from __future__ import annotations

import hashlib
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import Store
from esker.repo.objects.batches import ENTRY_SCHEMA, rows, table

from . import tools

RULES = [
    {"min_size": 0, "max_size": 20 << 20, "raggedness": 50_000},
    {"min_size": 0, "max_size": 1 << 20, "raggedness": 3_000},
    {"min_size": 500_000, "max_size": 700_000, "raggedness": 20},
]


def entries(count: int, seed: int) -> Changes:
    """Entries such as lakes have: paths of partitions and parts, random addresses and hashes, odd keys among them."""
    draw = random.Random(seed)
    days = (f"events/day={n // 900:05}/hour={n // 40 % 24:02}/part-{n:08}" for n in range(count))
    paths = {f"{day}-{draw.getrandbits(64):016x}.parquet" for day in days}
    paths |= {"k" * draw.randrange(1, 3000) + str(n) for n in range(count // 2000)}
    paths |= {"\N{SNOWMAN}" * draw.randrange(1, 9) + str(n) for n in range(count // 1000)}
    ordered = sorted(paths)
    columns = {
        "path": ordered,
        "physical_address": [f"data/gk{draw.getrandbits(80):020x}/{draw.getrandbits(80):020x}" for _ in ordered],
        "size_bytes": [draw.randrange(1 << draw.randrange(1, 40)) for _ in ordered],
        "checksum": [f"{draw.getrandbits(128):032x}" for _ in ordered],
        "mtime": [1_600_000_000_000_000 + draw.randrange(10**14) for _ in ordered],
    }
    schema = pa.schema([field for field in ENTRY_SCHEMA if field.name in columns])
    return Changes.of_entries(pa.Table.from_pydict(columns, schema=schema))


def framed(identity: bytes, data: bytes) -> bytes:
    """A value as ranges hold it."""

    def length(n: int) -> bytes:
        folded, out = 2 * n, bytearray()
        while folded > 127:
            out.append(folded & 127 | 128)
            folded >>= 7
        return bytes([*out, folded])

    return length(len(identity)) + identity + length(len(data)) + data


def check(rule: dict[str, int], changes: Changes, pebble: Path, sst_dump: list[str]) -> None:
    """Writes entries with both, and compares file by file."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        storage = Storage(Store(ours, durable=False))
        metarange = storage.apply(None, changes, rule=SplitRule(**rule)).metarange_id
        ranges = table(storage.ranges(metarange)).to_pylist()
        records = bytearray()
        for described in ranges:
            for row in rows(storage.records(described["id"])):
                for part in (row["key"], framed(row["identity"], row["data"])):
                    records += struct.pack("<I", len(part)) + part
        numbers = [str(rule[name]) for name in ("min_size", "max_size", "raggedness")]
        said = run([str(pebble), "write", theirs, *numbers], bytes(records)).decode().split("\n")
        expected = [f"{r['id']} {r['estimated_size']} {r['count']}" for r in ranges]
        assert said[:-1] == expected, f"{rule}: ids, sizes or counts differ"
        for described in ranges:
            mine = Path(ours, "_lakefs", described["id"])
            assert mine.read_bytes() == Path(theirs, described["id"]).read_bytes(), f"{rule}: {described['id']} differs"
        for described in ranges[:: max(1, len(ranges) // 5)]:
            mine = Path(ours, "_lakefs", described["id"])
            # It goes by the name.
            named = Path(theirs, "verified.sst")
            named.write_bytes(mine.read_bytes())
            verified = run([*sst_dump, f"--file={named}", "--command=verify"])
            assert b"The file is ok" in verified, verified
        read = run([str(pebble), "read", str(Path(ours, "_lakefs", str(metarange)))])
        print(f"{rule}: {len(changes)} entries ({hashlib.sha256(records).hexdigest()[:12]}) in {len(ranges)} ranges,")
        print(f"  byte for byte; RocksDB verifies them, Pebble reads {len(read)} bytes of the metarange")


def check_rewritten(changes: Changes, pebble: Path) -> None:
    """Lays scattered changes over a content; each range that is rewritten is what Pebble makes of its records alone."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        storage = Storage(Store(ours, durable=False))
        before = storage.apply(None, changes, rule=SplitRule()).metarange_id
        paths = [row["path"] for row in rows(storage.list(before))][500::1009]
        columns = {
            "path": paths,
            "deleted": [number % 3 == 0 for number in range(len(paths))],
            "physical_address": ["data/changed"] * len(paths),
            "size_bytes": list(range(len(paths))),
        }
        schema = pa.schema([field for field in ENTRY_SCHEMA if field.name in columns])
        edits = Changes.of_entries(pa.Table.from_pydict(columns, schema=schema))
        after = storage.apply(before, edits, rule=SplitRule())
        old = {described["id"] for described in table(storage.ranges(before)).to_pylist()}
        new = [one for one in table(storage.ranges(after.metarange_id)).to_pylist() if one["id"] not in old]
        for described in new:
            records = bytearray()
            for row in rows(storage.records(described["id"])):
                for part in (row["key"], framed(row["identity"], row["data"])):
                    records += struct.pack("<I", len(part)) + part
            said = run([str(pebble), "write", theirs, "0", str(1 << 40), str(1 << 60)], bytes(records)).decode()
            assert said == f"{described['id']} {described['estimated_size']} {described['count']}\n", said
            mine = Path(ours, "_lakefs", described["id"]).read_bytes()
            assert mine == Path(theirs, described["id"]).read_bytes(), f"{described['id']} differs"
        print(f"{len(paths)} changes: {len(new)} of {len(old)} ranges rewritten, byte for byte as Pebble writes them")


def run(command: list[str], data: bytes = b"") -> bytes:
    """What a program prints."""
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def main() -> None:
    """Runs all comparisons."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    pebble, sst_dump = tools.pebble(), tools.sst_dump()
    changes = entries(count, seed=7)
    for rule in RULES:
        check(rule, changes, pebble, sst_dump)
    check(RULES[0], entries(1, seed=1), pebble, sst_dump)
    check_rewritten(changes, pebble)


if __name__ == "__main__":
    main()
