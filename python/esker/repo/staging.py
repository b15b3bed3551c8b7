"""What a handle has written to a branch and not yet committed."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from .._native.graveler import BranchStaging, Changes
from ..exceptions import UnsupportedError
from .commits import Commit
from .objects import ENTRY_SCHEMA, ObjectInfo


@dataclass(frozen=True)
class SavedStaging:
    """What was staged at one moment."""

    changes: Mapping[str, ObjectInfo | None] = field(default_factory=dict)
    base: Commit | None = None
    sources: frozenset[str] = frozenset()
    started: tuple[float, float] = (0.0, 0.0)


class Staging:
    """Paths that get an object and paths that go, over the commit that was the branch's last when it began.

    Example:
        `repository.branch("main").uncommitted()`
    """

    def __init__(self) -> None:
        self._changes: dict[str, ObjectInfo | None] = {}
        self._sorted: list[str] | None = None
        self.base: Commit | None = None
        self.sources: set[str] = set()
        self._stores: BranchStaging | None = None
        self._started = (0.0, 0.0)

    @property
    def age_s(self) -> float:
        """Seconds since the first change, by the clock that says more: one stands still while the machine sleeps."""
        return max(time.monotonic() - self._started[0], time.time() - self._started[1]) if self.base else 0.0

    def begin(self, base: Commit) -> None:
        """Remembers what the first change is made over."""
        if self.base is None:
            self.base = base
            self._started = (time.monotonic(), time.time())

    def stage(self, path: str, change: ObjectInfo | None) -> None:
        """Stages an object at a path, or with None that the path goes."""
        self._note(path, change)
        if self._stores is not None:
            self._stores.stage(path, _described(change))

    def _note(self, path: str, change: ObjectInfo | None) -> None:
        if path not in self._changes:
            self._sorted = None
        self._changes[path] = change

    def share(self, stores: BranchStaging) -> None:
        """Lets stores over the branch see what is staged here, and the other way round."""
        for path, change in self._changes.items():
            stores.stage(path, _described(change))
        self._stores = stores

    def _pull(self) -> dict[str, ObjectInfo | None]:
        if self._stores is not None:
            for path, said in self._stores.take_fresh():
                self._note(path, None if said is None else _info(path, *said))
        return self._changes

    def __len__(self) -> int:
        return len(self._pull())

    def __contains__(self, path: str) -> bool:
        return path in self._pull()

    def get(self, path: str) -> ObjectInfo | None:
        """What is staged at a path: an object, or None for a path that goes."""
        return self._pull()[path]

    def forget(self, path: str) -> None:
        """Takes back what is staged at a path."""
        self.check_not_shared()
        self._changes.pop(path, None)
        self._sorted = None

    def check_not_shared(self) -> None:
        """Refuses to take back what stores have seen."""
        if self._stores is not None:
            raise UnsupportedError("what was written through a store cannot be taken back alone; end the transaction")

    def saved(self) -> SavedStaging:
        """All of it, to be restored later."""
        return SavedStaging(dict(self._pull()), self.base, frozenset(self.sources), self._started)

    def restore(self, saved: SavedStaging) -> None:
        """Takes back what was staged since."""
        self.check_not_shared()
        self._changes, self._sorted = dict(saved.changes), None
        self.base, self.sources, self._started = saved.base, set(saved.sources), saved.started

    def clear(self) -> None:
        """Takes everything back."""
        self._stores = None
        self._changes.clear()
        self._sorted = None
        self.sources.clear()
        self.base = None

    def within(self, prefix: str, from_path: str = "") -> Iterator[tuple[str, ObjectInfo | None]]:
        """What is staged at paths that start with a prefix, from a path on, in their order."""
        paths = self._paths()
        for at in range(bisect_left(paths, max(prefix, from_path)), len(paths)):
            if not paths[at].startswith(prefix):
                return
            yield paths[at], self._changes[paths[at]]

    def _paths(self) -> list[str]:
        self._pull()
        if self._sorted is None:
            # Python compares strings by code points, as UTF-8 compares its bytes.
            self._sorted = sorted(self._changes)
        return self._sorted

    def changes(self) -> Changes:
        """All of it, for the core."""
        paths = self._paths()
        staged = [self._changes[path] for path in paths]

        def column(name: str) -> list[object]:
            return [None if change is None else getattr(change, name) for change in staged]

        columns: dict[str, object] = {name: column(name) for name in ENTRY_SCHEMA.names[2:-1]}
        columns["path"] = paths
        columns["deleted"] = [change is None for change in staged]
        columns["metadata"] = [None if change is None else list(change.metadata.items()) for change in staged]
        table = pa.Table.from_pydict(columns, schema=ENTRY_SCHEMA)
        return Changes.of_entries(table)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _described(change: ObjectInfo | None) -> tuple[str, int, str, int] | None:
    if change is None:
        return None
    time_us = 0 if change.mtime is None else (change.mtime - _EPOCH) // timedelta(microseconds=1)
    return change.physical_address, change.size_bytes, change.checksum, time_us


def _info(path: str, address: str, size: int, checksum: str, time_us: int) -> ObjectInfo:
    return ObjectInfo(path, address, size, checksum, _EPOCH + timedelta(microseconds=time_us))
