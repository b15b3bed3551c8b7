"""Incoming rows: any Arrow data as a stream of batches, and the check of its columns against the table's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from ...arrow.nested import is_list_like
from ...exceptions import InvalidTypeError, SchemaMismatchError
from ..schema import Schema

BATCH_ROWS = 128 * 1024


def incoming(data: Any) -> pa.RecordBatchReader:
    """Arrow data of any library as a stream of batches.

    Args:
        data: A table, a batch, a reader, a DataFrame, or batches in a list or from a generator: whatever has the
            Arrow PyCapsule interface.

    Raises:
        InvalidTypeError: It does not.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.incoming import incoming
        >>> incoming(pa.table({"x": [1]})).schema.names
        ['x']
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader(BATCH_ROWS)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        parts = iter(data)
        first = next(parts, None)
        if hasattr(first, "__arrow_c_array__"):
            batch = pa.record_batch(first)
            return pa.RecordBatchReader.from_batches(batch.schema, chain([batch], map(pa.record_batch, parts)))
    raise InvalidTypeError(
        f"expected data with the Arrow PyCapsule interface (pyarrow, pandas, polars...), found {type(data).__name__}"
    )


def check_names(schema: Schema, given: pa.Schema, optional: set[str], *, merging: bool) -> set[str]:
    """The columns of the table that the data do not have; fields of structs must be the table's, however deep.

    Args:
        schema: The table's columns.
        given: The data's.
        optional: The columns that need not be given.
        merging: Whether none need.

    Raises:
        SchemaMismatchError: Columns or fields are missing, or the table has none of that name.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.write.incoming import check_names
        >>> table = Schema([Field("x", "long"), Field("y", "long")])
        >>> check_names(table, pa.schema([("x", "int64")]), {"y"}, merging=False)
        {'y'}
    """
    names = [field.name for field in schema.fields]
    known = set(names)
    for name in given.names:
        if name not in known:
            raise SchemaMismatchError(
                f"expected the table's columns {', '.join(names)}, found {name!r} as well; "
                'leave it out, or give schema_mode="merge" (Cannot cast schema, number of fields does not match)',
                column=name,
            )
        if given.get_field_index(name) < 0:
            raise SchemaMismatchError(f"expected each column once, found {name!r} twice", column=name)
    there = set(given.names)
    missing = [name for name in names if name not in there]
    needed = [name for name in missing if name not in optional]
    if needed and not merging:
        raise SchemaMismatchError(
            f"expected the table's columns {', '.join(names)}, found none called {', '.join(needed)}; "
            'give them, or give schema_mode="merge" for nulls in their place',
            column=needed[0],
        )
    target = schema.to_plain_arrow()
    for field in given:
        _check_fields(target.field(field.name).type, field.type, field.name, merging)
    return set(missing)


def _check_fields(kind: pa.DataType, given: pa.DataType, path: str, merging: bool) -> None:
    """Raises where a struct within has other fields than the table's."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_list(kind) and is_list_like(given):
        _check_fields(kind.value_type, given.value_type, f"{path}.element", merging)
    elif pa.types.is_map(kind) and pa.types.is_map(given):
        _check_fields(kind.key_type, given.key_type, f"{path}.key", merging)
        _check_fields(kind.item_type, given.item_type, f"{path}.value", merging)
    elif pa.types.is_struct(kind) and pa.types.is_struct(given):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        found = [given.field(i).name for i in range(given.num_fields)]
        for number, name in enumerate(found):
            if name not in names:
                raise SchemaMismatchError(
                    f"column {path!r}: expected the fields {', '.join(names)}, found {name!r} as well; "
                    'leave it out, or give schema_mode="merge"',
                    column=f"{path}.{name}",
                )
            if name in found[:number]:
                raise SchemaMismatchError(
                    f"column {path!r}: expected each field once, found {name!r} twice", column=f"{path}.{name}"
                )
        for i, name in enumerate(names):
            if name in found:
                inner = given.field(found.index(name)).type
                _check_fields(kind.field(i).type, inner, f"{path}.{name}", merging)
            elif not merging:
                raise SchemaMismatchError(
                    f"column {path!r}: expected the fields {', '.join(names)}, found none called {name!r}; "
                    'give it, or give schema_mode="merge" for nulls in its place',
                    column=f"{path}.{name}",
                )
