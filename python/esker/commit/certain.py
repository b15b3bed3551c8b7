"""Puts of log entries that have certainly not landed: what a repository or a store behind a network says of them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from .._native.store import Store
from ..exceptions import CommitStateUnknownError
from ..store.staging import StagingStore
from ..store.stores import is_behind_network
from .protocol import NothingPut


@contextmanager
def nothing_put_on_error(store: Store) -> Iterator[None]:
    """Tells the commit loop that an error of a branch's store means that nothing is there, and so does a denial.

    The repository's own commit ended in one of three ways already; only its unknown one is unknown here.

    Args:
        store: Where the entry is put; other errors of other stores stay what they are.
    """
    try:
        yield
    except (CommitStateUnknownError, NothingPut):
        raise
    except Exception as error:
        if isinstance(store, StagingStore) or is_denied(store.uri, error):
            raise NothingPut(error) from error
        raise


def is_denied(uri: str, error: BaseException) -> bool:
    """Whether a store behind a network denied a request, which has had no effect then and will have none. Nobody need
    look, nor could: keys that expired read no more than they write.

    Where an earlier try of the request got no clear reply, the error has no such code.

    Args:
        uri: The store's.
        error: What the request ended in.

    Example:
        >>> from esker.commit.certain import is_denied
        >>> is_denied("s3://bucket/t", PermissionError(13, "expired")), is_denied("/data/t", PermissionError(13, "no"))
        (True, False)
    """
    return isinstance(error, OSError) and error.errno == errno.EACCES and is_behind_network(uri)
