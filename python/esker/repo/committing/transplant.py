"""Reverts and cherry-picks: three-way merges whose base is the commit itself, or its parent. Tables go by own rules."""

from __future__ import annotations

from urllib.parse import quote

from ...exceptions import InvalidArgumentError
from ..core.repository_core import RepositoryCore
from ..errors import MergeConflictError, NoChangesError, table_conflict
from ..objects.batches import info, rows
from ..objects.staging import Staging
from ..refs.clock import moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..tables.roots import TableRoots
from ..tables.table_change import Transplant
from ..tables.workspace import TableWorkspace
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
    said = Transplant("revert", reverted.id, branch)
    return _transplant(core, new, said, base=reverted, source=parent, allow_empty=allow_empty)


def cherry_pick(
    core: RepositoryCore, branch: str, reference: str, parent_number: int, committer: str | None, allow_empty: bool
) -> Commit:
    """Does again what a commit did: merges it into the branch, as if both came from its parent."""
    picked = core.resolve(reference)
    parent = _parent(core, picked, parent_number, "cherry-pick")
    said = {**picked.metadata, "cherry-pick-origin": picked.id, "cherry-pick-committer": picked.committer}
    new = NewCommit(branch, picked.message, said, committer)
    return _transplant(
        core, new, Transplant("cherry-pick", picked.id, branch), base=parent, source=picked, allow_empty=allow_empty
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
    new: NewCommit,
    said: Transplant,
    *,
    base: Commit | None,
    source: Commit | None,
    allow_empty: bool,
) -> Commit:
    """Merges the content of `source` into a branch as if both came from `base`; None is the empty content."""
    check_clean(core, new.branch)
    before, after = (commit.meta_range_id if commit else "" for commit in (base, source))
    compared = [commit.id for commit in (base, source) if commit]

    def content(dest: Commit) -> Content:
        began = moment()
        with explained(core.store, *compared):
            workspace = transplanted(core, said, before, after, dest.meta_range_id)
        made = workspace.finish()
        if made == dest.meta_range_id and not allow_empty:
            raise NoChangesError(f"{new.message}: branch {new.branch!r} is not changed by it")
        needs = Needs(frozenset([source.id] if source else []), began, staging=workspace.written())
        return Content(made, needs)

    return commit_onto(core, new, content)


def transplanted(core: RepositoryCore, said: Transplant, base: str, source: str, dest: str) -> TableWorkspace:
    """A content with a change on top: tables by their own rules, everything else path by path.

    Args:
        core: The repository.
        said: The revert or cherry-pick.
        base: The content before the change.
        source: The content after it.
        dest: The content that takes it.

    Raises:
        TableConflictError: A table cannot take its part of the change; it lists paths that are in the way as well.
        MergeConflictError: Only paths outside of tables are in the way.
    """
    roots = TableRoots(core.storage, [content for content in (base, source, dest) if content])
    folders = roots.touched(base, source)
    outside = _outside(core, roots, base, source) if folders else source
    failed: MergeConflictError | None = None
    merged = dest
    try:
        if outside != base:
            merged = merged_content(core, base, outside, dest, "none").metarange_id or ""
    except MergeConflictError as error:
        failed = error
    uri = f"{core.uri}@{quote(said.branch, safe='')}"
    workspaces = [TableWorkspace(core, content, uri) for content in (base, source, merged)]
    # What tables need is imported when a table is met.
    from ..tables.transplants import transplant_tables

    conflicts = transplant_tables(said, roots, folders, *workspaces)
    if conflicts:
        paths, count = (failed.conflicts, failed.count) if failed is not None else ([], 0)
        raise table_conflict(*conflicts, what=said.what, conflicts=paths, count=count)
    if failed is not None:
        raise failed
    return workspaces[-1]


def _outside(core: RepositoryCore, roots: TableRoots, base: str, source: str) -> str:
    """The source with everything below tables as it is in the base."""
    staging = Staging()
    for row in rows(core.storage.diff(base, source)):
        if roots.root_of(row["path"]) is None:
            staging.stage(row["path"], info(row["path"], row["right"]))
    if not len(staging):
        return base
    return core.storage.apply(base, staging.changes(), rule=core.settings().rule()).metarange_id or base
