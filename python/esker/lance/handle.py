"""The base classes of `LanceDataset`, `LanceFragment` and their mixins: each holds the `TableVersion` that it shows."""

from __future__ import annotations

import os
from typing import Any, Self

from .._native.store import Store
from .._native.table import Fragment, Manifest
from .log import LanceLog
from .scan.options import ScannedFragment
from .version import TableVersion


class DatasetHandle:
    """A table at the version that it shows. Methods of `LanceDataset` start from it, and move it to their result."""

    _table: TableVersion
    _default_scan_options: dict[str, Any] | None

    @classmethod
    def _of(cls, table: TableVersion, default_scan_options: dict[str, Any] | None = None) -> Self:
        """A handle on a version that is open already."""
        raise NotImplementedError

    def _move_to(self, table: TableVersion) -> None:
        """Makes this handle show another version of the same table."""
        self._table = table

    def _at(self, table: TableVersion) -> Self:
        """Another handle, with the same options, on another version of the same table."""
        return self._of(table, self._default_scan_options)

    @property
    def _manifest(self) -> Manifest:
        return self._table.manifest

    @property
    def _log(self) -> LanceLog:
        return self._table.log

    @property
    def _store(self) -> Store:
        return self._table.store

    @classmethod
    def _open(cls, uri: str | os.PathLike[str], **options: Any) -> Self:
        """A handle on the table at a URI."""
        raise NotImplementedError


class FragmentHandle(ScannedFragment):
    """A fragment of a version. The methods of `LanceFragment` start from it."""

    _table: TableVersion
    _fragment: Fragment

    @property
    def fragment_id(self) -> int:
        """The fragment's id within its table."""
        return self._fragment.id


def table_or_uri(given: object) -> object:
    """The version of a dataset; any other argument, usually a URI, unchanged."""
    return given._table if isinstance(given, DatasetHandle) else given
