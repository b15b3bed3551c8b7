"""Finds the columns of a data file that is in the table's folder `data` already among those of the table, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .._native import table as native
from .._native.file import FileReader
from .._native.schema import Field, Schema
from ..arrow.blob_arrays import BLOB_DESCRIPTION, holds_blobs, is_blob_type
from ..exceptions import SchemaMismatchError
from ..storage_version import numbers_of_version
from .version import TableVersion


def file_in_table(filename: str, table: TableVersion, base_id: int | None = None) -> tuple[native.DataFile, int]:
    """The entry of a data file and the number of its rows; its columns are matched by name.

    Args:
        filename: Its path, relative to the data folder.
        table: The table.
        base_id: The base path that it lies under.

    Raises:
        NotFoundError: There is no such file.
        SchemaMismatchError: The table does not have a column of the file, or has it with another type; or the file, of
            version 0.1, which names columns by their ids, has other ids.

    Example:
        `file, num_rows = file_in_table("0a1b.lance", table)`
    """
    at = native.DataFile(filename, base_id=base_id).location
    reader = FileReader(table.store, at)
    held = {column.field: column.index for column in reader.layout().columns}
    schema = table.manifest.schema
    _check_types(filename, reader.schema, schema)
    fields, columns = [], []
    for path, field in _walk(schema.fields, ""):
        below = any(name.startswith(f"{path}.") for name in held)
        if path in held or below:
            fields.append(field.id)
            columns.append(held.get(path, -1))
    major, minor = numbers_of_version(reader.version)
    size = table.store.head(at).size
    if reader.version == "0.1":
        columns = []
        _check_ids(filename, [field.id for _, field in _walk(reader.schema.fields, "")], fields)
    return native.DataFile(filename, fields, columns, major, minor, size, base_id), reader.num_rows


def _walk(fields: list[Field], within: str) -> Iterator[tuple[str, Field]]:
    """All fields with their dotted paths, depth first."""
    for field in fields:
        path = f"{within}{field.name}"
        yield path, field
        yield from _walk(field.children, f"{path}.")


def _check_types(filename: str, found: Schema, expected: Schema) -> None:
    columns = {field.name: field for field in pa.schema(expected)}
    for field in pa.schema(found):
        wanted = columns.get(field.name)
        if wanted is None or not _is_same(wanted.type, field.type):
            raise SchemaMismatchError(
                f"data/{filename}: expected columns of the table, found {field.name!r} of type {field.type}",
                column=field.name,
                expected=str(wanted.type) if wanted else "",
                found=str(field.type),
            )


def _check_ids(filename: str, found: list[int], expected: list[int]) -> None:
    if sorted(found) != sorted(expected):
        raise SchemaMismatchError(
            f"data/{filename}: expected the field ids {sorted(expected)} of the table, by which files of version 0.1 "
            f"name columns, found {sorted(found)}; write it as a fragment of the table (write_fragments)"
        )


def _is_same(wanted: pa.DataType, found: pa.DataType) -> bool:
    """Whether a file's column is one of the table's; a file describes where the bytes of its blobs lie."""
    if is_blob_type(wanted):
        return pa.types.is_struct(found) and [field.name for field in found] == BLOB_DESCRIPTION
    if not holds_blobs(wanted):
        return bool(wanted == found)
    pairs = ((wanted.field(index), found.field(index)) for index in range(min(wanted.num_fields, found.num_fields)))
    return (wanted.id, wanted.num_fields) == (found.id, found.num_fields) and all(
        one.name == other.name and _is_same(one.type, other.type) for one, other in pairs
    )
