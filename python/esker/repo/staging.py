"""What a handle has written to a branch and not yet committed."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from .._native.graveler import Changes
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
        if path not in self._changes:
            self._sorted = None
        self._changes[path] = change

    def __len__(self) -> int:
        return len(self._changes)

    def __contains__(self, path: str) -> bool:
        return path in self._changes

    def get(self, path: str) -> ObjectInfo | None:
        """What is staged at a path: an object, or None for a path that goes."""
        return self._changes[path]

    def forget(self, path: str) -> None:
        """Takes back what is staged at a path."""
        self._changes.pop(path, None)
        self._sorted = None

    def saved(self) -> SavedStaging:
        """All of it, to be restored later."""
        return SavedStaging(dict(self._changes), self.base, frozenset(self.sources), self._started)

    def restore(self, saved: SavedStaging) -> None:
        """Takes back what was staged since."""
        self._changes, self._sorted = dict(saved.changes), None
        self.base, self.sources, self._started = saved.base, set(saved.sources), saved.started

    def clear(self) -> None:
        """Takes everything back."""
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
