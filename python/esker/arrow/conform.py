"""Conforms incoming rows to the columns and types of a table."""

from __future__ import annotations

import pyarrow as pa

from ..exceptions import SchemaMismatchError
from .batch_source import BatchSource
from .blob_arrays import takes_blobs_of
from .casting import cast_column


def conform(source: BatchSource, target: pa.Schema) -> BatchSource:
    """The source's rows in the columns of a table, matched by name, in the table's order.

    Columns that the source lacks are left out; fields that its structs lack are filled with nulls.

    Args:
        source: The rows.
        target: The table's schema.

    Raises:
        SchemaMismatchError: A column has another type, is unknown to the table, or is missing and cannot be null.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.conform import conform
        >>> from esker.arrow.incoming import coerce_reader
        >>> table = pa.schema([("id", pa.int64()), ("name", pa.string())])
        >>> conform(coerce_reader({"name": ["x"]}), table).reader().read_all().to_pylist()
        [{'name': 'x'}]
    """
    found = source.schema
    _require_same_columns(list(target), list(found), "")
    names = set(found.names)
    target = pa.schema([field for field in target if field.name in names], metadata=target.metadata)
    if found.names == target.names and found.types == target.types:
        return source
    return source.map(target, lambda batch: _fit(batch, target))


def _require_same_columns(expected: list[pa.Field], found: list[pa.Field], parent: str) -> None:
    """Checks two lists of fields by name: equal types, nothing unknown, nothing missing that cannot be null."""
    by_name = {field.name: field for field in found}
    names = {field.name for field in expected}
    for field in found:
        if field.name not in names:
            column = parent + field.name
            raise SchemaMismatchError(
                f"column {column!r} is not in the table, expected one of {sorted(names)}; "
                "leave it out, or overwrite the table",
                column=column,
                found=str(field.type),
            )
    for field in expected:
        column = parent + field.name
        other = by_name.get(field.name)
        if other is None:
            if not field.nullable:
                raise SchemaMismatchError(
                    f"column {column!r} is missing, expected {field.type} without nulls",
                    column=column,
                    expected=str(field.type),
                )
            continue
        require_same_json(field, other, column)
        _require_same_type(field.type, other.type, column)


def require_same_json(expected: pa.Field, found: pa.Field, column: str) -> None:
    """Checks that both are JSON, or neither, at any depth: the bytes of other values are no JSONB.

    Types do not tell: JSON is stored as large binary values are.

    Args:
        expected: The table's field.
        found: That of the rows, as files would hold it.
        column: Its path, for the error.

    Raises:
        SchemaMismatchError: One of them is JSON, the other is not.

    Example:
        `require_same_json(table.field("j"), rows.field("j"), "j")`
    """
    stored = [(field.metadata or {}).get(b"ARROW:extension:name") == b"lance.json" for field in (expected, found)]
    if stored[0] != stored[1] and not pa.types.is_null(found.type):
        names = [
            "json" if is_json else str(field.type) for is_json, field in zip(stored, (expected, found), strict=True)
        ]
        raise SchemaMismatchError(
            f"column {column!r} should have type {names[0]} but type was {names[1]}; JSON columns take pyarrow.json_()",
            column=column,
            expected=names[0],
            found=names[1],
        )
    own, other = _storage(expected.type), _storage(found.type)
    if own == other:
        for child, like in zip(_children(own), _children(other), strict=True):
            require_same_json(child, like, f"{column}.{child.name}")


def _require_same_type(expected: pa.DataType, found: pa.DataType, column: str) -> None:
    if takes_blobs_of(expected, found):
        return
    expected, found = _storage(expected), _storage(found)
    if expected == found:
        return
    if pa.types.is_struct(expected) and pa.types.is_struct(found):
        _require_same_columns(_children(expected), _children(found), f"{column}.")
        return
    if _same_list(expected, found):
        require_same_json(expected.value_field, found.value_field, f"{column}.item")
        _require_same_type(expected.value_type, found.value_type, f"{column}.item")
        return
    raise SchemaMismatchError(
        f"column {column!r} has another type than the table, expected {expected}, found {found}; cast it first",
        column=column,
        expected=str(expected),
        found=str(found),
    )


def _children(type_: pa.DataType) -> list[pa.Field]:
    return [type_.field(i) for i in range(type_.num_fields)]


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _same_list(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether both are lists of one kind, whatever they hold."""
    if pa.types.is_fixed_size_list(left):
        return pa.types.is_fixed_size_list(right) and bool(left.list_size == right.list_size)
    return any(kind(left) and kind(right) for kind in (pa.types.is_list, pa.types.is_large_list))


def _fit(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The batch's columns in the target's order and types."""
    return pa.RecordBatch.from_arrays([cast_column(batch.column(f.name), f) for f in target], schema=target)
