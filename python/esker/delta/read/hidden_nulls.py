"""Hidden nulls: nulls of non-nullable fields below a null struct, which are not part of any value.

Parquet stores nothing for them, but pyarrow's writer counts them and its cast refuses them. Before a write they are
replaced by some value; files are read as if such fields were nullable, and cast to the table's type afterwards.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...arrow.nested import from_zero, mask_of, offsets_of


def may_hide(kind: pa.DataType, *, is_nullable: bool = True) -> bool:
    """Whether a type has a field that may not be null below one that may.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.hidden_nulls import may_hide
        >>> may_hide(pa.struct([pa.field("a", pa.int8(), nullable=False)]))
        True
    """
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return any(
            (is_nullable and not field.nullable) or may_hide(field.type, is_nullable=is_nullable or field.nullable)
            for field in fields
        )
    if pa.types.is_list(kind):
        return may_hide(kind.value_type, is_nullable=kind.value_field.nullable)
    if pa.types.is_map(kind):
        return may_hide(kind.key_type, is_nullable=False) or may_hide(
            kind.item_type, is_nullable=kind.item_field.nullable
        )
    return False


def loosened(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed in all fields of structs.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.hidden_nulls import loosened
        >>> loosened(pa.struct([pa.field("a", pa.int8(), nullable=False)]))
        StructType(struct<a: int8>)
    """
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, loosened(field.type), metadata=field.metadata) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(loosened(kind.value_type)))
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(loosened(key.type)), item.with_type(loosened(item.type)))
    return kind


def filled(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values, with something in place of hidden nulls.

    Args:
        values: Those that a table may have: a null in a field that may have none lies below a null.
        kind: What says which fields may be null; names do not matter.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.hidden_nulls import filled
        >>> kind = pa.struct([pa.field("a", pa.int64(), nullable=False)])
        >>> filled(pa.array([{"a": 1}, None]), kind).field(0).to_pylist()
        [1, 0]
    """
    if not may_hide(kind):
        return values
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            _children(values.flatten(), kind), fields=_fields(values.type), mask=mask_of(values)
        )
    if pa.types.is_list(kind):
        inner = filled(values.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(offsets_of(values), inner, values.type, mask=mask_of(values))
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = filled(values.keys.slice(first, last - first), kind.key_type)
    items = filled(values.items.slice(first, last - first), kind.item_type)
    return pa.MapArray.from_arrays(from_zero(values.offsets), keys, items, values.type, mask=mask_of(values))


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


def _children(parts: list[pa.Array], kind: pa.DataType) -> list[pa.Array]:
    made = []
    for part, field in zip(parts, _fields(kind), strict=True):
        whole = filled(part, field.type)
        made.append(whole if field.nullable or not whole.null_count else _without_nulls(whole, field.type))
    return made


def _without_nulls(values: pa.Array, kind: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_struct(kind):
        return pa.StructArray.from_arrays(_children(values.flatten(), kind), fields=_fields(values.type))
    if types.is_list(kind):
        return pa.ListArray.from_arrays(offsets_of(values), values.flatten(), values.type)
    if types.is_map(kind):
        shown = values.filter(values.is_valid())
        first, last = shown.offsets[0].as_py(), shown.offsets[-1].as_py()
        lengths = pc.subtract(values.offsets.slice(1), values.offsets.slice(0, len(values)))
        ends = pc.cumulative_sum(pc.if_else(values.is_valid(), lengths, 0)).cast(pa.int32())
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.MapArray.from_arrays(
            offsets, shown.keys.slice(first, last - first), shown.items.slice(first, last - first), values.type
        )
    if types.is_string(kind):
        return pc.fill_null(values, "")
    if types.is_binary(kind):
        return pc.fill_null(values, b"")
    zero = pa.array([0], pa.int32() if types.is_date32(kind) else pa.int64())
    if types.is_decimal(kind):
        zero = zero.cast(pa.decimal256(76, kind.scale))
    return pc.fill_null(values, zero.cast(kind)[0])
