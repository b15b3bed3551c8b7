"""Incoming data: converts whatever a write accepts to one stream of record batches, a `BatchSource`.

Accepted are a table, a reader, a dataset, a scanner, pandas, polars, dictionaries, a list of instances of a pydantic
model, an iterator of batches with a schema, and any object with `__arrow_c_stream__`. View types become the plain
types that files hold, JSON text becomes JSONB, and prepared blobs become values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ..exceptions import InvalidArgumentError
from .batch_source import BatchSource
from .batches import owned
from .casting import cast_batch
from .json_columns import as_jsonb
from .plain_types import plain_schema
from .prepared_blobs import as_values
from .pydantic_models import is_model, models_to_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset

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


def coerce_reader(data_obj: ReaderLike, schema: pa.Schema | None = None) -> BatchSource:
    """Converts the data of a write to a stream of record batches.

    Args:
        data_obj: The data; the module's docstring lists the accepted types.
        schema: The schema of the batches: required for an iterator of batches, otherwise the data are cast to it.

    Raises:
        InvalidArgumentError: The data are an iterator, and no schema is given.
        SchemaMismatchError: The data cannot be cast to `schema`.
        TypeError: The data are of a type that is not accepted.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.incoming import coerce_reader
        >>> coerce_reader({"id": [1, 2]}).reader().read_all().num_rows
        2
    """
    source = _source(data_obj, schema)
    target = plain_schema(source.schema if schema is None else schema)
    if not target.equals(source.schema, check_metadata=True):
        source = source.map(target, lambda batch: cast_batch(batch, target))
    return as_jsonb(as_values(source))


def _source(data_obj: ReaderLike, schema: pa.Schema | None) -> BatchSource:
    module = type(data_obj).__module__.partition(".")[0]
    if isinstance(data_obj, pa.RecordBatchReader):
        return BatchSource(data_obj.schema, data_obj)
    if isinstance(data_obj, pa.Table):
        return BatchSource(data_obj.schema, data_obj.to_reader())
    if isinstance(data_obj, pa.RecordBatch):
        return BatchSource(data_obj.schema, [data_obj])
    # It takes half a second to import, with pandas: whoever has made a dataset has done so.
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(data_obj, dataset.Dataset):
        # `LanceDataset._rows_to_write` reads blobs as bytes; a scan would return only their descriptions.
        rows = getattr(data_obj, "_rows_to_write", None)
        reader = data_obj.scanner().to_reader() if rows is None else rows()
        return BatchSource(reader.schema, reader)
    if dataset is not None and isinstance(data_obj, dataset.Scanner):
        reader = data_obj.to_reader()
        return BatchSource(reader.schema, reader)
    if module == "pandas" and hasattr(data_obj, "columns"):
        return _source(pa.Table.from_pandas(data_obj, schema=schema), None)
    if module == "polars":
        frame: Any = data_obj
        return _source((frame.collect() if hasattr(frame, "collect") else frame).to_arrow(), None)
    if isinstance(data_obj, Mapping):
        return _source(pa.Table.from_pydict(dict(data_obj), schema=schema), None)
    if isinstance(data_obj, list) and data_obj and is_model(type(data_obj[0])):
        return _source(models_to_table(type(data_obj[0]), data_obj, schema), None)
    if isinstance(data_obj, list) and data_obj and isinstance(data_obj[0], Mapping):
        return _source(pa.Table.from_pylist(data_obj, schema=schema), None)
    if hasattr(data_obj, "__arrow_c_stream__"):
        return _source(pa.RecordBatchReader.from_stream(data_obj), None)
    if hasattr(data_obj, "__arrow_c_array__"):
        return _source(pa.record_batch(data_obj), None)
    if isinstance(data_obj, Iterable) and not isinstance(data_obj, str | bytes):
        if schema is None:
            raise InvalidArgumentError("an iterator of record batches needs a schema, pass schema=")
        # Whoever makes batches as they are asked for may fill the same memory anew.
        is_there = isinstance(data_obj, Sized)
        batches = (_require_batch(item) for item in data_obj)
        return BatchSource(schema, (cast_batch(it if is_there else owned(it), schema) for it in batches))
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
