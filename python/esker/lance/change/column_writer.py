"""Writes the data files of new columns: one per fragment, with a value for each physical row.

Values are computed for live rows. Deleted rows get the value of another row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import table as native
from ..._native.schema import Schema
from ..._native.store import Store
from ..._native.write import write_fragments
from ...arrow.batch_source import BatchSource
from ...arrow.blob_arrays import holds_blobs
from ...arrow.picking import taken
from ...arrow.struct_offsets import rebased
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidChangeError
from ..system_columns import ROW_ADDRESS
from ..version import TableVersion
from ..write.checking import check_new_columns
from ..write.compression import compression_of
from ..write.request import DEFAULT_MEMORY_LIMIT
from ..write.staging import blob_folder
from .column_values import ColumnSource, Values

_OFFSET = (1 << 32) - 1
_NO_LIMIT = 2**62


class ColumnWriter:
    """Writes files of new columns. A rerun of the commit reuses the files of fragments that have not changed.

    As a context manager it removes the files if its block fails, unless a commit may refer to them.

    Args:
        store: The table's store.

    Example:
        `with ColumnWriter(store) as writer: schema, fragments = writer.add(table, source)`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[tuple[Any, ...], native.DataFile] = {}
        self.staged = StagedFiles()
        """The staged files, for their commit."""

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.staged.__exit__(kind, error, traceback)

    def add(
        self, table: TableVersion, source: ColumnSource, fragments: Sequence[native.Fragment] | None = None
    ) -> tuple[Schema, list[native.Fragment]]:
        """The table's schema with the new columns, and its fragments (or those given) with their files.

        Raises:
            InvalidArgumentError: The table has one of the columns already.
            InvalidChangeError: There are none, or fields of a struct of the table, whose files hold structs whole.
        """
        new = source.schema(table)
        if not new.names:
            raise InvalidChangeError("expected columns to add, beside the key where values are joined, found none")
        check_new_columns(new)
        schema = table.manifest.schema
        fields = Schema.from_arrow(new, first_id=table.manifest.max_field_id + 1)
        extended = schema.extended(fields)
        _refuse_parts_of_structs(table, new.names)
        written = self.write(table, fields, source.values, fragments)
        source.finish()
        return extended, written

    def write(
        self,
        table: TableVersion,
        fields: Schema,
        values: Values,
        fragments: Sequence[native.Fragment] | None = None,
    ) -> list[native.Fragment]:
        """All fragments of the table, or those given, each with a file of the new columns."""
        result = []
        for fragment in table.fragments if fragments is None else fragments:
            # `fields` is in the key for its field ids: after another writer's change the table may assign others.
            key = (fragment.id, tuple(file.path for file in fragment.files), fields)
            if key not in self._written:
                file = self.file_of(table, fragment, fields, values)
                self._written[key] = _without_known_structs(file, table.manifest.max_field_id)
            file = self._written[key]
            # Where files name the structs and lists around values, the new file has them from now on.
            held = any(0 <= field <= table.manifest.max_field_id for field in file.fields)
            result.append(fragment.with_replacing_file(file) if held else fragment.with_file(file))
        return result

    def file_of(
        self, table: TableVersion, fragment: native.Fragment, fields: Schema, values: Values
    ) -> native.DataFile:
        """A file with some columns of one fragment."""
        schema = pa.schema(fields)
        batches = spread(values(table, fragment), schema, fragment.physical_rows)
        written = BatchSource(schema, batches).feed(
            lambda reader: write_fragments(
                self._store,
                rebased(reader),
                schema=fields,
                data_storage_version=table.manifest.storage_version_to_write,
                compression=compression_of(None, table.manifest),
                max_rows_per_file=_NO_LIMIT,
                max_bytes_per_file=_NO_LIMIT,
                memory_limit=DEFAULT_MEMORY_LIMIT,
            )
        )
        file = written[0].files[0]
        if any(holds_blobs(field.type) for field in schema):
            self.staged.add(self._store, blob_folder(f"data/{file.path}"))
        self.staged.add(self._store, f"data/{file.path}")
        return file


def _refuse_parts_of_structs(table: TableVersion, names: list[str]) -> None:
    # A struct is a column of its own in files of 0.1, and lies around all of its fields in those of 2.0.
    version = table.manifest.storage_version_to_write
    shared = [name for name in names if name in table.schema.names]
    if shared and version in ("0.1", "2.0"):
        raise InvalidChangeError(
            f"Column {shared[0]} is a struct col, add sub column is not supported in Lance file version {version}; "
            "write the table anew in a later version, or add a column beside the struct",
            column=shared[0],
            file_version=version,
        )


def _without_known_structs(file: native.DataFile, max_field_id: int) -> native.DataFile:
    # A struct around a new field has no column of its own in the file, and another file of the fragment lists it.
    # Files of 0.1 list no columns.
    if not file.column_indices:
        return file
    listed = list(zip(file.fields, file.column_indices, strict=True))
    kept = [(field, column) for field, column in listed if column >= 0 or field > max_field_id]
    if kept == listed:
        return file
    return native.DataFile(
        file.path,
        [field for field, _ in kept],
        [column for _, column in kept],
        file.file_major_version,
        file.file_minor_version,
        file.file_size_bytes,
        file.base_id,
    )


def spread(batches: Iterator[pa.RecordBatch], schema: pa.Schema, physical_rows: int) -> Iterator[pa.RecordBatch]:
    """Spreads the values of live rows to their offsets among all physical rows.

    Args:
        batches: The values, with the row addresses in rising order.
        schema: The columns to take.
        physical_rows: The number of physical rows of the fragment.
    """
    done = 0
    last: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        offsets = pc.bit_wise_and(batch[ROW_ADDRESS], pa.scalar(_OFFSET, pa.uint64())).cast(pa.int64())
        end = offsets[-1].as_py() + 1
        columns = batch.select(schema.names)
        if end - done == batch.num_rows:
            yield _declared(columns.columns, schema)
        else:
            numbers = pa.array(range(done, end), pa.int64())
            yield _placed(columns, pc.index_in(numbers, value_set=offsets), schema)
        done = end
        last = columns.slice(batch.num_rows - 1, 1)
    if last is None:
        yield pa.RecordBatch.from_arrays([pa.nulls(physical_rows, field.type) for field in schema], schema=schema)
    elif done < physical_rows:
        yield _placed(last, pa.nulls(physical_rows - done, pa.int32()), schema)


def _placed(columns: pa.RecordBatch, positions: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    # Deleted rows repeat a value, since the column or the file version may not allow nulls.
    where = positions.fill_null(0)
    return _declared([taken(columns[field.name], where) for field in schema], schema)


def _declared(arrays: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    # pylance and esker have a class each for the same extension type, of which one is registered.
    typed = [
        pa.ExtensionArray.from_storage(field.type, array.storage)
        if isinstance(array, pa.ExtensionArray)
        and array.type != field.type
        and array.storage.type == field.type.storage_type
        else array
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=schema)
