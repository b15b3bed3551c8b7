"""Base paths: places outside a table's root that may hold files of the table. Each one is opened as its own store.

The manifest lists them (`base_paths`), see docs/changing-tables.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .._native.store import Store
from ..exceptions import CorruptFileError
from .stores import resolve

BasePathParts: TypeAlias = tuple[int, str | None, bool, str]
"""Id, name, whether the base path is the root of a table, and its path or URI."""

_WHOLE = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:/")
_OPTION_OF_BASE = re.compile(r"base_(\d+)\.(.+)")


@dataclass(frozen=True)
class BaseStores:
    """Opens the base paths of one table.

    Args:
        storage_options: The table's options. `base_<id>.<key>` sets the option `<key>` for that base path only.
        params: Options by the path or URI of a base path; they replace all of `storage_options` for it.
        durable: Whether a put returns only when its bytes are on stable storage.

    Example:
        >>> from esker.store.base_stores import BaseStores
        >>> BaseStores({"region": "a", "base_1.region": "b"}, None, True).options_of(1, "s3://bucket")
        {'region': 'b'}
    """

    # Not in the repr: the options may hold passwords.
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    params: Mapping[str, Mapping[str, str]] | None = field(default=None, repr=False)
    durable: bool = True

    def options_of(self, id_: int, path: str) -> dict[str, str]:
        """The options with which a base path is opened."""
        if self.params is not None and path in self.params:
            return dict(self.params[path])
        options, own = options_of_root(self.storage_options), {}
        for key, value in (self.storage_options or {}).items():
            match = _OPTION_OF_BASE.fullmatch(key)
            if match and int(match.group(1)) == id_:
                own[match.group(2)] = value
        return {**options, **own}

    def mount(self, store: Store, bases: Sequence[BasePathParts]) -> None:
        """Mounts the base paths of a table in `store`, the table's own store.

        Raises:
            CorruptFileError: A base path is neither a URI nor an absolute path.
            InvalidArgumentError: The id is mounted in `store` already, with another path.
            UnsupportedError: No store is registered for the scheme of a base path.
        """
        for id_, _, is_dataset_root, path in bases:
            if not _WHOLE.match(path):
                raise CorruptFileError(
                    f"expected the absolute path or the URI of base path {id_}, found {path!r}; correct the table's "
                    "base paths",
                    path=path,
                )
            if store.mounted(id_) != (path, not is_dataset_root):
                base = resolve(path, storage_options=self.options_of(id_, path), durable=self.durable)
                store.mount(id_, path, base, not is_dataset_root)


def options_of_root(options: Mapping[str, str] | None) -> dict[str, str]:
    """The storage options of the table's root: all but those for single base paths.

    Example:
        >>> from esker.store.base_stores import options_of_root
        >>> options_of_root({"region": "a", "base_1.region": "b"})
        {'region': 'a'}
    """
    return {key: value for key, value in (options or {}).items() if not _OPTION_OF_BASE.fullmatch(key)}
