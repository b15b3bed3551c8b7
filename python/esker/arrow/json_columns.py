"""JSON columns: `arrow.json`, which is text, for users; `lance.json`, which is JSONB, in files."""

from __future__ import annotations

import pyarrow as pa

from .._native.expr import to_json_text, to_jsonb
from .batch_source import BatchSource

_NAME = b"ARROW:extension:name"
_TEXT, _STORED = "arrow.json", "lance.json"

_NUMBERS = frozenset(
    kind.id
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.timestamp("us")),
    )
)
"""Types that JSON never has: of a table of thousands of columns the metadata of the others are looked at alone."""


def has_json_text(schema: pa.Schema) -> bool:
    """Whether a column, or a field within one, is JSON as text."""
    return any(_has(field, _TEXT) for field in schema)


def has_jsonb(schema: pa.Schema) -> bool:
    """Whether a column, or a field within one, is JSON as files hold it."""
    return any(_has(field, _STORED) for field in schema)


def as_jsonb(source: BatchSource) -> BatchSource:
    """The rows with JSON columns as files hold them.

    Raises:
        InvalidArgumentError: (as the rows are read) A text is no JSON.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.incoming import coerce_reader
        >>> from esker.arrow.json_columns import as_jsonb
        >>> source = coerce_reader(pa.table({"j": pa.array(["[1]", None], pa.json_())}))
        >>> as_jsonb(source).reader().read_all()["j"].null_count
        1
    """
    if not has_json_text(source.schema):
        return source
    rows = 0

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal rows
        first, rows = rows, rows + batch.num_rows
        return pa.record_batch(to_jsonb(batch, first))

    return source.map(stored_schema(source.schema), convert)


def stored_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with JSON columns as files hold them.

    Raises:
        InvalidArgumentError: A text is no JSON.
    """
    return pa.record_batch(to_jsonb(batch)) if has_json_text(batch.schema) else batch


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with JSON as files hold it."""
    return stored_batch(_empty(schema)).schema if has_json_text(schema) else schema


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with JSON as text.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.json_columns import shown_schema, stored_schema
        >>> stored_schema(pa.schema([("j", pa.json_())])).field("j").type
        DataType(large_binary)
        >>> shown_schema(stored_schema(pa.schema([("j", pa.json_())]))).field("j").type.extension_name
        'arrow.json'
    """
    return as_json_text(_empty(schema)).schema if has_jsonb(schema) else schema


def is_json_text(type_: pa.DataType) -> bool:
    """Whether a type is JSON as text.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.json_columns import is_json_text
        >>> is_json_text(pa.json_()), is_json_text(pa.string())
        (True, False)
    """
    return getattr(type_, "extension_name", None) == _TEXT


def is_jsonb(field: pa.Field) -> bool:
    """Whether a column is JSON as files hold it."""
    return bool((field.metadata or {}).get(_NAME) == _STORED.encode())


def json_within(field: pa.Field) -> tuple[bool, tuple[object, ...]]:
    """Whether a column is JSON as files hold it, and the same of each field within it."""
    type_ = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    return is_jsonb(field), tuple(json_within(type_.field(i)) for i in range(type_.num_fields))


def as_json_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with JSON columns as text.

    Raises:
        InvalidArgumentError: The bytes of a value are damaged.
    """
    return pa.record_batch(to_json_text(batch)) if has_jsonb(batch.schema) else batch


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _has(field: pa.Field, name: str) -> bool:
    type_ = field.type
    if type_.id in _NUMBERS:
        return False
    if (field.metadata or {}).get(_NAME) == name.encode() or getattr(type_, "extension_name", None) == name:
        return True
    return any(_has(type_.field(index), name) for index in range(type_.num_fields))
