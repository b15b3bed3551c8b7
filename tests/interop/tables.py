"""SSTables beside Pebble at the commit that lakeFS pins, and RocksDB's sst_dump: `make interop`.

What esker writes, Pebble writes as well, byte for byte and under the same names; each reads the other's.
`ESKER_INTEROP_KEYS` is how many keys the large inputs have.
"""

from __future__ import annotations

import functools
import os
import random
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import Store

from . import tools

KEYS = int(os.environ.get("ESKER_INTEROP_KEYS", "200000"))
DEFAULT = {"min_size": 0, "max_size": 20 << 20, "raggedness": 50_000}
Record = tuple[bytes, bytes, bytes]
"""Key, identity, data."""


@functools.cache
def program() -> Path:
    """Pebble's writer and reader."""
    return tools.pebble()


def pebble(*words: object, given: bytes = b"") -> bytes:
    """What the program of tests/interop/pebble prints."""
    done = subprocess.run([program(), *map(str, words)], input=given, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def length(count: int) -> bytes:
    """A length as values have it: twice the count, seven bits a byte."""
    folded, out = 2 * count, bytearray()
    while folded >= 0x80:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    return bytes([*out, folded])


def stream(records: list[Record]) -> bytes:
    """Records as the program reads them."""
    parts = []
    for key, identity, data in records:
        value = length(len(identity)) + identity + length(len(data)) + data
        parts += [struct.pack("<I", len(key)), key, struct.pack("<I", len(value)), value]
    return b"".join(parts)


@dataclass
class Both:
    """A folder for each writer, laid out like a repository."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("esker", "pebble"):
            (self.root / name / "_lakefs").mkdir(parents=True, exist_ok=True)

    def folder(self, name: str) -> Path:
        """Where a writer's tables are."""
        return self.root / name / "_lakefs"

    def storage(self, name: str) -> Storage:
        """A writer's tables, read by esker and not kept in memory."""
        return Storage(Store(str(self.root / name), durable=False), cache_bytes=0)

    def write(self, records: list[Record], rule: dict[str, int]) -> str:
        """Writes by both, compares, and returns the metarange's id."""
        columns = {name: pa.array(column, pa.binary()) for name, column in zip(NAMES, transposed(records), strict=True)}
        changes = Changes.of_records(pa.table(columns))
        written = self.storage("esker").write(changes, rule=SplitRule(**rule))
        assert written.metarange_id is not None
        split = [rule["min_size"], rule["max_size"], rule["raggedness"]]
        pebble("write", self.folder("pebble"), *split, "type=ranges", given=stream(records))
        # What Pebble says of its ranges is what the metarange must hold.
        listed = []
        for path in self.folder("pebble").iterdir():
            said = self.storage("pebble").records(path.name).properties
            size, count = int(said["estimated_size_bytes"]), int(said["count"])
            data = range_data(said["min_key"], said["max_key"], size, count)
            listed.append((said["max_key"], path.name.encode(), data))
        entries = sorted(listed)
        pebble("write", self.folder("pebble"), 0, 1 << 40, 1 << 62, "type=metaranges", given=stream(entries))
        self.compare()
        return written.metarange_id

    def compare(self) -> None:
        """The same names with the same bytes."""
        ours, theirs = ({path.name: path for path in self.folder(name).iterdir()} for name in ("esker", "pebble"))
        assert sorted(ours) == sorted(theirs)
        for name, path in ours.items():
            assert path.read_bytes() == theirs[name].read_bytes(), name

    def clear(self) -> None:
        """Forgets all tables."""
        for name in ("esker", "pebble"):
            for path in self.folder(name).iterdir():
                path.unlink()


NAMES = ("key", "identity", "data")


def transposed(records: list[Record]) -> list[list[bytes]]:
    """Columns."""
    return [[record[at] for record in records] for at in range(3)]


def varint(value: int) -> bytes:
    """As protobuf has it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def range_data(min_key: bytes, max_key: bytes, estimated_size: int, count: int) -> bytes:
    """The message of a metarange's record."""
    out = b""
    for tag, key in ((b"\x0a", min_key), (b"\x12", max_key)):
        out += tag + varint(len(key)) + key if key else b""
    return out + b"\x18" + varint(estimated_size) + b"\x20" + varint(count)


def found(storage: Storage, table: str) -> list[Record]:
    """All records of a table as esker reads them."""
    records = storage.records(table)
    out: list[Record] = []
    while (batch := records.next_batch(10_000)) is not None:
        columns = pa.record_batch(batch).to_pydict()
        out += zip(columns["key"], columns["identity"], columns["data"], strict=True)
    return out


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Empty folders."""
    return Both(tmp_path)


KEY = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.text("ab/\u00ff", min_size=1, max_size=30).map(str.encode),
    st.builds(
        lambda head, count, tail: head * count + tail,
        st.binary(min_size=1, max_size=3),
        st.integers(1, 700),
        st.binary(max_size=3),
    ),
    st.integers(0, 300).map(lambda number: b"\xff" * (number % 5 + 1) + bytes([number % 256])),
)
DATA = st.one_of(
    st.just(b""),
    st.binary(max_size=200),
    st.integers(0, 9000).map(lambda count: b"data/" * (count // 5)),
    st.tuples(st.integers(0, 2**32), st.integers(0, 9000)).map(
        lambda drawn: random.Random(drawn[0]).randbytes(drawn[1])
    ),
)
RECORDS = st.dictionaries(KEY, st.tuples(st.sampled_from([b"", b"\x07" * 32]), DATA), min_size=1, max_size=150)
RULE = st.sampled_from(
    [
        DEFAULT,
        {"min_size": 0, "max_size": 20 << 20, "raggedness": 7},
        {"min_size": 3000, "max_size": 9000, "raggedness": 3},
        {"min_size": 0, "max_size": 1, "raggedness": 1},
        {"min_size": 5000, "max_size": 5000, "raggedness": 1 << 40},
    ]
)


@settings(
    max_examples=int(os.environ.get("ESKER_INTEROP_EXAMPLES", "300")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(RECORDS, RULE)
def test_any_records_are_the_same_bytes_and_read_by_both(
    tmp_path_factory: pytest.TempPathFactory, drawn: dict[bytes, Any], rule: dict[str, int]
) -> None:
    both = Both(tmp_path_factory.getbasetemp() / "any")
    both.clear()
    records = [(key, *drawn[key]) for key in sorted(drawn)]
    both.write(records, rule)
    back = []
    for path in both.folder("esker").iterdir():
        assert pebble("read", path) == stream(found(both.storage("pebble"), path.name))
        if both.storage("pebble").records(path.name).properties["type"] == b"ranges":
            back += found(both.storage("pebble"), path.name)
    assert sorted(back) == records
    lines = pebble("verify", *both.folder("esker").iterdir()).decode().splitlines()
    assert len(lines) == len(list(both.folder("esker").iterdir()))


def paths(count: int, seed: int) -> Iterator[bytes]:
    """Sorted paths of a lake, about 40 bytes each."""
    numbers = random.Random(seed)
    day, number = 0, 0
    for _ in range(count):
        number += numbers.randrange(1, 50)
        if numbers.random() < 0.001:
            day, number = day + 1, 0
        yield b"tables/events/day=%05d/part-%08d.parquet" % (day, number)


def entries(count: int, seed: int) -> list[Record]:
    """Entries as a lake has them: about 127 bytes, of which hashes and addresses do not compress."""
    numbers = random.Random(seed)
    found = []
    for path in paths(count, seed):
        address = b"data/gj0000000000000000/" + numbers.randbytes(10).hex().encode()
        data = b"\x0a" + varint(len(address)) + address + b"\x18" + varint(numbers.randrange(1, 10**9)) + b"\x30\x01"
        found.append((path, numbers.randbytes(32), data))
    return found


@pytest.mark.parametrize(
    "rule", [DEFAULT, {"min_size": 1 << 20, "max_size": 4 << 20, "raggedness": 5000}], ids=["lakefs", "sizes"]
)
def test_the_entries_of_a_lake_are_the_same_ranges(both: Both, rule: dict[str, int]) -> None:
    records = entries(KEYS, 5)
    metarange = both.write(records, rule)
    counts = pa.record_batch(both.storage("pebble").ranges(metarange)).to_pydict()["count"]
    assert sum(counts) == KEYS
    assert len(counts) > 2 or KEYS < 200_000
    back = [
        record
        for row in pa.record_batch(both.storage("pebble").ranges(metarange)).to_pylist()
        for record in found(both.storage("pebble"), row["id"])
    ]
    assert back == records
    some = random.Random(1).sample(records, 1000)
    for row in pa.record_batch(both.storage("esker").ranges(metarange)).to_pylist():
        wanted = sorted(record for record in some if row["min_key"].encode() <= record[0] <= row["max_key"].encode())
        assert pebble("seek", both.folder("esker") / row["id"], given=stream(wanted)) == b"%d\n" % len(wanted)


@pytest.mark.parametrize("kind", ["long keys", "incompressible", "empty", "shared prefixes", "large values"])
def test_extreme_records_are_the_same_ranges(both: Both, kind: str) -> None:
    numbers = random.Random(kind)
    count = {"long keys": 3000, "large values": 300}.get(kind, KEYS // 10)
    keys: set[bytes] = set()
    while len(keys) < count:
        key = b"%012d" % numbers.randrange(10**12)
        if kind == "long keys":
            key *= numbers.randrange(1, 400)
        elif kind == "incompressible":
            key = numbers.randbytes(24)
        elif kind == "shared prefixes":
            key = b"a/common/prefix/of/all/keys/" * 4 + key
        keys.add(key)
    size = {"empty": 0, "large values": 200_000, "long keys": 10}.get(kind, 60)
    records = [(key, b"" if kind == "empty" else b"\1" * 32, numbers.randbytes(size)) for key in sorted(keys)]
    both.write(records, DEFAULT)
    pebble("verify", *both.folder("esker").iterdir())


def test_sst_dump_verifies_and_scans(both: Both) -> None:
    records = entries(20_000, 9)
    metarange = both.write(records, {"min_size": 0, "max_size": 300_000, "raggedness": 4000})
    scanned = 0
    for path in both.folder("esker").iterdir():
        named = path.with_suffix(".sst")
        named.write_bytes(path.read_bytes())
        said = subprocess.run(
            [*tools.sst_dump(), f"--file={named}", "--command=verify"], capture_output=True, text=True, check=True
        )
        assert "The file is ok" in said.stdout + said.stderr
        scan = subprocess.run(
            [*tools.sst_dump(), f"--file={named}", "--command=scan", "--show_properties"],
            capture_output=True,
            check=True,
        ).stdout
        lines = re.findall(rb"^'(.*?)' seq:0, type:1 =>", scan, re.M)
        assert lines == [key for key, _, _ in found(both.storage("esker"), path.name)]
        assert b"# entries: %d" % len(lines) in scan
        scanned += 0 if path.name == metarange else len(lines)
        named.unlink()
    assert scanned == len(records)
