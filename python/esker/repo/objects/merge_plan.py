"""What a merge would do, as values: `Reference.merge_plan` gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .object_info import Change

TableOutcome = Literal["take-source", "keep", "restore-source", "drop", "conflict"]
"""What becomes of a table: `take-source` the source's versions come on top; `keep` it stays as it is, but for tags and
files of others in its folder; `restore-source` a new version restores the source's content; `drop` it goes; `conflict`
something is in the way."""


@dataclass(frozen=True)
class TablePlan:
    """What a merge makes of one table that the source changed.

    Attributes:
        path: The table's path in the repository; empty for a table in the repository's root.
        format: `lance` or `delta`.
        outcome: What happens.
        version_before: The destination's newest version; None if there is no table.
        version_after: Its newest version then; None if there is no table any more. In a conflict, that before.
        new_versions: How many versions come.
        changed_files: How many files come or go below its folder, without those that a restore writes; None where that
            is not counted, since all of the source's differences come.
    """

    path: str
    format: str
    outcome: TableOutcome
    version_before: int | None
    version_after: int | None
    new_versions: int
    changed_files: int | None


@dataclass(frozen=True)
class PathsPlan:
    """What a merge changes outside of tables.

    Attributes:
        added: How many paths come.
        removed: How many go.
        changed: How many have another object then.
        first: The first of these changes, in the order of their paths.
    """

    added: int = 0
    removed: int = 0
    changed: int = 0
    first: tuple[Change, ...] = ()

    @property
    def count(self) -> int:
        """How many paths change."""
        return self.added + self.removed + self.changed


@dataclass(frozen=True)
class PlanConflict:
    """What is in the way of a merge.

    Attributes:
        kind: `path` for a path that both sides changed; else what is in the way of a table, see `TableConflict`.
        path: The path, or the table's.
        format: Of a table; None for a path.
        version: Where the two logs part, or what is in the way; None for a path.
        explanation: In a sentence.
        advice: What can be done.
    """

    kind: str
    path: str
    format: str | None
    version: int | None
    explanation: str
    advice: str


@dataclass(frozen=True)
class MergePlan:
    """What a merge would do, by the commits that both sides lead to now.

    Attributes:
        source: The id of the commit that is merged.
        destination: The id of the branch's last commit.
        base: The id of the commit that both come from; None if they share none.
        strategy: `none`, `source-wins` or `dest-wins`.
        tables: The tables that the source changed, in the order of their paths.
        paths: What changes outside of tables.
        conflicts: The first of what is in the way: of tables, and then of paths.
        conflict_count: How many there are.

    Example:
        `repository.branch("feature").merge_plan("main").merges`
    """

    source: str
    destination: str
    base: str | None
    strategy: str
    tables: tuple[TablePlan, ...]
    paths: PathsPlan
    conflicts: tuple[PlanConflict, ...]
    conflict_count: int

    @property
    def merges(self) -> bool:
        """Whether nothing is in the way."""
        return not self.conflict_count

    @property
    def is_empty(self) -> bool:
        """Whether the source has nothing that the destination has not: `merge_into` needs `allow_empty=True` then."""
        return self.merges and not self.paths.count and all(_is_nothing(table) for table in self.tables)


def _is_nothing(table: TablePlan) -> bool:
    return table.outcome == "keep" and not table.changed_files
