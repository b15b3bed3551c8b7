"""Nested Arrow arrays: which types are lists, where each list starts, and structs put together from their fields."""

from __future__ import annotations

import pyarrow as pa


def is_list_like(kind: pa.DataType) -> bool:
    """Whether values of a type are lists, however their items lie.

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
    """Where each list starts among the items that `flatten` gives, and where the last one ends.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import offsets_of
        >>> offsets_of(pa.array([[1], None, [2, 3]])).to_pylist()
        [0, 1, 1, 3]
    """
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def mask_of(values: pa.Array) -> pa.Array | None:
    """Which values are null; None if none is."""
    return values.is_null() if values.null_count else None


def struct_of(parts: list[pa.Array], kind: pa.DataType, like: pa.Array) -> pa.Array:
    """Structs of the given fields, null where another array is.

    Args:
        parts: The fields of the type, without what lies below null structs.
        kind: The type.
        like: The array whose nulls they have.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.nested import struct_of
        >>> struct_of([], pa.struct([]), pa.array([1, None])).to_pylist()
        [{}, None]
    """
    if not parts:
        # pyarrow does not know how many structs without fields there are.
        return pa.array([{} if valid else None for valid in like.is_valid().to_pylist()], kind)
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask_of(like))
