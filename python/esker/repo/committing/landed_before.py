"""What of a commit is on its branch already: by a commit of its own of which it was not known that it had landed.

Entries of tables' logs have write ids, so that another's entry is never the same as one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..._native.graveler import Storage
from ..objects.batches import BATCH_ROWS, table
from ..tables.roots import TableRoots
from ..tables.table_log import LogEntry, TableFormat, TableLog, is_derived

_FIRST = 64
"""Paths that are compared at first: mostly one of them is not there."""

Logs = list[dict[TableFormat, TableLog]]
"""The logs of a table, of the base, with what is staged and on the branch."""


@dataclass(frozen=True)
class LandedBefore:
    """What is staged, beside what the branch has.

    Attributes:
        storage: The repository's.
        base: The metarange over which it was staged.
        ours: That with what is staged.
        dest: The branch's last.
    """

    storage: Storage
    base: str
    ours: str
    dest: str

    def has_all(self, *, is_own: bool = False) -> bool:
        """Whether all that is staged is there.

        Args:
            is_own: By a commit of its own: as the same objects, and not as others with the same bytes.
        """
        found = False
        for _, ours, dest in _compared(self.storage, self.base, self.ours, self.dest):
            if ours is None and dest is None:
                continue
            if ours is None or dest is None or (ours if is_own else ours[:1]) != (dest if is_own else dest[:1]):
                return False
            found = True
        # Others may have deleted the same.
        return found or not is_own

    def has_table(self, folder: str, roots: TableRoots) -> bool:
        """Whether all is there that is staged in a table, whatever others have committed to it since."""
        for path, ours, dest in _compared(self.storage, self.base, self.ours, self.dest, folder):
            is_same = ours == dest or (ours is not None and dest is not None and ours[0] == dest[0])
            if not is_same and roots.root_of(path) == folder and not is_derived(path[len(folder) :]):
                return False
        return True

    def is_changed_by_others(self, path: str) -> bool:
        """Whether the branch has at a path, or below it, what is neither the base's nor of a commit of its own."""
        return any(
            found == path or not path or found.startswith(path + "/")
            for found, dest, ours in _compared(self.storage, self.base, self.dest, self.ours, path)
            if dest is None or dest != ours
        )


def own_entries(logs: Logs, format: TableFormat) -> list[int]:
    """The versions of a table that are staged, and on the branch already."""
    base, ours, dest = (log.get(format) for log in logs)
    if ours is None or dest is None:
        return []
    return [number for number, entry in ours.entries.items() if _has(dest, entry) and not _has(base, entry)]


def is_gone_on_from(logs: Logs) -> bool:
    """Whether all by which the branch's log of a table went on is staged, so that what is staged goes on from there."""
    formats = {format for log in logs for format in log}
    for format in formats:
        base, ours, dest = (log.get(format) for log in logs)
        if ours is None or dest is None:
            return False
        if not all(_has(ours, entry) or _has(base, entry) for entry in dest.entries.values()):
            return False
    # Of which nothing has landed, the rules tell.
    return any(logs[2][format].newest.number in own_entries(logs, format) for format in formats)


def _has(log: TableLog | None, entry: LogEntry) -> bool:
    found = None if log is None else log.entries.get(entry.number)
    return found is not None and found.identity == entry.identity


_Seen = tuple[bytes, str] | None
"""An object's identity and address; None where there is none."""


def _compared(
    storage: Storage, before: str, after: str, other: str, prefix: str = ""
) -> Iterator[tuple[str, _Seen, _Seen]]:
    """The paths that differ between two contents, with what the second and a third have there."""
    differences, size = storage.diff(before, after, prefix=prefix), _FIRST
    while (batch := differences.next_batch(size)) is not None:
        paths: list[str] = table(batch).column("path").to_pylist()
        one, two = (_seen(storage, content, paths) for content in (after, other))
        yield from ((path, one.get(path), two.get(path)) for path in paths)
        size = min(4 * size, BATCH_ROWS)


def _seen(storage: Storage, content: str, paths: list[str]) -> Mapping[str, tuple[bytes, str]]:
    rows = table(storage.get(content, paths))
    entries = rows.column("entry")
    seen = zip(entries.field("identity").to_pylist(), entries.field("physical_address").to_pylist(), strict=True)
    return dict(zip(rows.column("path").to_pylist(), seen, strict=True))
