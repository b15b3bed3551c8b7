"""What a write accepts, as one stream of record batches with a table's column types.

A table, a reader, a dataset, a scanner, pandas, polars, dictionaries, an iterator of batches with a schema, anything
with `__arrow_c_stream__`: each becomes a `BatchSource`. View types become the plain types that files hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset

from ..exceptions import InvalidArgumentError, SchemaMismatchError
from . import blob_arrays as blobs
from .plain_types import plain_array, plain_schema

if TYPE_CHECKING:
    import pandas as pd

    ReaderLike: TypeAlias = (
        pa.Table
        | pa.RecordBatch
        | pa.RecordBatchReader
        | pyarrow.dataset.Dataset
        | pyarrow.dataset.Scanner
        | pd.DataFrame
        | Iterable[pa.RecordBatch]
        | Mapping[str, Any]
        | Any
    )
else:
    ReaderLike = Any


class BatchSource:
    """Record batches of one schema, read once.

    An error of the user's own iterator would lose its class on the way through the C stream interface: it is kept in
    `failure`, so that the caller raises it instead of what became of it.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch] | pa.RecordBatchReader) -> None:
        self.schema = schema
        self.failure: BaseException | None = None
        self._batches = batches

    def reader(self) -> pa.RecordBatchReader:
        """The batches as a reader."""
        if isinstance(self._batches, pa.RecordBatchReader):
            return self._batches
        return pa.RecordBatchReader.from_batches(self.schema, self._guarded(self._batches))

    def map(self, schema: pa.Schema, convert: Callable[[pa.RecordBatch], pa.RecordBatch]) -> BatchSource:
        """The same rows with each batch converted to `schema`."""
        source = BatchSource(schema, ())
        # The errors of this source's iterator pass through the other's: both remember them.
        source._batches = (convert(batch) for batch in self._batches)
        return source

    def _guarded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise


def coerce_reader(data_obj: ReaderLike, schema: pa.Schema | None = None) -> BatchSource:
    """Makes a stream of batches of whatever a write was given.

    Args:
        data_obj: The data; see the module's head.
        schema: Column types: required for an iterator of batches, otherwise the data are cast to it.

    Raises:
        InvalidArgumentError: An iterator without a schema.
        SchemaMismatchError: The data cannot be cast to `schema`.
        TypeError: Nothing that holds columns.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.incoming import coerce_reader
        >>> coerce_reader({"id": [1, 2]}).reader().read_all().num_rows
        2
    """
    source = _source(data_obj, schema)
    target = plain_schema(source.schema if schema is None else schema)
    if target.equals(source.schema, check_metadata=True):
        return source
    return source.map(target, lambda batch: _cast(batch, target))


def conform(source: BatchSource, target: pa.Schema) -> BatchSource:
    """The source's rows in the columns of a table: by name and in the table's order.

    Columns that the source lacks stay away; fields that its structs lack come as nulls.

    Args:
        source: The rows.
        target: The table's schema.

    Raises:
        SchemaMismatchError: A column has another type, is unknown to the table, or is missing and cannot be null.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.incoming import coerce_reader, conform
        >>> table = pa.schema([("id", pa.int64()), ("name", pa.string())])
        >>> conform(coerce_reader({"name": ["x"]}), table).reader().read_all().to_pylist()
        [{'name': 'x'}]
    """
    found = source.schema
    _require_same_columns(list(target), list(found), "")
    target = pa.schema([field for field in target if field.name in found.names], metadata=target.metadata)
    if found.names == target.names and all(found.field(f.name).type == f.type for f in target):
        return source
    return source.map(target, lambda batch: _fit(batch, target))


