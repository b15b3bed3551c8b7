"""The log of a table as the entries of a content: which versions there are, and what identifies each.

A version's number says little: two branches give the same number to different commits, and a number comes free when a
branch is reset. An entry's identity, which its bytes decide, tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from ..._native.graveler import Storage
from ..._native.table import parse_manifest_name
from ..objects.batches import BATCH_ROWS, table

TableFormat: TypeAlias = Literal["lance", "delta"]

FOLDERS: Mapping[TableFormat, str] = {"lance": "_versions/", "delta": "_delta_log/"}
"""The folder of each format's log, below the table's."""

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")
_COPIES = ("_latest.manifest", "_versions/latest_version_hint.json")
_DETACHED = 1 << 63
_FIRST = 8
"""Names that are listed at first, where one of the first will do."""


@dataclass(frozen=True)
class LogEntry:
    """One version of a table.

    Attributes:
        number: The version.
        path: Of its entry, in the repository.
        identity: Of the entry's bytes.
    """

    number: int
    path: str
    identity: bytes


class Relation(Enum):
    """How the log of a table on one side stands to that on another."""

    SAME = "same"
    """Both end with the same entry."""
    EXTENDS = "extends"
    """It goes on from where the other ends."""
    BEHIND = "behind"
    """The other goes on from where it ends."""
    PARTED = "parted"
    """They have different entries of one number."""
    UNKNOWN = "unknown"
    """A clean-up has taken away the entry that would tell."""


@dataclass(frozen=True)
class TableLog:
    """The log of one format in one folder of a content.

    Attributes:
        folder: The table's folder, with a `/` at its end; empty for the repository's root.
        format: `lance` or `delta`.
        entries: The versions, by their numbers, rising.
    """

    folder: str
    format: TableFormat
    entries: Mapping[int, LogEntry] = field(default_factory=dict)

    @property
    def newest(self) -> LogEntry:
        """The newest version."""
        return self.entries[max(self.entries)]

    @property
    def naming(self) -> str | None:
        """The naming scheme of a Lance table's manifests; None for a Delta log."""
        if self.format == "delta":
            return None
        parsed = parse_manifest_name(self.newest.path.rpartition("/")[2])
        return None if parsed is None else parsed[1]

    def relation(self, other: TableLog) -> tuple[Relation, int]:
        """How it stands to another log; and the version at which they part, or that is not there any more."""
        for number in self.entries.keys() & other.entries.keys():
            if self.entries[number].identity != other.entries[number].identity:
                return Relation.PARTED, self.parting(other)
        ours, theirs = self.newest.number, other.newest.number
        if ours == theirs:
            return Relation.SAME, ours
        if ours > theirs:
            return (Relation.EXTENDS if theirs in self.entries else Relation.UNKNOWN), theirs
        return (Relation.BEHIND if ours in other.entries else Relation.UNKNOWN), ours

    def shares_with(self, other: TableLog) -> bool:
        """Whether both have an entry in common."""
        common = self.entries.keys() & other.entries.keys()
        return any(self.entries[number].identity == other.entries[number].identity for number in common)

    def parting(self, other: TableLog) -> int:
        """The first version that differs."""
        common = sorted(self.entries.keys() & other.entries.keys())
        return next(n for n in common if self.entries[n].identity != other.entries[n].identity)


def entry_number(format: TableFormat, name: str) -> int | None:
    """The version of a file in a log's folder by its name; None for what is no entry.

    Example:
        >>> from esker.repo.tables.table_log import entry_number
        >>> entry_number("delta", "00000000000000000003.json"), entry_number("lance", "7.manifest")
        (3, 7)
        >>> entry_number("delta", "_last_checkpoint") is None
        True
    """
    if format == "lance":
        parsed = parse_manifest_name(name)
        return None if parsed is None or parsed[0] >= _DETACHED else parsed[0]
    found = _ENTRY.fullmatch(name)
    return None if found is None else int(found.group(1))


