"""Selects the files of a version that may hold rows that a filter keeps."""

from __future__ import annotations

import warnings
from itertools import compress
from typing import Any

import pyarrow as pa

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


def in_partitions(snapshot: Snapshot, selection: FileSelection, where: BoundFilter | None) -> list[bool]:
    """For each selected file whether its partition is one that a filter over partition columns keeps.

    Selections leave files out only where all programs agree, so that NaN is in all of them. What a filter says of
    partition values alone is known for sure. Of other columns it says nothing here.

    Example:
        `in_partitions(snapshot, selection, bind_to(snapshot, [("p", "=", 1.5)]))`
    """
    if not _is_of_partitions(snapshot, where):
        return [True] * len(selection)
    partition = pa.record_batch(selection.describe()).column("partition")
    names = [partition.type.field(i).name for i in range(partition.type.num_fields)]
    return _kept(pa.RecordBatch.from_arrays(partition.flatten(), names=names), where)


def file_uris(store: Store, snapshot: Snapshot, where: BoundFilter | None) -> list[str]:
    """The places of the files that may hold rows that a filter keeps.

    Example:
        `file_uris(store, snapshot, bind_to(snapshot, "day = '2024-01-01'"))`
    """
    selection = snapshot.select(store, where.predicates if where else None)
    return list(compress(selection.uris(), in_partitions(snapshot, selection, where)))


def partitions_of(store: Store, snapshot: Snapshot, where: BoundFilter | None) -> list[dict[str, Any]]:
    """The partitions that have files which may hold rows that a filter keeps: values as texts.

    Example:
        `partitions_of(store, snapshot, bind_to(snapshot, "day = '2024-01-01'"))`
    """
    if not snapshot.partition_columns:
        return []
    partitions = snapshot.select(store, where.predicates if where else None).partitions()
    if not partitions or not _is_of_partitions(snapshot, where):
        return partitions
    names = snapshot.partition_columns
    columns = [pa.array(snapshot.parse_partition_values(name, [each[name] for each in partitions])) for name in names]
    kept = _kept(pa.RecordBatch.from_arrays(columns, names=names), where)
    return [each for each, is_kept in zip(partitions, kept, strict=True) if is_kept]


def of_partitions(
    store: Store, snapshot: Snapshot, filters: RowFilter | None, session_timezone: str | None = None
) -> tuple[FileSelection, list[bool]]:
    """The files of partitions that a filter keeps, among those that are selected; all without a filter.

    Raises:
        InvalidArgumentError: It reads other columns, by which files are kept or not row by row.

    Example:
        `selection, kept = of_partitions(store, snapshot, [("day", "=", "2024-01-01")])`
    """
    where = bind_to(snapshot, filters, session_timezone)
    if where is not None and not _is_of_partitions(snapshot, where):
        raise InvalidArgumentError(
            f"expected a filter over the partition columns {snapshot.partition_columns}, found {filters!r}; with "
            "write_deltalake(mode='overwrite', predicate=...) rows of other columns are replaced"
        )
    selection = snapshot.select(store, where.predicates if where else None)
    return selection, in_partitions(snapshot, selection, where)


def _is_of_partitions(snapshot: Snapshot, where: BoundFilter | None) -> bool:
    if where is None or not where.columns:
        return False
    return set(where.columns) <= set(snapshot.partition_columns)


def _kept(values: pa.RecordBatch, where: BoundFilter | None) -> list[bool]:
    if where is None:
        return [True] * values.num_rows
    numbered = values.append_column("", pa.array(range(values.num_rows), pa.int64()))
    kept = set(where.keep(numbered).columns[-1].to_pylist())
    return [row in kept for row in range(values.num_rows)]


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
