"""Nested Arrow arrays: list types, list offsets, null masks, and structs built from their fields."""

from __future__ import annotations

import pyarrow as pa


def is_list_like(kind: pa.DataType) -> bool:
    """Whether a type is a list type of any layout.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import is_list_like
        >>> is_list_like(pa.list_view(pa.int8()))
        True
    """
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def offsets_of(values: pa.Array) -> pa.Array:
    """The offsets of the lists in the result of `flatten`, with the end of the last one.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import offsets_of
        >>> offsets_of(pa.array([[1], None, [2, 3]])).to_pylist()
        [0, 1, 1, 3]
    """
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return without_bitmap(pa.concat_arrays([pa.array([0], pa.int32()), ends]))


def from_zero(offsets: pa.Array) -> pa.Array:
    """Offsets that begin at zero.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import from_zero
        >>> from_zero(pa.array([3, 4, 6], pa.int32())).to_pylist()
        [0, 1, 3]
    """
    import pyarrow.compute as pc

    return without_bitmap(pc.subtract(offsets, offsets[0]))


def without_bitmap(offsets: pa.Array) -> pa.Array:
    """Offsets without a bitmap that says that none is null: before release 24 pyarrow takes none beside a mask."""
    bitmap, values = offsets.buffers()
    if bitmap is None:
        return offsets
    return pa.Array.from_buffers(offsets.type, len(offsets), [None, values], offset=offsets.offset)


def mask_of(values: pa.Array) -> pa.Array | None:
    """The mask of null values; None if there are none."""
    return values.is_null() if values.null_count else None


def struct_of(parts: list[pa.Array], kind: pa.DataType, like: pa.Array) -> pa.Array:
    """Structs of the given fields, null where `like` is null.

    Args:
        parts: The values of the fields.
        kind: The struct type.
        like: The array whose nulls the structs have.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import struct_of
        >>> struct_of([], pa.struct([]), pa.array([1, None])).to_pylist()
        [{}, None]
    """
    if not parts:
        # pyarrow cannot tell the number of structs from no fields.
        return pa.array([{} if valid else None for valid in like.is_valid().to_pylist()], kind)
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask_of(like))
