"""How a garbage collection and the commits beside it see each other: each announces itself, and only then looks.

```
collection   lists what is old, marks what refs lead to       commit   puts its tables
             puts what it is about to delete:                          puts the commit's object        <- announces
             _esker/expired/<run>, _esker/gc/<run>  <- announces       lists _esker/gc/, looks into it
             lists commits and refs again, marks what is new           moves the ref, or refuses
             deletes the rest
             says that its run has ended
```

Whichever announces itself first is seen by the other: a commit's object that was put before the second look is marked,
and a commit that was announced later finds the run, and refuses if it needs what the run is about to delete. A run that
has ended is still to be found, for writers that put a table before it was deleted: they look whether it is there.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..._native.store import ObjectMeta, Store
from ...exceptions import CorruptFileError, IOFailedError, NotFoundError
from .clock import elapsed_s, moment
from .expired import ids_of
from .json_record import WRONG, decode_json
from .layout import RUNS

RENEWED_S = 600.0
"""A run that is longer than this says anew that it lives."""
DEAD_S = 3600.0
"""A run that has said nothing for so long deletes nothing any more; after twice as long its traces may go."""


class Run:
    """One collection, while it deletes.

    Args:
        store: The repository's root.
        commits: Ids of commits whose content goes.
        tables: Ids of ranges and metaranges that go.
        before: Objects that were put earlier may go: seconds since the Unix epoch by the store's clock.
    """

    def __init__(self, store: Store, commits: Iterable[str], tables: Iterable[str], before: float) -> None:
        self._store = store
        self._path = f"{RUNS}{uuid.uuid4().hex}"
        self._commits, self._tables = sorted(commits), sorted(tables)
        self._before = before
        self._said = (0.0, 0.0)

    def announce(self) -> None:
        """Says what goes, and that it lives."""
        now = moment()
        self._put(now[1], ended=False)
        self._said = now

    def _put(self, now: float, *, ended: bool) -> None:
        said = {"time": now, "ended": ended, "before": self._before, "commits": self._commits, "tables": self._tables}
        self._store.put(self._path, json.dumps(said).encode())

    def keep_alive(self) -> None:
        """Called before each deletion, and within whatever takes long.

        Raises:
            IOFailedError: It was held up for so long that others may take it for dead.
        """
        silent = elapsed_s(self._said)
        if silent > DEAD_S:
            raise IOFailedError("the garbage collection was held up for more than an hour; start it again")
        if silent > RENEWED_S:
            self.announce()

    def end(self) -> None:
        """Says that nothing goes any more. What went stays told, for writers that wrote before and look now."""
        self._put(time.time(), ended=True)


@contextmanager
def announced(
    store: Store, commits: Iterable[str], tables: Iterable[str], *, before: float, now: float, grace_s: float
) -> Iterator[Run]:
    """A run, announced while the block runs. One that dies stays announced, until a later one finds it dead.

    Args:
        store: The repository's root.
        commits: Ids of commits whose content goes.
        tables: Ids of ranges and metaranges that go.
        before: Objects that were put earlier may go, by the store's clock.
        now: The store's time.
        grace_s: Seconds for which what is staged may wait for its commit.
    """
    for meta in store.list(RUNS):
        if put_time(meta) < now - 2 * DEAD_S and _reach(store, meta.path) <= now - grace_s:
            store.delete(meta.path)
    run = Run(store, commits, tables, before)
    run.announce()
    yield run
    run.end()


def put_time(meta: ObjectMeta) -> float:
    """When an object was put, in seconds since the Unix epoch by the store's clock; never, where it does not say."""
    return float("inf") if meta.last_modified_us is None else meta.last_modified_us / 1e6


def _reach(store: Store, path: str) -> float:
    """Up to when a run deletes objects: whatever is staged since before then must learn of it."""
    found = read_run(store, path)
    return found.before if found else float("-inf")


@dataclass(frozen=True)
class Condemned:
    """What a run has announced."""

    ended: bool
    time: float
    before: float
    commits: frozenset[str]
    tables: frozenset[str]


def read_run(store: Store, path: str) -> Condemned | None:
    """What a run has announced; None where its announcement is gone.

    Raises:
        CorruptFileError: It is no such announcement.
    """
    try:
        data = store.get(path)
    except NotFoundError:
        return None
    said = decode_json(data, path, "what a collection deletes")
    try:
        commits, tables = (frozenset(ids_of(said[name], path)) for name in ("commits", "tables"))
        # Earlier releases told no times: what they deleted was older than anything that is staged.
        before = float(said.get("before", float("-inf")))
        return Condemned(bool(said["ended"]), float(said["time"]), before, commits, tables)
    except WRONG as error:
        raise CorruptFileError(f"{path}: expected what a collection deletes, found {error!r}", path=path) from error
