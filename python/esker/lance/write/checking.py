"""First step of a write: refuses schemas that no file can hold, before anything is written."""

from __future__ import annotations

import pyarrow as pa

from ...arrow.batch_source import BatchSource
from ...arrow.json_columns import has_json_text
from ...declared_keys import check_primary_key
from ...exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError


def checked(source: BatchSource) -> BatchSource:
    """The source, after `check_input_schema` of its schema. Rows without columns are refused once there are any."""
    check_input_schema(source.schema)
    return source if len(source.schema) else source.map(source.schema, _without_rows)


def _without_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.num_rows:
        raise InvalidArgumentError(
            f"expected a column, found {batch.num_rows} rows of an empty schema: pylance refuses to change a table "
            "whose data files have no fields; write a column, or an empty table"
        )
    return batch


def check_input_schema(schema: pa.Schema) -> None:
    """Refuses a schema that no file can hold.

    Raises:
        InvalidArgumentError: Metadata are not UTF-8, or a name has a NUL.
        SchemaMismatchError: A vector has no values.
        UnsupportedError: A column has an extension type that Lance stores in a form of its own.
    """
    _check_metadata(schema)
    _check_extensions(schema)
    for field in schema:
        _check_name(field)
        _check_dimensions(field, field.name)


def check_new_columns(schema: pa.Schema) -> None:
    """Refuses columns that a table is not to get: `check_input_schema`, and dictionaries and keys that pylance cannot
    open.

    Tables that have such columns are read and changed as others are.

    Raises:
        InvalidArgumentError: A column of the declared primary key may hold nulls, or is no plain value.
        UnsupportedError: A dictionary's values are dates, times, decimals or bytes of one width.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.write.checking import check_new_columns
        >>> check_new_columns(pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))]))
    """
    check_input_schema(schema)
    check_primary_key(schema)
    for field in schema:
        _check_dictionaries(field.type, field.name)


def _check_dictionaries(type_: pa.DataType, path: str) -> None:
    types = pa.types
    if types.is_dictionary(type_):
        values = type_.value_type
        if types.is_temporal(values) or types.is_decimal(values) or types.is_fixed_size_binary(values):
            raise UnsupportedError(
                f"column {path!r}: expected a dictionary of strings, binary, integers, floats or booleans, found "
                f"{type_}, which makes a table that pylance cannot open; use plain values",
                column=path,
                type=str(type_),
            )
        return
    for index in range(type_.num_fields):
        child = type_.field(index)
        _check_dictionaries(child.type, f"{path}.{child.name}")


def _check_dimensions(field: pa.Field, path: str) -> None:
    """Refuses vectors of no values: a file could not tell how many of them there are."""
    if pa.types.is_fixed_size_list(field.type) and field.type.list_size == 0:
        raise SchemaMismatchError(
            f"column {path!r} is a fixed-size list of dimension 0; dimension must be a positive integer",
            column=path,
            found=str(field.type),
        )
    for index in range(field.type.num_fields):
        child = field.type.field(index)
        _check_dimensions(child, f"{path}.{child.name}")


_BFLOAT16 = "lance.bfloat16"


def _check_metadata(schema: pa.Schema) -> None:
    """Checks that metadata are UTF-8: the format stores them as text, so other bytes would not round-trip."""
    for key, value in (schema.metadata or {}).items():
        try:
            key.decode()
            value.decode()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"schema metadata {key!r} is not valid utf8; encode it, for example as base64"
            ) from error


def _check_name(field: pa.Field) -> None:
    """Checks that names have no NUL: Arrow's C interface would cut them off there."""
    if "\0" in field.name:
        raise InvalidArgumentError(f"expected names without NUL, found {field.name!r}; choose another name")
    for index in range(field.type.num_fields):
        _check_name(field.type.field(index))


def _check_extensions(schema: pa.Schema) -> None:
    """Refuses JSON as text: Lance stores it as JSONB, and by now all of it is that but what lies where it cannot be."""
    for field in schema:
        if has_json_text(pa.schema([field])):
            raise UnsupportedError(
                f"column {field.name!r}: extension arrow.json (json) can be a column, or in structs, lists and maps, "
                f"found it in {field.type}; cast it to a string",
                column=field.name,
                type=str(field.type),
            )
        _check_items(field.type, field.name)


def _check_items(type_: pa.DataType, path: str) -> None:
    """Refuses extension types as items of fixed-size lists, of which the format says only how they are stored."""
    if pa.types.is_fixed_size_list(type_):
        item = type_.value_type
        name = getattr(item, "extension_name", None)
        if name is not None and name != _BFLOAT16:
            raise UnsupportedError(
                f"column {path!r}: expected items that are stored as what they are, found {item} ({name}) in {type_}, "
                f"which would come back as {item.storage_type}; cast the items to that, or use a list",
                column=path,
                type=str(type_),
            )
    for index in range(type_.num_fields):
        child = type_.field(index)
        _check_items(child.type, f"{path}.{child.name}")
