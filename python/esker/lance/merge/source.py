"""The source of a merge: checked, and conformed to the columns and types of the table."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.merge import MergeSource
from ...arrow.batch_source import BatchSource
from ...arrow.blob_arrays import holds_blobs
from ...arrow.conform import conform
from ...arrow.incoming import ReaderLike, coerce_reader
from ...arrow.json_columns import json_within
from ...arrow.struct_offsets import rebased
from ...exceptions import InvalidArgumentError, SchemaMismatchError
from ...progress import Progress
from ..write.checking import check_input_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_IN_MEMORY = 2**63
_ANY_INTEGER = pa.decimal128(20, 0)
_LAYOUTS = (
    (pa.string(), pa.large_string(), pa.string_view()),
    (pa.binary(), pa.large_binary(), pa.binary_view()),
)
"""Types that hold the same values."""


class MergeRows:
    """The source of a merge: rows with some of the table's columns, including the key.

    Args:
        data_obj: The rows; see `esker.arrow.incoming`.
        schema: Their column types, if the data do not have any.
        table: The table's columns.
        on: The key columns.
        insert: Whether rows may be inserted, for which all non-nullable columns are required.
        update: Whether rows may be updated, for which structs within lists need all their fields.

    Raises:
        SchemaMismatchError: A column has another type than in the table, is not in the table, or is missing.
    """

    def __init__(
        self,
        data_obj: ReaderLike,
        schema: pa.Schema | None,
        *,
        table: pa.Schema,
        on: Sequence[str],
        insert: bool,
        update: bool,
    ) -> None:
        source = coerce_reader(data_obj, schema)
        check_input_schema(source.schema)
        if _is_empty(data_obj):
            source = _like(source, table)
        if not insert and not update:
            source = _texts(_whole_numbers(_of_keys(source, on), table), table)
        check_columns(source.schema, table, on=on, insert=insert, update=update)
        # Columns that the source lacks keep their values, or are null in new rows: conform to the others only.
        given = frozenset(source.schema.names)
        fields = [_present(field, source.schema.field(field.name), on) for field in table if field.name in given]
        present = pa.schema(fields, metadata=table.metadata)
        self._source: BatchSource = conform(source, present)
        self._materialized = isinstance(data_obj, pa.Table | pa.RecordBatch | dict | list)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the source, in the table's order."""
        return self._source.schema

    def keep(self, memory_limit: int, progress: Progress | None = None) -> MergeSource:
        """Reads the rows to their end and keeps them, so that they can be read any number of times.

        Args:
            memory_limit: Bytes above which a stream spills to disk. Data that are in memory already do not spill.
            progress: Told of them as they are read.
        """
        limit = ALL_IN_MEMORY if self._materialized else memory_limit
        source = self._source.counted(progress, "reading rows to merge")
        return source.feed(lambda reader: MergeSource(rebased(reader), memory_limit=limit))


def fits(source: pa.Schema, table: pa.Schema, on: Sequence[str]) -> bool:
    """Whether a source that was conformed to a table's columns still has their types.

    Other writers may have replaced a column by one of the same name. JSON and other bytes are stored alike: what the
    fields say tells them apart.
    """
    known = frozenset(table.names)
    pairs = [(own, _present(table.field(own.name), own, on)) for own in source if own.name in known]
    return len(pairs) == len(source) and all(
        own.type == wanted.type and json_within(own) == json_within(wanted) for own, wanted in pairs
    )


def _is_empty(data_obj: ReaderLike) -> bool:
    """Whether these are columns without rows: those of data frames and of Python lists have types by chance then."""
    if isinstance(data_obj, pa.Table | pa.RecordBatch):
        return bool(data_obj.num_rows == 0)
    if isinstance(data_obj, dict):
        return not any(len(values) for values in data_obj.values())
    frame: Any = data_obj
    return hasattr(frame, "columns") and hasattr(frame, "__len__") and len(frame) == 0


def _like(source: BatchSource, table: pa.Schema) -> BatchSource:
    """A source without rows in the table's types."""
    known = frozenset(table.names)
    fields = [table.field(field.name) if field.name in known else field for field in source.schema]
    wanted = pa.schema(fields, metadata=source.schema.metadata)
    return source.map(wanted, lambda batch: pa.RecordBatch.from_pylist([], schema=wanted))


def _of_keys(source: BatchSource, on: Sequence[str]) -> BatchSource:
    """The source without columns that are no keys: a merge that only deletes reads no others, whatever they are."""
    names = [name for name in source.schema.names if name in on]
    if names == source.schema.names or len(set(names)) != len(names):
        return source
    keys = pa.schema([source.schema.field(name) for name in names], metadata=source.schema.metadata)
    return source.map(keys, lambda batch: batch.select(names))


def _whole_numbers(source: BatchSource, table: pa.Schema) -> BatchSource:
    """Keys that are integers of another width in the table's; a row with one that does not fit there has no like."""
    types = pa.types
    known = frozenset(table.names)
    other = [
        name
        for name in source.schema.names
        if name in known
        and source.schema.field(name).type != table.field(name).type
        and types.is_integer(source.schema.field(name).type)
        and types.is_integer(table.field(name).type)
    ]
    if not other:
        return source
    fields = [
        field.with_type(table.field(field.name).type) if field.name in other else field for field in source.schema
    ]
    wanted = pa.schema(fields, metadata=source.schema.metadata)

    def cast(batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in other:
            keys = batch[name].cast(_ANY_INTEGER)
            least, most = _bounds(wanted.field(name).type)
            fits = pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, most))
            batch = batch.filter(pc.or_kleene(pc.is_null(keys), fits))
        return batch.cast(wanted)

    return source.map(wanted, cast)


