"""`Assignments`: the SET clause of an update: new values of columns, computed from the columns of the same row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from ..._native.expr import Expression
from ...arrow.blob_arrays import holds_blobs
from ...arrow.json_columns import as_json_text, is_jsonb, stored_batch
from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError


class Assignments:
    """New values of columns, computed from the columns of the same row.

    Args:
        updates: SQL expressions by column.
        schema: The table's columns.

    Raises:
        InvalidArgumentError: The table does not have a column, or an expression does not parse.
        UnsupportedError: A name is that of a field within a column, or of a blob column of the second kind.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.change.assignments import Assignments
        >>> rows = pa.record_batch({"a": [1, 2]})
        >>> [batch.to_pydict() for batch in Assignments({"a": "a * 10"}, rows.schema).applied([rows])]
        [{'a': [10, 20]}]
    """

    def __init__(self, updates: Mapping[str, str], schema: pa.Schema) -> None:
        self._values: dict[str, Expression] = {}
        for name, text in updates.items():
            if name not in schema.names:
                _refuse_column(name, schema)
            if holds_blobs(schema.field(name).type):
                raise UnsupportedError(
                    f"column {name!r} of blobs cannot be assigned to yet, write the rows", column=name
                )
            self._values[name] = Expression.parse_sql(text, schema)

    def applied(self, batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the new values in place of the old ones."""
        for batch in batches:
            new = {name: _values(expression, batch, name) for name, expression in self._values.items()}
            for name, values in new.items():
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, batch.schema.field(place), values)
            yield batch


def _values(expression: Expression, batch: pa.RecordBatch, column: str) -> pa.Array:
    type_ = batch.schema.field(column).type
    storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    # An expression without columns still needs the number of rows: read any column.
    read = batch.select(expression.columns or batch.schema.names[:1])
    if is_jsonb(batch.schema.field(column)):
        values = _json_values(pa.array(expression.evaluate(read)), column)
    else:
        values = within_precision(pa.array(expression.evaluate(read, data_type=storage)), column)
    if values.null_count and not batch.schema.field(column).nullable:
        raise SchemaMismatchError(f"expected no nulls in column {column!r}, found one in {expression}", column=column)
    return pa.ExtensionArray.from_storage(type_, values) if storage is not type_ else values


def _json_values(values: pa.Array, column: str) -> pa.Array:
    """Values of a JSON column: text is JSON text, bytes are JSONB of another column or of `json_get`."""
    if pa.types.is_large_binary(values.type):
        field = pa.field(column, values.type, metadata={"ARROW:extension:name": "lance.json"})
        as_json_text(pa.record_batch([values], pa.schema([field])))
        return values
    if pa.types.is_null(values.type):
        return values.cast(pa.large_binary())
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = values.cast(pa.string())
    text = pa.ExtensionArray.from_storage(pa.json_(values.type), values)
    return stored_batch(pa.record_batch({column: text})).column(0)


def within_precision(values: pa.Array, column: str) -> pa.Array:
    """The values, checked for decimals with more digits than their type has: arithmetic does not check them.

    Raises:
        InvalidArgumentError: A value has more digits.
    """
    if pa.types.is_decimal(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(f"a value overflows column {column!r}: {error}", column=column) from error
    return values


def _refuse_column(name: str, schema: pa.Schema) -> None:
    if name.partition(".")[0] in schema.names:
        raise UnsupportedError(
            f"field {name!r} within a column cannot be updated by itself yet, give the whole column a value",
            column=name,
        )
    raise InvalidArgumentError(
        f"expected updates of columns of the table ({', '.join(schema.names)}), found {name!r}", column=name
    )
