"""Casts values that a caller gives to the table's types: the same values, or an error.

| column | takes |
|---|---|
| integers | integers and whole numbers that fit |
| `float`, `double` | numbers; integers that they hold exactly |
| `decimal` | integers and decimals that fit without rounding, floats rounded |
| `string`, `binary` | text; bytes, in UTF-8 in a `string`. As views, dictionaries, of fixed size, in large arrays |
| `date`, `timestamp_ntz` | dates and times; nanoseconds are cut off, as in deltalake |
| `timestamp` | times with a zone, dates; a time without one could mean any moment |
| booleans, numbers, dates, times | texts of them, as deltalake reads them; numbers are rounded as floats are |
| structs | structs: fields are found by name, in any order |
| arrays, maps | every kind of list; maps |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Expression
from ...arrow.nested import from_zero, is_list_like, mask_of, offsets_of, struct_of
from ...exceptions import InvalidArgumentError, SchemaMismatchError
from .cast_words import in_deltalakes_words

Cast: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]
"""Casts plain values to a type."""
_WITHOUT_ZONE = (
    'a time without a zone could be any moment; say which zone it is of: pyarrow.compute.assume_timezone(column, "UTC")'
)
_OF_ONE_MOMENT = r"(?i)(?:z|:\d{2}(?:\.\d+)?\s*[+-]\d{2}(?::?\d{2})?|^\s*\d{4}-?\d{1,2}-?\d{1,2})\s*$"
"""A text that ends with its zone, or that is a day."""


def fitted(values: pa.Array, kind: pa.DataType, path: str, cast: Cast | None = None) -> pa.Array:
    """The values as an array of a type.

    Args:
        values: Of any type.
        kind: The table's.
        path: The column, or the field within it, for messages.
        cast: How values without fields and elements are cast; if not given, what is another value in the table's type
            is an error. A map of which it makes a key null is null.

    Raises:
        SchemaMismatchError: Values that the type does not have.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.conformed_values import fitted
        >>> fitted(pa.array([7]), pa.decimal128(10, 2), "x")[0].as_py()
        Decimal('7.00')
    """
    if values.type == kind:
        return values
    if isinstance(values, pa.ExtensionArray):
        return fitted(values.storage, kind, path, cast)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if pa.types.is_dictionary(values.type):
        # pyarrow cannot take views from dictionaries: the distinct values are cast first.
        return pc.take(fitted(values.dictionary, kind, path, cast), values.indices)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        return _struct(values, kind, path, cast)
    if pa.types.is_list(kind) and is_list_like(values.type):
        inner = fitted(values.flatten(), kind.value_type, f"{path}.element", cast)
        return pa.ListArray.from_arrays(offsets_of(values), inner, kind, mask=mask_of(values))
    if pa.types.is_map(kind) and pa.types.is_map(values.type):
        return _map(values, kind, path, cast)
    if cast is not None:
        return cast(values, kind)
    try:
        return _plain(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        words = in_deltalakes_words(path, values.type, kind, error)
        raise SchemaMismatchError(
            f"column {path!r}: expected {kind}, found {values.type}: {error}"
            + ("" if words in str(error) else f" ({words})"),
            column=path,
            expected=str(kind),
            found=str(values.type),
        ) from error


def _struct(values: pa.Array, kind: pa.DataType, path: str, cast: Cast | None) -> pa.Array:
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    # `flatten` drops what lies below null structs.
    children = values.flatten()
    parts = []
    for i in range(kind.num_fields):
        field = kind.field(i)
        if field.name in names:
            parts.append(fitted(children[names.index(field.name)], field.type, f"{path}.{field.name}", cast))
        else:
            parts.append(pa.nulls(len(values), field.type))
    return struct_of(parts, kind, values)


def _map(values: pa.Array, kind: pa.DataType, path: str, cast: Cast | None) -> pa.Array:
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = fitted(values.keys.slice(first, last - first), kind.key_type, f"{path}.key", cast)
    items = fitted(values.items.slice(first, last - first), kind.item_type, f"{path}.value", cast)
    if keys.null_count and cast is None:
        raise SchemaMismatchError(f"column {path!r}: expected keys that {kind.key_type} has, found others", column=path)
    if keys.null_count:
        return _map(_without_keys(values, keys), kind, path, cast)
    return pa.MapArray.from_arrays(from_zero(values.offsets), keys, items, kind, mask=mask_of(values))


def _without_keys(values: pa.Array, keys: pa.Array) -> pa.Array:
    """Maps of which those are null that have keys which are."""
    offsets = pc.subtract(values.offsets, values.offsets[0])
    lost = pc.list_parent_indices(pa.ListArray.from_arrays(offsets, keys)).filter(keys.is_null())
    rows = pa.array(range(len(values)), pa.int64())
    return values.take(pc.if_else(pc.is_in(rows, lost), None, rows))


def _plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    types, found = pa.types, values.type
    if types.is_null(kind):
        raise pa.ArrowInvalid(
            'a column of nothing but nulls (void) has no type yet; schema_mode="merge" gives it this one'
        )
    if types.is_string(kind) and _is_bytes(found):
        return _decoded(values)
    if types.is_string(kind) and not is_text(found):
        raise pa.ArrowInvalid("only text becomes text")
    if is_text(found) and not (types.is_string(kind) or types.is_binary(kind)):
        return _parsed(values, kind)
    if _is_bytes(found) and not types.is_binary(kind):
        raise pa.ArrowInvalid("bytes become neither numbers nor times")
    if types.is_boolean(kind):
        raise pa.ArrowInvalid("only true and false become booleans")
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if numeric and types.is_temporal(found):
        raise pa.ArrowInvalid("times become no numbers")
    if types.is_temporal(kind) and not types.is_temporal(found):
        raise pa.ArrowInvalid("only times become times")
    if types.is_timestamp(found) and found.unit == "ns":
        # The protocol has microseconds only.
        values, found = values.cast(pa.timestamp("us", found.tz), safe=False), pa.timestamp("us", found.tz)
    if types.is_timestamp(kind) and kind.tz is not None and types.is_timestamp(found) and found.tz is None:
        raise pa.ArrowInvalid(_WITHOUT_ZONE)
    if types.is_date(kind) and types.is_timestamp(found) and found.tz is not None:
        # The day in UTC, not that in the values' own zone, as all times of a table are of UTC.
        values = values.cast(pa.timestamp(found.unit, "UTC"))
    if types.is_decimal(kind) and types.is_integer(found):
        return values.cast(pa.decimal256(76, kind.scale)).cast(kind)
    if types.is_decimal(kind) and types.is_floating(found):
        return _by_sql(values, kind)
    if types.is_floating(kind) and types.is_integer(found):
        made = values.cast(kind, safe=False)
        if not pc.all(pc.equal(made.cast(pa.decimal256(76, 0)), values.cast(pa.decimal256(76, 0)))).as_py():
            raise pa.ArrowInvalid(f"an integer that {kind} does not hold exactly")
        return made
    if types.is_floating(kind) and types.is_decimal(found):
        # By way of text: pyarrow's own cast does not give the nearest float.
        return values.cast(pa.string()).cast(kind)
    made = values.cast(kind)
    if types.is_floating(kind) and types.is_floating(found):
        lost = pc.and_not(pc.is_finite(values), pc.is_finite(made))
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid(f"a number beyond the end of {kind}")
    return made


def _decoded(values: pa.Array) -> pa.Array:
    """Bytes as the texts in UTF-8 that they are."""
    try:
        return values.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid("Encountered non UTF-8 data: bytes become text only in UTF-8") from error


def _parsed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts of booleans, numbers, days and times, as deltalake reads them."""
    values = values.cast(pa.large_string())
    if not pa.types.is_timestamp(kind):
        return _by_sql(values, kind)
    if kind.tz is not None and not pc.all(pc.match_substring_regex(values, _OF_ONE_MOMENT)).as_py():
        texts = pc.drop_null(pc.if_else(pc.match_substring_regex(values, _OF_ONE_MOMENT), None, values))
        raise pa.ArrowInvalid(
            f"Cast error: Cannot cast string {texts[0].as_py()!r} to value of {kind} type: {_WITHOUT_ZONE}"
        )
    return _by_sql(values, kind)


def _by_sql(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """As Rust's library casts: the float 0.1 is 0.10, where pyarrow keeps what a float adds to it; halves go up."""
    batch = pa.record_batch({"value": values})
    try:
        return pa.array(Expression.parse_sql("value", batch.schema).evaluate(batch, data_type=kind))
    except InvalidArgumentError as error:
        raise pa.ArrowInvalid(error.message.partition(": ")[2]) from error


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    fixed = types.is_fixed_size_binary(kind) and not types.is_decimal(kind)
    return bool(fixed or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
