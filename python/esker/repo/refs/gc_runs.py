"""How garbage collections and concurrent commits see each other: each announces itself before it looks for the other.

```
collection   lists old objects, marks what refs lead to       commit   puts its tables
             puts what it is about to delete:                          puts the commit's object        <- announces
             _esker/expired/<run>, _esker/gc/<run>  <- announces       lists _esker/gc/, reads the runs
             lists commits and refs again, marks what is new           moves the ref, or refuses
             deletes the rest
             marks its run as ended
```

The one that announces itself second sees the first: a commit whose object was put before the second listing is marked;
a commit that was put later finds the run, and refuses if it needs what the run deletes. An ended run stays readable for
writers that stored a table before it was deleted: they check that it still exists.
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
"""Seconds after which a run announces again that it is alive."""
DEAD_S = 3600.0
"""Seconds without an announcement after which a run stops to delete; after twice as long it is dead for others."""


class Run:
    """One garbage collection while it deletes.

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
        """Announces what is about to be deleted, and that the run is alive."""
        now = moment()
        self._put(now[1], ended=False)
        self._said = now

    def _put(self, now: float, *, ended: bool) -> None:
        said = {"time": now, "ended": ended, "before": self._before, "commits": self._commits, "tables": self._tables}
        self._store.put(self._path, json.dumps(said).encode())

    def keep_alive(self) -> None:
        """Announces again, now and then. Called before each deletion, and during long work.

        Raises:
            IOFailedError: It was held up for so long that others may take it for dead.
        """
        silent = elapsed_s(self._said)
        if silent > DEAD_S:
            raise IOFailedError("the garbage collection was held up for more than an hour; start it again")
        if silent > RENEWED_S:
            self.announce()

    def end(self) -> None:
        """Marks the run as ended: it deletes nothing any more. It stays readable for writers that look later."""
        self._put(time.time(), ended=True)


@contextmanager
def announced(
    store: Store, commits: Iterable[str], tables: Iterable[str], *, before: float, now: float, grace_s: float
) -> Iterator[Run]:
    """A run that stays announced while the block runs. The announcement of a run that dies is removed by a later run.

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
    """The time before which a run deletes objects; stagings that began before it must check theirs."""
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
        # Earlier releases wrote no time: what they deleted was older than anything that is staged.
        before = float(said.get("before", float("-inf")))
        return Condemned(bool(said["ended"]), float(said["time"]), before, commits, tables)
    except WRONG as error:
        raise CorruptFileError(f"{path}: expected what a collection deletes, found {error!r}", path=path) from error
