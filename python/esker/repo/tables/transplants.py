"""Reverts and cherry-picks of commits that touched tables: each table takes the change as a new version, or refuses.

| the commit | the branch's table | becomes |
|---|---|---|
| makes a table | none | the same table; its revert drops it, if it is as the commit left it |
| drops a table | as it was before | none; its revert brings it back where there is none |
| changes it | as it was before the change | picked: the same versions; reverted: a version that restores the old one |
| changes it | has gone another way | the same change of files, where all that it needs is as it was |

Everything else is a conflict. The branch's log is append-only: it keeps each of its entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...exceptions import UnsupportedError
from ..errors import TableConflictError
from ..objects.object_info import TableConflict
from .delta_transplant import transplant_delta
from .folder_changes import check_no_log_change, drop_table, has_same_files, take_folder, take_new_versions
from .lance_transplant import transplant_lance
from .roots import TableRoots, logs_at
from .table_change import BY_HAND, TableChange, TableSide, Transplant
from .table_log import Relation, TableFormat, TableLog
from .workspace import TableWorkspace


def transplant_tables(
    transplant: Transplant,
    roots: TableRoots,
    folders: Sequence[str],
    base: TableWorkspace,
    source: TableWorkspace,
    dest: TableWorkspace,
) -> list[TableConflict]:
    """Stages the new versions of tables over the branch's content; what is in the way, table by table.

    Args:
        transplant: The revert or cherry-pick.
        roots: The tables of the three contents.
        folders: The tables that the change touches.
        base: The content before the change.
        source: The content after it.
        dest: The branch's content.
    """
    conflicts: list[TableConflict] = []
    for folder in folders:
        try:
            _transplant(transplant, roots, folder, (base, source, dest))
        except TableConflictError as error:
            conflicts += error.tables
    return conflicts


def _transplant(transplant: Transplant, roots: TableRoots, folder: str, contents: Sequence[TableWorkspace]) -> None:
    logs: list[dict[TableFormat, TableLog]] = [
        logs_at(one.core.storage, one.content, folder) if one.content else {} for one in contents
    ]
    formats = sorted({format for found in logs for format in found})
    sides = [TableSide(one, folder, found.get(formats[0])) for one, found in zip(contents, logs, strict=True)]
    change = TableChange(transplant, formats[0], *sides)
    if len(formats) > 1:
        change.refuse("unsupported", f"{folder.rstrip('/')!r} holds a Lance table and a Delta table", BY_HAND)
    if change.base.log is None and change.source.log is None:
        change.refuse(
            "unsupported",
            f"the commit changes files in the folder of {change.name}, which is no table there",
            "move the table, or do by hand what the commit did",
        )
    try:
        if change.base.log is None:
            _come(change, roots)
        elif change.source.log is None:
            _go(change, roots)
        else:
            _go_on(change, roots)
    except UnsupportedError as error:
        change.refuse("unsupported", f"{change.name} does not take the change: {error}", BY_HAND)


def _come(change: TableChange, roots: TableRoots) -> None:
    """The change makes a table, or brings one back that was dropped."""
    ours, theirs = change.dest.log, change.source.known
    if ours is None:
        if not has_same_files(change.dest, change.base, roots):
            change.refuse(
                "changed",
                f"the branch has other files in the folder of {change.name} than there were before it came",
                "remove them on the branch, and do it again",
            )
        take_folder(change, roots)
    elif theirs.newest not in ours.entries.values():
        change.refuse(
            "replaced" if change.transplant.is_revert else "both-created",
            f"the branch has a table of its own as {change.name}",
            "drop or move that table on the branch, and do it again",
        )


def _go(change: TableChange, roots: TableRoots) -> None:
    """The change drops a table, or takes back that it was made."""
    ours, theirs = change.dest.log, change.base.known
    if ours is None:
        return
    if change.is_exact:
        drop_table(change, roots)
        return
    if not shares_entries(ours, theirs):
        change.refuse("replaced", f"{change.name} is another table on the branch", "drop it there, if that is meant")
    change.refuse(
        "changed" if change.transplant.is_revert else "dropped",
        f"{change.name} was changed on the branch since (version {ours.newest.number}), and would be dropped with that",
        "drop it there, if that is meant",
    )


def _go_on(change: TableChange, roots: TableRoots) -> None:
    """The change is one of a table that is there before and after it."""
    relation, at = change.source.known.relation(change.base.known)
    if relation is Relation.SAME:
        check_no_log_change(change, roots)
        return
    if relation is Relation.PARTED and change.source.known.shares_with(change.base.known):
        change.refuse(
            "diverged",
            f"the commit is no change of {change.name} on the side that was asked for: that went another way from "
            f"version {at} on",
            "for a merge, take the other parent_number",
            at,
        )
    if relation is Relation.PARTED:
        change.refuse("replaced", f"the commit puts another table in the place of {change.name}", BY_HAND, at)
    if change.dest.log is None:
        change.refuse(
            "dropped",
            f"the branch has no table as {change.name} any more, or has not had it yet",
            "bring the table to the branch first: merge, or pick the commit that made it",
        )
    if change.is_exact and relation is Relation.EXTENDS:
        take_new_versions(change, roots)
    elif change.format == "lance":
        transplant_lance(change)
    else:
        transplant_delta(change)


def shares_entries(one: TableLog, other: TableLog) -> bool:
    """Whether two logs have an entry in common: they are of one table then."""
    return any(other.entries.get(number) == entry for number, entry in one.entries.items())
