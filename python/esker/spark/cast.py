"""Casts batches between a table's Arrow types and those that Spark exchanges. Columns are matched by name.

The casts are Arrow's safe casts: a value that does not fit is an error that names the column. Three casts lose digits
by design, because the table's type says so: double to float, float to half float, and, with `nanoseconds="truncate"`,
times finer than Spark's microseconds. A number that would become infinite does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esker.arrow.nested import is_list_like, mask_of
from esker.arrow.picking import taken
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.spark.types import is_view

__all__ = ["cast_batch", "exchanged"]

_EXCHANGED_ROWS = 32 * 1024
"""Batches of 8k to 64k rows go through Spark fastest."""


@dataclass(frozen=True)
class _How:
    """What a cast may do: truncate times (None: there is no option for it), fill missing struct fields with nulls; and
    what one does about a value that does not fit."""

    truncate: bool | None
    fill: bool
    advice: str


def cast_batch(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    *,
    truncate: bool | None = None,
    fill: bool = False,
    advice: str = "cast the column first",
) -> pa.RecordBatch:
    """The same rows in another schema; columns and struct fields are matched by name, never by position.

    Args:
        batch: Rows that have at least the columns of `schema`, in any order.
        schema: The schema to cast to.
        truncate: Whether times may lose their nanoseconds; otherwise such a value is an error. None if the user has no
            option for it.
        fill: Whether missing fields of structs are filled with nulls; otherwise they are an error.
        advice: What one does about a value that does not fit.

    Returns:
        A batch whose schema is `schema`, its metadata included.

    Raises:
        SchemaMismatchError: A column is missing, a value does not fit its type, or a null meets a column without nulls.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.cast import cast_batch
        >>> vectors = pa.record_batch({"n": [1], "v": [[0.5, 1.5]]})
        >>> wanted = pa.schema({"v": pa.list_(pa.float32(), 2), "n": pa.uint8()})
        >>> cast_batch(vectors, wanted).to_pylist()
        [{'v': [0.5, 1.5], 'n': 1}]
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    how = _How(truncate, fill, advice)
    arrays = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            found = ", ".join(batch.schema.names)
            count = batch.schema.names.count(field.name)
            raise SchemaMismatchError(
                f"expected {'one' if count else 'a'} column {field.name!r}, found {found}",
                column=field.name,
                expected=field.name,
                found=found,
            )
        arrays.append(_cast_field(batch.column(index), field, field.name, how))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def exchanged(batch: pa.RecordBatch, schema: pa.Schema, *, truncate: bool) -> Iterator[pa.RecordBatch]:
    """The same rows in the types that Spark exchanges, in batches that it takes well.

    Args:
        batch: Rows that have at least the columns of `schema`, in any order.
        schema: The schema to cast to.
        truncate: Whether times may lose their nanoseconds; otherwise such a value is an error.

    Raises:
        SchemaMismatchError: A column is missing, a value does not fit its type, or a null meets a column without nulls.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.cast import exchanged
        >>> rows = pa.record_batch({"n": range(40_000)})
        >>> [made.num_rows for made in exchanged(rows, pa.schema({"n": pa.int64()}), truncate=False)]
        [32768, 7232]
    """
    made = cast_batch(batch, schema, truncate=truncate)
    for first in range(0, made.num_rows, _EXCHANGED_ROWS):
        yield made.slice(first, _EXCHANGED_ROWS)


def _cast_field(array: pa.Array, field: pa.Field, column: str, how: _How) -> pa.Array:
    if not field.nullable and array.null_count > 0:
        raise SchemaMismatchError(
            f"column {column!r} expected values only, found {array.null_count} nulls: fill or drop them first",
            column=column,
            expected="no nulls",
            found=f"{array.null_count} nulls",
        )
    return _cast(array, field.type, column, how)


