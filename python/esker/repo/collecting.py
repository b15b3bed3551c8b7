"""How a garbage collection and the commits beside it see each other: each announces itself, and only then looks.

```
collection   lists what is old, marks what refs lead to       commit   puts its tables
             puts what it is about to delete: expired.json,            puts the commit's object        <- announces
             _esker/gc/<run>                      <- announces         lists _esker/gc/, looks into it
             lists commits and refs again, marks what is new           moves the ref, or refuses
             deletes the rest, then its run
```

Whichever announces itself first is seen by the other: a commit's object that was put before the second look is marked,
and a commit that was announced later finds the run, and refuses if it needs what the run is about to delete.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._native.store import Store
from ..exceptions import CommitConflictError, CorruptFileError, IOFailedError, NotFoundError
from .layout import EXPIRED, RUNS
from .objects import table

if TYPE_CHECKING:
    from .commits import Commit
    from .core import RepositoryCore

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
        now = (time.monotonic(), time.time())
        said = {"time": now[1], "commits": self._commits, "tables": self._tables}
        self._store.put(self._path, json.dumps(said).encode())
        self._said = now

    def keep_alive(self) -> None:
        """Called before each deletion.

        Raises:
            IOFailedError: It was held up for so long that others may take it for dead.
        """
        silent = max(time.monotonic() - self._said[0], time.time() - self._said[1])
        if silent > DEAD_S:
            raise IOFailedError("the garbage collection was held up for more than an hour; start it again")
        if silent > RENEWED_S:
            self.announce()

    def end(self) -> None:
        """Says that nothing goes any more."""
        self._store.delete(self._path)


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
class _Condemned:
    commits: frozenset[str]
    tables: frozenset[str]


def _runs(store: Store) -> list[_Condemned]:
    found = []
    for path in store.list_paths(RUNS):
        try:
            said = json.loads(store.get(path))
            found.append(_Condemned(frozenset(said["commits"]), frozenset(said["tables"])))
        except NotFoundError:
            continue
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(f"{path}: expected what a collection deletes, found {error!r}", path=path) from error
    return found


def expired_ids(store: Store) -> set[str]:
    """The commits whose content was given up."""
    try:
        data = store.get(EXPIRED)
    except NotFoundError:
        return set()
    try:
        return set(json.loads(data))
    except (ValueError, TypeError) as error:
        raise CorruptFileError(f"{EXPIRED}: expected ids of commits, found {error}", path=EXPIRED) from error


def check_not_condemned(core: RepositoryCore, commit: Commit, sources: Iterable[str] = ()) -> None:
    """Looks whether anybody is about to delete what a commit needs, or has done so. The commit's object was put before.

    Args:
        core: The repository.
        commit: What a ref is about to lead to.
        sources: Ids of the commits out of which it takes content that the ref has not led to so far.

    Raises:
        NotFoundError: Garbage collection has given up what a source holds.
        CommitConflictError: One is at work that deletes a table of the commit; it can be tried again.
    """
    wanted = set(sources)
    given_up = wanted & expired_ids(core.store) if wanted else set()
    runs = _runs(core.store)
    for run in runs:
        given_up |= wanted & run.commits
    if given_up:
        raise NotFoundError(
            f"garbage collection has given up the content of the commit {min(given_up)}; no ref can lead to it again",
            path=min(given_up),
        )
    if any(run.tables for run in runs) and commit.meta_range_id:
        ranges = table(core.storage.ranges(commit.meta_range_id)).column("id").to_pylist()
        if any(not run.tables.isdisjoint([commit.meta_range_id, *ranges]) for run in runs):
            raise CommitConflictError(
                f"a garbage collection is deleting tables that the commit {commit.id} needs; try again when it is done",
                retryable=True,
            )
