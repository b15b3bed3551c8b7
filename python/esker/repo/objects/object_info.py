"""What a repository tells of objects and of changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import pyarrow as pa

from ..._native.graveler import Batch

BATCH_ROWS = 4096
"""Rows that come out of the core at once."""

AddressType = Literal["relative", "full", "by_prefix"]


@dataclass(frozen=True)
class ObjectInfo:
    """One object at one path.

    Attributes:
        path: In the repository.
        physical_address: Where its bytes are: below the repository's root, or a URI.
        address_type: Which of the two.
        size_bytes: In bytes.
        checksum: A hash of the bytes: MD5 in hex for those that esker wrote.
        mtime: When they were put there.
        content_type: A media type; empty where it was written without one.
        metadata: The user's own keys and values.

    Example:
        `repository.ref("main").object("a.parquet").stat().size_bytes`
    """

    path: str
    physical_address: str
    size_bytes: int
    checksum: str
    mtime: datetime | None = None
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    address_type: AddressType = "relative"

    path_type = "object"


@dataclass(frozen=True)
class CommonPrefix:
    """What several paths start with, up to a delimiter and with it."""

    path: str

    path_type = "common_prefix"


@dataclass(frozen=True)
class Change:
    """One path that differs.

    Attributes:
        type: `added`, `removed`, `changed`, `conflict`, or `prefix_changed` for what several paths start with.
        path: In the repository.
        path_type: `object` or `common_prefix`.
        size_bytes: Of the newer side; where it is gone, of the older, and 0 for what is staged. None for prefixes.
        left: The object on the older side.
        right: The object on the newer side.
    """

    type: str
    path: str
    path_type: str = "object"
    size_bytes: int | None = None
    left: ObjectInfo | None = None
    right: ObjectInfo | None = None


@dataclass(frozen=True)
class Conflict:
    """A path that both sides of a merge changed, each in its way. A side that deleted it is None."""

    path: str
    base: ObjectInfo | None
    source: ObjectInfo | None
    dest: ObjectInfo | None


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
    """The object that a struct of the core tells of."""
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
    """What a listing of the core tells of."""
    while (batch := batches.next_batch(count)) is not None:
        for path, found in infos(batch):
            yield CommonPrefix(path) if found is None else found


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_of(microseconds: int | None) -> datetime | None:
    """A time by its microseconds since the Unix epoch."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime | None) -> int | None:
    """The other way round."""
    return None if time is None else (time - _EPOCH) // _MICROSECOND


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
