"""What becomes of one table in a merge, by the logs of both sides and of what both come from.

| source's log | destination's log | what happens |
|---|---|---|
| goes on from the destination's | | the source's side is taken whole |
| is the destination's, or ends before it; or is the base's | | the destination stays |
| another entry of one number | | a conflict: `diverged`, `replaced` or `both-created` |
| the entry that would tell is cleaned up | | a conflict: `cleaned-up` |
| gone | as in the base | dropped |
| gone, and the destination's changed; or the other way round | | a conflict: `dropped` |
| there, and the base has none | none | taken whole |

`dest-wins` leaves a table that is in conflict as it is. `source-wins` restores the source's content in a new version
where both went on from one version, and brings back whole what the destination has dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..objects.object_info import ConflictKind, TableConflict
from ..tables.table_log import Relation, TableFormat, TableLog
from .table_lineage import TableLineage

Logs = Mapping[TableFormat, TableLog]


class Action(Enum):
    """What becomes of a table in the destination."""

    TAKE = "take-source"
    """The source's versions come on top of the destination's."""
    KEEP = "keep"
    """The log stays; tags, and files that are not the table's, are merged path by path."""
    LEAVE = "leave"
    """Nothing changes below the folder."""
    RESTORE = "restore-source"
    """A new version restores the source's content."""
    DROP = "drop"
    """The table goes, as it did on the source."""
    PLAIN = "plain"
    """There is no table any more: the folder is merged path by path."""
    CONFLICT = "conflict"
    """Something is in the way."""


@dataclass(frozen=True)
class Sides:
    """What the two sides are called in messages."""

    source: str
    dest: str


@dataclass(frozen=True)
class Decision:
    """What becomes of one table.

    Attributes:
        folder: The table's, with a `/` at its end.
        format: `lance` or `delta`.
        action: What happens.
        source: The source's log.
        dest: The destination's.
        conflict: What is in the way.
    """

    folder: str
    format: TableFormat
    action: Action
    source: TableLog | None = None
    dest: TableLog | None = None
    conflict: TableConflict | None = None

    @property
    def is_neutral(self) -> bool:
        """Whether it goes with whatever happens to a log of the other format in the same folder."""
        if self.source is None or self.dest is None:
            return self.source is self.dest
        return self.action is Action.KEEP and self.source.newest.identity == self.dest.newest.identity


