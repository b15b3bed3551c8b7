"""How many rows a batch of a Lance table has on its way to Spark: many, but of wide rows fewer.

Files tell how wide rows are in them, and what repeats is in its file once. In memory each row has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

__all__ = ["BATCH_BYTES", "batch_rows"]

BATCH_BYTES = 32 * 1024 * 1024
"""How many bytes a batch is to have at most, as far as the types of its columns or its files tell."""
_LEAST_ROWS = 64
_UNSIZED_ROWS = 8 * 1024
"""The most rows of a batch where no type tells how large values are: as many as any scan reads at once."""


def batch_rows(planned: int, schema: pa.Schema, names: Collection[str] | None) -> int:
    """How many rows of a table a batch has at most.

    Args:
        planned: How many there could be by the sizes of the files.
        schema: The table's columns.
        names: The columns that are read; None for any of them.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.batch_rows import batch_rows
        >>> columns = pa.schema({"id": pa.int64(), "s": pa.string(), "v": pa.list_(pa.float32(), 2048)})
        >>> [batch_rows(100_000, columns, names) for names in (["id"], ["v"], ["s"], None)]
        [100000, 4096, 8192, 8192]
    """
    bits = _bits(field.type for field in schema if names is None or field.name in names)
    if bits is None:
        return min(planned, _UNSIZED_ROWS)
    return min(planned, max(_LEAST_ROWS, BATCH_BYTES * 8 // max(bits, 1)))


def _bits(kinds: Iterable[pa.DataType]) -> int | None:
    """How many bits a value of each of these types has, together; None if they tell not."""
    total = 0
    for kind in kinds:
        found = _bits_of(kind)
        if found is None:
            return None
        total += found
    return total


def _bits_of(kind: pa.DataType) -> int | None:
    if isinstance(kind, pa.BaseExtensionType):
        return _bits_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        # Spark gets the values.
        return _bits_of(kind.value_type)
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_struct(kind):
        return _bits(kind.field(i).type for i in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        one = _bits_of(kind.value_type)
        return None if one is None else kind.list_size * one
    try:
        return int(kind.bit_width)
    except ValueError:
        return None
