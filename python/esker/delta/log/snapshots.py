"""Loads versions while other writers write their checkpoints again.

A checkpoint is read in several requests. Where another writer puts it anew under the same name meanwhile, as each of
them may, the bytes of two files are read as one. A look at what lies there tells that from damage: it is another file
by then. The version is read once more where it was not.
"""

from __future__ import annotations

from collections.abc import Callable

from ..._native.delta import Snapshot
from ..._native.store import Store
from ...exceptions import CorruptFileError
from .entries import LOG

_TRIES = 5


def load_snapshot(store: Store, *, version: int | None = None, timezone: str | None = None) -> Snapshot:
    """A version, the newest by default.

    Args:
        store: The table's.
        version: Its number.
        timezone: What timestamps without a zone mean as partition values; UTC if not given.

    Raises:
        NotFoundError: There is no such version.
        UnsupportedError: The table has features that this release does not have.
        CorruptFileError: The log cannot be replayed.

    Example:
        `load_snapshot(store, version=3).num_files`
    """
    return _settled(store, lambda: Snapshot.load(store, version=version, timezone=timezone))


def refresh_snapshot(snapshot: Snapshot, store: Store, *, version: int | None = None) -> Snapshot:
    """A later version, of which only the entries since are read, or a checkpoint where they are gone.

    Args:
        snapshot: The version that is at hand.
        store: The table's.
        version: The later one, the newest by default.

    Raises:
        NotFoundError: There is no such version.
        CorruptFileError: The log cannot be replayed.

    Example:
        `refresh_snapshot(snapshot, store)`
    """
    return _settled(store, lambda: snapshot.refresh(store, version=version))


def _settled(store: Store, read: Callable[[], Snapshot]) -> Snapshot:
    try:
        return read()
    except CorruptFileError:
        pass
    for _ in range(_TRIES):
        before = _checkpoints(store)
        try:
            return read()
        except CorruptFileError:
            if _checkpoints(store) == before:
                raise
    return read()


def _checkpoints(store: Store) -> list[tuple[str, int, int | None]]:
    """The files of checkpoints, with what changes when one is put anew."""
    return [(it.path, it.size, it.last_modified_us) for it in store.list(LOG) if ".checkpoint." in it.path]
