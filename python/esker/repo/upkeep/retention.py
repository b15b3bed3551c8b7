"""Retention: which commits keep their content, by the settings of each branch."""

from __future__ import annotations

import time

from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit
from ..refs.layout import COMMITS
from .tips import RefTips

DAY_S = 24 * 3600.0


def active_commits(
    core: RepositoryCore, now: float | None = None, young_us: float | None = None, tips: RefTips | None = None
) -> tuple[list[Commit], list[Commit]]:
    """The commits whose content is kept, and the others.

    Kept are what tags and branches lead to, and from each branch back along main parents all that is younger than
    its retention, with the first that is older: that was the branch's content when the time began. Commits that no
    other has as its main parent (the last ones of deleted or reset branches, what was merged) are starts like
    branches, but count only while they are young themselves: among them may be attempts that were refused, because
    they needed expired content. See `led_to`.

    Args:
        core: The repository.
        now: The time to judge by, in seconds since the Unix epoch; a commit is as young as its date or its object,
            whichever is younger, since committers choose dates freely.
        young_us: Kept are also commits whose objects were put since: a ref may be on its way to them.
        tips: What refs lead to, which are read after the commits.
    """
    tips = tips or RefTips(core)
    # As they are now: a retention that was prolonged a moment ago holds.
    settings = core.settings_log.read()
    today = time.time() if now is None else now
    listed = core.store.list(COMMITS)
    put = {meta.path.removeprefix(COMMITS): (meta.last_modified_us or 0) / 1e6 for meta in listed}
    commits = {id: core.commits.get(id) for id in (meta.path.removeprefix(COMMITS) for meta in listed)}
    keep: set[str] = set()
    if young_us is not None:
        young = (meta for meta in listed if meta.last_modified_us is None or meta.last_modified_us >= young_us)
        keep.update(meta.path.removeprefix(COMMITS) for meta in young)
    keep |= tips.tags
    walked: dict[str, float] = {}

    def date(commit: Commit) -> float:
        return max(commit.creation_date, put.get(commit.id, 0.0))

    def walk(start: Commit, days: float) -> None:
        oldest = today - days * DAY_S
        commit = start
        while True:
            keep.add(commit.id)
            if walked.get(commit.id, float("inf")) <= oldest:
                return
            walked[commit.id] = oldest
            if date(commit) < oldest or commit.main_parent is None:
                return
            commit = core.commits.get(commit.main_parent)

    heads = tips.heads
    for branch, head in heads.items():
        walk(head, settings.branch_retention_days.get(branch, settings.retention_days))
    firsts = {commit.main_parent for commit in commits.values()}
    head_ids = {head.id for head in heads.values()}
    for commit in commits.values():
        is_start = commit.id not in firsts and commit.id not in head_ids
        if is_start and date(commit) >= today - settings.retention_days * DAY_S:
            walk(commit, settings.retention_days)
    kept = [commit for id, commit in sorted(commits.items()) if id in keep]
    return kept, [commit for id, commit in sorted(commits.items()) if id not in keep]


def led_to(tips: RefTips, kept: list[Commit]) -> set[str]:
    """Which of the kept commits are in the history of a branch or a tag, so that all of their content must be there.

    The others are there for those who may be about to lead a ref to them, and want another chance.
    """
    waiting = list(tips.ids)
    commits = {commit.id: commit for commit in kept}
    found: set[str] = set()
    while waiting:
        id = waiting.pop()
        if id in commits and id not in found:
            found.add(id)
            waiting.extend(commits[id].parents)
    return found
