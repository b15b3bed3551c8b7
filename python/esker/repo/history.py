"""Histories by path: which commits changed something that somebody looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .commits import Commit
from .core import RepositoryCore
from .objects import table


def touching(
    core: RepositoryCore, commits: Iterator[Commit], objects: Sequence[str], prefixes: Sequence[str]
) -> Iterator[Commit]:
    """Those commits that changed, against their first parent, one of some paths, or one that starts so."""
    for commit in commits:
        before = core.commits.get(commit.parents[0]).meta_range_id if commit.parents else ""
        if before != commit.meta_range_id and _differ(core, before, commit.meta_range_id, objects, prefixes):
            yield commit


def _differ(core: RepositoryCore, left: str, right: str, objects: Sequence[str], prefixes: Sequence[str]) -> bool:
    for wanted, exact in [*((path, True) for path in objects), *((prefix, False) for prefix in prefixes)]:
        batch = core.storage.diff(left, right, prefix=wanted).next_batch(1)
        if batch is not None and (not exact or table(batch)["path"][0].as_py() == wanted):
            return True
    return False