def _texts(source: BatchSource, table: pa.Schema) -> BatchSource:
    """Keys that are texts, or bytes, in another layout than the table's, as those of polars and of categories are."""
    known = frozenset(table.names)
    fields = [
        field.with_type(table.field(field.name).type)
        if field.name in known and _is_like(field.type, table.field(field.name).type)
        else field
        for field in source.schema
    ]
    wanted = pa.schema(fields, metadata=source.schema.metadata)
    return source if wanted.types == source.schema.types else source.map(wanted, lambda batch: batch.cast(wanted))


def _is_like(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether both hold texts, or both bytes of any length; those that are found may be of a dictionary."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    return any(found in kinds and expected in kinds for kinds in _LAYOUTS)


def _bounds(type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the most that an integer type holds."""
    signed = pa.types.is_signed_integer(type_)
    least = -(2 ** (type_.bit_width - 1)) if signed else 0
    most = 2 ** (type_.bit_width - signed) - 1
    return pa.scalar(Decimal(least), _ANY_INTEGER), pa.scalar(Decimal(most), _ANY_INTEGER)


def check_columns(source: pa.Schema, table: pa.Schema, *, on: Sequence[str], insert: bool, update: bool) -> None:
    """Checks which columns, and which fields of structs, a source has.

    Raises:
        InvalidArgumentError: The source has a column twice.
        SchemaMismatchError: A column is not in the table, or a required one is missing.
    """
    names, known = list(source.names), frozenset(table.names)
    times = Counter(names)
    for name in names:
        if times[name] > 1:
            raise InvalidArgumentError(
                f"duplicate column name {name!r} in the source, name each column once", column=name
            )
        if name not in known:
            raise SchemaMismatchError(
                f"source column {name!r} is not in the table, expected one of {sorted(table.names)}; leave it out",
                column=name,
                found=str(source.field(name).type),
            )
    for name in on:
        if name not in names:
            raise SchemaMismatchError(
                f"key column {name!r} is missing in the source, expected it among {names}", column=name
            )
        if name in known and _lacks(source.field(name).type, table.field(name).type):
            raise SchemaMismatchError(
                f"key column {name!r} lacks fields, expected {table.field(name).type} to compare, "
                f"found {source.field(name).type}",
                column=name,
                expected=str(table.field(name).type),
                found=str(source.field(name).type),
            )
    _check_lacking(list(source), list(table), "", insert=insert, update=update)


def _check_lacking(found: list[pa.Field], expected: list[pa.Field], parent: str, *, insert: bool, update: bool) -> None:
    by_name = {field.name: field for field in found}
    for field in expected:
        column, own = parent + field.name, by_name.get(field.name)
        if own is None:
            if insert and not field.nullable:
                raise SchemaMismatchError(
                    f"column {column!r} is missing in the source, expected {field.type} without nulls for the rows "
                    "that are inserted; add it, or leave when_not_matched_insert_all out",
                    column=column,
                    expected=str(field.type),
                )
            continue
        if pa.types.is_struct(field.type) and pa.types.is_struct(own.type) and not holds_blobs(field.type):
            for child in own.type:
                # A field may have been dropped from the table between the first merge and its rerun.
                if field.type.get_field_index(child.name) < 0:
                    raise SchemaMismatchError(
                        f"column '{column}.{child.name}' is not in the table, expected one of "
                        f"{sorted(it.name for it in field.type)}; leave it out",
                        column=f"{column}.{child.name}",
                        found=str(child.type),
                    )
            _check_lacking(list(own.type), list(field.type), f"{column}.", insert=insert, update=update)
        elif update and _lacks_in_items(own.type, field.type):
            raise SchemaMismatchError(
                f"column {column!r} has lists whose items lack fields, expected {field.type}, found {own.type}: which "
                "item keeps which value cannot be known; give all fields, or leave the column out",
                column=column,
                expected=str(field.type),
                found=str(own.type),
            )


def _lacks_in_items(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether structs within lists lack fields, at any depth."""
    if not (_is_list(found) and _is_list(expected)):
        return False
    own, other = found.value_type, expected.value_type
    return _lacks(own, other) or _lacks_in_items(own, other)


def _lacks(found: pa.DataType, expected: pa.DataType) -> bool:
    if not (pa.types.is_struct(found) and pa.types.is_struct(expected)):
        return False
    own = {field.name: field.type for field in found}
    return any(
        field.name not in own or _lacks(own[field.name], field.type) or _lacks_in_items(own[field.name], field.type)
        for field in expected
    )


def _is_list(type_: pa.DataType) -> bool:
    return any(kind(type_) for kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _present(field: pa.Field, found: pa.Field, on: Sequence[str]) -> pa.Field:
    """The table's field without the nested fields that the source lacks. A key column keeps all of them."""
    if field.name in on or not (pa.types.is_struct(field.type) and pa.types.is_struct(found.type)):
        return field
    names = {child.name: child for child in found.type}
    children = [_present(child, names[child.name], ()) for child in field.type if child.name in names]
    # If the source has none of the fields, return the whole struct: the error is then about that column.
    return field.with_type(pa.struct(children)) if children else field
