"""Casts of incoming columns to a table's types. A cast that would lose a value is an error."""

from __future__ import annotations

import pyarrow as pa

from ..exceptions import SchemaMismatchError
from .blob_arrays import holds_blobs, to_blobs
from .plain_types import plain_array


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch cast to the schema, column by column and by name."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if set(batch.schema.names) != set(schema.names):
        raise SchemaMismatchError(
            f"expected batches with the field names {schema.names}, found {batch.schema.names}",
            expected=schema.names,
            found=batch.schema.names,
        )
    return pa.RecordBatch.from_arrays([cast_column(batch.column(f.name), f) for f in schema], schema=schema)


def cast_column(column: pa.Array, field: pa.Field) -> pa.Array:
    """The column cast to the type of `field`. Blobs in the column may still be binary.

    Raises:
        SchemaMismatchError: A value does not fit.
    """
    if column.type == field.type:
        return column
    column = plain_array(column)
    if column.type == field.type:
        return column
    if holds_blobs(field.type):
        column = to_blobs(column, field.type)
        if column.type == field.type:
            return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r} of type {column.type} cannot be cast, expected {field.type}: {error}",
            column=field.name,
            expected=str(field.type),
            found=str(column.type),
        ) from error
