"""Tables whose rows have a history, and manifests changed by hand: what tests of row ids share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import esker

SYSTEM = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(start: int, stop: int) -> pa.Table:
    """Rows with the keys `start` to `stop`."""
    keys = range(start, stop)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array([f"v{key}" for key in keys])})


def history(uri: str, *, stable: bool = True, version: str = "2.0") -> None:
    """A table that pylance created, appended to, deleted from, updated, merged into, compacted and overwrote."""
    options: dict[str, Any] = {"enable_stable_row_ids": stable, "data_storage_version": version}
    lance.write_dataset(rows(0, 1000), uri, max_rows_per_file=300, **options)
    dataset = lance.write_dataset(rows(1000, 1400), uri, mode="append", max_rows_per_file=150)
    dataset.delete("k % 50 = 7 or k = 1399")
    dataset.update({"v": "'second'"}, where="k % 9 = 0")
    dataset.update({"v": "'third'"}, where="k in (9, 8, 1001)")
    merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"k": [5, 1800, 1200, 3, 9, 1801], "v": ["m"] * 6}))
    dataset.delete("k >= 600 and k < 900")
    dataset.optimize.compact_files()
    dataset.update({"v": "'fourth'"}, where="k % 100 = 1")
    lance.write_dataset(rows(2000, 2010), uri, mode="append")
    lance.write_dataset(rows(0, 30), uri, mode="overwrite", max_rows_per_file=20)
    lance.dataset(uri).update({"v": "'last'"}, where="k < 3")


def versions(uri: str) -> Iterator[tuple[lance.LanceDataset, esker.LanceDataset]]:
    """Each version as both libraries see it."""
    ours = esker.dataset(uri)
    for number in sorted(version["version"] for version in ours.versions()):
        yield lance.dataset(uri, version=number), ours.checkout_version(number)


def same_lineage(theirs: lance.LanceDataset, ours: esker.LanceDataset) -> None:
    """Checks that both see the same rows with the same ids, addresses and versions, in the same order."""
    columns = [*theirs.schema.names, *SYSTEM]
    expected = theirs.to_table(columns=columns).to_pydict()
    found = ours.to_table(columns=columns).to_pydict()
    for name in columns:
        assert found[name] == expected[name], name


# The little of protobuf that it takes to change a manifest.


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message of varints and byte strings."""
    position, found = 0, []
    while position < len(message):
        tag, position = _varint(message, position)
        value: int | bytes
        value, position = _varint(message, position)
        if tag & 7 == 2:
            length, start = value, position
            value, position = message[start : start + length], start + length
        found.append((tag >> 3, value))
    return found


def message(parts: list[tuple[int, int | bytes]]) -> bytes:
    """A message of these fields."""
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += _to_varint(number << 3) + _to_varint(value)
        else:
            out += _to_varint(number << 3 | 2) + _to_varint(len(value)) + value
    return out


Part = tuple[int, "int | bytes"]


def change_fragments(uri: str, change: Callable[[list[Part]], list[Part]]) -> None:
    """Writes the latest manifest anew with `change` made to the fields of each fragment."""
    path = min(Path(uri, "_versions").glob("*.manifest"))
    data = path.read_bytes()
    position = int.from_bytes(data[-16:-8], "little")
    length = int.from_bytes(data[position : position + 4], "little")
    parts = []
    for number, value in fields(data[position + 4 : position + 4 + length]):
        if number == 2 and isinstance(value, bytes):
            value = message(change(fields(value)))
        if number not in (6, 21, 23):  # Sections of the file, which is another one now.
            parts.append((number, value))
    changed = message(parts)
    path.write_bytes(len(changed).to_bytes(4, "little") + changed + (0).to_bytes(8, "little") + data[-8:])
