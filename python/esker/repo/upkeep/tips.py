"""The tips of branches and tags at one moment, and where their histories meet."""

from __future__ import annotations

from collections.abc import Iterable

from ...cached import cached_property
from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit


class RefTips:
    """What branches and tags lead to: read when it is first asked for, and once.

    Args:
        core: The repository.
    """

    def __init__(self, core: RepositoryCore) -> None:
        self._core = core

    @cached_property
    def heads(self) -> dict[str, Commit]:
        """The last commits of all branches, by their names."""
        return self._core.heads()

    @cached_property
    def tags(self) -> set[str]:
        """The ids of the commits that tags stand for."""
        return {self._core.tag_commit(name) or "" for name in self._core.tag_names()} - {""}

    @property
    def ids(self) -> set[str]:
        """The ids of all of these."""
        return {head.id for head in self.heads.values()} | self.tags


def merge_bases(tips: RefTips, commits: Iterable[Commit]) -> set[str]:
    """The commits in which the histories of two refs meet for the first time, and some more.

    A merge of the two compares with it, however old it is: it reads the lists of paths, and none of the objects.

    One pass from the youngest generation on notes for each commit the refs that come from it. Where one child has all
    of them, they have met already.

    Args:
        refs: The refs.
        commits: All that there are.
    """
    led = {id: 1 << bit for bit, id in enumerate(sorted(tips.ids))}
    widest: dict[str, int] = {}
    found = set()
    for commit in sorted(commits, key=lambda commit: -commit.generation):
        mine = led.get(commit.id, 0)
        if mine.bit_count() > 1 and widest.get(commit.id, 0) != mine:
            found.add(commit.id)
        for parent in commit.parents if mine else ():
            led[parent] = led.get(parent, 0) | mine
            widest[parent] = max(widest.get(parent, 0), mine, key=int.bit_count)
    return found
