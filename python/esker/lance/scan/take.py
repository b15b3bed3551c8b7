"""Takes rows by row number, and by row id."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import scan as native
from ..._native.store import Store
from ..._native.table import Manifest
from ...arrow.batches import read_all
from ...arrow.json_columns import as_json_text, has_jsonb
from ...arrow.paths import parts_of, path_of
from ...exceptions import InvalidArgumentError, InvalidTypeError, OutOfRangeError
from ..system_columns import ROW_OFFSET, SYSTEM_COLUMNS
from .projection import Projection


def take_rows(
    store: Store,
    manifest: Manifest,
    schema: pa.Schema,
    indices: Any,
    columns: list[str] | dict[str, str] | None,
    *,
    in_structs: bool = False,
    fragment_ids: Sequence[int] | None,
    rows: int,
    blobs: Literal["bytes", "descriptions"] = "descriptions",
) -> pa.Table:
    """Takes rows by row number, in the order of `indices`, duplicates included.

    Args:
        store: The store of the table.
        manifest: The version's manifest.
        schema: The version's columns.
        indices: Row numbers: a list, a range, a numpy or an Arrow array.
        columns: Names, or a dict of name to SQL expression; None for all.
        in_structs: Whether paths in a list of names (`s.a`, `l.item.a`) leave their structs and lists in place, with
            only the fields that are asked for: of the table in its order, of fragments in the order asked for.
        fragment_ids: Number the rows within these fragments only; None for all.
        rows: How many rows these fragments have.
        blobs: What blob columns are returned as.

    Raises:
        OutOfRangeError: A number is negative, or not below `rows`.
        InvalidTypeError: A number is null, or not an integer.

    Example:
        `take_rows(store, manifest, schema, [2, 0, 2], ["id"], fragment_ids=None, rows=3)`
    """
    numbers = row_numbers(indices, rows)
    columns = _each_once(_as_columns(columns, schema) if in_structs else columns)
    fields = _fields(columns, schema) if in_structs else None
    projection = Projection(None) if fields else Projection.of(columns, schema)
    stream = native.take(
        store,
        manifest,
        numbers,
        columns=fields or projection.columns,
        in_structs=fields is not None,
        fragment_ids=fragment_ids,
        blobs=blobs,
    )
    taken = read_all(stream)
    as_asked = fragment_ids is not None
    unpacked = _unpacked(taken, columns, schema, as_asked=as_asked) if fields else taken
    return _projected(_with_row_numbers(unpacked), projection)


def take_row_ids(
    store: Store,
    manifest: Manifest,
    schema: pa.Schema,
    row_ids: Any,
    columns: list[str] | dict[str, str] | None,
    *,
    in_structs: bool = False,
    blobs: Literal["bytes", "descriptions"] = "descriptions",
) -> pa.Table:
    """Takes rows by id, in the order of `row_ids`, duplicates included. Ids that no live row has are left out.

    Args:
        store: The store of the table.
        manifest: The version's manifest.
        schema: The version's columns.
        row_ids: Stable row ids, or row addresses in a table without them: a list, a range, a numpy or an Arrow array.
        columns: Names, or a dict of name to SQL expression; None for all.
        in_structs: As in `take_rows`.
        blobs: What blob columns are returned as.

    Raises:
        OutOfRangeError: An id is negative.
        InvalidTypeError: An id is null, or not an integer.

    Example:
        `take_row_ids(store, manifest, schema, [7, 3], ["id"])`
    """
    ids = row_numbers(row_ids, 2**64)
    columns = _each_once(_as_columns(columns, schema) if in_structs else columns)
    fields = _fields(columns, schema) if in_structs else None
    projection = Projection(None) if fields else Projection.of(columns, schema)
    stream = native.take_ids(
        store, manifest, ids, columns=fields or projection.columns, in_structs=fields is not None, blobs=blobs
    )
    taken = read_all(stream)
    return _projected(_with_row_numbers(_unpacked(taken, columns, schema) if fields else taken), projection)


def _with_row_numbers(table: pa.Table) -> pa.Table:
    """The table with `_rowoffset` as the number of each row that it is, never null, as pylance takes it."""
    index = table.schema.get_field_index(ROW_OFFSET)
    if index < 0:
        return table
    return table.cast(table.schema.set(index, table.schema.field(index).with_nullable(False)))


def _as_columns(columns: list[str] | dict[str, str] | None, schema: pa.Schema) -> list[str] | dict[str, str] | None:
    """The names of a list as the columns have them: one in backticks is the column that it quotes, as with pylance."""
    if not isinstance(columns, list | tuple):
        return columns
    names = set(schema.names)

    def plain(name: str) -> str:
        if not isinstance(name, str) or name in names:
            return name
        first, *rest = parts_of(name)
        return first if not rest and first in names else name

    return [plain(name) for name in columns]


def _each_once(columns: list[str] | dict[str, str] | None) -> list[str] | dict[str, str] | None:
    """The names of a list without those that were there before, but for `_rowid` and others of the system's."""
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        return columns
    return [name for at, name in enumerate(columns) if name in SYSTEM_COLUMNS or name not in columns[:at]]


