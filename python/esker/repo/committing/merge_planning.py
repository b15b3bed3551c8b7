"""The plan of a merge: what it would do, without doing it."""

from __future__ import annotations

from ..core.repository_core import RepositoryCore
from ..differences import merge_preview
from ..objects.merge_plan import MergePlan, PathsPlan, PlanConflict, TableOutcome, TablePlan
from ..objects.object_info import Change, Conflict, TableConflict
from ..refs.commits import Commit
from ..refs.expired import explained
from .merging import content_merge, strategy_of
from .table_decision import Action
from .table_merge import ContentMerge, PlannedTable

_SHOWN = 1000
"""As many changes and conflicts are listed; all are counted."""
_OUTCOMES: dict[Action, TableOutcome] = {
    Action.TAKE: "take-source",
    Action.KEEP: "keep",
    Action.LEAVE: "keep",
    Action.RESTORE: "restore-source",
    Action.DROP: "drop",
    Action.CONFLICT: "conflict",
}


def plan_merge(
    core: RepositoryCore, source: tuple[str, Commit], branch: str, strategy: str | None, first: int
) -> MergePlan:
    """What a merge of a commit into a branch would do. Writes nothing.

    Args:
        core: The repository.
        source: What is merged: what it is called, and the commit.
        branch: Where it goes.
        strategy: What becomes of conflicts; None, `source-wins` or `dest-wins`.
        first: How many changes of paths are listed.
    """
    chosen = strategy_of(strategy)
    dest = core.head(branch)
    base = core.commits.merge_base(dest.id, source[1].id)
    with explained(core.store, source[1].id, base.id if base else ""):
        merge = content_merge(core, source, (branch, dest), base, chosen)
        found = merge.conflicts()
        paths = found.conflicts if found else []
        listed = [*map(_of_table, merge.table_conflicts), *map(_of_path, paths)]
        return MergePlan(
            source[1].id,
            dest.id,
            base.id if base else None,
            chosen,
            tuple(_table(one) for one in merge.tables if one.decision.action is not Action.PLAIN),
            _paths(core, merge, chosen, first),
            tuple(listed[:_SHOWN]),
            found.count if found else 0,
        )


def _table(planned: PlannedTable) -> TablePlan:
    decision = planned.decision
    before = decision.dest.newest.number if decision.dest else None
    after, new = before, 0
    if decision.action is Action.TAKE and decision.source is not None:
        after = decision.source.newest.number
        new = sum(before is None or number > before for number in decision.source.entries)
    elif planned.restore is not None and before is not None:
        new = planned.restore.versions
        after = before + new
    elif decision.action is Action.DROP:
        after = None
    return TablePlan(
        decision.folder.rstrip("/"),
        decision.format,
        _OUTCOMES[decision.action],
        before,
        after,
        new,
        None if planned.is_path_wise else len(planned.changes),
    )


def _paths(core: RepositoryCore, merge: ContentMerge, strategy: str, first: int) -> PathsPlan:
    if not merge.merges_paths:
        return PathsPlan()
    whole, contents = merge.folders_of_tables, merge.contents
    counts = dict.fromkeys(("added", "removed", "changed"), 0)
    shown: list[Change] = []
    for change in merge_preview(core, contents.base, contents.dest, contents.source, ""):
        if whole and merge.roots.root_of(change.path) in whole:
            continue
        if change.type == "conflict":
            if strategy != "source-wins":
                continue
            kind = "removed" if change.right is None else "added" if change.left is None else "changed"
            change = Change(kind, change.path, "object", change.size_bytes, change.left, change.right)
        counts[change.type] += 1
        if len(shown) < first:
            shown.append(change)
    return PathsPlan(counts["added"], counts["removed"], counts["changed"], tuple(shown))


def _of_table(conflict: TableConflict) -> PlanConflict:
    return PlanConflict(
        conflict.kind, conflict.table, conflict.format, conflict.version, conflict.explanation, conflict.advice
    )


def _of_path(conflict: Conflict) -> PlanConflict:
    what = {side: getattr(conflict, side) for side in ("source", "dest")}
    if None in what.values():
        gone = "source" if what["source"] is None else "destination"
        told = f"the {gone} has removed {conflict.path!r}, which the other side has changed"
    else:
        told = f"both sides have changed {conflict.path!r}"
    return PlanConflict("path", conflict.path, None, None, told, "choose a strategy, or make it the same on both sides")
