"""Rows as batches with exactly the table's columns, in the table's types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..schema import Schema
from .conformed_values import fitted
from .incoming import BATCH_ROWS


def conformed(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Batches with the table's columns and types; columns that were not given are nulls.

    Raises:
        SchemaMismatchError: Values that do not fit the column's type.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.write.conformed import conformed
        >>> from esker.delta.write.incoming import incoming
        >>> next(conformed(incoming(pa.table({"x": [1]})), Schema([Field("x", "integer")]))).schema
        x: int32
    """
    target = schema.to_plain_arrow()
    # Constraints report nulls in non-nullable columns later, by the column's name.
    loose = pa.schema([pa.field(field.name, _loose(field.type)) for field in target])
    for whole in batches:
        for start in range(0, whole.num_rows, BATCH_ROWS):
            batch = whole.slice(start, BATCH_ROWS)
            columns = []
            for field in loose:
                index = batch.schema.get_field_index(field.name)
                found = (
                    pa.nulls(batch.num_rows, field.type)
                    if index < 0
                    else fitted(batch.column(index), field.type, field.name)
                )
                columns.append(found)
            yield pa.RecordBatch.from_arrays(columns, schema=loose)


def _loose(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed everywhere."""
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, _loose(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _loose(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(pa.field("key", _loose(kind.key_type), False), pa.field("value", _loose(kind.item_type)))
    return kind
