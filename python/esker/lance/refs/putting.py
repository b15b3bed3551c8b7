"""Puts the file of a new tag or branch: of two writers one wins, and each learns whether it was itself. Deletes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from ...commit.certain import is_denied
from ...commit.loop import is_refusal
from ...commit.protocol import CommitLock
from ...exceptions import CommitStateUnknownError, EskerError, IOFailedError, NotFoundError, UnsupportedError
from ...store.staging import StagingStore
from ...store.stores import is_behind_network
from ..log import LanceLog, put_under_lock


def put_new(log: LanceLog, path: str, data: bytes, *, lock: CommitLock | None = None, version: int = 0) -> bool:
    """Puts an object if absent; False if there is another one. After a lost reply it looks whose object is there.

    Args:
        log: The log of the main line.
        path: Where the object goes.
        data: Its bytes, which no other writer has: they hold a random id, or the time to the nanosecond.
        lock: Held around the put where the store has no put-if-absent.
        version: The version that the lock is taken for.

    Raises:
        CommitStateUnknownError: The store failed, and it could not be looked up whether the object is there; or it is
            not there yet, and the store is behind a network, where a put may land after an error that is no refusal.
        IOFailedError: The store failed, and the object is not there.
    """
    try:
        try:
            if log.store.put_if_absent(path, data):
                return True
        except UnsupportedError:
            with lock(version) if lock is not None else nullcontext():
                if put_under_lock(log.store, path, data):
                    return True
    except OSError as error:
        # The error may be that of the lock's release.
        found, is_known = None, lock is None and is_denied(log.uri, error)
        with suppress(OSError):
            found, is_known = _read(log, path), True
        if found is not None:
            return found == data
        if is_known and _is_final(log, error):
            raise
        raise _unknown(log, path, error) from error
    try:
        # A retry within the store finds the object that its own first attempt has put.
        return _read(log, path) == data
    except OSError as error:
        raise _unknown(log, path, error) from error


def put_over(log: LanceLog, path: str, data: bytes) -> None:
    """Puts the file of a tag or branch in place of the one that is there. After a lost reply it looks which is there.

    Args:
        log: The log of the main line.
        path: Where the file is.
        data: Its bytes.

    Raises:
        CommitStateUnknownError: The store failed, and it could not be looked up which file is there; or it is the old
            one, and the store is behind a network, where a put may land after its error.
        IOFailedError: The store failed, and the old file is there.
    """
    try:
        log.store.put(path, data)
    except OSError as error:
        is_known = is_denied(log.uri, error)
        with suppress(OSError):
            if _read(log, path) == data:
                return
            is_known = True
        if isinstance(log.store, StagingStore) or (is_known and _is_final(log, error)):
            raise
        raise _unknown(log, path, error, "changed") from error


@contextmanager
def looking_after_put(log: LanceLog, path: str) -> Iterator[None]:
    """Says of an error of the store that it came after the put of a tag or branch, which stands.

    Args:
        log: The log of the main line.
        path: What was put.

    Raises:
        CommitStateUnknownError: The store failed.
    """
    try:
        yield
    except OSError as error:
        # What is staged is no tag yet. Answers, and what is in doubt already, are told as they are.
        is_answer = isinstance(error, EskerError) and not isinstance(error, IOFailedError)
        if is_answer or isinstance(error, CommitStateUnknownError) or isinstance(log.store, StagingStore):
            raise
        raise CommitStateUnknownError(
            f"{error}; {path} of {log.uri} was put, but it could not be looked up whether all that it needs is there: "
            "look before you do it again",
            uri=log.uri,
            path=path,
        ) from error


def delete_ref(log: LanceLog, path: str) -> None:
    """Deletes the file of a tag or branch. After a lost reply it looks whether the file is gone.

    Args:
        log: The log of the main line.
        path: Where the file is.

    Raises:
        CommitStateUnknownError: The store failed, and it could not be looked up whether the file is there; or it is,
            and the store is behind a network, where a deletion may land after its error.
        IOFailedError: The store failed, and the file is there.
    """
    try:
        log.store.delete(path)
    except OSError as error:
        is_known = is_denied(log.uri, error)
        with suppress(OSError):
            if _read(log, path) is None:
                return
            is_known = True
        if isinstance(log.store, StagingStore) or (is_known and _is_final(log, error)):
            raise
        raise _unknown(log, path, error, "deleted") from error


def _is_final(log: LanceLog, error: Exception) -> bool:
    """Whether what failed has no effect later, either."""
    return is_refusal(error) or not is_behind_network(log.uri)


def _unknown(log: LanceLog, path: str, error: Exception, done: str = "created") -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{error}; whether {path} of {log.uri} was {done} is not known: look before you do it again",
        uri=log.uri,
        path=path,
    )


def _read(log: LanceLog, path: str) -> bytes | None:
    try:
        return log.store.get(path)
    except NotFoundError:
        return None
