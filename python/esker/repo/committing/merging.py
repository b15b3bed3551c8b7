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
from .needs import Needs
from .new_commit import Content, NewCommit, commit_onto
from .table_decision import Sides
from .table_folder import Contents
from .table_lineage import TableLineage
from .table_merge import ContentMerge, MergeTerms

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


def strategy_of(name: str | None) -> str:
    """The strategy that a user names, as the core calls it."""
    if name not in STRATEGIES:
        raise InvalidArgumentError(f"expected the strategy None, 'source-wins' or 'dest-wins', found {name!r}")
    return STRATEGIES[name]


def content_merge(
    core: RepositoryCore, source: tuple[str, Commit], dest: tuple[str, Commit], base: Commit | None, strategy: str
) -> ContentMerge:
    """The merge of a commit into another.

    Args:
        core: The repository.
        source: What is merged: what it is called, and the commit.
        dest: What it is merged into.
        base: What both come from.
        strategy: `none`, `source-wins` or `dest-wins`.
    """
    contents = Contents(base.meta_range_id if base else "", source[1].meta_range_id, dest[1].meta_range_id)
    sides = Sides(repr(source[0]), repr(dest[0]))
    lineage = TableLineage(core, source[1], dest[1])
    terms = MergeTerms(sides, strategy, source[1].id, f"{core.uri.rstrip('/')}@{dest[0]}", lineage)
    return ContentMerge(core, contents, terms)


def merge_into(core: RepositoryCore, source_id: str, source: Commit, asked: MergeRequest) -> str:
    """Merges a commit into a branch. See `Reference.merge_into`.

    Args:
        core: The repository.
        source_id: The ref expression that is merged.
        source: Its commit.
        asked: Where, and how.
    """
    strategy, branch = strategy_of(asked.strategy), asked.branch
    if asked.message is not None:
        check_text(asked.message, "a message")
    metadata = check_pairs(asked.metadata, "metadata")

    def base_of(dest: Commit) -> Commit | None:
        base = core.commits.merge_base(dest.id, source.id)
        if base is not None and base.meta_range_id == source.meta_range_id and not asked.allow_empty:
            raise NoChangesError(f"branch {branch!r} has all of {source_id!r} already: there are no changes to merge")
        return base

    if asked.dry_run:
        dest = core.head(branch)
        base = base_of(dest)
        with explained(core.store, source.id, base.id if base else ""):
            found = content_merge(core, (source_id, source), (branch, dest), base, strategy).conflicts()
        if found is not None:
            raise found
        return dest.id

    check_clean(core, branch)

    def content(dest: Commit) -> Content:
        began = moment()
        base = base_of(dest)
        with explained(core.store, source.id, base.id if base else ""):
            merged, written = content_merge(core, (source_id, source), (branch, dest), base, strategy).finish()
        return Content(merged, Needs(frozenset((source.id,)), began, written))

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
