"""The commits whose content garbage collection has given up: no ref can lead to them again.

Each collection tells of its own in an object of its own, so that several that run at once lose nothing of what the
others say. Later ones join what was told long ago.
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
"""Only those that were put so long ago: whoever put them does not change them any more."""
_THREADS = 16


class GivenUp:
    """What one collection gives up.

    Args:
        store: The repository's root.

    Example:
        `GivenUp(store).tell({commit.id for commit in expired})`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = f"{EXPIRED}{uuid.uuid4().hex}"
        self._told: set[str] = set()

    def tell(self, ids: set[str]) -> None:
        """Says which commits these are, in place of what it said before."""
        if ids != self._told:
            self._store.put(self._path, json.dumps(sorted(ids)).encode())
            self._told = set(ids)


def expired_ids(store: Store) -> set[str]:
    """The commits whose content was given up.

    Raises:
        CorruptFileError: Who says so is no list of ids.
    """
    paths = [EXPIRED_BEFORE, *store.list_paths(EXPIRED)]
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as threads:
        return set().union(*threads.map(lambda path: _read(store, path), paths))


def join(store: Store, now: float) -> None:
    """Joins what was told long ago; `now` is the store's time. The new object is there before the old ones go."""
    old = [
        meta.path
        for meta in store.list(EXPIRED)
        if meta.last_modified_us is not None and meta.last_modified_us < (now - OLD_S) * 1e6
    ]
    if len(old) < JOINED:
        return
    ids = set().union(*(_read(store, path) for path in old))
    GivenUp(store).tell(ids)
    for path in old:
        store.delete(path)


@contextmanager
def explained(store: Store, *ids: str) -> Iterator[None]:
    """Says of what is missing from commits that garbage collection has given it up, where that is so: it is no damage.

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


def _read(store: Store, path: str) -> list[str]:
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
