"""Writes the corpus of Graveler's tables and messages: `python -m fuzz.pebble_tables`; Go builds Pebble.

Tables in `sstable` that end in `.pebble` are written by Pebble at the commit that lakeFS pins;
rust/graveler/tests/pebble.rs writes each again and compares.
"""

import functools
import hashlib
import random
import struct
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa

from tests.interop import tools

CORPUS = Path(__file__).parent / "corpus"
NUMBERS = random.Random(1)
INDEX_TYPE = b"rocksdb.block.based.table.index.type"


@functools.cache
def program() -> Path:
    """Pebble's writer."""
    return tools.pebble()


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(at: bytes, start: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = shift = 0
    while True:
        byte = at[start]
        value |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < 0x80:
            return value, start


def framed(identity: bytes, data: bytes) -> bytes:
    """A value of two parts."""
    return varint(2 * len(identity)) + identity + varint(2 * len(data)) + data


def field(tag: int, value: bytes | int) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    return varint(tag << 3 | 2) + varint(len(value)) + value


def entry(path: str, size: int, **metadata: str) -> bytes:
    """An object's message."""
    address = b"data/gn7jb4lj3r3s72mqfu3g/" + hashlib.md5(path.encode()).hexdigest()[:20].encode()
    pairs = b"".join(field(5, field(1, k.encode()) + field(2, v.encode())) for k, v in metadata.items())
    e_tag = hashlib.md5(path.encode()).hexdigest().encode()
    time = field(1, 1_700_000_000) + field(2, 5)
    return field(1, address) + field(2, time) + field(3, size) + field(4, e_tag) + pairs + field(6, 1)


def value(path: str, size: int) -> bytes:
    """An object's value; its identity need not be true here."""
    return framed(hashlib.sha256(path.encode()).digest(), entry(path, size))


def write(records: dict[bytes, bytes], *properties: str) -> bytes:
    """One table by Pebble."""
    pieces = []
    for key in sorted(records):
        pieces += [struct.pack("<I", len(key)), key, struct.pack("<I", len(records[key])), records[key]]
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [program(), "write", folder, "0", str(1 << 40), str((1 << 63) - 1), *properties]
        name, *_ = subprocess.run(command, input=b"".join(pieces), capture_output=True, check=True).stdout.split()
        return Path(folder, name.decode()).read_bytes()


def save(target: str, name: str, data: bytes) -> None:
    """Writes one input."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def blocks(table: bytes) -> list[tuple[int, bytes]]:
    """All blocks of a table in their order: the type, and the bytes uncompressed."""
    metaindex, at = handle(table[-53:], 1)
    index, _ = handle(table[-53:], at)
    named = handle(values(opened(table, metaindex)[1])[0], 0)[0]
    below = [handle(one, 0)[0] for one in values(opened(table, index)[1])]
    handles = [metaindex, index, named, *below]
    if INDEX_TYPE + b"\2" in opened(table, named)[1]:
        for partition in below:
            handles += [handle(one, 0)[0] for one in values(opened(table, partition)[1])]
    return [opened(table, place) for place in sorted(handles)]


def handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Offset and length."""
    offset, at = number(data, at)
    length, at = number(data, at)
    return (offset, length), at


def opened(table: bytes, place: tuple[int, int]) -> tuple[int, bytes]:
    """A block, uncompressed."""
    offset, length = place
    stored, kind = table[offset : offset + length], table[offset + length]
    if kind:
        stored = pa.decompress(stored, decompressed_size=number(stored, 0)[0], codec="snappy", asbytes=True)
    return kind, stored


def values(block: bytes) -> list[bytes]:
    """The values of a block's entries."""
    end = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    at, found = 0, []
    while at < end:
        _, at = number(block, at)
        unshared, at = number(block, at)
        length, at = number(block, at)
        found.append(block[at + unshared : at + unshared + length])
        at += unshared + length
    return found


def assembled(table: bytes) -> bytes:
    """The same table as the body `assembled_sstable` takes it."""
    parts = blocks(table)
    whole = b"".join(bytes([kind]) + struct.pack("<H", len(block)) + block for kind, block in parts)
    # The properties and the metaindex come last, after the index or its top level.
    return bytes([len(parts) - 3, len(parts) - 1]) + whole


def tables() -> dict[str, tuple[dict[bytes, bytes], str]]:
    """Records and the type of each table."""
    paths = [f"tables/events/day={i // 40:03d}/part-{i:06d}.parquet" for i in range(400)]
    deep = {b"a/%s/%06d" % (b"long/" * 150, i * 37): value(str(i), i) for i in range(120)}
    ranges = {}
    for i in range(60):
        low, high = b"k%04d" % (10 * i), b"k%04d" % (10 * i + 9)
        message = field(1, low) + field(2, high) + field(3, 5000 + i) + field(4, 10)
        ranges[high] = framed(hashlib.sha256(high).hexdigest().encode(), message)
    return {
        "one": ({b"a": value("a", 1)}, "ranges"),
        "paths": ({path.encode(): value(path, 7 * len(path)) for path in paths[:80]}, "ranges"),
        "many_blocks": ({path.encode(): value(path, i) for i, path in enumerate(paths)}, "ranges"),
        "long_keys": (deep, "ranges"),
        "empty_values": ({b"%05d" % i: b"" for i in range(700)}, "ranges"),
        "empty_key": ({b"": b"first", b"\0": b"second"}, "ranges"),
        "bytes": ({bytes([i]): bytes([i]) for i in range(256)}, "ranges"),
        "ends_of_bytes": ({b"\xff" * i: b"x" * 3000 for i in range(1, 9)}, "ranges"),
        "incompressible": ({NUMBERS.randbytes(600): NUMBERS.randbytes(40) for _ in range(60)}, "ranges"),
        "metarange": (ranges, "metaranges"),
    }


def messages() -> None:
    """Messages and values, and ones that must be refused."""
    one = entry("a/b.csv", 700, owner="me", quality="raw")
    save("graveler_entry", "metadata", one)
    save("graveler_entry", "empty", b"")
    save("graveler_entry", "bad_address_type", field(6, 9))
    save("graveler_value", "entry", framed(b"\7" * 32, one))
    save("graveler_value", "empty", framed(b"", b""))
    save("graveler_value", "bad_negative_length", b"\x41" + b"\7" * 33)
    save("graveler_value", "bad_huge_length", b"\xfe" + b"\xff" * 8 + b"\x01abc")
    low, high = b"a/0", b"a/9"
    data = field(1, low) + field(2, high) + field(3, 4096) + field(4, 17)
    save("range_info", "range", framed(high, framed(b"0123456789abcdef" * 4, data)))
    save("range_info", "bad_name_is_a_path", framed(high, framed(b"../../../" * 7 + b"x", data)))
    for name, of in (("range.one", tables()["one"]), ("range.metarange", tables()["metarange"])):
        save("sstable_footer", name, write(of[0], f"type={of[1]}")[-53:])
    save("sstable_footer", "bad_no_magic", b"\1" + b"\0" * 52)


def commit() -> bytes:
    """The message of a commit, with its true id."""

    def integer(given: int) -> bytes:
        return b"\x02\x08" + struct.pack(">q", given)

    def text(given: bytes) -> bytes:
        return b"\x01" + integer(len(given)) + given

    who, why, content, when = b"me", b"Repository created", b"", 1_700_000_000
    parent = b"ab" * 32
    parents = hashlib.sha256(b"\x03" + integer(1) + text(parent)).digest()
    metadata = b"\x04" + integer(1) + text(b"k") + text(b"v")
    embedded = b"\x05\x00" + integer(32) + parents
    id = hashlib.sha256(
        text(b"commit:v1") + text(who) + text(why) + text(content) + integer(when) + metadata + embedded
    )
    pairs = field(6, field(1, b"k") + field(2, b"v"))
    said = field(1, id.hexdigest().encode()) + field(2, who) + field(3, why) + field(4, field(1, when))
    return said + pairs + field(7, parent) + field(8, 1) + field(9, 2)


def main() -> None:
    """Writes all inputs."""
    for name, (records, kind) in tables().items():
        table = write(records, f"type={kind}")
        save("sstable", f"{name}.pebble", table)
        if len(table) < 12_000:
            save("assembled_sstable", name, assembled(table))
        for at, (_, block) in enumerate(blocks(table)[-4:]):
            if name in ("one", "paths", "long_keys"):
                save("sstable_block", f"{name}.{at}", block)
    save("commit_data", "commit", commit())
    save("commit_data", "bad_id", commit().replace(b"created", b"Created"))
    messages()
    sizes = {target.name: sum(file.stat().st_size for file in target.iterdir()) for target in CORPUS.iterdir()}
    print(sizes)


if __name__ == "__main__":
    main()
