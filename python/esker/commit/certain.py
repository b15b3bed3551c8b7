"""Puts of log entries to a branch, of which the repository knows whether they have landed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .._native.store import Store
from ..exceptions import CommitStateUnknownError
from ..store.staging import StagingStore
from .protocol import NothingPut


@contextmanager
def nothing_put_on_error(store: Store) -> Iterator[None]:
    """Tells the commit loop that an error of a branch's store means that nothing is there.

    The repository's own commit ended in one of three ways already; only its unknown one is unknown here.

    Args:
        store: Where the entry is put; errors of other stores stay what they are.
    """
    try:
        yield
    except (CommitStateUnknownError, NothingPut):
        raise
    except Exception as error:
        if isinstance(store, StagingStore):
            raise NothingPut(error) from error
        raise
