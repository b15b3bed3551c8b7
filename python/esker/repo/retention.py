"""Garbage collection: what no commit that counts leads to any more."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ..exceptions import NotFoundError
from .commits import Commit
from .core import RepositoryCore
from .dump import read_manifest
from .layout import COMMITS, DATA, EXPIRED, HEADS, LAKEFS_MARKER, LAKEFS_REFS, TABLES, TAGS, branch_of
from .objects import table
from .staging import GRACE_S

DAY_S = 24 * 3600.0


@dataclass(frozen=True)
class Collected:
    """What garbage collection found.

    Attributes:
        commits: Commits whose content is kept.
        expired: Commits whose content is not.
        objects: Objects below `data/` that nothing leads to, older than the grace period.
        tables: Ranges and metaranges of that kind.
        bytes: Of both.
        deleted: Whether they were deleted; False in a dry run.
    """

    commits: int
    expired: int
    objects: int
    tables: int
    bytes: int
    deleted: bool


def active_commits(core: RepositoryCore, now: float | None = None) -> tuple[list[Commit], list[Commit]]:
    """The commits whose content is kept, and the others.

    Kept are what tags and branches lead to, and from each branch back along first parents all that is younger than
    its retention, with the first that is older: that was the branch's content when the time began. Commits that no
    other has as its first parent (the last ones of deleted or reset branches, what was merged) are starts like
    branches, but count only while they are young themselves.
    """
    settings = core.settings()
    today = time.time() if now is None else now
    everything = {path.removeprefix(COMMITS) for path in core.store.list_paths(COMMITS)}
    commits = {id: core.commits.get(id) for id in everything}
    keep: set[str] = set()
    for name in (unquote(path.removeprefix(TAGS)) for path in core.store.list_paths(TAGS)):
        keep.add(core.tag_commit(name) or "")

    def walk(start: Commit, days: float) -> None:
        oldest = today - days * DAY_S
        commit = start
        while True:
            keep.add(commit.id)
            if commit.creation_date < oldest or not commit.parents:
                return
            commit = core.commits.get(commit.parents[0])

    heads = set()
    for branch in branch_names(core):
        head = core.head(branch)
        heads.add(head.id)
        walk(head, settings.branch_retention_days.get(branch, settings.retention_days))
    firsts = {commit.parents[0] for commit in commits.values() if commit.parents}
    for commit in commits.values():
        is_start = commit.id not in firsts and commit.id not in heads
        if is_start and commit.creation_date >= today - settings.retention_days * DAY_S:
            walk(commit, settings.retention_days)
    kept = [commit for id, commit in sorted(commits.items()) if id in keep]
    return kept, [commit for id, commit in sorted(commits.items()) if id not in keep]


def branch_names(core: RepositoryCore) -> list[str]:
    """The branches that there are."""
    names = sorted({branch_of(path) for path in core.store.list_paths(HEADS)})
    return [name for name in names if core.has_branch(name)]


def expired_ids(core: RepositoryCore) -> set[str]:
    """The commits whose content was given up."""
    try:
        data = core.store.get(EXPIRED)
    except NotFoundError:
        return set()
    return set(json.loads(data))


class _Names:
    """Names of objects in a file of its own, so that memory does not grow with the repository."""

    def __init__(self, folder: str) -> None:
        self._database = sqlite3.connect(Path(folder, "names.db"), isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA cache_size = -32768")
        self._database.execute("CREATE TABLE found (path TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def add(self, path: str, size: int) -> None:
        self._database.execute("INSERT OR REPLACE INTO found VALUES (?, ?)", (path, size))

    def remove(self, paths: list[str]) -> None:
        self._database.executemany("DELETE FROM found WHERE path = ?", [(path,) for path in paths])

    def all(self) -> Iterator[tuple[str, int]]:
        yield from self._database.execute("SELECT path, size FROM found ORDER BY path")

    def close(self) -> None:
        self._database.close()


def collect_garbage(
    core: RepositoryCore, *, dry_run: bool = True, grace_s: float = GRACE_S, now: float | None = None
) -> Collected:
    """Deletes objects and tables that no commit that counts leads to, and that are older than the grace period.

    Candidates are listed before refs are read, so that what is written meanwhile is none. Each distinct range is read
    once, however many commits have it. Imported objects are not below `data/` and are never touched.

    Args:
        core: The repository.
        dry_run: Only counts.
        grace_s: Seconds for which nothing is deleted.
        now: The time to judge by, in seconds since the Unix epoch.
    """
    today = time.time() if now is None else now
    youngest_us = (today - grace_s) * 1e6
    with tempfile.TemporaryDirectory(prefix="esker-gc-") as folder:
        names = _Names(folder)
        try:
            for meta in [*core.store.list(DATA), *core.store.list(TABLES)]:
                if meta.path in (LAKEFS_MARKER, LAKEFS_REFS):
                    continue
                if meta.last_modified_us is not None and meta.last_modified_us < youngest_us:
                    names.add(meta.path, meta.size)
            kept, expired = active_commits(core, now)
            if expired and not dry_run:
                ids = expired_ids(core) | {commit.id for commit in expired}
                core.store.put(EXPIRED, json.dumps(sorted(ids)).encode())
            for alive in _live(core, kept):
                names.remove(alive)
            objects = tables = size = 0
            for path, length in names.all():
                if not dry_run and not _delete(core, path, youngest_us):
                    continue
                objects += path.startswith(DATA)
                tables += path.startswith(TABLES)
                size += length
            return Collected(len(kept), len(expired), objects, tables, size, not dry_run)
        finally:
            names.close()


def _delete(core: RepositoryCore, path: str, youngest_us: float) -> bool:
    if path.startswith(TABLES):
        # Named by its content: somebody may have put the same again meanwhile.
        modified = core.store.head(path).last_modified_us
        if modified is not None and modified >= youngest_us:
            return False
    core.store.delete(path)
    return True


def _live(core: RepositoryCore, commits: list[Commit]) -> Iterator[list[str]]:
    seen: set[str] = set()
    for metarange in (commit.meta_range_id for commit in commits):
        if not metarange or metarange in seen:
            continue
        seen.add(metarange)
        yield [TABLES + metarange]
        for described in table(core.storage.ranges(metarange)).to_pylist():
            if described["id"] in seen:
                continue
            seen.add(described["id"])
            yield [TABLES + described["id"]]
            content = core.storage.list(metarange, prefix="", from_path=described["min_key"])
            left = described["count"]
            while left > 0 and (batch := content.next_batch(min(left, 4096))) is not None:
                left -= batch.num_rows
                addresses = table(batch)["entry"].field("physical_address").to_pylist()
                yield addresses
    yield from _dumped(core)


def _dumped(core: RepositoryCore) -> Iterator[list[str]]:
    """The tables of the newest dump of refs."""
    try:
        dump = read_manifest(core.store)
    except NotFoundError:
        return
    for metarange in (dump.commits_meta_range_id, dump.tags_meta_range_id, dump.branches_meta_range_id):
        yield [TABLES + metarange]
        yield [TABLES + described["id"] for described in table(core.storage.ranges(metarange)).to_pylist()]
