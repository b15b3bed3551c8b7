"""Commits with which a merge of what branches and tags lead to may have to compare: their paths must stay known.

However old such a commit is: a branch that was begun before the retention can be merged all the same. A merge reads the
lists of paths, and none of the objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from .commits import Commit
from .core import RepositoryCore
from .layout import TAGS


def merge_bases(core: RepositoryCore, commits: Iterable[Commit]) -> set[str]:
    """The commits in which the histories of two refs meet for the first time, and some more.

    One pass from the youngest generation on, which notes for each commit the refs that come from it. Where one child
    has all of them, they have met already.

    Args:
        core: The repository.
        commits: All that there are.
    """
    starts = {commit.id for commit in core.heads().values()}
    starts |= {core.tag_commit(unquote(path.removeprefix(TAGS))) or "" for path in core.store.list_paths(TAGS)}
    refs = {id: 1 << bit for bit, id in enumerate(sorted(starts))}
    widest: dict[str, int] = {}
    found = set()
    for commit in sorted(commits, key=lambda commit: -commit.generation):
        mine = refs.get(commit.id, 0)
        if mine.bit_count() > 1 and widest.get(commit.id, 0) != mine:
            found.add(commit.id)
        for parent in commit.parents if mine else ():
            refs[parent] = refs.get(parent, 0) | mine
            widest[parent] = max(widest.get(parent, 0), mine, key=int.bit_count)
    return found