def _cast(array: pa.Array, wanted: pa.DataType, column: str, how: _How) -> pa.Array:
    if array.type == wanted:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _cast(array.storage, wanted, column, how)
    if isinstance(wanted, pa.BaseExtensionType):
        stored = _cast(array, wanted.storage_type, column, how)
        return pa.ExtensionArray.from_storage(wanted, stored)
    if isinstance(array, pa.DictionaryArray):
        return _cast(array.dictionary_decode(), wanted, column, how)
    if pa.types.is_run_end_encoded(array.type):
        return _cast(pc.run_end_decode(array), wanted, column, how)
    if pa.types.is_dictionary(wanted):
        return _to_dictionary(_cast(array, wanted.value_type, column, how), wanted, column)
    if isinstance(array, pa.StructArray) and pa.types.is_struct(wanted):
        return _cast_struct(array, wanted, column, how)
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        return _cast_map(array, wanted, column, how)
    # No table has a column of list views: a write casts them to lists.
    if is_list_like(array.type) and is_list_like(wanted) and not is_view(wanted):
        return _cast_list(array, wanted, column, how)
    return _cast_leaf(array, wanted, column, how)


def _cast_leaf(array: pa.Array, wanted: pa.DataType, column: str, how: _How) -> pa.Array:
    kind = pa.types
    timed = kind.is_timestamp(wanted) or kind.is_time(wanted) or kind.is_duration(wanted)
    try:
        if how.truncate and timed:
            options = pc.CastOptions(wanted, allow_time_truncate=True)
            return pc.cast(array, options=options)
        if kind.is_integer(array.type) and kind.is_decimal(wanted):
            # Arrow requires a decimal that holds every value of the integer type; here only the actual values count.
            return array.cast(pa.decimal128(38, 0)).cast(wanted)
        made = array.cast(wanted)
        if kind.is_floating(array.type) and kind.is_floating(wanted) and wanted.bit_width < array.type.bit_width:
            beyond = pc.and_(pc.is_inf(made.cast(pa.float64())), pc.is_finite(array))
            if pc.any(beyond).as_py():
                raise pa.ArrowInvalid(f"{array.filter(beyond)[0]} is beyond its range")
        return made
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        asked = timed and how.truncate is not None
        hint = "set the option `nanoseconds` to `truncate` to cut them" if asked else how.advice
        raise SchemaMismatchError(
            f"column {column!r} expected values that fit {wanted}, found {array.type}: {_first_line(error)}; {hint}",
            column=column,
            expected=str(wanted),
            found=str(array.type),
        ) from error


def _to_dictionary(values: pa.Array, wanted: pa.DataType, column: str) -> pa.Array:
    try:
        encoded = values.dictionary_encode()
        indices = encoded.indices.cast(wanted.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=wanted.ordered)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column {column!r} expected values that a {wanted} can number, found too many: {_first_line(error)}",
            column=column,
            expected=str(wanted),
            found=str(values.type),
        ) from error


def _cast_struct(array: pa.StructArray, wanted: pa.DataType, column: str, how: _How) -> pa.Array:
    missing = pc.is_null(array)
    fields = [wanted.field(i) for i in range(wanted.num_fields)]
    arrays = []
    for field in fields:
        index = array.type.get_field_index(field.name)
        if index < 0 and how.fill and field.nullable:
            arrays.append(pa.nulls(len(array), field.type))
            continue
        if index < 0:
            raise SchemaMismatchError(
                f"column {column!r} expected a field {field.name!r}, found {array.type}",
                column=f"{column}.{field.name}",
                expected=field.name,
                found=str(array.type),
            )
        child = array.field(index)
        present = child if field.nullable and array.null_count == 0 else _under(child, missing, field.nullable)
        arrays.append(_cast_field(present, field, f"{column}.{field.name}", how))
    if not fields:
        return array.cast(wanted)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)


def _under(child: pa.Array, missing: pa.Array, nullable: bool) -> pa.Array:
    """A struct's child, whose values below a null struct are null, or any value if the child is non-nullable."""
    child = _plain(child)
    if nullable:
        return pc.if_else(missing, pa.scalar(None, child.type), child)
    present = child.filter(pc.invert(missing))
    if present.null_count > 0:
        return child
    some = present[0] if len(present) > 0 else pa.scalar(_any_value(child.type), child.type)
    return pc.if_else(missing, some, child)


