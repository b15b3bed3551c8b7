"""The golden files of this folder: what esker's writer makes of fixed rows, in each file version.

`python -m tests.compat.golden.writer.generate` writes those that are missing; `--all` writes all anew, after a change
of the writer that is meant. A file that changes is a change of what users' disks hold: say so in CHANGELOG.md.
"""

from __future__ import annotations

import decimal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from esker.file import LanceFileWriter
from esker.lance.write.compression import Compression

FOLDER = Path(__file__).parent
VERSIONS = ("2.0", "2.1", "2.2")
ROWS = 1200


def numbers() -> pa.Table:
    """Integers of all widths, floats, decimals, times and bits, with runs and with nulls."""
    rows = range(ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "small": pa.array([i % 11 for i in rows], pa.int32()),
            "runs": pa.array([i // 100 for i in rows], pa.int16()),
            "same": pa.array([7] * ROWS, pa.uint8()),
            "score": pa.array([None if i % 7 == 0 else (i * 37 % 101) / 8 for i in rows], pa.float64()),
            "weight": pa.array([i / 4 for i in rows], pa.float32()),
            "flag": pa.array([None if i % 13 == 0 else i % 3 == 0 for i in rows], pa.bool_()),
            "at": pa.array([1_700_000_000_000_000 + i * 1_000_003 for i in rows], pa.timestamp("us", "UTC")),
            "price": pa.array([decimal.Decimal(i * i) / 100 for i in rows], pa.decimal128(12, 2)),
            "nothing": pa.nulls(ROWS, pa.int64()),
        }
    )


def texts() -> pa.Table:
    """Strings: few, many, alike, long, and a dictionary column."""
    rows = range(ROWS)
    return pa.table(
        {
            "few": pa.array([None if i % 5 == 0 else f"group {i % 4}" for i in rows]),
            "many": pa.array([f"{i * 7919 % 100_003:x}" for i in rows]),
            "alike": pa.array([f"https://example.org/catalogue/item/{i * 31 % 997}?page={i % 10}" for i in rows]),
            "bytes": pa.array([bytes([i % 256]) * (i % 6) for i in rows], pa.large_binary()),
            "dictionary": pa.array([f"k{i % 9}" for i in rows]).dictionary_encode(),
        }
    )


def nested() -> pa.Table:
    """Lists, structs and vectors in each other."""
    rows = range(ROWS)
    return pa.table(
        {
            "tags": pa.array([None if i % 9 == 0 else [f"t{j}" for j in range(i % 4)] for i in rows]),
            "place": pa.array([{"city": f"c{i % 5}", "zip": None if i % 3 == 0 else i} for i in rows]),
            "items": pa.array([[{"n": j, "x": j / 2} for j in range(i % 3)] for i in rows]),
            "vector": pa.array([[float(i), float(-i), 0.5] for i in rows], pa.list_(pa.float32(), 3)),
            "matrix": pa.array(
                [[list(range(i % 3)), None] if i % 4 else [] for i in rows], pa.list_(pa.list_(pa.int8()))
            ),
        }
    )


def wide() -> pa.Table:
    """Values of 256 bytes and more."""
    rows = range(60)
    return pa.table(
        {
            "vector": pa.array([[float(i * j % 17) for j in range(96)] for i in rows], pa.list_(pa.float32(), 96)),
            "text": pa.array([None if i % 8 == 0 else f"{i:03}" * 120 for i in rows]),
            "parts": pa.array([[bytes([i, j]) * 200 for j in range(i % 3)] for i in rows]),
        }
    )


def compressed() -> pa.Table:
    """Columns whose metadata ask for compression."""
    rows = range(ROWS)

    def field(name: str, type_: pa.DataType, **keys: str) -> pa.Field:
        return pa.field(name, type_, metadata={f"lance-encoding:{key.replace('_', '-')}": keys[key] for key in keys})

    schema = pa.schema(
        [
            field("zstd", pa.string(), compression="zstd"),
            field("lz4", pa.string(), compression="lz4"),
            field("plain", pa.int64(), compression="none"),
        ]
    )
    text = [f"line {i % 50} of the same text" for i in rows]
    return pa.table({"zstd": text, "lz4": text, "plain": list(rows)}, schema=schema)


def repeating() -> pa.Table:
    """Values that compress in one way or another, enough of them for several chunks."""
    rows = range(4 * ROWS)
    return pa.table(
        {
            "at": pa.array([1_700_000_000_000_000 + i * 60_000_000 for i in rows], pa.timestamp("us")),
            "price": pa.array([None if i % 31 == 0 else (i * 37 % 1009) / 100 for i in rows], pa.float64()),
            "weight": pa.array([i * 37 % 1009 / 8 for i in rows], pa.float32()),
            "status": pa.array([(200, 301, 404, 30_000)[i * 7 % 4] for i in rows], pa.int16()),
            "url": pa.array([f"https://example.org/{i * 31 % 97}/item?page={i * 7919 % 10_007}" for i in rows]),
            "customer": pa.array([f"customer number {i * 7919 % 300:06}" for i in rows], pa.large_string()),
            "lists": pa.array([[f"word {j * i % 50}" for j in range(i % 5)] for i in rows]),
        }
    )


def within() -> pa.Table:
    """Values that compress within lists, structs and nulls, around numbers of a dictionary and runs, and large ones."""
    rows = range(2 * ROWS)
    at = pa.array([None if i % 17 == 0 else 1_700_000_000_000_000 + i * 60_000_000 for i in rows], pa.timestamp("us"))
    urls = pa.array(
        [
            None if i % 29 == 0 else f"https://example.org/{i // 8 * 31 % 97}/item?page={i // 3 * 7919 % 500}"
            for i in rows
        ]
    )
    cities = pa.array([f"the city of number {i * 7919 % 300 // 8:06}" for i in rows])
    offsets = pa.array([min(i * 3, 2 * ROWS) for i in range(ROWS)], pa.int32())

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, values)

    return pa.table(
        {
            "times": lists(at),
            "urls": lists(urls),
            "cities": lists(cities),
            "place": pa.StructArray.from_arrays([at, urls], names=["at", "url"]).slice(0, ROWS - 1),
            "statuses": lists(
                pa.array([None if i % 5 == 0 else (200, 301, 30_000)[i // 9 % 3] for i in rows], pa.int16())
            ),
            "kinds": pa.array([f"kind {i // 40 % 50:04}" for i in rows]).dictionary_encode().slice(0, ROWS - 1),
            "files": pa.array([[bytes(range(256)) * (130 * (j + 1)) for j in range(i % 3)] for i in range(6)] * 200)
            .slice(0, 12)
            .take(pa.array([i % 12 if i < 24 else None for i in range(ROWS - 1)])),
        }
    )


TABLES: dict[str, tuple[Callable[[], pa.Table], int | None]] = {
    "numbers": (numbers, None),
    "pages": (numbers, 20_000),
    "texts": (texts, None),
    "nested": (nested, None),
    "wide": (wide, None),
    "compressed": (compressed, None),
    **dict.fromkeys(("repeating", "repeating_fast", "repeating_small"), (repeating, None)),
    **dict.fromkeys(("within", "within_small"), (within, None)),
    "empty": (lambda: nested().slice(0, 0), None),
}
"""Name, rows, and bytes that gather before a page."""


COMPRESSION: dict[str, Compression] = {"repeating_fast": "fast", "repeating_small": "small", "within_small": "small"}
"""How small a file is to be, where that is not the default."""


def write(name: str, version: str, path: Path) -> None:
    """Writes one golden file."""
    make, cache = TABLES[name]
    table = make()
    goal = COMPRESSION.get(name)
    with LanceFileWriter(path, table.schema, version=version, data_cache_bytes=cache, compression=goal) as writer:
        for batch in table.to_batches(max_chunksize=500):
            writer.write_batch(batch)
        writer.add_schema_metadata("golden", name)
        writer.add_global_buffer(b"golden")


def main() -> None:
    """Writes the files that are missing, or all."""
    for name, version in [(name, version) for name in TABLES for version in VERSIONS]:
        path = FOLDER / f"{name}.{version}.lance"
        if "--all" in sys.argv or not path.exists():
            write(name, version, path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
