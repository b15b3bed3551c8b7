"""Chunks put together: Arrow cannot join dictionaries that have a null among their items."""

from __future__ import annotations

import pyarrow as pa

from .picking import taken


def combined(table: pa.Table) -> pa.Table:
    """The same rows, each column of one chunk.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.combining import combined
        >>> combined(pa.table({"a": pa.chunked_array([[1], [2]])}))["a"].num_chunks
        1
    """
    for number, field in enumerate(table.schema):
        column = table.column(number)
        if column.num_chunks > 1 and _has_dictionary(field.type):
            chunks = [without_null_values(chunk) for chunk in column.chunks]
            table = table.set_column(number, field, pa.chunked_array(chunks, field.type))
    return table.combine_chunks()


def _has_dictionary(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    children = (type_.field(i).type for i in range(type_.num_fields))
    return pa.types.is_dictionary(type_) or any(map(_has_dictionary, children))


def without_null_values(values: pa.Array) -> pa.Array:
    """The same values, with nulls in the indices of dictionaries and none among their items.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.combining import without_null_values
        >>> words = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["a", None]))
        >>> without_null_values(words).dictionary.to_pylist()
        ['a']
    """
    type_ = values.type
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(type_, without_null_values(values.storage))
    if pa.types.is_dictionary(type_):
        if values.dictionary.null_count == 0:
            return values
        return values.cast(type_.value_type).dictionary_encode().cast(type_)
    if pa.types.is_struct(type_) and type_.num_fields:
        children = [without_null_values(values.field(n)) for n in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=values.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        # `from_arrays` takes no mask with sliced offsets: copy the array, so that it starts at zero.
        whole = taken(values, pa.array(range(len(values)), pa.int64()))
        return kind.from_arrays(whole.offsets, without_null_values(whole.values), type=type_, mask=whole.is_null())
    return values
