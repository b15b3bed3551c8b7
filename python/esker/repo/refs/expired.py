"""Expired commits: garbage collection has deleted their content, or is about to. No ref can lead to them again.

Each collection writes the ids that it expires to an object of its own, so that collections that run at the same time
lose none of each other's ids. Objects that are days old are joined into one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ..._native.store import Store
from ...exceptions import CorruptFileError, NotFoundError
from ..errors import ExpiredError
from .json_record import decode_json
from .layout import EXPIRED, EXPIRED_BEFORE

JOINED = 16
"""So many objects are joined into one."""
OLD_S = 2 * 24 * 3600.0
"""Seconds; only objects that are older are joined: the collections that wrote them have ended."""
_THREADS = 16


class ExpiredList:
    """The commits that one collection expires.

    Args:
        store: The repository's root.

    Example:
        `ExpiredList(store).write({commit.id for commit in expired})`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = f"{EXPIRED}{uuid.uuid4().hex}"
        self._written: set[str] = set()

    def write(self, ids: set[str]) -> None:
        """Writes the ids, in place of those that it wrote before."""
        if ids != self._written:
            self._store.put(self._path, json.dumps(sorted(ids)).encode())
            self._written = set(ids)


def expired_ids(store: Store) -> set[str]:
    """The ids of all expired commits.

    Raises:
        CorruptFileError: An object is no list of ids.
    """
    paths = [EXPIRED_BEFORE, *store.list_paths(EXPIRED)]
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as threads:
        return set().union(*threads.map(lambda path: listed_ids(store, path), paths))


def join(store: Store, now: float) -> None:
    """Joins old lists of expired ids; `now` is the store's time. The joined one is put before the old ones go."""
    old = [
        meta.path
        for meta in store.list(EXPIRED)
        if meta.last_modified_us is not None and meta.last_modified_us < (now - OLD_S) * 1e6
    ]
    if len(old) < JOINED:
        return
    ids = set().union(*(listed_ids(store, path) for path in old))
    ExpiredList(store).write(ids)
    for path in old:
        store.delete(path)


@contextmanager
def explained(store: Store, *ids: str) -> Iterator[None]:
    """Raises ExpiredError where something is missing from a commit because the commit has expired: it is no damage.

    Args:
        store: The repository's root.
        ids: The commits that are read.

    Raises:
        ExpiredError: In place of the NotFoundError that the block raises.
    """
    try:
        yield
    except NotFoundError as error:
        gone = sorted({id for id in ids if id} & expired_ids(store))
        if not gone:
            raise
        raise ExpiredError(
            f"the content of the commit {gone[0]} has expired: garbage collection has given it up, since no branch or "
            "tag led to it within the retention; the history tells of it all the same. A tag, or a longer "
            "retention_days, keeps the next one",
            path=getattr(error, "path", None),
        ) from error


def listed_ids(store: Store, path: str) -> list[str]:
    """The ids that one object lists, none where it is not there.

    Raises:
        CorruptFileError: It is no list of ids.
    """
    try:
        data = store.get(path)
    except NotFoundError:
        return []
    return ids_of(decode_json(data, path, "ids of commits"), path)


def ids_of(said: object, path: str) -> list[str]:
    """A list of ids as an object holds it.

    Raises:
        CorruptFileError: It is none.
    """
    if not isinstance(said, list) or not all(isinstance(id, str) for id in said):
        raise CorruptFileError(f"{path}: expected a list of ids", path=path)
    return said