class TableRules:
    """The rules above, for one folder.

    Args:
        folder: The table's, with a `/` at its end.
        sides: What the sides are called.
        strategy: `none`, `source-wins` or `dest-wins`.
        lineage: The history of both sides, which tells where a clean-up has removed what would.
    """

    def __init__(self, folder: str, sides: Sides, strategy: str, lineage: TableLineage | None = None) -> None:
        self._folder = folder
        self._sides = sides
        self._strategy = strategy
        self._lineage = lineage

    def decide(self, base: Logs, source: Logs, dest: Logs) -> Decision:
        """What becomes of the table, by the logs in its folder in all three contents.

        Logs of two formats in one folder share its files: both have to decide the same way.
        """
        formats: list[TableFormat] = sorted({*base, *source, *dest})
        found = [self._decide(format, base.get(format), source.get(format), dest.get(format)) for format in formats]
        if not found:
            return Decision(self._folder, "lance", Action.PLAIN)
        counted = [one for one in found if not one.is_neutral] or found[:1]
        in_the_way = [one for one in counted if one.action is Action.CONFLICT]
        if in_the_way or len(counted) == 1:
            return (in_the_way or counted)[0]
        if {one.action for one in counted} in _TOGETHER:
            return counted[0]
        return self.refused(
            counted[0],
            "unsupported",
            None,
            f"{self.name} has logs of two formats, which went different ways",
            "merge them one at a time, or move one of them to a folder of its own",
        )

    @property
    def name(self) -> str:
        """The table in messages."""
        return f"the table {self._folder.rstrip('/')!r}" if self._folder else "the table in the repository's root"

    def refused(
        self, decided: Decision, kind: ConflictKind, version: int | None, explanation: str, advice: str
    ) -> Decision:
        """A conflict, or with `dest-wins` the destination's table as it is."""
        if self._strategy == "dest-wins":
            return replace(decided, action=Action.LEAVE, conflict=None)
        conflict = TableConflict(self._folder.rstrip("/"), decided.format, kind, version, explanation, advice)
        return replace(decided, action=Action.CONFLICT, conflict=conflict)

    def _decide(
        self, format: TableFormat, base: TableLog | None, source: TableLog | None, dest: TableLog | None
    ) -> Decision:
        found = Decision(self._folder, format, Action.KEEP, source, dest)
        if source is None:
            return self._without_source(found, base, dest)
        is_unchanged = base is not None and _same(source, base)
        if dest is None:
            return self._without_dest(found, base, source, is_unchanged)
        if is_unchanged:
            return found
        theirs, ours = self._lineage.completed(source, dest) if self._lineage is not None else (source, dest)
        relation, version = theirs.relation(ours)
        if relation in (Relation.SAME, Relation.BEHIND):
            return found
        if relation is Relation.EXTENDS:
            return self._taken(found, source, dest)
        if relation is Relation.UNKNOWN:
            return self._cleaned_up(found, version)
        return self._parted(found, base, theirs, ours, version)

    def _without_source(self, found: Decision, base: TableLog | None, dest: TableLog | None) -> Decision:
        if base is None:
            return found
        if dest is None:
            return replace(found, action=Action.PLAIN)
        if _same(dest, base):
            return replace(found, action=Action.DROP)
        return self.refused(
            found,
            "dropped",
            dest.newest.number,
            f"{self._sides.source} has dropped {self.name}, which {self._sides.dest} has changed since",
            f'drop it on {self._sides.dest} as well, or merge with strategy="dest-wins", which keeps it',
        )

    def _without_dest(self, found: Decision, base: TableLog | None, source: TableLog, is_unchanged: bool) -> Decision:
        if base is None or (self._strategy == "source-wins" and not is_unchanged):
            return replace(found, action=Action.TAKE)
        if is_unchanged:
            return found
        return self.refused(
            found,
            "dropped",
            source.newest.number,
            f"{self._sides.dest} has dropped {self.name}, which {self._sides.source} has changed since",
            f'drop it on {self._sides.source} as well, or merge with strategy="source-wins", which brings it back, or '
            '"dest-wins", which leaves it dropped',
        )

    def _taken(self, found: Decision, source: TableLog, dest: TableLog) -> Decision:
        if source.naming == dest.naming:
            return replace(found, action=Action.TAKE)
        return self.refused(
            found,
            "unsupported",
            dest.newest.number,
            f"the manifests of {self.name} have names of one scheme on {self._sides.source} and of another on "
            f"{self._sides.dest}",
            "rename them on both sides (`migrate_manifest_paths_v2`), and merge then",
        )

    def _cleaned_up(self, found: Decision, version: int) -> Decision:
        return self.refused(
            found,
            "cleaned-up",
            version,
            f"version {version} of {self.name} would tell whether one side goes on from the other, and a clean-up has "
            "removed its entry on one of them",
            _REWRITE.format(self._sides),
        )

    def _parted(
        self, found: Decision, base: TableLog | None, source: TableLog, dest: TableLog, version: int
    ) -> Decision:
        ours, theirs = self._sides.dest, self._sides.source
        if source.shares_with(dest):
            if self._strategy == "source-wins":
                return replace(found, action=Action.RESTORE)
            return self.refused(
                found,
                "diverged",
                version,
                f"{self.name} went on from version {version - 1} on both sides: {theirs} and {ours} have different "
                f"commits as version {version}",
                'merge with strategy="source-wins", whose content then becomes a new version, or "dest-wins"; or write '
                f"what {theirs} has done again on top of {ours}",
            )
        if base is None:
            return self.refused(
                found,
                "both-created",
                version,
                f"{theirs} and {ours} have each created {self.name}",
                f"move one of them to another path, or drop the one on {theirs} or on {ours}; or merge with "
                'strategy="dest-wins"',
            )
        if any(log.relation(base)[0] is Relation.PARTED for log in (source, dest)):
            return self.refused(
                found,
                "replaced",
                version,
                f"{theirs} and {ours} have different tables at the path of {self.name}: one of them was created anew",
                f'drop the table on {ours} and merge with strategy="source-wins", or merge with "dest-wins"',
            )
        return self._cleaned_up(found, version)


_TOGETHER = [{one} for one in (Action.TAKE, Action.KEEP, Action.LEAVE, Action.DROP, Action.PLAIN)]
"""What two logs of one folder may decide."""
_REWRITE = (
    'merge with strategy="dest-wins", or write the rows of {0.source} again on top of {0.dest}; before clean-ups on a '
    "branch, merge it"
)


def _same(left: TableLog, right: TableLog) -> bool:
    return left.newest.number == right.newest.number and left.newest.identity == right.newest.identity
