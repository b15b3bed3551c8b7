"""Writes the corpus of Lance tables' parts: `python -m fuzz.lance_tables`, with esker built and pylance from PyPI.

Manifests, transactions, deletion files, row ids, versions of rows and zone seeds, of both writers.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa

import esker
from fuzz.delta import put

MAGIC = b"ARROW1"
ZONES = {
    0: pa.int64(),
    1: pa.string(),
    2: pa.float64(),
    3: pa.bool_(),
    4: pa.decimal128(20, 3),
    5: pa.timestamp("us"),
    6: pa.large_binary(),
    7: pa.binary(5),
    8: pa.date32(),
    9: pa.uint8(),
}
"""The types of zone seeds, by the first byte of an input."""


def rows(first: int, count: int) -> pa.Table:
    """Rows of a table with a nested column."""
    numbers = list(range(first, first + count))
    return pa.table({"id": numbers, "s": [f"text {n}" for n in numbers], "v": [{"a": n, "b": [n]} for n in numbers]})


def history(module: ModuleType, uri: str) -> Any:
    """A table that has seen most operations."""
    table = module.write_dataset(rows(0, 40), uri, enable_stable_row_ids=True, max_rows_per_file=20)
    table = module.write_dataset(rows(40, 20), uri, mode="append")
    table.delete("id % 7 = 3")
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(55, 10))
    table.add_columns({"twice": "id * 2"})
    table.update({"s": "'changed'"}, where="id < 3")
    table.update_config({"key": "value"})
    table.drop_columns(["twice"])
    table.tags.create("t", 2)
    table.optimize.compact_files(target_rows_per_fragment=30)
    table.restore()
    return table


def sequences(table: Any) -> Iterator[tuple[str, str, bytes]]:
    """The row ids and versions of the fragments."""
    kinds = {
        "row_id_meta": "lance_row_ids",
        "created_at_version_meta": "lance_row_versions",
        "last_updated_at_version_meta": "lance_row_versions",
    }
    for fragment in table.get_fragments():
        told = fragment.metadata.to_json()
        told = json.loads(told) if isinstance(told, str) else told
        for key, target in kinds.items():
            places = {place.lower(): data for place, data in (told.get(key) or {}).items()}
            if found := places.get("inline"):
                yield target, f"{key.split('_', maxsplit=1)[0]}_{fragment.fragment_id}", bytes(found)


def seeds(folder: Path) -> Iterator[bytes]:
    """The Arrow files within data files."""
    for path in sorted(folder.glob("data/*.lance")):
        data = path.read_bytes()
        while (start := data.find(MAGIC + b"\0\0")) >= 0:
            end = data.find(MAGIC, start + len(MAGIC))
            yield data[start : end + len(MAGIC)]
            data = data[end + len(MAGIC) :]


def zone_seed(kind: int, low: Any, high: Any) -> bytes:
    """An input: the number of a type, the rows of the file, and a seed of three zones that pyarrow writes."""
    fields = [("min", ZONES[kind]), ("max", ZONES[kind])]
    counts = [("null_count", pa.uint32()), ("nan_count", pa.uint32()), ("zone_length", pa.uint64())]
    schema = pa.schema([*fields, *counts], metadata={"seed_null_bitmap": ""})
    batch = pa.record_batch([[low, None, low], [high, None, high], [0, 8192, 1], [0, 0, 0], [8192, 8192, 100]], schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as file:
        file.write_batch(batch)
    seed: bytes = sink.getvalue().to_pybytes()
    return bytes([kind]) + (2 * 8192 + 100).to_bytes(8, "little") + seed


def main() -> None:
    """Writes all inputs."""
    for writer, module in (("pylance", lance), ("esker", esker)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table = history(module, name)
            for path in sorted(folder.glob("_versions/*.manifest"))[:: 4 if writer == "esker" else 3]:
                put("lance_manifest", f"{path.stem[-3:]}.{writer}", path.read_bytes())
            for path in folder.glob("_transactions/*.txn"):
                put("lance_transaction", f"{path.stem.split('-')[0]}.{writer}", path.read_bytes())
            for path in folder.glob("_deletions/*"):
                kind = "arrow" if path.suffix == ".arrow" else "bitmap"
                put(f"lance_deletions_{kind}", f"{path.stem.split('-')[0]}.{writer}", path.read_bytes())
            for version in range(1, table.version + 1):
                for target, part, data in sequences(module.dataset(name, version=version)):
                    put(target, f"{part}.{writer}", data)
            many = folder / "many"
            count = 70_000
            table = module.write_dataset(pa.table({"id": range(count), "s": [f"{n:07}" for n in range(count)]}), many)
            table.delete("id % 3 = 1")
            for path in many.glob("_deletions/*"):
                kind = "arrow" if path.suffix == ".arrow" else "bitmap"
                put(f"lance_deletions_{kind}", f"many.{writer}", path.read_bytes())
            for number, seed in enumerate(seeds(many)):
                put("lance_zone_seed", f"{number}.{writer}", bytes([number]) + count.to_bytes(8, "little") + seed)
    bounds: dict[int, tuple[Any, Any]] = {
        2: (-1.5, float("inf")),
        3: (False, True),
        5: (0, 2**40),
        6: (b"", b"\xff" * 20),
        7: (b"abcde", b"abcdf"),
        8: (-1, 20_000),
        9: (0, 255),
    }
    for number, (low, high) in bounds.items():
        name = str(ZONES[number]).partition("[")[0]
        put("lance_zone_seed", f"{name}.pyarrow", zone_seed(number, low, high))
    put("lance_zone_seed", "bad_crossed", zone_seed(0, 5, 4))


if __name__ == "__main__":
    main()
