"""Arrow batches of the Rust core, and the objects that their rows describe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from ..._native.graveler import Batch
from .object_info import CommonPrefix, ObjectInfo, time_of

BATCH_ROWS = 4096
"""Rows that come out of the core at once."""


class Batches(Protocol):
    """Something of the core that is read some rows at a time."""

    def next_batch(self, count: int) -> Batch | None:
        """The next rows, at most `count`; None at the end."""


def rows(batches: Batches, count: int = BATCH_ROWS) -> Iterator[dict[str, Any]]:
    """The rows of all batches, one at a time."""
    while (batch := batches.next_batch(count)) is not None:
        yield from table(batch).to_pylist(maps_as_pydicts="strict")


def table(batch: Batch) -> pa.RecordBatch:
    """A batch of the core as pyarrow's."""
    return pa.record_batch(batch)


def info(path: str, entry: Mapping[str, Any] | None) -> ObjectInfo | None:
    """The object that a struct of the core describes; None for none."""
    if entry is None:
        return None
    return ObjectInfo(
        path=path,
        physical_address=entry["physical_address"],
        address_type=entry["address_type"],
        size_bytes=entry["size_bytes"],
        checksum=entry["checksum"],
        mtime=entry["mtime"],
        content_type=entry["content_type"],
        metadata=dict(entry["metadata"] or {}),
    )


def infos(batch: Batch) -> Iterator[tuple[str, ObjectInfo | None]]:
    """The paths of a batch with their objects; None where there is none.

    Column by column: a row of Python's own would cost several times as much.
    """
    rows = table(batch)
    paths, entries = rows.column("path").to_pylist(), rows.column("entry")
    columns = [entries.field(name).to_pylist() for name in ("physical_address", "size_bytes", "checksum")]
    columns.append(entries.field("mtime").cast(pa.int64()).to_pylist())
    columns.append(entries.field("content_type").to_pylist())
    metadata = entries.field("metadata")
    has_metadata = len(metadata.keys) > 0
    columns.append(metadata.to_pylist(maps_as_pydicts="strict") if has_metadata else [None] * len(paths))
    columns.append(entries.field("address_type").to_pylist())
    for path, address, size, checksum, time_us, content_type, pairs, kind in zip(paths, *columns, strict=True):
        if address is None:
            yield path, None
        else:
            yield path, ObjectInfo(path, address, size, checksum, time_of(time_us), content_type, pairs or {}, kind)


def listed(batches: Batches, count: int = BATCH_ROWS) -> Iterator[ObjectInfo | CommonPrefix]:
    """The objects and common prefixes of a listing."""
    while (batch := batches.next_batch(count)) is not None:
        for path, found in infos(batch):
            yield CommonPrefix(path) if found is None else found


ENTRY_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deleted", pa.bool_()),
        ("physical_address", pa.string()),
        ("address_type", pa.string()),
        ("size_bytes", pa.int64()),
        ("checksum", pa.string()),
        ("mtime", pa.timestamp("us", "UTC")),
        ("content_type", pa.string()),
        ("metadata", pa.map_(pa.string(), pa.string())),
    ]
)
"""What changes are handed to the core as."""
