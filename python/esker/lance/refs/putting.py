"""Puts the file of a new tag or branch: of two writers one wins, and each learns whether it was itself."""

from __future__ import annotations

from ...exceptions import CommitStateUnknownError, NotFoundError, UnsupportedError
from ..log import LanceLog, put_under_lock


def put_new(log: LanceLog, path: str, data: bytes) -> bool:
    """Puts an object if absent; False if there is another one. After a lost reply it looks whose object is there.

    Args:
        log: The log of the main line.
        path: Where the object goes.
        data: Its bytes, which no other writer has: they hold a random id, or the time to the nanosecond.

    Raises:
        CommitStateUnknownError: The store failed, and it could not be looked up whether the object is there.
        IOFailedError: The store failed, and the object is not there.
    """
    try:
        try:
            if log.store.put_if_absent(path, data):
                return True
        except UnsupportedError:
            if put_under_lock(log.store, path, data):
                return True
    except OSError as error:
        try:
            found = _read(log, path)
        except OSError:
            raise CommitStateUnknownError(
                f"{error}; whether {path} of {log.uri} was created is not known: look before you do it again",
                uri=log.uri,
                path=path,
            ) from error
        if found is None:
            raise
        return found == data
    # A retry within the store finds the object that its own first attempt has put.
    return _read(log, path) == data


def _read(log: LanceLog, path: str) -> bytes | None:
    try:
        return log.store.get(path)
    except NotFoundError:
        return None
