"""The entries that a table's log had on a side before a clean-up there, out of the side's own history.

A clean-up removes the entries by which two logs are compared. The commits before it still have them. The log of an
older content counts only if ours goes on from it: if ours, as far as it is known by then, has its newest entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ...exceptions import NotFoundError
from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit
from ..tables.table_log import FOLDERS, Relation, TableFormat, TableLog, read_log

MOST_COMMITS = 10_000
"""As far back as is looked."""
_AT_ONCE = 64
_FIRST: dict[TableFormat, int] = {"lance": 1, "delta": 0}


def is_told(one: TableLog, other: TableLog) -> bool:
    """Whether two logs tell how they stand to each other: by an entry that both have, or by other first versions."""
    first = _FIRST[one.format]
    if first in one.entries and first in other.entries and one.entries[first].identity != other.entries[first].identity:
        return True
    return one.shares_with(other) and one.relation(other)[0] is not Relation.UNKNOWN


class TableLineage:
    """The history of both sides of a merge.

    Args:
        core: The repository.
        source: The source's commit.
        dest: The destination's.
    """

    def __init__(self, core: RepositoryCore, source: Commit, dest: Commit) -> None:
        self._core = core
        self._source = source
        self._dest = dest

    def completed(self, source: TableLog, dest: TableLog) -> tuple[TableLog, TableLog]:
        """Both logs with as many cleaned-up entries as it takes to tell how they stand to each other."""
        if is_told(source, dest):
            return source, dest
        source = self._with_older(self._source, source, dest)
        return source, self._with_older(self._dest, dest, source)

    def _with_older(self, commit: Commit, log: TableLog, other: TableLog) -> TableLog:
        if is_told(log, other):
            return log
        for older in self._older_logs(commit, log):
            newest = older.newest
            known = log.entries.get(newest.number)
            if known is None or known.identity != newest.identity:
                continue
            log = replace(log, entries=dict(sorted({**older.entries, **log.entries}.items())))
            if is_told(log, other):
                break
        return log

    def _older_logs(self, commit: Commit, log: TableLog) -> Iterator[TableLog]:
        """The log at the commits before one, wherever it was another one."""
        storage, place = self._core.storage, log.folder + FOLDERS[log.format]
        commits = self._core.commits.log(commit.id)
        newer = next(commits)
        left = MOST_COMMITS
        while left > 0 and (batch := list(islice(commits, min(_AT_ONCE, left)))):
            left -= len(batch)
            line = [newer, *batch]
            pairs = [(line[n + 1].meta_range_id, line[n].meta_range_id) for n in range(len(batch))]
            try:
                changed = storage.touched(pairs, prefixes=[place])
                others = [older for older, is_other in zip(batch, changed, strict=True) if is_other]
                for older in others:
                    found = read_log(storage, older.meta_range_id, log.folder, log.format)
                    if found is not None:
                        yield found
            except NotFoundError:
                # Their contents have expired.
                return
            newer = batch[-1]
