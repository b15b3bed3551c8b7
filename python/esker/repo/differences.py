"""What one content has that another has not, path by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .core.repository_core import RepositoryCore
from .objects.batches import info, rows
from .objects.object_info import Change, ObjectInfo


def differences(core: RepositoryCore, left: str, right: str, prefix: str) -> Iterator[Change]:
    """The paths at which two contents differ.

    Args:
        core: The repository.
        left: The older content's metarange.
        right: The newer content's metarange.
        prefix: What paths start with.
    """
    for row in rows(core.storage.diff(left, right, prefix=prefix)):
        yield _change(row)


def merge_preview(core: RepositoryCore, base: str, ours: str, theirs: str, prefix: str) -> Iterator[Change]:
    """What a merge of their content into ours would bring: without what we did as well, and with conflicts marked."""
    changes = differences(core, base, theirs, prefix)
    if base == ours:
        yield from changes
        return
    mine = differences(core, base, ours, prefix)
    own = next(mine, None)
    for change in changes:
        while own is not None and own.path < change.path:
            own = next(mine, None)
        if own is None or own.path != change.path:
            yield change
        elif not _same(own.right, change.right):
            yield Change("conflict", change.path, "object", change.size_bytes, own.right, change.right)


def folded(changes: Iterator[Change], prefix: str, delimiter: str) -> Iterator[Change]:
    """Changes, of which those that go on after a delimiter are one `prefix_changed` together."""
    last = None
    for change in changes:
        head, found, _ = change.path[len(prefix) :].partition(delimiter)
        if not found:
            yield change
        elif (common := prefix + head + delimiter) != last:
            last = common
            yield Change("prefix_changed", common, "common_prefix")


def _same(left: ObjectInfo | None, right: ObjectInfo | None) -> bool:
    def identity(side: ObjectInfo | None) -> object:
        return side and (side.size_bytes, side.checksum, dict(side.metadata), side.content_type)

    return identity(left) == identity(right)


def _change(row: dict[str, Any]) -> Change:
    left, right = info(row["path"], row["left"]), info(row["path"], row["right"])
    there = right or left
    return Change(row["type"], row["path"], "object", there.size_bytes if there else None, left, right)
