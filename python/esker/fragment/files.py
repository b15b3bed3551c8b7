"""Fragments of files that are in place already, and takes from one fragment again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .._native import table as native
from .._native.file import FileReader
from ..exceptions import SchemaMismatchError
from ..storage_version import numbers_of_version

if TYPE_CHECKING:
    from ..dataset import LanceDataset
    from . import FragmentMetadata, LanceFragment


class FragmentSession:
    """Takes from the same columns of a fragment; see `LanceFragment.open_session`."""

    def __init__(
        self, fragment: LanceFragment, columns: list[str] | dict[str, str] | None, with_row_address: bool | None
    ) -> None:
        self._fragment = fragment
        self._columns = columns
        self._with_row_address = bool(with_row_address)
        self._addresses: pa.ChunkedArray | None = None

    def take(self, indices: Any) -> pa.Table:
        """Rows by their number within the fragment, in the order asked for. See `LanceDataset.take`."""
        rows = self._fragment.take(indices, self._columns)
        if not self._with_row_address:
            return rows
        if self._addresses is None:
            self._addresses = self._fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"]
        return rows.append_column("_rowaddr", self._addresses.take(pa.array(indices, pa.int64())))


def fragment_of_file(filename: str, dataset: LanceDataset, fragment_id: int) -> FragmentMetadata:
    """See `LanceFragment.create_from_file`."""
    from . import FragmentMetadata

    reader = FileReader(dataset._store, f"data/{filename}")
    held = {column.field: column.index for column in reader.layout().columns}
    schema = dataset._manifest.schema
    _check_types(filename, reader.schema, schema)
    fields, columns = [], []
    for path, field in _walk(schema.fields, ""):
        below = any(name.startswith(f"{path}.") for name in held)
        if path in held or below:
            fields.append(field.id)
            columns.append(held.get(path, -1))
    major, minor = numbers_of_version(reader.version)
    size = dataset._store.head(f"data/{filename}").size
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
