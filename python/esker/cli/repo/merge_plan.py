"""How `esker repo merge` shows a plan, and what is in the way of a merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..output import Output, size_text

if TYPE_CHECKING:
    from ...repo import Change, Conflict, MergeConflictError, MergePlan, TablePlan

_SIDES = ("base", "source", "dest")


def show_plan(plan: MergePlan, output: Output) -> None:
    """Prints what a merge would do: tables, then paths, then what is in the way."""
    if output.as_json:
        output.json(_as_json(plan))
        return
    if plan.tables:
        columns = [("table", False), ("format", False), ("", False), ("from", True), ("to", True), ("versions", True)]
        output.table("tables", columns, [_table_row(table) for table in plan.tables])
    if plan.paths.count:
        counts = ", ".join(f"{getattr(plan.paths, kind)} {kind}" for kind in ("added", "removed", "changed"))
        rows = [[change.type, change.path, size_text(change.size_bytes)] for change in plan.paths.first]
        output.table(f"paths: {counts}", [("", False), ("path", False), ("size", True)], rows)
    if plan.conflicts:
        rows = [[one.kind, one.path, one.explanation, one.advice] for one in plan.conflicts]
        columns = [("conflict", False), ("at", False), ("why", False), ("what to do", False)]
        output.table(f"in the way: {plan.conflict_count}", columns, rows)
    if plan.is_empty:
        output.line("nothing to merge")
    elif plan.merges:
        output.line("nothing is in the way")


def show_conflicts(error: MergeConflictError, output: Output) -> None:
    """Prints what was in the way of a merge: tables, and paths with what all three sides have."""
    from ...repo import TableConflictError

    tables = [asdict(one) for one in error.tables] if isinstance(error, TableConflictError) else []
    paths = [_conflict(conflict) for conflict in error.conflicts]
    if output.as_json:
        output.json({"conflicts": paths, **({"tables": tables} if tables else {})})
        return
    if tables:
        columns = [("table", False), ("conflict", False), ("version", True), ("what to do", False)]
        rows = [[one["table"], one["kind"], _number(one["version"]), one["advice"]] for one in tables]
        output.table(None, columns, rows)
    if paths:
        columns = [("conflict", False), ("base", False), ("source", False), ("destination", False)]
        output.table(None, columns, ([one[name] or "-" for name in ("path", *_SIDES)] for one in paths))


def _conflict(conflict: Conflict) -> dict[str, str | None]:
    told: dict[str, str | None] = {"path": conflict.path}
    for side in _SIDES:
        there = getattr(conflict, side)
        told[side] = f"{size_text(there.size_bytes)} {there.checksum[:12]}" if there else None
    return told


def _table_row(table: TablePlan) -> Sequence[str]:
    before, after = _number(table.version_before), _number(table.version_after)
    return [table.path or "/", table.format, table.outcome, before, after, str(table.new_versions)]


def _number(version: int | None) -> str:
    return "-" if version is None else str(version)


def _as_json(plan: MergePlan) -> dict[str, Any]:
    told = {name: getattr(plan, name) for name in ("source", "destination", "base", "strategy", "merges", "is_empty")}
    counts = {name: getattr(plan.paths, name) for name in ("added", "removed", "changed")}
    return {
        **told,
        "tables": [asdict(table) for table in plan.tables],
        "paths": {**counts, "first": [_change(change) for change in plan.paths.first]},
        "conflicts": [asdict(conflict) for conflict in plan.conflicts],
        "conflict_count": plan.conflict_count,
    }


def _change(change: Change) -> dict[str, Any]:
    return {"type": change.type, "path": change.path, "size_bytes": change.size_bytes}