def is_derived(path: str) -> bool:
    """Whether a file, by its path within a table, only says again what the log says: a checkpoint, a hint, a copy.

    Example:
        >>> from esker.repo.tables.table_log import is_derived
        >>> is_derived("_delta_log/_last_checkpoint"), is_derived("_delta_log/00000000000000000003.json")
        (True, False)
    """
    if path in _COPIES:
        return True
    folder, _, name = path.partition("/")
    return folder + "/" == FOLDERS["delta"] and entry_number("delta", name) is None


def read_log(storage: Storage, content: str, folder: str, format: TableFormat) -> TableLog | None:
    """The log of a format in a folder of a content; None if there is none.

    Args:
        storage: The repository's.
        content: The content's metarange.
        folder: With a `/` at its end, or empty.
        format: The format.
    """
    place = folder + FOLDERS[format]
    found: dict[int, LogEntry] = {}
    checkpoints: dict[int, LogEntry] = {}
    for path, identity in _listed(storage, content, place):
        name = path.removeprefix(place)
        number = entry_number(format, name)
        if number is not None:
            found[number] = LogEntry(number, path, identity)
        elif format == "delta" and (matched := _CHECKPOINT.fullmatch(name)):
            number = int(matched.group(1) or matched.group(2))
            checkpoints[number] = LogEntry(number, path, identity)
    # A log whose entries are all cleaned up goes on from its checkpoint.
    entries = found or checkpoints
    return TableLog(folder, format, dict(sorted(entries.items()))) if entries else None


def entry_at(storage: Storage, content: str, entry: LogEntry) -> LogEntry | None:
    """What a content has at the path of an entry; None if it has nothing there."""
    rows = table(storage.get(content, [entry.path]))
    if not rows.num_rows:
        return None
    return LogEntry(entry.number, entry.path, rows.column("entry").field("identity")[0].as_py())


def newest_entry(
    storage: Storage, content: str, folder: str, format: TableFormat, known: LogEntry | None = None
) -> LogEntry | None:
    """The newest version of a table in a content; None if there is no table.

    Args:
        storage: The repository's.
        content: The content's metarange.
        folder: With a `/` at its end, or empty.
        format: The format.
        known: A version that is in the content: a Delta log is listed from it on.
    """
    place = folder + FOLDERS[format]
    if format == "delta" and known is not None:
        found = known
        for path, identity in _listed(storage, content, place, from_path=known.path):
            number = entry_number(format, path.removeprefix(place))
            if number is not None and number >= found.number:
                found = LogEntry(number, path, identity)
        return found
    if format == "lance":
        # The names of today sort the newest version first.
        for path, identity in _listed(storage, content, place, first=_FIRST):
            parsed = parse_manifest_name(path.removeprefix(place))
            if parsed is not None and parsed[0] < _DETACHED:
                if parsed[1] == "V2":
                    return LogEntry(parsed[0], path, identity)
                break
    log = read_log(storage, content, folder, format)
    return None if log is None else log.newest


def has_log(storage: Storage, content: str, folder: str, format: TableFormat) -> bool:
    """Whether a folder of a content has the log of a format."""
    place = folder + FOLDERS[format]
    for path, _ in _listed(storage, content, place, first=_FIRST):
        name = path.removeprefix(place)
        if entry_number(format, name) is not None or (format == "delta" and _CHECKPOINT.fullmatch(name)):
            return True
    return False


def _listed(
    storage: Storage, content: str, prefix: str, *, first: int = BATCH_ROWS, from_path: str = ""
) -> Iterator[tuple[str, bytes]]:
    listing, count = storage.list(content, prefix=prefix, from_path=from_path), first
    while (batch := listing.next_batch(count)) is not None:
        rows = table(batch)
        entries = rows.column("entry")
        yield from zip(rows.column("path").to_pylist(), entries.field("identity").to_pylist(), strict=True)
        count = BATCH_ROWS
