"""`Assignments`: the SET clause of an update: new values of columns, computed from the columns of the same row.

A field within structs (`"a.b"`) is assigned where the structs are there: a null struct stays null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from ..._native.expr import Expression
from ...arrow.blob_arrays import holds_blobs
from ...arrow.json_columns import as_json_text, has_jsonb, is_jsonb, stored_batch
from ...arrow.nested import struct_of
from ...arrow.paths import parts_of
from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError


class Assignments:
    """New values of columns, computed from the columns of the same row.

    Args:
        updates: SQL expressions by column, or by the dotted path of a field within structs.
        schema: The table's columns.

    Raises:
        InvalidArgumentError: The table does not have a column, two names are of one field or of one within the other,
            or an expression does not parse.
        UnsupportedError: A name is that of a field within lists or maps, or of a blob column of the second kind.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.change.assignments import Assignments
        >>> rows = pa.record_batch({"a": [1, 2]})
        >>> [batch.to_pydict() for batch in Assignments({"a": "a * 10"}, rows.schema).applied([rows])]
        [{'a': [10, 20]}]
    """

    def __init__(self, updates: Mapping[str, str], schema: pa.Schema) -> None:
        self._values: dict[str, Expression] = {}
        self._paths = {name: _path(name, schema) for name in updates}
        _refuse_overlap(self._paths)
        for name, text in updates.items():
            if holds_blobs(_field_at(schema, self._paths[name]).type):
                raise UnsupportedError(
                    f"column {name!r} of blobs cannot be assigned to yet, write the rows", column=name
                )
            self._values[name] = Expression.parse_sql(text, schema)

    @property
    def columns(self) -> list[str]:
        """The top-level columns that get new values."""
        return list(dict.fromkeys(path[0] for path in self._paths.values()))

    def applied(self, batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the new values in place of the old ones."""
        for batch in batches:
            new = {
                name: _values(expression, batch, _field_at(batch.schema, self._paths[name]), name)
                for name, expression in self._values.items()
            }
            for name, values in new.items():
                path = self._paths[name]
                place = batch.schema.get_field_index(path[0])
                within = _assigned(batch.column(place), path[1:], values, name)
                batch = batch.set_column(place, batch.schema.field(place), within)
            yield batch


def _assigned(old: pa.Array, path: tuple[str, ...], values: pa.Array, name: str) -> pa.Array:
    """The values in place of those of a field within structs."""
    if not path:
        return values
    place = old.type.get_field_index(path[0])
    parts = old.flatten()
    part = _assigned(parts[place], path[1:], values, name)
    if not old.type.field(place).nullable and part.filter(old.is_valid()).null_count:
        raise SchemaMismatchError(f"expected no nulls in field {name!r}, found one", column=name)
    parts[place] = part
    return struct_of(parts, old.type, old)


def _values(expression: Expression, batch: pa.RecordBatch, field: pa.Field, column: str) -> pa.Array:
    type_ = field.type
    storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    # An expression without columns still needs the number of rows: read any column.
    read = batch.select(expression.columns or batch.schema.names[:1])
    if is_jsonb(field):
        values = _json_values(pa.array(expression.evaluate(read)), column)
    else:
        values = within_precision(pa.array(expression.evaluate(read, data_type=storage)), column)
        if has_jsonb(pa.schema([field])):
            # Binary values of another column, or of a field in it, have the type of JSONB.
            as_json_text(pa.record_batch([values], pa.schema([field])))
    if values.null_count and not field.nullable and column in batch.schema.names:
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
    field = pa.field(column, values.type, metadata={"ARROW:extension:name": "arrow.json"})
    return stored_batch(pa.record_batch([values], pa.schema([field]))).column(0)


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


def _path(name: str, schema: pa.Schema) -> tuple[str, ...]:
    """The way to a column or to a field within structs."""
    if name in schema.names:
        return (name,)
    head, *rest = parts_of(name)
    if head not in schema.names:
        raise InvalidArgumentError(
            f"expected updates of columns of the table ({', '.join(schema.names)}), found {name!r}", column=name
        )
    type_ = schema.field(head).type
    for part in rest:
        if not pa.types.is_struct(type_):
            raise UnsupportedError(
                f"expected a column or a field of structs to update, found {name!r} within {type_}; give the whole "
                "column a value",
                column=name,
            )
        place = type_.get_field_index(part)
        if place < 0:
            raise InvalidArgumentError(f"column {name!r} does not exist: {type_} has no field {part!r}", column=name)
        type_ = type_.field(place).type
    return (head, *rest)


def _refuse_overlap(paths: Mapping[str, tuple[str, ...]]) -> None:
    for name, path in paths.items():
        for other, longer in paths.items():
            if name != other and longer[: len(path)] == path:
                raise InvalidArgumentError(
                    f"expected updates of fields apart from each other, found {name!r} and {other!r}", column=other
                )


def _field_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field:
    field = schema.field(path[0])
    for part in path[1:]:
        field = field.type.field(part)
    return field
