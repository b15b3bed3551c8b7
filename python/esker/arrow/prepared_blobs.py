"""Prepared blobs: a blob column that says where its bytes lie, instead of bringing them.

The file of data is to be written next to the files of blobs, so that the caller has to know its name: only
`LanceFileSession.open_writer` takes all kinds. A table chooses the names of its files; it takes what needs no name.
Layout and kinds are those of the writer's form of `lance.blob.v2` in pylance: kind 0 data, 1 packed, 2 dedicated, 3
external.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..exceptions import InvalidArgumentError
from .batch_source import BatchSource
from .blobs import BLOB_EXTENSION, BLOB_KEY, BlobType

_EXTENSION_KEY = b"ARROW:extension:name"
PREPARED_TYPE = pa.struct(
    [
        pa.field("kind", pa.uint8()),
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.utf8()),
        pa.field("blob_id", pa.uint32()),
        pa.field("blob_size", pa.uint64()),
        pa.field("position", pa.uint64()),
    ]
)
"""A prepared blob."""
INLINE, PACKED, DEDICATED, EXTERNAL = range(4)


def prepared_field(name: str) -> pa.Field:
    """The field of a column of prepared blobs.

    Example:
        >>> from esker.arrow.prepared_blobs import is_prepared, prepared_field
        >>> is_prepared(prepared_field("photo"))
        True
    """
    return pa.field(name, PREPARED_TYPE, metadata={_EXTENSION_KEY: BLOB_EXTENSION.encode()})


def is_prepared(field: pa.Field) -> bool:
    """Whether a column is of prepared blobs."""
    return bool(field.type == PREPARED_TYPE and (field.metadata or {}).get(_EXTENSION_KEY) == BLOB_EXTENSION.encode())


def marked_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with prepared blobs marked by a key: Arrow's own types do not pass on their extension.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.prepared_blobs import marked_schema, prepared_field
        >>> marked_schema(pa.schema([prepared_field("photo")])).field("photo").metadata
        {b'lance-encoding:blob': b'true'}
    """
    if not _has_prepared(schema):
        return schema
    return pa.schema([_marked(field) for field in schema], metadata=schema.metadata)


def as_values(source: BatchSource) -> BatchSource:
    """The rows with prepared blobs as values of `lance.blob.v2`, which a table takes.

    Raises:
        InvalidArgumentError: (as the rows are read) A blob lies in a file that is named by the file of data.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.incoming import coerce_reader
        >>> from esker.arrow.prepared_blobs import INLINE, PREPARED_TYPE, as_values, prepared_field
        >>> blobs = pa.array([{"kind": INLINE, "data": b"bytes"}], PREPARED_TYPE)
        >>> batch = pa.record_batch([blobs], schema=pa.schema([prepared_field("photo")]))
        >>> as_values(coerce_reader(batch)).schema.field("photo").type.extension_name
        'lance.blob.v2'
    """
    if not _has_prepared(source.schema):
        return source
    schema = pa.schema([_value_field(field) for field in source.schema], metadata=source.schema.metadata)

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_values(field, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return source.map(schema, convert)


def _has_prepared(schema: pa.Schema) -> bool:
    return any(_has(field) for field in schema)


def _has(field: pa.Field) -> bool:
    type_ = field.type
    if not type_.num_fields:
        # Most columns: tables have thousands of them.
        return False
    return is_prepared(field) or any(_has(type_.field(index)) for index in range(type_.num_fields))


def _marked(field: pa.Field) -> pa.Field:
    if is_prepared(field):
        kept = {key: value for key, value in field.metadata.items() if key != _EXTENSION_KEY}
        return field.with_metadata({**kept, BLOB_KEY: b"true"})
    return field.with_type(_with_children(field, _marked)) if _has(field) else field


def _value_field(field: pa.Field) -> pa.Field:
    if is_prepared(field):
        kept = {key: value for key, value in field.metadata.items() if key != _EXTENSION_KEY}
        return pa.field(field.name, BlobType(), field.nullable, kept or None)
    return field.with_type(_with_children(field, _value_field)) if _has(field) else field


def _with_children(field: pa.Field, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """The type of a struct or list whose fields are changed."""
    children = [change(field.type.field(index)) for index in range(field.type.num_fields)]
    if pa.types.is_struct(field.type):
        return pa.struct(children)
    if pa.types.is_list(field.type):
        return pa.list_(children[0])
    if pa.types.is_large_list(field.type):
        return pa.large_list(children[0])
    raise InvalidArgumentError(
        f"column {field.name!r}: expected prepared blobs as a column, or in structs and lists, found {field.type}"
    )


def _values(field: pa.Field, array: pa.Array) -> pa.Array:
    if is_prepared(field):
        return _blobs(field, array)
    if not _has(field):
        return array
    target = _with_children(field, _value_field)
    if pa.types.is_struct(field.type):
        children = [_values(field.type.field(index), array.field(index)) for index in range(field.type.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    items = _values(field.type.field(0), array.values)
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, array.offset, [items])


def _blobs(field: pa.Field, array: pa.Array) -> pa.Array:
    """Values of `lance.blob.v2` for prepared blobs."""
    type_ = BlobType()
    rows: list[dict[str, Any] | None] = []
    for blob in array.to_pylist():
        if blob is None:
            rows.append(None)
        elif blob["kind"] == INLINE and blob["data"] is not None:
            rows.append({"data": blob["data"]})
        elif blob["kind"] == EXTERNAL and blob["uri"] and not blob["blob_id"]:
            part = {"position": blob["position"] or 0, "size": blob["blob_size"]} if blob["blob_size"] else {}
            rows.append({"uri": blob["uri"], **part})
        else:
            found = {name: value for name, value in blob.items() if value is not None and name != "data"}
            raise InvalidArgumentError(
                f"column {field.name!r}: expected prepared blobs with data (kind 0) or a uri (kind 3), found {found}; "
                "a table names its files itself, so that blobs beside a file are written with "
                "LanceFileSession.open_writer, and the file is added with LanceOperation.Append"
            )
    return pa.ExtensionArray.from_storage(type_, pa.array(rows, type_.storage_type))
