"""The registry of URI schemes: which store a URI opens.

Tables open stores here and never import the packages above them. `esker.repo` registers its schemes when it is
imported; `resolve` imports it when a URI with such a scheme comes first (in a worker process, for example).
"""

from __future__ import annotations

import importlib
import os
import re
import uuid
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import unquote

from .._native.store import Store
from ..exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError
from .s3_ddb import split_s3_ddb
from .secrets import MANIFEST_STORE

StoreFactory: TypeAlias = Callable[[str, Mapping[str, str], bool], Store]
"""(uri, storage options, durable) -> store."""

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")


def _native_store(uri: str, storage_options: Mapping[str, str], durable: bool) -> Store:
    for name, value in storage_options.items():
        if not isinstance(value, str):
            raise InvalidTypeError(
                f"expected storage_options of texts, found {name!r} as {type(value).__name__}; write it in quotes",
                uri=uri,
            )
    return Store(uri, storage_options=dict(storage_options), durable=durable)


def _s3_store(uri: str, storage_options: Mapping[str, str], durable: bool) -> Store:
    return resolve(split_s3_ddb(uri)[0], storage_options=storage_options, durable=durable)


OBJECT_STORES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
"""Schemes of object stores behind a network. They take `storage_options`."""


def is_behind_network(uri: str) -> bool:
    """Whether each read of the store at `uri` costs a network request.

    A folder of a repository is where the repository is; whoever registers a scheme says so for it.

    Example:
        >>> from esker.store.stores import is_behind_network
        >>> is_behind_network("s3://bucket/t"), is_behind_network("/data/t")
        (True, False)
        >>> is_behind_network("esker://s3%3A%2F%2Fbucket%2Flake@main/t"), is_behind_network("esker://%2Flake@main/t")
        (True, False)
    """
    scheme, _, rest = uri.partition("://")
    if scheme.lower() == "esker" and "@" in rest:
        return is_behind_network(unquote(rest.partition("@")[0]))
    said = _BEHIND_NETWORK.get(scheme.lower(), False)
    return said(uri) if callable(said) else said


_factories: dict[str, StoreFactory] = dict.fromkeys(("file", "memory", *OBJECT_STORES), _native_store)
_factories["s3+ddb"] = _s3_store

_BEHIND_NETWORK: dict[str, bool | Callable[[str], bool]] = dict.fromkeys((*OBJECT_STORES, "s3+ddb"), True)

_REGISTERED_BY = dict.fromkeys(("esker", "esker-hook", "esker-ref", "esker-tx"), "esker.repo.branch_store")
"""Schemes of packages above this one, and the modules that register them on import."""


def is_in_repository(uri: str) -> bool:
    """Whether a URI leads to a ref or a transaction of a repository.

    Example:
        >>> from esker.store.stores import is_in_repository
        >>> is_in_repository("esker-ref://lake/main/t"), is_in_repository("/data/t")
        (True, False)
    """
    return uri.partition("://")[0].lower() in _REGISTERED_BY


def register(
    scheme: str, factory: StoreFactory, *, is_behind_network: bool | Callable[[str], bool] | None = None
) -> None:
    """Registers `factory` for URIs of `scheme`; it replaces the one that was registered before.

    Args:
        scheme: The part before `://`, in lower case.
        factory: Called with the URI, the storage options and whether puts are durable.
        is_behind_network: Whether each read costs a request, so that tables save what they can; or a function of the
            URI that tells. None leaves what was registered before; of a new scheme it is False.

    Example:
        `register("repo", open_branch)`
    """
    if not _SCHEME.match(f"{scheme}://") or scheme != scheme.lower():
        raise InvalidArgumentError(f"expected a URI scheme in lower case, found {scheme!r}")
    _factories[scheme] = factory
    if is_behind_network is not None:
        _BEHIND_NETWORK[scheme] = is_behind_network


def absolute(uri: str | os.PathLike[str]) -> str:
    """The URI that means the same store in any process and any working folder.

    Example:
        >>> from esker.store.stores import absolute
        >>> absolute("memory://t"), absolute("/data/./t")
        ('memory://t', '/data/t')
    """
    text = os.fspath(uri)
    if not isinstance(text, str):
        raise InvalidArgumentError(f"expected a path or a URI as str, found {type(text).__name__}")
    if not text:
        raise InvalidArgumentError("expected a path or a URI, found an empty string")
    if text == "memory://":
        # A fresh name: a table of its own, which lasts as long as its handles.
        return f"memory://{uuid.uuid4().hex}"
    if _SCHEME.match(text):
        return text
    return os.path.abspath(os.path.expanduser(text))


def resolve(
    uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None, durable: bool = True
) -> Store:
    """The store at `uri`.

    Args:
        uri: A path, or a URI of a registered scheme (`file://`, `memory://NAME`, `s3://BUCKET/PATH`, ...).
        storage_options: Options of the store, such as credentials, under pylance's names.
        durable: Whether a put returns only when its bytes are on stable storage.

    Raises:
        InvalidTypeError: An option is no text.
        UnsupportedError: No store is registered for the scheme.

    Example:
        >>> from esker.store.stores import resolve
        >>> resolve("memory://doc").list()
        []
    """
    text = absolute(uri)
    match = _SCHEME.match(text)
    scheme = match.group(1).lower() if match else "file"
    if scheme not in _factories and scheme in _REGISTERED_BY:
        importlib.import_module(_REGISTERED_BY[scheme])
    factory = _factories.get(scheme)
    if factory is None:
        raise UnsupportedError(
            f"no store answers to {scheme}://, expected one of {', '.join(sorted(_factories))}", uri=text
        )
    options = {name: value for name, value in (storage_options or {}).items() if name != MANIFEST_STORE}
    return factory(text, options, durable)
