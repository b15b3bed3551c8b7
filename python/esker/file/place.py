"""Locates a single file: the store of its folder, and its name in that folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote

from .._native.store import Store
from ..exceptions import InvalidArgumentError, UnsupportedError
from ..store.stores import absolute, resolve


def locate(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> tuple[Store, str]:
    """The store that holds the file at `path`, and the file's name in it.

    Args:
        path: A path or a URI.
        storage_options: Options of the store, such as credentials.

    Raises:
        InvalidArgumentError: `path` is not the path of a file.

    Example:
        >>> from esker.file.place import locate
        >>> locate("memory://doc-place/a.lance", None)[1]
        'a.lance'
    """
    folder, _, name = absolute(path).rpartition("/")
    if not name or folder.endswith(":/") or os.fspath(path).endswith(("/", os.sep)):
        raise InvalidArgumentError(f"expected the path of a file, found {os.fspath(path)!r}", path=os.fspath(path))
    if "://" in folder and not folder.lower().startswith("memory://"):
        # The store percent-decodes its root; the name is decoded here.
        name = unquote(name)
    return resolve(folder or "/", storage_options=storage_options), name


def refuse_namespace(namespace_client: object, table_id: object) -> None:
    """Refuses pylance's namespaces, which this release does not have.

    Raises:
        UnsupportedError: One of them is given.
    """
    if namespace_client is not None or table_id is not None:
        raise UnsupportedError(
            "namespace_client and table_id are not supported yet, give path and storage_options",
            operation="namespace_client",
        )
