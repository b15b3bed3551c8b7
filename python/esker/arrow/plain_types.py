"""Converts Arrow types that files cannot hold to the plain types that they can.

String, binary and list views become strings, binaries and lists with offsets. The items of a fixed-size list become
nullable unless they are structs, and dictionaries have no order, since files store neither.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with plain types in place of those that files cannot hold.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.plain_types import plain_schema
        >>> plain_schema(pa.schema([("name", pa.string_view())])).field("name").type
        DataType(string)
    """
    return pa.schema([_plain_field(field) for field in schema], metadata=schema.metadata)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type with plain types in place of those that files cannot hold, at any depth.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.plain_types import plain_type
        >>> plain_type(pa.list_view(pa.binary_view()))
        ListType(list<item: binary>)
    """
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_list(type_) or pa.types.is_list_view(type_):
        return pa.list_(_plain_field(type_.value_field))
    if pa.types.is_large_list(type_) or pa.types.is_large_list_view(type_):
        return pa.large_list(_plain_field(type_.value_field))
    if pa.types.is_fixed_size_list(type_):
        item = _plain_field(type_.value_field)
        return pa.list_(item if pa.types.is_struct(item.type) else item.with_nullable(True), type_.list_size)
    if pa.types.is_struct(type_):
        return pa.struct([_plain_field(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return pa.map_(_plain_field(type_.key_field), _plain_field(type_.item_field), type_.keys_sorted)
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, plain_type(type_.value_type))
    return type_


def plain_array(array: pa.Array) -> pa.Array:
    """The same values in the plain type.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.plain_types import plain_array
        >>> plain_array(pa.array([["a"], None], pa.list_view(pa.string_view()))).type
        ListType(list<item: string>)
    """
    found = array.type
    plain = plain_type(found)
    if plain == found:
        return array
    if pa.types.is_list_view(found) or pa.types.is_large_list_view(found):
        return _list_of_view(array, plain)
    if pa.types.is_struct(found):
        children = [plain_array(array.field(i)) for i in range(found.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(plain), mask=_mask(array))
    if pa.types.is_fixed_size_list(found):
        size = found.list_size
        items = plain_array(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(items, type=plain, mask=_mask(array))
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return _with_child(array, plain, plain_array(array.values))
    if pa.types.is_map(found):
        pair = [plain.key_field, plain.item_field]
        entries = pa.StructArray.from_arrays([plain_array(array.keys), plain_array(array.items)], fields=pair)
        return _with_child(array, plain, entries)
    if pa.types.is_dictionary(found):
        words = plain_array(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, words)
    return array.cast(plain)


def _plain_field(field: pa.Field) -> pa.Field:
    plain = plain_type(field.type)
    return field if plain == field.type else field.with_type(plain)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _with_child(array: pa.Array, type_: pa.DataType, child: pa.Array) -> pa.Array:
    """The lists or maps of `array` with `child` as their items."""
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [child])


def _list_of_view(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A list view as a list. Its lists may overlap and be in any order: `flatten` copies their items in list order."""
    is_large = pa.types.is_large_list(type_)
    lengths = pc.list_value_length(array).fill_null(0).cast(pa.int64())
    ends = pc.cumulative_sum_checked(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int64() if is_large else pa.int32())
    kind = pa.LargeListArray if is_large else pa.ListArray
    return kind.from_arrays(offsets, plain_array(array.flatten()), type=type_, mask=_mask(array))
