"""`DatasetBasePath`: a place outside a table's root that may hold files of the table (docs/changing-tables.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from .._native.table import Manifest
from ..exceptions import InvalidArgumentError, InvalidChangeError
from ..store.base_stores import BasePathParts
from ..store.stores import absolute


@dataclass(frozen=True)
class DatasetBasePath:
    """A place outside a table's root that may hold files of the table.

    Args:
        path: A path or a URI of a registered scheme.
        name: A name for it in `target_bases`.
        is_dataset_root: Whether it is laid out like a table, with data files in its folder `data`; otherwise they are
            directly in it.
        id: Its id in the table; if None, the commit assigns one.

    Example:
        >>> import esker
        >>> esker.DatasetBasePath("s3://cold/flights", "cold").is_dataset_root
        False
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None

    def to_parts(self) -> BasePathParts:
        """The tuple that the Rust core takes."""
        return (self.id or 0, self.name, self.is_dataset_root, os.fspath(self.path))

    @staticmethod
    def from_parts(parts: BasePathParts) -> DatasetBasePath:
        """The base path of a tuple that the Rust core returned."""
        id_, name, is_dataset_root, path = parts
        return DatasetBasePath(path, name, is_dataset_root, id_)


def base_paths_of(manifest: Manifest) -> list[DatasetBasePath]:
    """The base paths of a version, in the order of their ids."""
    return [DatasetBasePath.from_parts(parts) for parts in sorted(manifest.base_paths)]


def numbered(bases: Sequence[DatasetBasePath] | None) -> list[DatasetBasePath]:
    """The base paths of a new table with their ids: those without one are numbered from 1 on."""
    found: list[DatasetBasePath] = []
    for base in bases or ():
        known = [other.id or 0 for other in found]
        id_ = checked_base(base).id or max(known, default=0) + 1
        found.append(DatasetBasePath(os.fspath(base.path), base.name, base.is_dataset_root, id_))
    return found


def target_ids(
    bases: Sequence[DatasetBasePath], target_bases: Sequence[str] | None, target_all_bases: bool | None, *, root: str
) -> list[int | None]:
    """The ids of the base paths that new files are written to in turn; None is the table's own root.

    Args:
        bases: The base paths of the table.
        target_bases: Names or paths of those to write to; the URI of the table means its own root.
        target_all_bases: Whether to write to all of them and to the table's own root.
        root: The table's URI.

    Raises:
        InvalidArgumentError: Both arguments are given.
        InvalidChangeError: The table has no such base path.
    """
    if target_all_bases:
        if target_bases:
            raise InvalidArgumentError("expected target_bases or target_all_bases, found both")
        return [None, *sorted(base.id or 0 for base in bases)]
    found: list[int | None] = []
    for wanted in target_bases or ():
        ids = [base.id for base in bases if wanted == base.name] or [base.id for base in bases if wanted == base.path]
        if not ids and absolute(wanted) == absolute(root):
            ids = [None]
        if not ids:
            known = ", ".join(repr(base.name or base.path) for base in bases) or "none"
            raise InvalidChangeError(
                f"base path {wanted!r} not found in available bases, expected target_bases that the table has "
                f"({known}); add it by add_bases"
            )
        found.append(ids[0])
    return found


def checked_base(base: DatasetBasePath) -> DatasetBasePath:
    """The base path, checked.

    Raises:
        InvalidArgumentError: Its path is empty.
        TypeError: It is not a `DatasetBasePath`.
    """
    if not isinstance(base, DatasetBasePath):
        raise TypeError(f"expected a DatasetBasePath, found {type(base).__name__}")
    if not os.fspath(base.path):
        raise InvalidArgumentError("expected the path of a base path, found an empty string")
    return base
