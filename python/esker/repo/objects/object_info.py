"""What is known of objects, and of changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from ..sdk_names import LacksNames

AddressType = Literal["relative", "full", "by_prefix"]


@dataclass(frozen=True)
class ObjectInfo(LacksNames):
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
class CommonPrefix(LacksNames):
    """What several paths start with, up to a delimiter and with it."""

    path: str

    path_type = "common_prefix"


@dataclass(frozen=True)
class Change(LacksNames):
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


ConflictKind = Literal[
    "diverged", "dropped", "replaced", "both-created", "reset", "cleaned-up", "changed", "unsupported", "lost"
]
"""What is in the way of a table: `diverged` both sides went on from one version; `dropped` one side has the table no
more; `replaced` the sides hold different tables; `both-created` both made one; `reset` the version that was read is
gone; `cleaned-up` a clean-up took files that are needed, or the entry that would tell; `changed` something that was to
stay unchanged; `unsupported` the change has no form here; `lost` the table's own rules refuse it."""


@dataclass(frozen=True)
class TableConflict:
    """A table that cannot take a change whole.

    Attributes:
        table: Its path in the repository; empty for a table in the repository's root.
        format: `lance` or `delta`.
        kind: What is in the way.
        version: The version where the two logs part, or that is in the way.
        explanation: In a sentence.
        advice: What can be done.
    """

    table: str
    format: str
    kind: ConflictKind
    version: int | None
    explanation: str
    advice: str


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_of(microseconds: int | None) -> datetime | None:
    """A time by its microseconds since the Unix epoch."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime | None) -> int | None:
    """The other way round."""
    return None if time is None else (time - _EPOCH) // _MICROSECOND