def _fields(columns: list[str] | dict[str, str] | None, schema: pa.Schema) -> list[str] | None:
    """The names of a list with paths among them, each once; None where there is none."""
    if not isinstance(columns, list | tuple) or "*" in columns:
        return None
    names = set(schema.names)
    paths = {
        name: parts_of(name)
        for name in columns
        if isinstance(name, str) and name not in names and name not in SYSTEM_COLUMNS
    }
    if not paths or any(len(parts) == 1 or parts[0] not in names for parts in paths.values()):
        return None
    return list(dict.fromkeys(_readable(paths[name], schema) if name in paths else name for name in columns))


def _is_packed(field: pa.Field) -> bool:
    """Whether a struct's fields lie in one column, of which a part cannot be read."""
    metadata = field.metadata or {}
    return pa.types.is_struct(field.type) and (b"packed" in metadata or b"lance-encoding:packed" in metadata)


def _readable(parts: list[str], schema: pa.Schema) -> str:
    """The path up to a map, a fixed-size list or a packed struct, which are read as a whole."""
    end = _end_of_readable(parts, schema)
    return path_of(parts if end is None else parts[:end])


def _end_of_readable(parts: list[str], schema: pa.Schema) -> int | None:
    """How many parts of a path lead to what is read as a whole; None if nothing on it is."""
    field, end = schema.field(parts[0]), 1
    while end < len(parts) and not _is_packed(field):
        if pa.types.is_struct(field.type):
            index = field.type.get_field_index(parts[end])
            if index < 0:
                return None
            field = field.type.field(index)
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            field = field.type.value_field
        else:
            break
        end += 1
    whole = pa.types.is_map(field.type) or pa.types.is_fixed_size_list(field.type) or _is_packed(field)
    return end if whole else None


def _unpacked(
    table: pa.Table, columns: list[str] | dict[str, str] | None, schema: pa.Schema, *, as_asked: bool = False
) -> pa.Table:
    """The table with only those fields of packed structs that were asked for: all of them had to be read.

    Args:
        table: The rows as they were read.
        columns: Names and paths.
        schema: The version's columns.
        as_asked: Whether fields come in the order in which they were asked for.

    Raises:
        InvalidArgumentError: A packed struct has no such field.
    """
    asked: dict[str, list[list[str]]] = {}
    names = set(schema.names)
    for name in columns or ():
        parts = [name] if name in names else parts_of(name)
        asked.setdefault(parts[0], []).append(parts[1:])
    for index, field in enumerate(table.schema):
        paths = asked.get(field.name, [[]])
        part = _part(field, paths, field.name)
        part = _in_order(part, paths) if as_asked else part
        if part.type != field.type:
            table = table.set_column(index, part, table.column(index).cast(part.type))
    return table


