"""Works around a bug of pyarrow: `take` and `filter` give other rows than those asked for of fixed-size lists of
fixed-size lists that start at an offset. Such arrays are copied first.
"""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

_Rows = TypeVar("_Rows", pa.Array, pa.RecordBatch, pa.Table)


def taken(rows: _Rows, places: pa.Array) -> _Rows:
    """Rows by their numbers, of which a null gives nulls.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.picking import taken
        >>> pairs = pa.array([[[0, 0]], [[1, 1]], [[2, 2]]], pa.list_(pa.list_(pa.int8(), 2), 1))
        >>> taken(pairs.slice(1), pa.array([1, 0])).to_pylist()
        [[[2, 2]], [[1, 1]]]
    """
    return _from_zero(rows).take(places)


def kept(rows: _Rows, mask: pa.Array | pa.ChunkedArray) -> _Rows:
    """The rows for which a mask is true.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.picking import kept
        >>> pairs = pa.array([[[0, 0]], [[1, 1]], [[2, 2]]], pa.list_(pa.list_(pa.int8(), 2), 1))
        >>> kept(pairs.slice(1), pa.array([False, True])).to_pylist()
        [[[2, 2]]]
    """
    return _from_zero(rows).filter(mask)


def _from_zero(rows: _Rows) -> _Rows:
    if isinstance(rows, pa.Array):
        return pa.concat_arrays([rows]) if _is_pair_of_lists(rows.type) else rows
    for number, field in enumerate(rows.schema):
        if _is_pair_of_lists(field.type):
            column = rows.column(number)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            chunks = [pa.concat_arrays([chunk]) for chunk in chunks]
            whole = pa.chunked_array(chunks, field.type) if isinstance(column, pa.ChunkedArray) else chunks[0]
            rows = rows.set_column(number, field, whole)
    return rows


def _is_pair_of_lists(type_: pa.DataType) -> bool:
    """Whether a fixed-size list of fixed-size lists is in it."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    children = [type_.field(i).type for i in range(type_.num_fields)]
    if pa.types.is_fixed_size_list(type_) and any(map(_is_fixed_size_list, children)):
        return True
    return any(map(_is_pair_of_lists, children))


def _is_fixed_size_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_))
