"""Incoming blob columns: binary columns are converted to `lance.blob.v2`, the struct type of file version 2.2.

A blob column of the first kind is a large_binary field with the metadata `lance-encoding:blob`; one of the second kind
has the extension type `lance.blob.v2`.
"""

from __future__ import annotations

import pyarrow as pa

from ..exceptions import SchemaMismatchError
from .batch_source import BatchSource
from .blobs import BLOB_EXTENSION, BLOB_KEY, BlobType

_PLAIN_BLOB = BlobType.__arrow_ext_deserialize__(pa.struct([("data", pa.large_binary()), ("uri", pa.utf8())]), b"")

BLOB_DESCRIPTION = ["kind", "position", "size", "blob_id", "blob_uri"]
"""What a file says of a blob of the second kind."""


def is_blob_type(type_: pa.DataType) -> bool:
    """Whether it is `lance.blob.v2`, the type of a blob column of the second kind, whichever library registered it."""
    return getattr(type_, "extension_name", None) == BLOB_EXTENSION


def holds_blobs(type_: pa.DataType) -> bool:
    """Whether a type holds blobs of the second kind, at any depth."""
    if is_blob_type(type_):
        return True
    if pa.types.is_struct(type_):
        return any(holds_blobs(type_.field(i).type) for i in range(type_.num_fields))
    return (pa.types.is_list(type_) or pa.types.is_large_list(type_)) and holds_blobs(type_.value_type)


def takes_blobs_of(expected: pa.DataType, found: pa.DataType) -> bool:
    """Whether values of type `found` can be written to a blob column of type `expected`."""
    return is_blob_type(expected) and (
        is_blob_type(found) or pa.types.is_binary(found) or pa.types.is_large_binary(found)
    )


def with_blobs_v2(source: BatchSource) -> BatchSource:
    """The source with blob columns of the first kind converted to the second, the only kind in file version 2.2."""
    schema = pa.schema([_upgraded(field) for field in source.schema], metadata=source.schema.metadata)
    if schema.equals(source.schema, check_metadata=True):
        return source

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [to_blobs(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return source.map(schema, convert)


def _upgraded(field: pa.Field) -> pa.Field:
    metadata = dict(field.metadata or {})
    type_ = field.type
    if BLOB_KEY in metadata and (pa.types.is_binary(type_) or pa.types.is_large_binary(type_)):
        del metadata[BLOB_KEY]
        return pa.field(field.name, _PLAIN_BLOB, field.nullable, metadata or None)
    if isinstance(type_, pa.BaseExtensionType):
        return field
    if pa.types.is_struct(type_):
        return field.with_type(pa.struct([_upgraded(type_.field(i)) for i in range(type_.num_fields)]))
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_upgraded(type_.value_field)))
    if pa.types.is_large_list(type_):
        return field.with_type(pa.large_list(_upgraded(type_.value_field)))
    return field


def marked_blobs(rows: pa.RecordBatchReader, table: pa.Schema) -> pa.RecordBatchReader:
    """Rows whose blobs are bytes, with the blob columns of `table` marked by field metadata."""
    schema = marked_schema(rows.schema, table)
    if schema.equals(rows.schema, check_metadata=True):
        return rows
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


def marked_schema(found: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The schema `found`, of rows whose blobs are bytes, with blob columns of `table` marked by field metadata."""
    known = frozenset(table.names)
    fields = [_marked(field, table.field(field.name)) if field.name in known else field for field in found]
    return pa.schema(fields, metadata=found.metadata)


def _marked(found: pa.Field, stored: pa.Field) -> pa.Field:
    if is_blob_type(stored.type):
        metadata = dict(stored.metadata or {}) | {BLOB_KEY: b"true"}
        return found.with_metadata({k: v for k, v in metadata.items() if not k.startswith(b"ARROW:")})
    if pa.types.is_struct(found.type):
        children = [_marked(found.type.field(i), stored.type.field(i)) for i in range(found.type.num_fields)]
        return found.with_type(pa.struct(children))
    if pa.types.is_list(found.type):
        return found.with_type(pa.list_(_marked(found.type.value_field, stored.type.value_field)))
    if pa.types.is_large_list(found.type):
        return found.with_type(pa.large_list(_marked(found.type.value_field, stored.type.value_field)))
    return found


def to_blobs(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array as `type_`, which differs from its type only in blobs: in the array they may still be binary.

    Raises:
        SchemaMismatchError: A blob is a range of an external object, and the column's type has no fields for ranges.

    Example:
        >>> import pyarrow as pa
        >>> from esker.blob import BlobType
        >>> from esker.arrow.blob_arrays import to_blobs
        >>> to_blobs(pa.array([b"ab", None]), BlobType()).storage.field("data").to_pylist()
        [b'ab', None]
    """
    if array.type == type_ or not holds_blobs(type_):
        return array
    if is_blob_type(type_):
        return _blobs(array, type_)
    if pa.types.is_struct(type_):
        children = [to_blobs(array.field(i), type_.field(i).type) for i in range(type_.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        values = to_blobs(array.values, type_.value_type)
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(type_, len(array), buffers, array.null_count, array.offset, [values])
    return array


def _blobs(array: pa.Array, type_: pa.DataType) -> pa.Array:
    wanted = list(type_.storage_type)
    if is_blob_type(array.type):
        storage = array.storage
        found = {field.name: storage.field(i) for i, field in enumerate(storage.type)}
    else:
        storage = array
        found = {"data": array.cast(pa.large_binary())}
    for name, values in found.items():
        if name not in [field.name for field in wanted] and values.null_count < len(values):
            raise SchemaMismatchError(f"expected blobs of {type_.storage_type}, found a {name}; write them whole")
    columns = [found.get(field.name, pa.nulls(len(array), field.type)) for field in wanted]
    mask = storage.is_null() if storage.null_count else None
    return pa.ExtensionArray.from_storage(type_, pa.StructArray.from_arrays(columns, fields=wanted, mask=mask))
