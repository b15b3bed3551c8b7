"""How lists lie in Arrow arrays: which types are lists, where each list starts, which are null."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def is_list_like(kind: pa.DataType) -> bool:
    """Whether values of a type are lists, however their items lie.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.list_layout import is_list_like
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
        >>> from esker.arrow.list_layout import offsets_of
        >>> offsets_of(pa.array([[1], None, [2, 3]])).to_pylist()
        [0, 1, 1, 3]
    """
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def mask_of(values: pa.Array) -> pa.Array | None:
    """Which values are null; None if none is."""
    return values.is_null() if values.null_count else None
