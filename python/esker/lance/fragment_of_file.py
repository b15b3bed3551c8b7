"""Makes a fragment of a data file that is in the table's folder `data` already."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .._native import table as native
from .._native.file import FileReader
from ..exceptions import SchemaMismatchError
from ..storage_version import numbers_of_version
from .fragment_metadata import FragmentMetadata
from .version import TableVersion


def fragment_of_file(filename: str, table: TableVersion, fragment_id: int) -> FragmentMetadata:
    """A fragment of a data file in the table's folder `data`; its columns are matched by name.

    Raises:
        NotFoundError: There is no such file.
        SchemaMismatchError: The table does not have a column of the file, or has it with another type.
    """
    reader = FileReader(table.store, f"data/{filename}")
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
    size = table.store.head(f"data/{filename}").size
    file = native.DataFile(filename, fields, [] if reader.version == "0.1" else columns, major, minor, size)
    return FragmentMetadata(fragment_id, [file], reader.num_rows)


def _walk(fields: list[native.Field], within: str) -> Iterator[tuple[str, native.Field]]:
    """All fields with their dotted paths, depth first."""
    for field in fields:
        path = f"{within}{field.name}"
        yield path, field
        yield from _walk(field.children, f"{path}.")


def _check_types(filename: str, found: native.Schema, expected: native.Schema) -> None:
    columns = {field.name: field for field in pa.schema(expected)}
    for field in pa.schema(found):
        wanted = columns.get(field.name)
        if wanted is None or wanted.type != field.type:
            raise SchemaMismatchError(
                f"data/{filename}: expected columns of the table, found {field.name!r} of type {field.type}",
                column=field.name,
                expected=str(wanted.type) if wanted else "",
                found=str(field.type),
            )
