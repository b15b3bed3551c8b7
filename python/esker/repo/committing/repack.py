"""A commit that joins small ranges: the same content, in fewer objects."""

from __future__ import annotations

from ..core.repository_core import RepositoryCore
from ..errors import NoChangesError
from ..refs.clock import moment
from ..refs.commits import Commit
from .needs import Needs
from .new_commit import Content, NewCommit, commit_onto


def repack(core: RepositoryCore, branch: str, committer: str | None) -> Commit:
    """Joins the small ranges of a branch. See `Branch.repack`."""
    began = moment()
    before = core.head(branch).meta_range_id
    packed = core.storage.repack(before, rule=core.settings().rule()).metarange_id
    if packed is None:
        raise NoChangesError(f"branch {branch!r} has no small ranges side by side")

    def content(dest: Commit) -> Content:
        joined: str | None = packed
        if dest.meta_range_id != before:
            joined = core.storage.repack(dest.meta_range_id, rule=core.settings().rule()).metarange_id
        return Content(joined or dest.meta_range_id, Needs(began=began))

    return commit_onto(core, NewCommit(branch, "Repack ranges", {"esker.operation": "repack"}, committer), content)