def _plain(values: pa.Array) -> pa.Array:
    """The same values in a type that Arrow filters and chooses among, as it does not with views."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        some = len(values.dictionary) > 0
        return _plain(values.dictionary_decode() if some else pa.nulls(len(values), kind.value_type))
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(kind) else values


def _any_value(kind: Any) -> Any:
    """A value of a type, in which nothing is null."""
    is_ = pa.types
    if is_.is_struct(kind):
        return {kind.field(i).name: _any_value(kind.field(i).type) for i in range(kind.num_fields)}
    if is_.is_fixed_size_list(kind):
        return [_any_value(kind.value_type)] * kind.list_size
    if is_.is_map(kind) or is_list_like(kind):
        return []
    if is_.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    if is_.is_binary(kind) or is_.is_large_binary(kind):
        return b""
    if is_.is_string(kind) or is_.is_large_string(kind):
        return ""
    return None if is_.is_null(kind) else 0


def _cast_map(array: Any, wanted: Any, column: str, how: _How) -> pa.Array:
    keys, items, lengths = _entries(array)
    keys = _cast_field(keys, wanted.key_field, f"{column}.key", how)
    values = _cast_field(items, wanted.item_field, f"{column}.value", how)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
    if array.null_count > 0:
        offsets = pa.array(np.asarray(offsets), mask=np.append(np.asarray(pc.is_null(array)), False))
    return pa.MapArray.from_arrays(offsets.cast(pa.int32()), keys, values, type=wanted)


def _entries(array: Any) -> tuple[pa.Array, pa.Array, Any]:
    """The keys and values of maps without those below nulls and outside of the slice, and how many each map has."""
    offsets = np.asarray(array.offsets, np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    present = np.where(np.asarray(pc.is_valid(array)), lengths, 0)
    keys, items = array.keys, array.items
    if (present == lengths).all():
        first, count = int(offsets[0]), int(lengths.sum())
        return keys.slice(first, count), items.slice(first, count), lengths
    before = np.cumsum(present) - present
    places = pa.array(np.arange(int(present.sum())) + np.repeat(starts - before, present))
    return taken(keys, places), taken(items, places), present


def _cast_list(array: Any, wanted: Any, column: str, how: _How) -> pa.Array:
    kind = pa.types
    item = f"{column}.item"
    if kind.is_fixed_size_list(wanted):
        slots = _fixed_slots(array, wanted, column)
        mask = mask_of(array)
        # The slots below a null list are null, even if the items are non-nullable.
        field = wanted.value_field.with_nullable(True) if mask is not None else wanted.value_field
        values = _cast_field(slots, field, item, how)
        return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=mask)
    large = kind.is_large_list(wanted)
    try:
        offsets = _offsets(array).cast(pa.int64() if large else pa.int32())
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"column {column!r} has too many items in one batch for {wanted}: read it in smaller batches", column=column
        ) from error
    values = _cast_field(pc.list_flatten(array), wanted.value_field, item, how)
    mask = mask_of(array)
    made = pa.LargeListArray if large else pa.ListArray
    return made.from_arrays(offsets, values, type=wanted, mask=mask)


def _fixed_slots(array: Any, wanted: Any, column: str) -> pa.Array:
    """The items of lists that must all have one length, with that many nulls for each null list."""
    size = wanted.list_size
    lengths = pc.list_value_length(array)
    wrong = lengths.filter(pc.not_equal(lengths, size))
    if len(wrong) > 0:
        raise SchemaMismatchError(
            f"column {column!r} expected lists of {size} items, found one of {wrong[0]}",
            column=column,
            expected=str(wanted),
            found=f"a list of {wrong[0]} items",
        )
    items = pc.list_flatten(array)
    if array.null_count == 0:
        return items
    filled = np.repeat(~np.asarray(pc.is_null(array)), size)
    indices = pa.array(np.cumsum(filled) - 1, mask=~filled)
    return items.take(indices)


def _offsets(array: Any) -> pa.Array:
    """The offsets of each list in its flattened items, which leave out items below null lists."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
    return pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
