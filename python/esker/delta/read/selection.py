"""Selects the files of a version that may hold rows that a filter keeps."""

from __future__ import annotations

import warnings
from typing import Any

from ..._native.delta import FileSelection, Snapshot
from ..._native.store import Store
from ...exceptions import InvalidArgumentError
from .filters import BoundFilter, RowFilter, bind
from .scan import TableScan


def bind_to(snapshot: Snapshot, filters: RowFilter | None, session_timezone: str | None = None) -> BoundFilter | None:
    """A filter over the rows of a version; None if there is none.

    Raises:
        InvalidArgumentError: It does not parse, or names no column.

    Example:
        `where = bind_to(snapshot, [("day", "=", "2024-01-01")])`
    """
    return bind(
        filters,
        TableScan.schema_of(snapshot),
        partition_by=snapshot.partition_columns,
        session_timezone=session_timezone,
    )


def select_files(
    store: Store, snapshot: Snapshot, filters: RowFilter | None = None, session_timezone: str | None = None
) -> FileSelection:
    """The files of a version that may hold rows that a filter keeps; all without a filter.

    Example:
        `select_files(store, snapshot, "id > 3").uris()`
    """
    where = bind_to(snapshot, filters, session_timezone)
    return snapshot.select(store, where.predicates if where else None)


def one_filter(name: str, deprecated: Any, given: Any) -> Any:
    """The filter of a method that has two arguments for it.

    Args:
        name: The deprecated argument's.
        deprecated: Its value.
        given: The value of the other one.

    Raises:
        InvalidArgumentError: Both are given.
    """
    if deprecated is None:
        return given
    if given is not None:
        raise InvalidArgumentError(f"expected one filter, found {name} as well, which is deprecated; leave it out")
    warnings.warn(f"{name} is deprecated; give the filter by its other argument", DeprecationWarning, stacklevel=3)
    return deprecated
