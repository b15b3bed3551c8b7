"""Stores whose writes are staged: those of a branch, where a repository's commit makes them visible.

A table's commit is one put-if-absent of a log entry. On a branch the repository has to know it as such: it becomes a
commit of the branch, or part of a transaction. Other stores take it as any other object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .._native.store import Store

Handover: TypeAlias = tuple[tuple[str, Any], ...]
"""Files that one process has staged and another commits: paths, and where their bytes are. It can be pickled."""


class StagingStore(Store):
    """A store whose writes are staged until a commit of a repository. `esker.repo` has its kinds."""

    def refresh(self) -> None:
        """Looks at what others have committed since. Files of versions that are known stay readable as they were."""

    @property
    def has_moved(self) -> bool:
        """Whether a version that was known is another one now, or gone: the table has to be opened again."""
        return False

    @property
    def pinned_uri(self) -> str:
        """The URI that means in any process what this store reads now, whatever is committed later."""
        return self.uri

    def check_not_moved(self) -> None:
        """Refuses to go on from a version that is another one now.

        Raises:
            CommitConflictError: The table was reset, dropped or replaced.
        """

    def put_entry(self, path: str, data: bytes, change: object, accompany: Callable[[Store], None]) -> bool:
        """Puts a log entry if absent, and commits what is staged where entries are committed at once.

        Args:
            path: Of the entry.
            data: Its bytes.
            change: The change behind it, a `CommitProtocol`.
            accompany: Writes what is to become visible with the entry: checkpoints and hints. It is given a store that
                has the entry, which may be none but this one's before the commit.

        Returns:
            False if there is an entry already.
        """
        raise NotImplementedError

    def flush(self, what: str) -> None:
        """Commits what is staged beside log entries, where entries are committed at once: deletions of a clean-up."""

    def hand_over(self) -> Handover:
        """The files that are staged here, for a store of the same folder in the process that commits them."""
        raise NotImplementedError

    def adopt(self, files: Handover, age_s: float) -> None:
        """Stages files that stores of other processes have handed over.

        Args:
            files: What `hand_over` gave there.
            age_s: Seconds since the first of them was begun, or more.
        """
        raise NotImplementedError


def refresh(store: Store) -> None:
    """Has a branch's store look at what others have committed; other stores always do."""
    if isinstance(store, StagingStore):
        store.refresh()


def has_moved(store: Store) -> bool:
    """Whether a version that was known is another one now; see `StagingStore.has_moved`."""
    return isinstance(store, StagingStore) and store.has_moved


def pinned_uri(store: Store, uri: str) -> str:
    """The URI for processes that are to read what a store reads now: that of a commit on a branch, else the given one.

    Example:
        >>> from esker._native.store import Store
        >>> from esker.store.staging import pinned_uri
        >>> pinned_uri(Store("memory://not-on-a-branch"), "memory://not-on-a-branch")
        'memory://not-on-a-branch'
    """
    return store.pinned_uri if isinstance(store, StagingStore) else uri


def check_not_moved(store: Store) -> None:
    """Refuses to go on from a version that is another one now; see `StagingStore.check_not_moved`."""
    if isinstance(store, StagingStore):
        store.check_not_moved()


def put_entry(
    store: Store, path: str, data: bytes, change: object, accompany: Callable[[Store], None] = lambda _: None
) -> bool:
    """Puts a log entry if absent; see `StagingStore.put_entry`. Other stores do not call `accompany`."""
    if isinstance(store, StagingStore):
        return store.put_entry(path, data, change, accompany)
    return store.put_if_absent(path, data)


def flush(store: Store, what: str) -> None:
    """Commits what is staged beside log entries; other stores have done so."""
    if isinstance(store, StagingStore):
        store.flush(what)


def hand_over(store: Store) -> Handover:
    """The files that are staged in a branch's store, for the process that commits; see `StagingStore.hand_over`. Files
    of other stores are where any process finds them."""
    return store.hand_over() if isinstance(store, StagingStore) else ()


def adopt(store: Store, files: Handover, age_s: float) -> None:
    """Stages what stores of other processes have handed over; see `StagingStore.adopt`."""
    if files and isinstance(store, StagingStore):
        store.adopt(files, age_s)
