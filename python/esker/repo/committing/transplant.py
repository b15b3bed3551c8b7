"""Reverts and cherry-picks: three-way merges whose base is the commit itself, or its parent."""

from __future__ import annotations

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..errors import NoChangesError
from ..refs.clock import moment
from ..refs.commits import Commit
from ..refs.expired import explained
from .merge_content import merged_content
from .merging import check_clean
from .needs import Needs
from .new_commit import Content, NewCommit, commit_onto


def revert(
    core: RepositoryCore, branch: str, reference: str, parent_number: int, committer: str | None, allow_empty: bool
) -> Commit:
    """Takes back what a commit did: merges its parent into the branch, as if both came from the commit."""
    reverted = core.resolve(reference)
    parent = _parent(core, reverted, parent_number, "revert")
    new = NewCommit(branch, f"Revert {reverted.id}", committer=committer)
    return _transplant(core, new, base=reverted, source=parent, allow_empty=allow_empty)


def cherry_pick(
    core: RepositoryCore, branch: str, reference: str, parent_number: int, committer: str | None, allow_empty: bool
) -> Commit:
    """Does again what a commit did: merges it into the branch, as if both came from its parent."""
    picked = core.resolve(reference)
    parent = _parent(core, picked, parent_number, "cherry-pick")
    said = {**picked.metadata, "cherry-pick-origin": picked.id, "cherry-pick-committer": picked.committer}
    new = NewCommit(branch, picked.message, said, committer)
    return _transplant(core, new, base=parent, source=picked, allow_empty=allow_empty)


def _parent(core: RepositoryCore, commit: Commit, number: int, what: str) -> Commit | None:
    if len(commit.parents) > 1 and not number:
        raise InvalidArgumentError(
            f"cannot {what} the merge {commit.id[:12]} without knowing which side counts; give parent_number=1 or 2"
        )
    if not 0 <= number <= len(commit.parents):
        raise InvalidArgumentError(f"expected a parent_number from 1 to {len(commit.parents)}, found {number}")
    return core.commits.get(commit.parents[max(number, 1) - 1]) if commit.parents else None


def _transplant(
    core: RepositoryCore, new: NewCommit, *, base: Commit | None, source: Commit | None, allow_empty: bool
) -> Commit:
    """Merges the content of `source` into a branch as if both came from `base`; None is the empty content."""
    check_clean(core, new.branch)
    before, after = (commit.meta_range_id if commit else "" for commit in (base, source))
    compared = [commit.id for commit in (base, source) if commit]

    def content(dest: Commit) -> Content:
        began = moment()
        with explained(core.store, *compared):
            merged = merged_content(core, before, after, dest.meta_range_id, "none").metarange_id or ""
        if merged == dest.meta_range_id and not allow_empty:
            raise NoChangesError(f"{new.message}: branch {new.branch!r} is not changed by it")
        return Content(merged, Needs(frozenset([source.id] if source else []), began))

    return commit_onto(core, new, content)