def _part(field: pa.Field, paths: list[list[str]], place: str) -> pa.Field:
    """The field with only those fields in it that paths below it name."""
    if not all(paths):
        return field
    if pa.types.is_struct(field.type):
        below: dict[str, list[list[str]]] = {}
        for first, *rest in paths:
            below.setdefault(first, []).append(rest)
        for name in below:
            if field.type.get_field_index(name) < 0:
                there = [it.name for it in field.type]
                raise InvalidArgumentError(f"column '{place}.{name}' does not exist, expected one of {there}")
        kept = [_part(it, below[it.name], f"{place}.{it.name}") for it in field.type if it.name in below]
        return field.with_type(pa.struct(kept))
    if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
        item = _part(field.type.value_field, [path[1:] for path in paths], f"{place}.item")
        return field.with_type(pa.list_(item) if pa.types.is_list(field.type) else pa.large_list(item))
    return field


def _in_order(field: pa.Field, paths: list[list[str]]) -> pa.Field:
    """The field with the fields in it in the order in which paths below it name them."""
    if pa.types.is_struct(field.type):
        below: dict[str, list[list[str]]] = {}
        for path in paths:
            for name in path[:1] or [it.name for it in field.type]:
                below.setdefault(name, []).append(path[1:])
        return field.with_type(pa.struct([_in_order(field.type.field(name), rest) for name, rest in below.items()]))
    if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
        item = _in_order(field.type.value_field, [path[1:] for path in paths])
        return field.with_type(pa.list_(item) if pa.types.is_list(field.type) else pa.large_list(item))
    return field


def _projected(table: pa.Table, projection: Projection) -> pa.Table:
    if projection.is_plain and not has_jsonb(table.schema):
        return table
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in table.schema], schema=table.schema)
    batches = [as_json_text(projection.apply(batch, [])) for batch in table.to_batches() or [empty]]
    return pa.Table.from_batches(batches)


def row_numbers(indices: Any, rows: int) -> pa.Array:
    """Row numbers as a uint64 array, all of them below `rows`.

    Example:
        >>> from esker.lance.scan.take import row_numbers
        >>> row_numbers([2, 0], 3).to_pylist()
        [2, 0]
    """
    if isinstance(indices, list) and indices and type(indices[0]) is int:
        with suppress(TypeError, OverflowError):
            return _packed(indices, rows)
    if isinstance(indices, pa.ChunkedArray):
        indices = indices.combine_chunks()
    numbers = indices if isinstance(indices, pa.Array) else _to_array(indices, rows)
    if not len(numbers) and pa.types.is_null(numbers.type):
        return pa.array([], pa.uint64())
    if not pa.types.is_integer(numbers.type):
        raise InvalidTypeError(f"expected row numbers as integers, found {numbers.type}")
    if numbers.null_count:
        raise InvalidTypeError(f"expected row numbers as integers, found {numbers.null_count} nulls among them")
    if len(numbers):
        bounds = pc.min_max(numbers)
        _check_range(bounds["min"].as_py(), bounds["max"].as_py(), rows)
    return numbers.cast(pa.uint64())


def _packed(indices: list[int], rows: int) -> pa.Array:
    """The numbers of a list without Arrow's way through types: a small take is half as long."""
    packed = array("q", indices)
    _check_range(min(packed), max(packed), rows)
    return pa.Array.from_buffers(pa.uint64(), len(packed), [None, pa.py_buffer(packed)])


def _check_range(low: int, high: int, rows: int) -> None:
    if low < 0 or high >= rows:
        found = low if low < 0 else high
        raise OutOfRangeError(
            f"row number {found} is out of range, expected 0 <= number < {rows}", found=found, expected=rows
        )


def _to_array(indices: Any, rows: int) -> pa.Array:
    if getattr(indices, "ndim", 1) != 1:
        raise InvalidTypeError(f"expected row numbers in one dimension, found {indices.ndim} dimensions")
    if hasattr(indices, "dtype") and indices.dtype != object:
        return pa.array(indices) if len(indices) else pa.array([], pa.int64())
    if not isinstance(indices, Iterable):
        raise InvalidTypeError(f"expected row numbers as a list of integers, found {type(indices).__name__}")
    numbers = [_integer(number) for number in indices]
    if numbers:
        _check_range(min(numbers), max(numbers), rows)
    return pa.array(numbers, pa.uint64())


def _integer(number: Any) -> int:
    try:
        if not isinstance(number, bool):
            return operator.index(number)
    except TypeError:
        pass
    raise InvalidTypeError(f"expected row numbers as integers, found {number!r} among them")
