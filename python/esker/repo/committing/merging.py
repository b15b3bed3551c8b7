"""Merges of a ref into a branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..errors import NoChangesError
from ..refs.clock import moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..text import check_pairs, check_text
from .merge_content import merged_content
from .needs import Needs
from .new_commit import Content, NewCommit, commit_onto

STRATEGIES = {None: "none", "": "none", "none": "none", "source-wins": "source-wins", "dest-wins": "dest-wins"}
STRATEGY_KEY = ".lakefs.merge.strategy"


@dataclass(frozen=True)
class MergeRequest:
    """A merge as a user asks for it: the arguments of `Reference.merge_into`."""

    branch: str
    message: str | None = None
    metadata: Mapping[str, str] | None = field(default=None)
    strategy: str | None = None
    squash_merge: bool = False
    allow_empty: bool = False
    dry_run: bool = False
    committer: str | None = None


def _strategy(name: str | None) -> str:
    if name not in STRATEGIES:
        raise InvalidArgumentError(f"expected the strategy None, 'source-wins' or 'dest-wins', found {name!r}")
    return STRATEGIES[name]


def merge_into(core: RepositoryCore, source_id: str, source: Commit, asked: MergeRequest) -> str:
    """Merges a commit into a branch. See `Reference.merge_into`.

    Args:
        core: The repository.
        source_id: The ref expression that is merged.
        source: Its commit.
        asked: Where, and how.
    """
    strategy, branch = _strategy(asked.strategy), asked.branch
    if asked.message is not None:
        check_text(asked.message, "a message")
    metadata = check_pairs(asked.metadata, "metadata")

    def merged(dest: Commit) -> str:
        base = core.commits.merge_base(dest.id, source.id)
        before = base.meta_range_id if base else ""
        if base is not None and before == source.meta_range_id and not asked.allow_empty:
            raise NoChangesError(f"branch {branch!r} has all of {source_id!r} already: there are no changes to merge")
        with explained(core.store, source.id, base.id if base else ""):
            found = merged_content(
                core, before, source.meta_range_id, dest.meta_range_id, strategy, dry_run=asked.dry_run
            )
        return found.metarange_id or ""

    if asked.dry_run:
        dest = core.head(branch)
        merged(dest)
        return dest.id

    check_clean(core, branch)

    def content(dest: Commit) -> Content:
        began = moment()
        return Content(merged(dest), Needs(frozenset((source.id,)), began))

    new = NewCommit(
        branch,
        asked.message or f"Merge {source_id!r} into {branch!r}",
        metadata if strategy == "none" else {STRATEGY_KEY: strategy, **metadata},
        asked.committer,
        merged=source_id,
        second_parent=None if asked.squash_merge else source,
    )
    return commit_onto(core, new, content).id


def check_clean(core: RepositoryCore, branch: str) -> None:
    """Refuses to move a branch on which this process has staged changes."""
    staged = len(core.staging(branch))
    if staged:
        raise InvalidArgumentError(
            f"branch {branch!r} has {staged} uncommitted changes in this process; commit or reset them first"
        )
