"""The history of paths: which commits changed one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from .core.repository_core import RepositoryCore
from .refs.commits import Commit

_FIRST = 4
"""Commits that are compared with their parents at once to begin with: who wants one waits for few."""
_MOST = 128
"""The same later on."""


def touching(
    core: RepositoryCore, commits: Iterator[Commit], objects: Sequence[str], prefixes: Sequence[str]
) -> Iterator[Commit]:
    """Those commits that changed, against their first parent, one of some paths, or one that starts so.

    Commits are compared side by side, some of them ahead of what is asked for. One whose content is its parent's costs
    nothing, one of which the metaranges tell costs no more than these.
    """
    at_once = _FIRST
    while batch := list(islice(commits, at_once)):
        contents = [(_before(core, commit), commit.meta_range_id) for commit in batch]
        touched = core.storage.touched(contents, paths=list(objects), prefixes=list(prefixes))
        yield from (commit for commit, touches in zip(batch, touched, strict=True) if touches)
        at_once = min(2 * at_once, _MOST)


def _before(core: RepositoryCore, commit: Commit) -> str:
    return core.commits.get(commit.parents[0]).meta_range_id if commit.parents else ""
