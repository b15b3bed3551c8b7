"""How a garbage collection and the commits beside it see each other: each announces itself, and only then looks.

```
collection   lists what is old, marks what refs lead to       commit   puts its tables
             puts what it is about to delete: expired.json,            puts the commit's object        <- announces
             _esker/gc/<run>                      <- announces         lists _esker/gc/, looks into it
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
from typing import TYPE_CHECKING, TypeAlias

from .._native.store import Store
from ..exceptions import CommitConflictError, CorruptFileError, IOFailedError, NotFoundError
from .json_record import WRONG, decode_json
from .layout import EXPIRED, RUNS, TABLES
from .objects import table

if TYPE_CHECKING:
    from .commits import Commit
    from .core import RepositoryCore

Moment: TypeAlias = tuple[float, float]
"""A time by two clocks: one stands still while the machine sleeps, the other can be set."""


def moment() -> Moment:
    """Now."""
    return time.monotonic(), time.time()


def elapsed_s(then: Moment) -> float:
    """Seconds since then, by the clock that says more."""
    return max(time.monotonic() - then[0], time.time() - then[1])


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
    """

    def __init__(self, store: Store, commits: Iterable[str], tables: Iterable[str]) -> None:
        self._store = store
        self._path = f"{RUNS}{uuid.uuid4().hex}"
        self._commits, self._tables = sorted(commits), sorted(tables)
        self._said = (0.0, 0.0)

    def announce(self) -> None:
        """Says what goes, and that it lives."""
        now = moment()
        self._put(now[1], ended=False)
        self._said = now

    def _put(self, now: float, *, ended: bool) -> None:
        said = {"time": now, "ended": ended, "commits": self._commits, "tables": self._tables}
        self._store.put(self._path, json.dumps(said).encode())

    def keep_alive(self) -> None:
        """Called before each deletion.

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
def announced(store: Store, commits: Iterable[str], tables: Iterable[str]) -> Iterator[Run]:
    """A run, announced while the block runs. One that dies stays announced, until a later one finds it dead."""
    for meta in store.list(RUNS):
        if meta.last_modified_us is not None and meta.last_modified_us < (time.time() - 2 * DEAD_S) * 1e6:
            store.delete(meta.path)
    run = Run(store, commits, tables)
    run.announce()
    yield run
    run.end()


@dataclass(frozen=True)
class Condemned:
    """What a run has announced."""

    ended: bool
    commits: frozenset[str]
    tables: frozenset[str]


def _runs(core: RepositoryCore) -> list[Condemned]:
    found = []
    for path in core.store.list_paths(RUNS):
        known = core.ended_runs.get(path)
        if known is not None:
            found.append(known)
            continue
        try:
            data = core.store.get(path)
        except NotFoundError:
            continue
        said = decode_json(data, path, "what a collection deletes")
        try:
            # One that is silent for so long has deleted nothing for half of it.
            ended = bool(said["ended"]) or time.time() - float(said["time"]) > 2 * DEAD_S
            run = Condemned(ended, frozenset(_ids(said["commits"])), frozenset(_ids(said["tables"])))
            found.append(run)
            if ended:
                core.ended_runs[path] = run
        except WRONG as error:
            raise CorruptFileError(f"{path}: expected what a collection deletes, found {error!r}", path=path) from error
    return found


def expired_ids(store: Store) -> set[str]:
    """The commits whose content was given up."""
    try:
        data = store.get(EXPIRED)
    except NotFoundError:
        return set()
    said = decode_json(data, EXPIRED, "ids of commits")
    try:
        return set(_ids(said))
    except ValueError as error:
        raise CorruptFileError(f"{EXPIRED}: expected ids of commits, found {error}", path=EXPIRED) from error


def _ids(said: object) -> list[str]:
    if not isinstance(said, list) or not all(isinstance(id, str) for id in said):
        raise ValueError("no list of ids")
    return said


def check_not_condemned(
    core: RepositoryCore, commit: Commit, sources: Iterable[str] = (), began: Moment | None = None
) -> None:
    """Looks whether anybody is about to delete what a commit needs, or has done so. The commit's object was put before.

    Args:
        core: The repository.
        commit: What a ref is about to lead to.
        sources: Ids of the commits out of which it takes content that the ref has not led to so far.
        began: When the first of its tables may have been put.

    Raises:
        NotFoundError: Garbage collection has given up what a source holds.
        CommitConflictError: A table of the commit is being deleted, or may have been; it can be tried again.
    """
    if began is not None and elapsed_s(began) > DEAD_S:
        raise CommitConflictError("the commit was held up for more than an hour; try again", retryable=True)
    wanted = set(sources)
    # Runs first: what one has given up is in the list when it is announced.
    runs = _runs(core)
    given_up = wanted & expired_ids(core.store) if wanted else set()
    for run in runs:
        if not run.ended:
            given_up |= wanted & run.commits
    if given_up:
        raise NotFoundError(
            f"garbage collection has given up the content of the commit {min(given_up)}; no ref can lead to it again",
            path=min(given_up),
        )
    if not commit.meta_range_id or not any(run.tables for run in runs):
        return
    ids = {commit.meta_range_id, *table(core.storage.ranges(commit.meta_range_id)).column("id").to_pylist()}
    for run in runs:
        if any(not run.ended or not _is_there(core.store, id) for id in ids & run.tables):
            raise CommitConflictError(
                f"a garbage collection deletes tables that the commit {commit.id} needs; try again when it is done",
                retryable=True,
            )


def _is_there(store: Store, id: str) -> bool:
    try:
        store.head(TABLES + id)
    except NotFoundError:
        return False
    return True
