"""Which storage options a pickle carries: with their credentials, or without them."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, overload

from .._native.store import Store, is_secret_option
from .secrets import MANIFEST_STORE, passwordless

_pickles_secrets: ContextVar[bool | None] = ContextVar("esker_pickle_storage_options", default=None)


@contextmanager
def pickle_storage_options(secrets: bool) -> Iterator[None]:
    """Sets whether objects that are pickled in this block carry the credentials among their storage options.

    By default they do, so that workers on other machines can open the tables that they are sent. Without them a worker
    takes the credentials from its own environment; region, endpoint and the like are pickled in any case. To leave
    credentials out in a whole process, set `ESKER_PICKLE_STORAGE_OPTIONS=0` in its environment.

    Args:
        secrets: Whether pickles carry credentials.

    Example:
        >>> import pickle
        >>> from esker.commit import pickle_storage_options, resolve
        >>> store = resolve("s3://b/t", storage_options={"aws_region": "eu-west-1", "token": "t0p-secret"})
        >>> with pickle_storage_options(False):
        ...     b"t0p-secret" in pickle.dumps(store)
        False
    """
    before = _pickles_secrets.set(secrets)
    try:
        yield
    finally:
        _pickles_secrets.reset(before)


@overload
def pickled_options(storage_options: None) -> None: ...
@overload
def pickled_options(storage_options: Mapping[str, str]) -> dict[str, str]: ...
def pickled_options(storage_options: Mapping[str, str] | None) -> dict[str, str] | None:
    """The storage options that a pickle carries; see `pickle_storage_options`.

    Example:
        >>> from esker.store.pickling import pickle_storage_options, pickled_options
        >>> with pickle_storage_options(False):
        ...     pickled_options({"aws_region": "eu-west-1", "aws_secret_access_key": "..."})
        {'aws_region': 'eu-west-1'}
    """
    if storage_options is None:
        return None
    if _carried():
        return dict(storage_options)
    return {
        key: passwordless(value) if key == MANIFEST_STORE else value
        for key, value in storage_options.items()
        if not is_secret_option(key)
    }


def pickled_url(url: str) -> str:
    """A URL as a pickle carries it: with its password or without, see `pickle_storage_options`.

    Example:
        >>> from esker.store.pickling import pickle_storage_options, pickled_url
        >>> with pickle_storage_options(False):
        ...     pickled_url("redis://:secret@host/0")
        'redis://host/0'
    """
    return url if _carried() else passwordless(url)


def _carried() -> bool:
    carried = _pickles_secrets.get()
    if carried is None:
        carried = os.environ.get("ESKER_PICKLE_STORAGE_OPTIONS", "1").lower() not in ("0", "false", "no", "off")
    return carried


def _reduce_store(store: Store) -> tuple[Any, ...]:
    restore, (uri, options, durable) = store.__reduce__()
    return restore, (uri, pickled_options(options), durable)


copyreg.pickle(Store, _reduce_store)
