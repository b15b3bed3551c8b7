"""Three-way merges of metaranges, path by path."""

from __future__ import annotations

from ..._native.graveler import Merged
from ..core.repository_core import RepositoryCore
from ..errors import MergeConflictError
from ..objects.batches import info, table
from ..objects.object_info import Conflict


def merged_content(
    core: RepositoryCore, base: str, source: str, dest: str, strategy: str, *, dry_run: bool = False
) -> Merged:
    """Merges two contents against what both come from, or says what is in the way.

    Args:
        core: The repository.
        base: The metarange that both come from.
        source: The metarange that is merged.
        dest: The metarange that it is merged into.
        strategy: `none`, `source-wins` or `dest-wins`.
        dry_run: Stores nothing.

    Raises:
        MergeConflictError: Both changed the same paths, and the strategy is `none`.
    """
    found = core.storage.merge(base, source, dest, rule=core.settings().rule(), strategy=strategy, dry_run=dry_run)
    if found.conflict_count and strategy == "none":
        raise path_conflict(conflicts_of(found), found.conflict_count)
    return found


def path_conflict(conflicts: list[Conflict], count: int) -> MergeConflictError:
    """The error that names paths that both sides changed."""
    shown = ", ".join(repr(conflict.path) for conflict in conflicts[:3])
    return MergeConflictError(
        f"{count} paths were changed on both sides: {shown}; choose a strategy, or resolve them",
        conflicts=conflicts,
        count=count,
    )


def conflicts_of(merged: Merged) -> list[Conflict]:
    """The conflicts that a merge lists."""
    rows = table(merged.conflicts()).to_pylist(maps_as_pydicts="strict")
    return [
        Conflict(row["path"], *(info(row["path"], row[side]) for side in ("base", "source", "dest"))) for row in rows
    ]
