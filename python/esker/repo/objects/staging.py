"""Staged changes: what a handle has written to a branch and not committed yet."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from ..._native.graveler import ChangeStream, StagedPaths
from ...exceptions import AlreadyExistsError, UnsupportedError
from ..refs.clock import Moment, elapsed_s, moment
from ..refs.commits import Commit
from .batches import BATCH_ROWS, infos, table
from .object_info import ObjectInfo, microseconds_of, time_of


@dataclass(frozen=True)
class SavedStaging:
    """What was staged at one moment."""

    paths: StagedPaths | None = None
    base: Commit | None = None
    sources: frozenset[str] = frozenset()
    started: Moment = (0.0, 0.0)


_NEVER: Moment = (0.0, 0.0)


@dataclass(frozen=True)
class StagedEntry:
    """A log entry that a table's commit has staged.

    Attributes:
        folder: The table's, with a `/` at its end or empty.
        format: `lance` or `delta`.
        number: The version.
        path: Of the entry, in the repository.
        change: The commit behind it: a `CommitProtocol`.
    """

    folder: str
    format: Literal["lance", "delta"]
    number: int
    path: str
    change: object


@dataclass
class _Since:
    """What was noted of a staging since a commit took what was staged: that commit knows nothing of it."""

    started: Moment = _NEVER
    sources: set[str] = field(default_factory=set)


class Staging:
    """Staged changes over a base commit: paths with new objects, and paths that are removed.

    Threads share it. One commit at a time (`turn`) works on a copy (`taken`), and when it has landed it takes away what
    was in the copy (`drop`): what is staged meanwhile, be it by a hook, stays.

    Attributes:
        base: The base commit: the branch's last when the first change was staged; None while nothing is staged.
        sources: Ids of the commits out of which something is staged.
        own_imports: Whether objects of the repository itself may be among what is imported.
        entries: Log entries of tables that are among it, in the order in which they were committed.
        expected: Paths below which nothing may have changed when it is committed.
        versions: Of what was committed last: the versions that each table got, by its folder.
        landings: How often something of it was committed.
        is_in_doubt: Whether it is not known of a commit of it whether it has landed.

    Example:
        `repository.branch("main").uncommitted()`
    """

    def __init__(self) -> None:
        self._paths = StagedPaths()
        self._is_shared = False
        self._has_ended = False
        self.base: Commit | None = None
        self.sources: set[str] = set()
        self.own_imports = False
        self.entries: list[StagedEntry] = []
        self.expected: set[str] = set()
        self.versions: dict[str, tuple[int, ...]] = {}
        self.landings = 0
        self.is_in_doubt = False
        self._started: Moment = _NEVER
        self._lock = threading.RLock()
        # By the process: a fork would copy one that another thread holds.
        self._turns: dict[int, threading.RLock] = {}
        self._since: list[_Since] = []
        self._emptied = 0

    @classmethod
    def over(cls, paths: StagedPaths, base: Commit, age_s: float) -> Staging:
        """What stores have staged over a commit, the first of it so many seconds ago."""
        found = cls()
        found._paths, found.base = paths, base
        found.age_like(age_s)
        return found

    @property
    def age_s(self) -> float:
        """Seconds since the first change, by the clock that says more: one stands still while the machine sleeps."""
        return elapsed_s(self._started) if self._started != _NEVER else 0.0

    def age_like(self, age_s: float) -> None:
        """Takes the first change to be so many seconds old, if that is older than it is."""
        now = moment()
        began = (now[0] - age_s, now[1] - age_s)
        self._started = _earlier(self._started, began)

    def begin(self, base: Commit, started: Moment | None = None) -> None:
        """Sets the base commit, before the first change, whose bytes were begun to be written at a moment."""
        with self._lock:
            now = moment() if started is None else started
            if self.base is None:
                self.base = base
                self._started = now
            elif started is not None:
                self._started = _earlier(self._started, started)
            for since in self._since:
                since.started = _earlier(since.started, now)

    @property
    def emptied(self) -> int:
        """How often it was committed or forgotten: a base that was found before is too old then."""
        return self._emptied

    def add(
        self,
        path: str,
        change: ObjectInfo | None,
        base: Commit,
        *,
        emptied: int,
        began: Moment | None = None,
        source: str | Staging | None = None,
        is_new: bool = False,
    ) -> bool:
        """Stages a change over a base that was found when `emptied` was this; False where another is to be found.

        Args:
            path: Where.
            change: The object, or with None that the path goes.
            base: What it goes over, if it is the first change.
            emptied: `emptied` before the base was found.
            began: When its bytes began to be written.
            source: The id of the commit of which it is a copy, or where what is copied is staged.
            is_new: Whether there may be no object at the path, which the caller has looked for since `emptied`.

        Raises:
            AlreadyExistsError: There is one, and it is to be new.
            UnsupportedError: The transaction that it belongs to has ended.
        """
        with self._lock:
            self.check_open()
            if (self.base is None or is_new) and self._emptied != emptied:
                return False
            if is_new and self.get(path) is not None:
                raise AlreadyExistsError(f"{path!r} is staged already", path=path)
            self.begin(base, began)
            if isinstance(source, Staging):
                self.take_over(source)
            elif source is not None:
                self._add_sources({source})
            self.stage(path, change)
            return True

    def take_over(self, other: Staging) -> None:
        """Takes over the age and the sources of another staging, from which something is staged here."""
        if other is not self:
            with self._lock:
                self._started = _earlier(self._started, other._started)
                for since in self._since:
                    since.started = _earlier(since.started, other._started)
                self._add_sources(other.sources)

    def _add_sources(self, ids: set[str]) -> None:
        self.sources |= ids
        for since in self._since:
            since.sources |= ids

    def stage(self, path: str, change: ObjectInfo | None) -> None:
        """Stages an object at a path, or with None that the path goes."""
        with self._lock:
            _put(self._paths, path, change)

    def end(self) -> None:
        """Refuses further changes: the transaction that it belongs to has ended."""
        with self._lock:
            self._has_ended = True

    def check_open(self) -> None:
        """Refuses what is written to a transaction that has ended."""
        if self._has_ended:
            raise UnsupportedError("expected a transaction at work, found one that has ended; begin another")

    def without(self, paths: Iterable[str]) -> ChangeStream:
        """All of it but what is staged at some paths, for the core."""
        kept = self._paths.copy()
        for path in paths:
            kept.forget(path)
        return kept.changes()

    def joined(self, other: Staging) -> Staging:
        """What both have staged, as old as the older of them."""
        found = Staging()
        found.restore(self.saved())
        found.own_imports = self.own_imports
        for path, change in other.within(""):
            found.stage(path, change)
        found._started = _earlier(found._started, other._started)
        return found

    def share(self) -> StagedPaths:
        """What is staged, for stores over the branch, which from now on stage there as well."""
        self._is_shared = True
        return self._paths

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def get(self, path: str) -> ObjectInfo | None:
        """What is staged at a path: an object; None for a path that goes, or at which nothing is staged."""
        said = self._paths.get(path)
        if said is None:
            return None
        address, size, checksum, time_us, content_type, metadata, address_type = said
        return ObjectInfo(path, address, size, checksum, time_of(time_us), content_type, metadata, address_type)

    def lookup(self, path: str) -> tuple[bool, ObjectInfo | None]:
        """Whether something is staged at a path, and what: see `get`."""
        with self._lock:
            return path in self._paths, self.get(path)

    def forget(self, paths: Iterable[str]) -> None:
        """Takes back what is staged at some paths."""
        with self._lock:
            self.check_not_shared()
            for path in paths:
                self._paths.forget(path)
            if not len(self._paths):
                self.clear()

    def take_back(self, path: str, change: ObjectInfo | None, before: tuple[bool, ObjectInfo | None]) -> None:
        """Puts back what `lookup` found at a path before a change, unless that is not what is staged there any more."""
        with self._lock:
            if self.lookup(path) != (True, change):
                return
            if before[0]:
                self.stage(path, before[1])
            else:
                self.forget([path])

    def check_not_shared(self) -> None:
        """Refuses to take back changes that stores have seen."""
        if self._is_shared:
            raise UnsupportedError("what was written through a store cannot be taken back alone; end the transaction")

    def saved(self) -> SavedStaging:
        """All of it, to be restored later."""
        with self._lock:
            return SavedStaging(self._paths.copy(), self.base, frozenset(self.sources), self._started)

    def restore(self, saved: SavedStaging) -> None:
        """Takes back what was staged since."""
        self.check_not_shared()
        self._paths = StagedPaths() if saved.paths is None else saved.paths.copy()
        self.base, self.sources, self._started = saved.base, set(saved.sources), saved.started

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What a commit works in; other threads' commits wait: two that took the same would undo what is between."""
        turn = self._turns.setdefault(os.getpid(), threading.RLock())
        try:
            turn.acquire()
            yield
        finally:
            # Not held where Ctrl-C has ended the wait for it, here or at the end of `out_of_turn`.
            with suppress(RuntimeError):
                turn.release()

    @contextmanager
    def out_of_turn(self) -> Iterator[None]:
        """What hooks work in, which may commit the same, or wait for a thread that does."""
        turn = self._turns[os.getpid()]
        turn.release()
        try:
            yield
        finally:
            turn.acquire()

    @contextmanager
    def taken(self) -> Iterator[Staging]:
        """What is staged now, as a commit takes it: what is staged while the block works is not in it."""
        since = _Since()
        with self._lock:
            found = Staging()
            found.restore(self.saved())
            found.own_imports = self.own_imports
            # An entry is noted after it is staged.
            found.entries = [entry for entry in self.entries if entry.path in found]
            found.expected = set(self.expected)
            found.landings, found.is_in_doubt = self.landings, self.is_in_doubt
            found._since = [since]
            self._since.append(since)
        try:
            yield found
        finally:
            with self._lock:
                self._since = [one for one in self._since if one is not since]

    def drop(self, taken: Staging, over: Commit, base: Commit) -> None:
        """Forgets what a commit took, which has landed. What was staged since stays.

        Args:
            taken: What it took: the block's of `taken`.
            over: What that was staged over.
            base: What the rest is over then.
        """
        self.landings += 1
        if taken is self:
            self.clear()
            return
        with self._lock:
            if self.base is not None and self.base.id != over.id:
                # All was reset meanwhile, and what is staged now was staged over a later commit.
                return
            kept = StagedPaths()
            for path, change in self._but(taken):
                _put(kept, path, change)
            (since,) = taken._since
            # Stores note no time: what they have staged may be as old as the rest.
            started = self._started if self._is_shared else since.started
            entries, expected = [one for one in self.entries if one.path in kept], self.expected - taken.expected
            self.clear()
            self.expected |= expected
            if len(kept):
                self._paths, self.base, self._started = kept, base, started
                self.sources |= since.sources
                self.entries += entries

    def _but(self, taken: Staging) -> Iterator[tuple[str, ObjectInfo | None]]:
        """What is staged here and not there, or otherwise there."""
        from_path = ""
        while (batch := self._paths.within("", from_path, BATCH_ROWS)) is not None:
            other = taken._paths.within("", from_path, BATCH_ROWS)
            paths = table(batch).column("path")
            # Mostly nothing was staged since, and a batch need not be decoded.
            if other is None or not table(batch).equals(table(other)):
                yield from (one for one in infos(batch) if taken.lookup(one[0]) != (True, one[1]))
            from_path = paths[-1].as_py() + "\0"

    def clear(self) -> None:
        """Forgets all staged changes."""
        with self._lock:
            # Stores that are still open keep what they saw, and so do listings.
            self._paths, self._is_shared = StagedPaths(), False
            self.sources.clear()
            self.entries.clear()
            self.expected.clear()
            self.base = None
            self.is_in_doubt = False
            self._started = _NEVER
            self._emptied += 1

    def forget_dropped(self, folder: str | None = None) -> None:
        """Forgets the log entries of tables of which nothing is left: they were dropped after they were made.

        Args:
            folder: The table that is looked at; all by default.
        """
        with self._lock:
            logs = {_log_of(entry) for entry in self.entries if folder is None or entry.folder == folder}
            # A clean-up leaves the newest entry.
            gone = {log for log in logs if all(change is None for _, change in self.within(log))}
            self.entries[:] = [entry for entry in self.entries if _log_of(entry) not in gone]

    def note(self, entry: StagedEntry) -> None:
        """Notes a log entry that was staged. Another thread may have noted a later one first."""
        with self._lock:
            # Of a table that was replaced by this one nothing is left from here on.
            log, number = _log_of(entry), entry.number
            self.entries[:] = [
                one
                for one in self.entries
                if _log_of(one) != log or one.number < number or (one.number > number and self.get(one.path))
            ]
            self.entries.append(entry)

    def within(self, prefix: str, from_path: str = "") -> Iterator[tuple[str, ObjectInfo | None]]:
        """What is staged at paths that start with a prefix, from a path on, in their order."""
        for batch in self.batches(prefix, from_path):
            yield from batch

    def batches(self, prefix: str, from_path: str = "") -> Iterator[list[tuple[str, ObjectInfo | None]]]:
        """The same in batches, which grow: a caller that looks for one path decodes few."""
        size, paths = 64, self._paths
        while (batch := paths.within(prefix, from_path, size)) is not None:
            found = list(infos(batch))
            yield found
            size = min(4 * size, BATCH_ROWS)
            # The first string behind another one.
            from_path = found[-1][0] + "\0"

    def changes(self) -> ChangeStream:
        """All of it, for the core."""
        return self._paths.changes()


def _log_of(entry: StagedEntry) -> str:
    """The folder in which an entry lies, with a `/` at its end."""
    return entry.path[: entry.path.rindex("/") + 1]


def _put(paths: StagedPaths, path: str, change: ObjectInfo | None) -> None:
    if change is None:
        paths.stage_removal(path)
        return
    paths.stage(
        path,
        change.physical_address,
        change.size_bytes,
        change.checksum,
        microseconds_of(change.mtime),
        change.content_type,
        dict(change.metadata),
        change.address_type,
    )


def _earlier(one: Moment, other: Moment) -> Moment:
    if _NEVER in (one, other):
        return other if one == _NEVER else one
    return min(one[0], other[0]), min(one[1], other[1])
