"""`get_add_actions`: the files of a version as one Arrow table, with sizes, partition values and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..._native.delta import FileSelection
from ..._native.store import Store
from ..definition.statistics_columns import Path


def add_actions(store: Store, selection: FileSelection, kept: Sequence[Path], *, flatten: bool) -> pa.Table:
    """One row a file, in deltalake's columns.

    Args:
        store: The table's.
        selection: The files.
        kept: The columns whose statistics the table keeps: others are there if a file has some.
        flatten: Whether statistics and partition values are columns (`min.x`, `partition.p`) rather than structs.
    """
    described = pa.record_batch(selection.describe())
    paths, statistics = selection.statistics(store)
    found = pa.record_batch(statistics)
    columns: dict[str, Any] = {name: described.column(name) for name in ("path", "size_bytes", "modification_time")}
    columns["path"] = pa.array(selection.log_paths(), pa.string())
    columns["num_records"] = found.column(0)
    for offset, name in enumerate(("null_count", "min", "max"), 1):
        leaves = {tuple(path): found.column(3 * at + offset) for at, path in enumerate(paths)}
        leaves = {path: array for path, array in leaves.items() if path in kept or array.null_count < len(array)}
        if name != "null_count":
            # Columns of types without bounds are not there.
            leaves = {path: array for path, array in leaves.items() if _has_bounds(array.type)}
        if flatten:
            columns.update({f"{name}.{'.'.join(path)}": array for path, array in leaves.items()})
        elif leaves:
            columns[name] = _nested(leaves, len(selection))
    partition = described.column("partition")
    if flatten:
        for index in range(partition.type.num_fields):
            columns[f"partition.{partition.type.field(index).name}"] = partition.field(index)
    elif partition.type.num_fields:
        columns["partition"] = partition
    required = ("path", "size_bytes", "modification_time")
    fields = [pa.field(name, array.type, name not in required) for name, array in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _has_bounds(type_: pa.DataType) -> bool:
    return not (pa.types.is_binary(type_) or pa.types.is_null(type_))


def _nested(leaves: dict[tuple[str, ...], pa.Array], rows: int) -> pa.Array:
    groups: dict[str, dict[tuple[str, ...], pa.Array]] = {}
    for path, array in leaves.items():
        groups.setdefault(path[0], {})[path[1:]] = array
    parts, fields = [], []
    for name, inner in groups.items():
        array = inner[()] if () in inner else _nested(inner, rows)
        parts.append(array)
        fields.append(pa.field(name, array.type))
    return pa.StructArray.from_arrays(parts, fields=fields)
