"""Rows as a caller gives them, made into batches with exactly the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from ..exceptions import SchemaMismatchError
from .schema import Schema

BATCH_ROWS = 128 * 1024


def reader_of(data: Any) -> pa.RecordBatchReader:
    """What hands out Arrow data, as a stream.

    Args:
        data: A table, a batch, a reader, a DataFrame, or batches in a list or from a generator: whatever has the
            Arrow PyCapsule interface.

    Raises:
        TypeError: It does not.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.incoming import reader_of
        >>> reader_of(pa.table({"x": [1]})).schema.names
        ['x']
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader(BATCH_ROWS)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        parts = iter(data)
        first = next(parts, None)
        if hasattr(first, "__arrow_c_array__"):
            batch = pa.record_batch(first)
            return pa.RecordBatchReader.from_batches(batch.schema, chain([batch], map(pa.record_batch, parts)))
    raise TypeError(
        f"expected data with the Arrow PyCapsule interface (pyarrow, pandas, polars...), found {type(data).__name__}"
    )


def check_names(schema: Schema, given: pa.Schema, optional: set[str], *, merging: bool) -> set[str]:
    """The columns of the table that the data do not have.

    Args:
        schema: The table's columns.
        given: The data's.
        optional: The columns that need not be given.
        merging: Whether none need.

    Raises:
        SchemaMismatchError: Columns are missing, or the table has none of that name.
    """
    names = [field.name for field in schema.fields]
    for name in given.names:
        if name not in names:
            raise SchemaMismatchError(
                f"expected the table's columns {', '.join(names)}, found {name!r} as well; "
                'leave it out, or give schema_mode="merge"',
                column=name,
            )
        if given.get_field_index(name) < 0:
            raise SchemaMismatchError(f"expected each column once, found {name!r} twice", column=name)
    missing = [name for name in names if name not in given.names]
    needed = [name for name in missing if name not in optional]
    if needed and not merging:
        raise SchemaMismatchError(
            f"expected the table's columns {', '.join(names)}, found none called {', '.join(needed)}; "
            'give them, or give schema_mode="merge" for nulls in their place',
            column=needed[0],
        )
    return set(missing)


def fit(reader: pa.RecordBatchReader, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Batches with the table's columns and types; columns that were not given are nulls.

    Raises:
        SchemaMismatchError: Values that do not fit the column's type.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.incoming import fit, reader_of
        >>> next(fit(reader_of(pa.table({"x": [1]})), Schema([Field("x", "integer")]))).schema
        x: int32
    """
    target = schema.to_arrow()
    # Nulls where there may be none are told of by name later.
    loose = pa.schema([pa.field(field.name, _loose(field.type)) for field in target])
    for whole in reader:
        for start in range(0, whole.num_rows, BATCH_ROWS):
            batch = whole.slice(start, BATCH_ROWS)
            columns = []
            for field in loose:
                index = batch.schema.get_field_index(field.name)
                found = pa.nulls(batch.num_rows, field.type) if index < 0 else _cast(batch.column(index), field)
                columns.append(found)
            yield pa.RecordBatch.from_arrays(columns, schema=loose)


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return values
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    try:
        if pa.types.is_dictionary(values.type):
            # Views have no kernel to be taken from.
            plain = values.dictionary.cast(field.type) if _is_text(values.type.value_type) else values.dictionary
            values = pa.DictionaryArray.from_arrays(values.indices, plain).dictionary_decode()
        if pa.types.is_string(field.type) and not _is_text(values.type):
            raise pa.ArrowInvalid("only text becomes text")
        if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(values.type) and values.type.unit == "ns":
            # The protocol has no nanoseconds: they are cut off, as in deltalake.
            values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        return values.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r}: expected {field.type}, found {values.type}: {error}",
            column=field.name,
            expected=str(field.type),
            found=str(values.type),
        ) from error


def _loose(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed everywhere."""
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, _loose(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _loose(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(pa.field("key", _loose(kind.key_type), False), pa.field("value", _loose(kind.item_type)))
    return kind


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind)
    )
