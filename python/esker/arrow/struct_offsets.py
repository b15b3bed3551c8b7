"""Works around a bug of arrow-rs: nested structs with an offset are copied to offset zero before they cross to Rust.

arrow-rs applies the offset of an imported struct or fixed-size list twice to the children of a struct within it, and
panics or, worse, reads other rows. Only types with such a struct are converted; all others cross as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from .picking import taken

if TYPE_CHECKING:
    from .._native.write import ArrowStreamExportable


def rebased(stream: ArrowStreamExportable) -> ArrowStreamExportable:
    """The same stream, with every nested struct starting at offset zero.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.struct_offsets import rebased
        >>> rows = pa.array([{"a": {"b": 1}}, {"a": {"b": 2}}]).slice(1)
        >>> pa.RecordBatchReader.from_stream(rebased(pa.table({"c": rows}))).read_all()["c"].to_pylist()
        [{'a': {'b': 2}}]
    """
    reader = pa.RecordBatchReader.from_stream(stream)
    if not any(_is_nested(field.type) for field in reader.schema):
        return reader  # type: ignore[no-any-return]
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader))  # type: ignore[no-any-return]


def rebased_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with every nested struct starting at offset zero.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.struct_offsets import rebased_batch
        >>> rows = pa.record_batch({"c": [{"a": {"b": 1}}, {"a": {"b": 2}}]}).slice(1)
        >>> rebased_batch(rows)["c"].offset
        0
    """
    columns = [_rebase(column) if _is_nested(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield rebased_batch(batch)


def _children(type_: pa.DataType) -> list[pa.DataType]:
    return [type_.field(i).type for i in range(type_.num_fields)]


def _is_nested(type_: pa.DataType, *, below: bool = False) -> bool:
    """Whether a struct stands anywhere below a struct or a fixed-size list."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    is_struct = pa.types.is_struct(type_)
    if is_struct and below:
        return True
    below = below or is_struct or pa.types.is_fixed_size_list(type_)
    return any(_is_nested(child, below=below) for child in _children(type_))


def _rebase(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _rebase(array.storage))
    type_ = array.type
    if pa.types.is_struct(type_):
        # `field` slices the child to the rows of the struct.
        children = [_rebase(array.field(i)) for i in range(type_.num_fields)]
        if not children:
            return array
        mask = array.is_null() if array.null_count else None
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_fixed_size_list(type_):
        size = type_.list_size
        items = _rebase(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(items, type=type_, mask=array.is_null() if array.null_count else None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        cls = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        if array.null_count and array.offset:
            # `from_arrays` takes no mask with sliced offsets: copy the array, so that it starts at zero.
            array = taken(array, pa.array(range(len(array)), pa.int64()))
        mask = array.is_null() if array.null_count else None
        return cls.from_arrays(array.offsets, _rebase(array.values), type=type_, mask=mask)
    return array
