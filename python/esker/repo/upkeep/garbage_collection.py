"""Garbage collection: deletes orphans, which no commit within the retention refers to.

```
_add_old                old           objects and tables beyond the grace period, listed before refs are read
_Marks                  alive         what commits within the retention refer to; see `retention`
gc_runs.announced                     what is about to be deleted, for concurrent commits; then new commits are marked
_deleted                old - alive   deleted in batches
```
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from ..._native.graveler import SortedNames
from ...exceptions import CorruptFileError, NotFoundError
from ...progress import Done, Progress
from ..committing.needs import ROUGH_S
from ..core.repository_core import RepositoryCore
from ..objects.address import kept_roots
from ..objects.batches import table
from ..refs.clock import elapsed_s, moment, store_time, wait_until_after
from ..refs.commits import Commit
from ..refs.expired import ExpiredList, expired_ids, join
from ..refs.gc_runs import Run, announced
from ..refs.layout import DATA, LAKEFS_EXPIRED, LAKEFS_MARKER, LAKEFS_REFS, TABLES
from ..refs.refs_dump import read_manifest
from .retention import active_commits, led_to
from .tips import RefTips, merge_bases

SLACK = 1 / 24
"""By how much of the grace period what is deleted must be older than it: clocks differ, and puts take a while."""
MEMORY_BYTES = 32 << 20
"""Of the names that are compared, so much is held of each side; the rest is sorted in files."""
_THREADS = 16
_BATCH = 1000
_FEW = 16
_SHORT_S, _LONG_S = 5.0, 60.0
_AT_ONCE = ("s3://", "s3a://", "s3+ddb://")
"""Stores that delete a thousand objects with one request."""


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


def collect_garbage(
    core: RepositoryCore,
    *,
    dry_run: bool = True,
    grace_s: float | None = None,
    now: float | None = None,
    progress: Progress | None = None,
) -> Collected:
    """Deletes objects and tables that no commit within the retention refers to, and that are beyond the grace period.

    Each distinct range is read once, however many commits have it. Imported objects are not below `data/` and are never
    touched. Memory grows with the number of commits and tables, not with that of objects.

    Args:
        core: The repository.
        dry_run: Only counts.
        grace_s: Seconds for which nothing is deleted, by the store's clock; those of the settings by default.
        now: The time by which commits are older than their retention, in seconds since the Unix epoch; by default that
            of the store or of this machine, whichever is earlier. How old objects are, the store alone says.
        progress: Told what is done, how much of it, and of how much if that is known.

    Raises:
        IOFailedError: The clocks of this machine and of the store differ by more than an hour, or the collection was
            held up for as long.
    """
    started = core.collecting_time(dry_run=dry_run)
    today = started if now is None else now
    usual = core.settings_log.read().grace_s
    grace = usual if grace_s is None else grace_s
    young_us = (started - grace * (1 + SLACK)) * 1e6
    with tempfile.TemporaryDirectory(prefix="esker-gc-") as folder:
        old, alive = (SortedNames(folder, name, memory_bytes=MEMORY_BYTES) for name in ("old", "alive"))
        # Listed before refs are read, so that what is put from now on is not among them.
        _add_old(core, old, young_us)
        # However short the grace period: nothing that is put from now on is among what goes.
        listed = started if dry_run else store_time(core.store)
        tips = RefTips(core)
        kept, expired = active_commits(core, today, young_us, tips)
        marks = _Marks(core, alive, expired_ids(core.store), progress)
        marks.add(kept, tips)
        marks.add_bases(kept, expired, tips)
        if dry_run:
            return _counted(len(kept), len(expired), _without(old, alive), deleted=False)
        known, expired_list = expired_ids(core.store), ExpiredList(core.store)
        gone = {commit.id for commit in expired}
        expired_list.write(gone - known)
        tables = [path.removeprefix(TABLES) for path, _ in _without(old, alive) if path.startswith(TABLES)]
        before = min(young_us / 1e6, listed)
        if before > listed - ROUGH_S:
            wait_until_after(core.store, listed)
        with announced(core.store, gone, tables, before=before, now=started, grace_s=usual) as run:
            marks.alive = run.keep_alive
            tips = RefTips(core)
            kept, expired = active_commits(core, today, young_us, tips)
            again = gone - {commit.id for commit in expired}
            expired_list.write(gone - known - again)
            marks.expired -= again
            marks.add(kept, tips)
            marks.add_bases(kept, expired, tips)
            deleted: Iterable[tuple[str, int]] = chain(
                _deleted(core, run, _without(old, alive), young_us), _unfinished(core, run, young_us)
            )
            if progress is not None:
                deleted = _told(deleted, progress)
            found = _counted(len(kept), len(expired), deleted, deleted=True)
        with suppress(OSError, CorruptFileError):
            join(core.store, started)
        return found


def _told(found: Iterable[tuple[str, int]], progress: Progress) -> Iterator[tuple[str, int]]:
    for count, one in enumerate(found):
        progress.report(Done(step="deleting", files=count, unit="files"))
        yield one


def _counted(kept: int, expired: int, found: Iterable[tuple[str, int]], *, deleted: bool) -> Collected:
    objects = tables = size = 0
    for path, length in found:
        objects += path.startswith(DATA)
        tables += path.startswith(TABLES)
        size += length
    return Collected(kept, expired, objects, tables, size, deleted)


def _add_old(core: RepositoryCore, old: SortedNames, young_us: float) -> None:
    """Adds what is old enough to go."""
    for folder in [*core.store.list_folders(DATA), TABLES]:
        listed = core.store.list_batches(folder)
        while old.add_batch(listed, before_us=young_us, but=[LAKEFS_MARKER, LAKEFS_REFS, LAKEFS_EXPIRED]):
            pass


def _without(names: SortedNames, others: SortedNames) -> Iterator[tuple[str, int]]:
    """The names that are not among the others, with their sizes."""
    missing = names.without(others)
    while found := missing.next_rows(_BATCH):
        yield from ((name, size) for name, size, _, _ in found)


def _deleted(
    core: RepositoryCore, run: Run, found: Iterator[tuple[str, int]], young_us: float
) -> Iterator[tuple[str, int]]:
    def is_old(path: str) -> bool:
        if not path.startswith(TABLES):
            return True
        # Named by its content: a concurrent commit may have put the same table again.
        try:
            modified = core.store.head(path).last_modified_us
        except NotFoundError:
            return False
        return modified is not None and modified < young_us

    # Few at once, where a request deletes one: more and more while they go fast, so that none of what is deleted comes
    # long after the last look at whether others may still take this run for alive.
    count = _BATCH if core.uri.startswith(_AT_ONCE) else _FEW
    with ThreadPoolExecutor(_THREADS) as threads:
        while batch := list(islice(found, count)):
            began = moment()
            run.keep_alive()
            still_old = threads.map(is_old, [path for path, _ in batch])
            going = [one for one, old in zip(batch, still_old, strict=True) if old]
            run.keep_alive()
            core.store.delete_all([path for path, _ in going])
            took = elapsed_s(began)
            count = min(_BATCH, 2 * count) if took < _SHORT_S else max(1, count // 4) if took > _LONG_S else count
            yield from going


def _unfinished(core: RepositoryCore, run: Run, young_us: float) -> Iterator[tuple[str, int]]:
    """Deletes the unfinished uploads of writers that died, where the store lists them."""
    for meta in core.store.list_unfinished(DATA):
        if meta.last_modified_us is not None and meta.last_modified_us < young_us:
            run.keep_alive()
            core.store.delete_unfinished(meta.path)
            yield meta.path, meta.size


class _Marks:
    """Collects what commits refer to, reading each distinct range once.

    Args:
        core: The repository.
        alive: Where to note it.
        expired: Ids of commits whose content may be gone.
        progress: Told how many commits are done.
    """

    def __init__(self, core: RepositoryCore, alive: SortedNames, expired: set[str], progress: Progress | None) -> None:
        self._core = core
        self._progress = progress
        self._alive = alive
        self._seen: set[bytes] = set()
        self._roots = kept_roots(core.uri)
        self.expired = expired
        self.alive: Callable[[], None] = lambda: None

    def _is_new(self, id: str) -> bool:
        raw = bytes.fromhex(id)
        if raw in self._seen:
            return False
        self._seen.add(raw)
        self._alive.add(TABLES + id)
        return True

    def add(self, commits: list[Commit], tips: RefTips) -> None:
        """Marks the contents of commits, and the newest dump of refs."""
        # A collection that died may have noted as expired what a branch or tag was about to lead to.
        tipped = tips.ids
        sure = led_to(tips, commits)
        # What must be there comes first: a range that is marked is not looked into again.
        for at, commit in enumerate(sorted(commits, key=lambda commit: commit.id not in sure)):
            if self._progress is not None:
                done = Done(step="marking what commits lead to", parts=at, unit="parts", total=len(commits))
                self._progress.report(done)
            self.alive()
            if commit.id in self.expired and commit.id not in tipped:
                continue
            if commit.meta_range_id and self._is_new(commit.meta_range_id):
                try:
                    self._content(commit.meta_range_id)
                except NotFoundError as error:
                    if commit.id in sure:
                        raise NotFoundError(
                            f"the content of the commit {commit.id} is gone, though a branch or tag leads to it: "
                            f"{error}; nothing was deleted: put the object back, or delete what leads there",
                            path=getattr(error, "path", None),
                        ) from error
        for id in _dumped(self._core):
            self._is_new(id)

    def add_bases(self, kept: list[Commit], expired: list[Commit], tips: RefTips) -> None:
        """Marks the tables of expired commits, and not their objects, as far as a merge may read them."""
        bases = merge_bases(tips, [*kept, *expired])
        for commit in expired:
            if commit.id in bases and commit.meta_range_id:
                # Not seen: a commit that is kept may have the same range, and needs its objects.
                with suppress(NotFoundError):
                    ranges = table(self._core.storage.ranges(commit.meta_range_id)).column("id").to_pylist()
                    for id in (commit.meta_range_id, *ranges):
                        self._alive.add(TABLES + id)

    def _content(self, metarange: str) -> None:
        for described in table(self._core.storage.ranges(metarange)).to_pylist():
            if not self._is_new(described["id"]):
                continue
            # An import may have led to this repository itself.
            for root in self._roots:
                content = self._core.storage.list(metarange, prefix="", from_path=described["min_key"])
                self._alive.add_addresses(content, described["count"], root, DATA)


def _dumped(core: RepositoryCore) -> Iterator[str]:
    """The tables of the newest dump of refs."""
    try:
        dump = read_manifest(core.store)
    except NotFoundError:
        return
    for metarange in (dump.commits_meta_range_id, dump.tags_meta_range_id, dump.branches_meta_range_id):
        if metarange:
            yield metarange
            for described in table(core.storage.ranges(metarange)).to_pylist():
                yield described["id"]
