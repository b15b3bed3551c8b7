"""Merges, reverts and cherry-picks: all three are three-way merges, with another base."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore, default_committer
from ..errors import NoChangesError
from ..hooks import HookEvent
from ..refs.clock import moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..refs.numbered_log import LogEntry
from ..text import check_pairs, check_text
from .needs import Needs

STRATEGIES = {None: "none", "": "none", "none": "none", "source-wins": "source-wins", "dest-wins": "dest-wins"}
STRATEGY_KEY = ".lakefs.merge.strategy"


def _strategy(name: str | None) -> str:
    if name not in STRATEGIES:
        raise InvalidArgumentError(f"expected the strategy None, 'source-wins' or 'dest-wins', found {name!r}")
    return STRATEGIES[name]


def merge_into(
    core: RepositoryCore,
    source_id: str,
    source: Commit,
    branch: str,
    *,
    message: str | None,
    metadata: Mapping[str, str] | None,
    strategy: str | None,
    squash_merge: bool,
    allow_empty: bool,
    dry_run: bool,
    committer: str | None,
) -> str:
    """See `Reference.merge_into`."""
    chosen = _strategy(strategy)
    if message is not None:
        check_text(message, "a message")
    pairs = check_pairs(metadata, "metadata")
    if not dry_run:
        check_clean(core, branch)

    def content(dest: Commit) -> str:
        base = core.commits.merge_base(dest.id, source.id)
        before = base.meta_range_id if base else ""
        if base is not None and before == source.meta_range_id and not allow_empty:
            raise NoChangesError(f"branch {branch!r} has all of {source_id!r} already: there are no changes to merge")
        with explained(core, source.id, base.id if base else ""):
            found = core.merged(before, source.meta_range_id, dest.meta_range_id, chosen, dry_run=dry_run)
        return found.metarange_id or ""

    if dry_run:
        dest = core.head(branch)
        content(dest)
        return dest.id

    def build(head: LogEntry | None) -> LogEntry:
        began = moment()
        dest = core.commit_of(head, branch)
        parents = (dest,) if squash_merge else (dest, source)
        said = dict(pairs)
        if chosen != "none":
            said.setdefault(STRATEGY_KEY, chosen)
        commit = Commit.make(
            committer=check_text(committer or default_committer(), "a committer"),
            message=message or f"Merge {source_id!r} into {branch!r}",
            meta_range_id=content(dest),
            creation_date=int(time.time()),
            parents=parents,
            metadata=said,
        )
        core.hooks.run(HookEvent("pre-merge", branch, commit, source_id))
        return core.entry("commit", commit, Needs(frozenset((source.id,)), began))

    entry = core.move(branch, build, f"merge into {branch}")
    made = core.commit_of(entry, branch)
    core.hooks.run_after(HookEvent("post-merge", branch, made, source_id))
    return made.id


def revert(
    core: RepositoryCore, branch: str, reference: str, parent_number: int, committer: str | None, allow_empty: bool
) -> Commit:
    """Takes back what a commit did: merges its parent into the branch, as if both came from the commit."""
    reverted = core.resolve(reference)
    parent = _parent(core, reverted, parent_number, "revert")
    return _transplant(
        core,
        branch,
        base=reverted.meta_range_id,
        source=parent.meta_range_id if parent else "",
        sources=[parent.id] if parent else [],
        compared=[reverted.id, parent.id if parent else ""],
        message=f"Revert {reverted.id}",
        metadata={},
        committer=committer,
        allow_empty=allow_empty,
    )


def cherry_pick(
    core: RepositoryCore, branch: str, reference: str, parent_number: int, committer: str | None, allow_empty: bool
) -> Commit:
    """Does again what a commit did: merges it into the branch, as if both came from its parent."""
    picked = core.resolve(reference)
    parent = _parent(core, picked, parent_number, "cherry-pick")
    said = {**picked.metadata, "cherry-pick-origin": picked.id, "cherry-pick-committer": picked.committer}
    return _transplant(
        core,
        branch,
        base=parent.meta_range_id if parent else "",
        source=picked.meta_range_id,
        sources=[picked.id],
        compared=[picked.id, parent.id if parent else ""],
        message=picked.message,
        metadata=said,
        committer=committer,
        allow_empty=allow_empty,
    )


def _parent(core: RepositoryCore, commit: Commit, number: int, what: str) -> Commit | None:
    if len(commit.parents) > 1 and not number:
        raise InvalidArgumentError(
            f"cannot {what} the merge {commit.id[:12]} without knowing which side counts; give parent_number=1 or 2"
        )
    if not 0 <= number <= len(commit.parents):
        raise InvalidArgumentError(f"expected a parent_number from 1 to {len(commit.parents)}, found {number}")
    return core.commits.get(commit.parents[max(number, 1) - 1]) if commit.parents else None


def _transplant(
    core: RepositoryCore,
    branch: str,
    *,
    base: str,
    source: str,
    sources: list[str],
    compared: list[str],
    message: str,
    metadata: Mapping[str, str],
    committer: str | None,
    allow_empty: bool,
) -> Commit:
    check_clean(core, branch)

    def build(head: LogEntry | None) -> LogEntry:
        began = moment()
        dest = core.commit_of(head, branch)
        with explained(core, *compared):
            merged = core.merged(base, source, dest.meta_range_id, "none").metarange_id or ""
        if merged == dest.meta_range_id and not allow_empty:
            raise NoChangesError(f"{message}: branch {branch!r} is not changed by it")
        commit = Commit.make(
            committer=check_text(committer or default_committer(), "a committer"),
            message=message,
            meta_range_id=merged,
            creation_date=int(time.time()),
            parents=(dest,),
            metadata=metadata,
        )
        core.hooks.run(HookEvent("pre-commit", branch, commit))
        return core.entry("commit", commit, Needs(frozenset(sources), began))

    entry = core.move(branch, build, f"commit to {branch}")
    made = core.commit_of(entry, branch)
    core.hooks.run_after(HookEvent("post-commit", branch, made))
    return made


def check_clean(core: RepositoryCore, branch: str) -> None:
    """Refuses to go past what this process has staged on a branch."""
    staged = len(core.staging(branch))
    if staged:
        raise InvalidArgumentError(
            f"branch {branch!r} has {staged} uncommitted changes in this process; commit or reset them first"
        )
