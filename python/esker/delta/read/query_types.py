"""The Arrow types of a query's result: those that deltalake returns, whatever DuckDB hands out."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...arrow.nested import is_list_like

_HAS_VIEWS = int(pa.__version__.partition(".")[0]) >= 25
"""Whether pyarrow can hand out views that it has made of short texts; before, it ends the process."""


def returned_schema(
    found: pa.Schema, are_sums: Sequence[bool], fields: Sequence[pa.Field | None] | None = None
) -> pa.Schema:
    """The schema of a result.

    Args:
        found: DuckDB's.
        are_sums: Of each column, whether it has DuckDB's integers of 128 bits, which sums of integers are.
        fields: For each column that of a table that it is as it is.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.query_types import returned_schema
        >>> returned_schema(pa.schema([("n", pa.decimal128(38, 0)), ("name", pa.string())]), [True, False]).types
        [DataType(int64), DataType(string_view)]
    """
    kinds = [pa.int64() if is_sum else _returned(field.type) for field, is_sum in zip(found, are_sums, strict=True)]
    known = fields if fields is not None else [None] * len(kinds)
    returned = []
    for field, kind, table_field in zip(found, kinds, known, strict=True):
        one = pa.field(field.name, kind)
        if table_field is not None:
            one = one.with_nullable(table_field.nullable).with_metadata(table_field.metadata)
        returned.append(one)
    return pa.schema(returned)


def as_returned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of a result with the types of `returned_schema`."""
    columns = [pc.cast(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


def _returned(found: pa.DataType) -> pa.DataType:
    if pa.types.is_string(found) or pa.types.is_large_string(found):
        return pa.string_view() if _HAS_VIEWS else found
    if pa.types.is_binary(found) or pa.types.is_large_binary(found):
        return pa.binary_view() if _HAS_VIEWS else found
    if pa.types.is_timestamp(found) and found.tz is not None:
        return pa.timestamp(found.unit, "UTC")
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_returned(field.type)) for field in found])
    if is_list_like(found):
        return pa.list_(pa.field("element", _returned(found.value_type)))
    if pa.types.is_map(found):
        return pa.map_(_plain(found.key_type), _plain(found.item_type))
    return found


def _plain(found: pa.DataType) -> pa.DataType:
    """Within maps texts are no views, as maps of a table have them."""
    kind = _returned(found)
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)
