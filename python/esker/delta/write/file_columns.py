"""The columns of a table as data files have them: their names and nullability at every level, and their leaves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..read.hidden_nulls import filled, may_hide


def as_in_files(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the names and nullability of a data file at every level.

    Args:
        rows: The columns of the file, in its order and in the table's types.
        schema: The file's.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.file_columns import as_in_files
        >>> as_in_files(pa.table({"x": [1]}), pa.schema([("c-1", "int64")])).column_names
        ['c-1']
    """
    hides_nulls = any(may_hide(kind) for kind in schema.types)
    if not hides_nulls and rows.schema.types == schema.types:
        return pa.Table.from_arrays(rows.columns, schema=schema)
    batch = rows.combine_chunks().to_batches()[0]
    if hides_nulls:
        pairs = zip(batch.columns, schema.types, strict=True)
        batch = pa.RecordBatch.from_arrays([filled(*pair) for pair in pairs], names=batch.schema.names)
    if batch.schema.types == schema.types:
        return pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema)])
    # The same arrays under other names, and without nulls where there may be none: only the schema of the
    # message is another.
    return pa.Table.from_batches([pa.ipc.read_record_batch(batch.serialize(), schema)])


def leaf_columns(schema: pa.Schema) -> list[Any]:
    """The leaf columns that a Parquet file with such a schema has.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.file_columns import leaf_columns
        >>> [column.path for column in leaf_columns(pa.schema([("x", pa.list_(pa.int8()))]))]
        ['x.list.element']
    """
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    parquet = pq.ParquetFile(sink.getvalue()).schema
    return [parquet.column(i) for i in range(len(parquet))]
