"""Casts the columns of a data file to the columns of the table.

Files may be older than the schema: fields are missing (null), types were narrower (type widening), timestamps are of
another unit or of INT96, names are physical ones (column mapping). Nothing is found by position.

Spec: "Column Mapping", "Reader Requirements for Column Mapping", "Type Widening".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...arrow.nested import is_list_like, mask_of, offsets_of, struct_of, without_bitmap
from ...exceptions import CorruptFileError, UnsupportedError

MappingMode: TypeAlias = Literal["none", "name", "id"]

PHYSICAL_NAME = b"delta.columnMapping.physicalName"
COLUMN_ID = b"delta.columnMapping.id"
_FILE_ID = b"PARQUET:field_id"


def physical_name(field: pa.Field, mode: MappingMode) -> str:
    """The name that a field has in files.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.conform import physical_name
        >>> physical_name(pa.field("a", pa.int8(), metadata={"delta.columnMapping.physicalName": "c1"}), "name")
        'c1'
    """
    metadata = field.metadata or {}
    if mode == "none" or PHYSICAL_NAME not in metadata:
        return str(field.name)
    return str(metadata[PHYSICAL_NAME].decode())


class FileFields:
    """The fields of a file, or of a struct in it, as they are found for fields of the table.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.conform import FileFields
        >>> there = FileFields([pa.field("b", pa.int8())], "none")
        >>> there.find(pa.field("a", pa.int8())) is None, there.find(pa.field("b", pa.int8()))
        (True, 0)
    """

    def __init__(self, fields: Sequence[pa.Field], mode: MappingMode) -> None:
        self._mode = mode
        self._names: dict[str, int] = {}
        self._ids: dict[bytes, int] = {}
        for place, field in enumerate(fields):
            self._names.setdefault(field.name, place)
            id_ = (field.metadata or {}).get(_FILE_ID) if mode == "id" else None
            if id_ is not None:
                self._ids.setdefault(id_, place)

    def find(self, wanted: pa.Field) -> int | None:
        """Which of them is a field of the table."""
        metadata = wanted.metadata or {}
        if self._ids and COLUMN_ID in metadata:
            return self._ids.get(metadata[COLUMN_ID])
        return self._names.get(physical_name(wanted, self._mode))


def plain(type_: pa.DataType) -> pa.DataType:
    """A type of the table without the metadata that features keep in its fields.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.conform import plain
        >>> plain(pa.struct([pa.field("a", pa.int8(), metadata={"x": "y"})])).field("a").metadata is None
        True
    """
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return pa.struct([pa.field(field.name, plain(field.type), field.nullable) for field in fields])
    if pa.types.is_list(type_):
        inner = type_.value_field
        return pa.list_(pa.field(inner.name, plain(inner.type), inner.nullable))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(pa.field("key", plain(key.type), False), pa.field("value", plain(item.type), item.nullable))
    return type_


def conform(array: pa.Array, type_: pa.DataType, mode: MappingMode, column: str) -> pa.Array:
    """An array of a file as one of the table's type, whose fields still have their metadata.

    Raises:
        CorruptFileError: The values do not fit.
        UnsupportedError: The file's type cannot become the table's.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.conform import conform
        >>> conform(pa.array([1], pa.int32()), pa.int64(), "none", "a").type
        DataType(int64)
    """
    if isinstance(array, pa.ChunkedArray):
        chunks = [conform(chunk, type_, mode, column) for chunk in array.chunks]
        return pa.chunked_array(chunks, plain(type_))
    if array.type == type_ and not pa.types.is_nested(type_):
        return array
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), type_, mode, column)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), plain(type_))
    if pa.types.is_struct(type_):
        return _struct(array, type_, mode, column)
    if pa.types.is_list(type_):
        if is_list_like(array.type) and not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            values = conform(array.flatten(), type_.value_type, mode, f"{column}.element")
            return pa.ListArray.from_arrays(offsets_of(array), values, plain(type_), mask=mask_of(array))
        if not is_list_like(array.type):
            raise _unfit(array.type, type_, column)
        array = _compact(array)
        values = conform(array.values, type_.value_type, mode, f"{column}.element")
        offsets = without_bitmap(array.offsets.cast(pa.int32()))
        return pa.ListArray.from_arrays(offsets, values, plain(type_), mask=mask_of(array))
    if pa.types.is_map(type_):
        if not pa.types.is_map(array.type):
            raise _unfit(array.type, type_, column)
        array = _compact(array)
        keys = conform(array.keys, type_.key_type, mode, f"{column}.key")
        items = conform(array.items, type_.item_type, mode, f"{column}.value")
        return pa.MapArray.from_arrays(without_bitmap(array.offsets), keys, items, plain(type_), mask=mask_of(array))
    return _cast(array, type_, column)


def _compact(array: pa.Array) -> pa.Array:
    """The same values at offset 0, so that offsets, values and nulls lie side by side."""
    if array.offset == 0:
        return array
    return pa.concat_arrays([array, array.slice(0, 0)]) if len(array) else array.take(pa.array([], pa.int64()))


def _struct(array: pa.Array, type_: pa.DataType, mode: MappingMode, column: str) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _unfit(array.type, type_, column)
    there = [array.type.field(i) for i in range(array.type.num_fields)]
    flat = array.flatten() if array.offset else [array.field(i) for i in range(len(there))]
    fields, parts = FileFields(there, mode), []
    for index in range(type_.num_fields):
        wanted = type_.field(index)
        found = fields.find(wanted)
        if found is None:
            parts.append(pa.nulls(len(array), plain(wanted.type)))
        else:
            parts.append(conform(flat[found], wanted.type, mode, f"{column}.{wanted.name}"))
    return struct_of(parts, plain(type_), array)


def _cast(array: pa.Array, type_: pa.DataType, column: str) -> pa.Array:
    types = pa.types
    found = array.type
    try:
        if types.is_timestamp(type_) and types.is_timestamp(found):
            if found.tz != type_.tz:
                # Parquet's UTC flag does not change the values: they are read as the table's type.
                array = array.view(pa.timestamp(found.unit, type_.tz))
            return pc.cast(array, type_, safe=False)
        if types.is_timestamp(type_) and types.is_date(found):
            return pc.cast(pc.cast(array, pa.timestamp("us")), type_)
        if types.is_timestamp(type_) and types.is_integer(found):
            return pc.cast(pc.cast(array, pa.int64()), type_)
        if types.is_decimal(type_) and types.is_integer(found):
            digits = {1: 3, 2: 5, 4: 10, 8: 19}[found.bit_width // 8]
            return pc.cast(pc.cast(array, pa.decimal128(digits, 0)), type_)
        if types.is_string(type_) and types.is_binary(found):
            return array.cast(type_)
        return pc.cast(array, type_)
    except pa.ArrowNotImplementedError as error:
        raise _unfit(found, type_, column) from error
    except pa.ArrowInvalid as error:
        raise CorruptFileError(
            f"column {column!r}: expected values that fit {type_}, found {found} that do not: {error}", column=column
        ) from error


def _unfit(found: pa.DataType, type_: pa.DataType, column: str) -> UnsupportedError:
    return UnsupportedError(
        f"column {column!r}: a file has type {found}, which cannot be read as {type_}", column=column
    )
