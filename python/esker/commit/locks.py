"""The lock of a store without put-if-absent, around one put."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from ..exceptions import InvalidArgumentError
from .protocol import CommitLock, NothingPut


@contextmanager
def held(lock: CommitLock | None, version: int, unreleased: dict[int, Exception]) -> Iterator[None]:
    """Holds a lock while the version is put.

    A lock that cannot be released after a put undoes nothing: the error goes to `unreleased`. One that swallows errors
    hides none, and one that fails over the error of a put does not take its place: that error alone tells what is known
    of the put.

    Raises:
        NothingPut: It was not granted.

    Example:
        >>> from contextlib import nullcontext
        >>> from esker.commit.locks import held
        >>> with held(lambda version: nullcontext(), 3, {}):
        ...     pass
    """
    if lock is None:
        yield
        return
    try:
        granted = lock(version)
        if not isinstance(granted, AbstractContextManager):
            raise InvalidArgumentError(
                f"expected commit_lock to return a context manager for version {version}, found "
                f"{type(granted).__name__}; nothing was committed: return the lock, or decorate the function with "
                "contextlib.contextmanager"
            )
        granted.__enter__()
    except Exception as error:
        raise NothingPut(error) from error
    try:
        yield
    except BaseException:
        with suppress(Exception):
            granted.__exit__(*sys.exc_info())
        raise
    try:
        granted.__exit__(None, None, None)
    except Exception as error:
        unreleased[version] = error