def _source(data_obj: ReaderLike, schema: pa.Schema | None) -> BatchSource:
    module = type(data_obj).__module__.partition(".")[0]
    if isinstance(data_obj, pa.RecordBatchReader):
        return BatchSource(data_obj.schema, data_obj)
    if isinstance(data_obj, pa.Table):
        return BatchSource(data_obj.schema, data_obj.to_reader())
    if isinstance(data_obj, pa.RecordBatch):
        return BatchSource(data_obj.schema, [data_obj])
    if isinstance(data_obj, pyarrow.dataset.Dataset):
        # A table of ours brings its blobs along, where a scan would only tell where they lie.
        rows = getattr(data_obj, "_rows_to_write", None)
        reader = data_obj.scanner().to_reader() if rows is None else rows()
        return BatchSource(reader.schema, reader)
    if isinstance(data_obj, pyarrow.dataset.Scanner):
        reader = data_obj.to_reader()
        return BatchSource(reader.schema, reader)
    if module == "pandas" and hasattr(data_obj, "columns"):
        return _source(pa.Table.from_pandas(data_obj, schema=schema), None)
    if module == "polars":
        frame: Any = data_obj
        return _source((frame.collect() if hasattr(frame, "collect") else frame).to_arrow(), None)
    if isinstance(data_obj, Mapping):
        return _source(pa.Table.from_pydict(dict(data_obj), schema=schema), None)
    if isinstance(data_obj, list) and data_obj and isinstance(data_obj[0], Mapping):
        return _source(pa.Table.from_pylist(data_obj, schema=schema), None)
    if hasattr(data_obj, "__arrow_c_stream__"):
        return _source(pa.RecordBatchReader.from_stream(data_obj), None)
    if hasattr(data_obj, "__arrow_c_array__"):
        return _source(pa.record_batch(data_obj), None)
    if isinstance(data_obj, Iterable) and not isinstance(data_obj, str | bytes):
        if schema is None:
            raise InvalidArgumentError("an iterator of record batches needs a schema, pass schema=")
        return BatchSource(schema, (_cast(_require_batch(item), schema) for item in data_obj))
    raise TypeError(
        f"expected a table, a record batch, a reader, a dataset, a data frame, an iterator of batches or an object "
        f"with __arrow_c_stream__, found {type(data_obj).__name__}"
    )


def _require_batch(item: Any) -> pa.RecordBatch:
    if isinstance(item, pa.RecordBatch):
        return item
    if hasattr(item, "__arrow_c_array__"):
        return pa.record_batch(item)
    raise TypeError(f"expected the iterator to yield pyarrow.RecordBatch, found {type(item).__name__}")


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch cast to the schema, column by column and by name."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if set(batch.schema.names) != set(schema.names):
        raise SchemaMismatchError(
            f"expected batches with the columns {schema.names}, found {batch.schema.names}",
            expected=schema.names,
            found=batch.schema.names,
        )
    return pa.RecordBatch.from_arrays([_cast_column(batch.column(f.name), f) for f in schema], schema=schema)


def _cast_column(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    column = plain_array(column)
    if column.type == field.type:
        return column
    if blobs.holds_blobs(field.type):
        column = blobs.to_blobs(column, field.type)
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


def _fit(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The batch's columns in the target's order and types."""
    return pa.RecordBatch.from_arrays([_cast_column(batch.column(f.name), f) for f in target], schema=target)


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
        _require_same_type(field.type, other.type, column)


def _require_same_type(expected: pa.DataType, found: pa.DataType, column: str) -> None:
    if blobs.takes_blobs_of(expected, found):
        return
    expected, found = _storage(expected), _storage(found)
    if expected == found:
        return
    if pa.types.is_struct(expected) and pa.types.is_struct(found):
        children = [[t.field(i) for i in range(t.num_fields)] for t in (expected, found)]
        _require_same_columns(children[0], children[1], f"{column}.")
        return
    if _same_list(expected, found):
        _require_same_type(expected.value_type, found.value_type, f"{column}.item")
        return
    raise SchemaMismatchError(
        f"column {column!r} has another type than the table, expected {expected}, found {found}; cast it first",
        column=column,
        expected=str(expected),
        found=str(found),
    )


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _same_list(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether both are lists of one kind, whatever they hold."""
    if pa.types.is_fixed_size_list(left):
        return pa.types.is_fixed_size_list(right) and bool(left.list_size == right.list_size)
    return any(kind(left) and kind(right) for kind in (pa.types.is_list, pa.types.is_large_list))
