"""Runs a whole compaction in this process: plans, rewrites and commits group by group, beside other writers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

from ..._native import table as native
from ...store.staging import has_moved, refresh
from ..version import TableVersion
from ..write.compression import compression_of
from .committing import ReservedIds, commit_rewrites, reserve
from .execution import rewrite_group
from .options import CompactionSettings
from .planning import plan_groups
from .results import CompactionMetrics, LostGroup
from .sizes import data_bytes, num_files
from .tasks import CompactionPlan

Group: TypeAlias = tuple[native.Fragment, ...]

ROUNDS = 5
"""How often a run plans, if groups are lost to other writers or files come out small."""


def plan_compaction(table: TableVersion, given: Mapping[str, Any]) -> CompactionPlan:
    """What is to be rewritten of a version.

    Args:
        table: The version.
        given: The options; `CompactionOptions` names them.
    """
    settings = settings_of(table, given)
    return CompactionPlan.of(table, plan_groups(table, settings), settings)


def settings_of(table: TableVersion, given: Mapping[str, Any]) -> CompactionSettings:
    """The options with the config of a version."""
    return CompactionSettings.of(given, table.manifest.config, table.manifest.storage_version_to_write)


def compact(table: TableVersion, given: Mapping[str, Any]) -> tuple[TableVersion, CompactionMetrics]:
    """Compacts the newest version of a table; returns the version that has all of it.

    Each group of fragments is one commit. The log is looked at before each: groups that somebody else has rewritten
    meanwhile are passed over, and several compactors take the groups in different orders.

    Args:
        table: The table.
        given: The options; `CompactionOptions` names them.

    Raises:
        CommitConflictError: All groups were lost to writers of columns, however often they were planned anew.
        CommitStateUnknownError: The store failed before it was known whether a group is committed.
    """
    table.check_writable()
    run = _Run(table.newest(), given)
    for _ in range(ROUNDS):
        lost = run.round()
        if not lost and run.is_done:
            return run.table, run.metrics
    if lost and not run.metrics.fragments_removed:
        # Who was slower than other compactors has not failed: the work is done, by them.
        there = {fragment.id for fragment in run.table.newest().fragments}
        failed = [group for group in lost if there.issuperset(group.fragment_ids)]
        if failed:
            raise failed[0].error
    return run.table, replace(run.metrics, lost=tuple(lost))


class _Run:
    """A compaction under way."""

    def __init__(self, table: TableVersion, given: Mapping[str, Any]) -> None:
        self.table = table
        self.metrics = CompactionMetrics()
        self._given = given
        self._budget = settings_of(table, given)
        self._is_spent = False
        self.is_done = False
        """Whether a further round would find nothing to do but what others have done meanwhile."""

    def round(self) -> list[LostGroup]:
        """Plans, rewrites and commits; returns the groups that were lost."""
        settings = replace(
            settings_of(self.table, self._given),
            max_source_fragments=self._budget.max_source_fragments,
            max_source_rows=self._budget.max_source_rows,
            max_source_bytes=self._budget.max_source_bytes,
        )
        groups = [] if self._is_spent else plan_groups(self.table, settings)
        # New fragments stand at the end, beside others than the old ones stood, and rows that are encoded anew may take
        # less than their old files told: what a round made may be work for the next one.
        self.is_done = not groups
        if not groups:
            return []
        # A config that says nothing sensible of it is found before ids are reserved.
        compression_of(None, self.table.manifest)
        numbered = self._numbered(groups, settings)
        random.shuffle(numbered)
        lost: list[LostGroup] = []
        for position, (group, ids) in enumerate(numbered):
            if position:
                self._look()
            present = _present(self.table, group)
            if present is not None:
                lost += self._group(present, settings, ids)
        return lost

    def _look(self) -> None:
        """Goes to the newest version. One request, if nobody else has committed."""
        log = self.table.log
        refresh(log.store)
        if has_moved(log.store) or log.newest().latest != self.table.number:
            self.table = self.table.newest()

    def _numbered(self, groups: Sequence[Group], settings: CompactionSettings) -> list[tuple[Group, ReservedIds]]:
        """The groups with ids for their new fragments: in the order of the table, in which they are not rewritten."""
        counts = [_expected(group, settings) for group in groups]
        ids = reserve(self.table, self.table.writable_log(durable=True), sum(counts))
        ends = list(accumulate(counts))
        return [(group, ids.part(end - count, end)) for group, count, end in zip(groups, counts, ends, strict=True)]

    def _group(
        self, group: Sequence[native.Fragment], settings: CompactionSettings, ids: ReservedIds
    ) -> Sequence[LostGroup]:
        log = self.table.writable_log(durable=True)
        result = rewrite_group(self.table, group, settings, log)
        self.table, done = commit_rewrites(self.table, [result], log=log, ids=ids, owned=True)
        self.metrics += replace(done, lost=())
        if done.lost:
            self.table = self.table.newest()
        else:
            self._spend(group)
        return done.lost

    def _spend(self, group: Sequence[native.Fragment]) -> None:
        """Takes what a group cost off the budgets, for groups that are planned anew."""
        spent = {
            "max_source_fragments": len(group),
            "max_source_rows": sum(fragment.num_rows or 0 for fragment in group),
            "max_source_bytes": sum(data_bytes(fragment) or 0 for fragment in group),
        }
        given = {name: getattr(self._budget, name) for name in spent}
        left = {name: value - spent[name] for name, value in given.items() if value is not None}
        self._is_spent = any(value <= 0 for value in left.values())
        if not self._is_spent:
            self._budget = replace(self._budget, **left)


def _present(table: TableVersion, group: Sequence[native.Fragment]) -> list[native.Fragment] | None:
    """The fragments of a group as a version has them; None if it lacks one, or has other files of it."""
    wanted = {fragment.id for fragment in group}
    there = {fragment.id: fragment for fragment in table.fragments if fragment.id in wanted}
    if any(fragment.id not in there or there[fragment.id].files != fragment.files for fragment in group):
        return None
    return [there[fragment.id] for fragment in group]


def _expected(group: Sequence[native.Fragment], settings: CompactionSettings) -> int:
    """How many fragments a group will become at most, unless others are faster."""
    rows = sum(fragment.num_rows or fragment.physical_rows for fragment in group)
    nbytes = sum(data_bytes(fragment) or 0 for fragment in group)
    return num_files(rows, nbytes, settings)
