"""`LanceFileWriter`: writes one file, batch by batch."""

from __future__ import annotations

import os
from threading import Lock
from types import TracebackType
from typing import Any

import pyarrow as pa

from .._native.file import FileWriter
from .._native.schema import Schema
from .._native.store import Store
from ..arrow.json_columns import stored_batch, stored_schema
from ..arrow.plain_types import plain_array, plain_schema, plain_type
from ..arrow.prepared_blobs import marked_schema
from ..arrow.struct_offsets import rebased
from ..exceptions import InvalidArgumentError, SchemaMismatchError
from ..lance.write.checking import check_new_columns
from ..lance.write.compression import DEFAULT_COMPRESSION, Compression, checked_compression
from ..storage_version import file_version
from ..store.staging import flush
from .place import locate, refuse_namespace


def stable_version() -> str:
    """The file version that `data_storage_version="stable"` means.

    Example:
        >>> from esker.file import stable_version
        >>> stable_version()
        '2.2'
    """
    return file_version("stable")


class LanceFileWriter:
    """Writes one data file. It becomes visible, complete, in `close`; a writer that is never closed leaves no file.

    As a context manager it closes the file at the end of the block, and discards it if the block raises.

    Args:
        path: A path, or a URI such as `file:///data/a.lance`. An existing file is replaced.
        schema: The columns; None takes them from the first batch.
        data_cache_bytes: Bytes of values to buffer before pages are written, divided among the columns; None for 8 MiB
            per column.
        version: The file version; None for that of new tables.
        compression: How small the file is to be, "fast", "balanced" (also None) or "small", as for `write_dataset`.
        storage_options: Options of the store, such as credentials.
        namespace_client: Of pylance; refused.
        table_id: Of pylance; refused.
        max_page_bytes: The maximum number of bytes of values per page, for version 2.0 only: later versions can read
            parts of a page.
        keep_original_array: Accepted because pylance has it; values are always copied.

    Attributes:
        size_bytes: The file's size in bytes, None before `close`.

    Raises:
        InvalidArgumentError: The version or the compression is unknown.
        UnsupportedError: The version or a type cannot be written.

    Example:
        >>> import pyarrow as pa
        >>> from esker.file import LanceFileWriter
        >>> writer = LanceFileWriter("memory://doc-writer/a.lance", pa.schema([("id", pa.int64())]))
        >>> writer.write_batch(pa.table({"id": [1, 2, 3]}))
        >>> writer.close()
        3
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        compression: Compression | None = None,
        storage_options: dict[str, str] | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        max_page_bytes: int | None = None,
        keep_original_array: bool | None = None,
        _place: tuple[Store, str] | None = None,
    ) -> None:
        del keep_original_array
        refuse_namespace(namespace_client, table_id)
        for name, value in (("data_cache_bytes", data_cache_bytes), ("max_page_bytes", max_page_bytes)):
            if value is not None and value <= 0:
                raise InvalidArgumentError(f"expected {name} > 0, found {value}")
        if _place is None:
            if path is None:
                raise InvalidArgumentError("expected the path of a file to write, found None")
            _place = locate(path, storage_options)
        self._place = _place
        self._version = file_version(version)
        self._compression = checked_compression(compression) or DEFAULT_COMPRESSION
        self._cache_bytes = data_cache_bytes
        self._max_page_bytes = max_page_bytes if self._version == "2.0" else None
        self._schema: pa.Schema | None = None
        self._writer: FileWriter | None = None
        self._metadata: dict[str, str] = {}
        self._buffers = 0
        # Threads may share a writer: the first batch opens the file, and one call closes it.
        self._turn = Lock()
        self.closed = False
        self.size_bytes: int | None = None
        if schema is not None:
            self._open(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Adds rows. Columns are matched by name; those that are not in the schema are left out.

        Raises:
            SchemaMismatchError: A column is missing, has another type, or is non-nullable and holds a null.
        """
        self._check_open()
        if isinstance(batch, pa.Table):
            batches = batch.to_batches()
        elif isinstance(batch, pa.RecordBatch):
            batches = [batch]
        else:
            raise TypeError(f"expected a pyarrow.RecordBatch or pyarrow.Table, found {type(batch).__name__}")
        batches = [stored_batch(part) for part in batches]
        with self._turn:
            writer = self._writer or self._open(batch.schema)
        assert self._schema is not None
        for part in pa.RecordBatchReader.from_stream(rebased(_Conformed(batches, self._schema))):
            writer.write_batch(part)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Sets a key of the schema's metadata.

        Args:
            key: The key.
            value: Its value, which replaces an earlier one.
        """
        with self._turn:
            self._check_open()
            if self._writer is None:
                self._metadata[key] = value
            else:
                self._writer.add_schema_metadata(key, value)

    def add_global_buffer(self, data: bytes) -> int:
        """Adds a global buffer: bytes that belong to no column. `LanceFileReader.read_global_buffer` returns them.

        Args:
            data: The bytes.

        Returns:
            The buffer's number: 1 for the first, then 2.

        Raises:
            InvalidArgumentError: No schema is known yet.
        """
        self._check_open()
        if self._writer is None:
            raise InvalidArgumentError("expected a schema before a global buffer, give schema= or write a batch first")
        return self._writer.add_global_buffer(bytes(data))

    def close(self) -> int | None:
        """Completes the file.

        Returns:
            The number of its rows; None if it was closed before.

        Raises:
            InvalidArgumentError: There is neither a schema nor a batch.
        """
        with self._turn:
            if self.closed:
                return None
            self.closed = True
        if self._writer is None:
            raise InvalidArgumentError(
                "Schema is unknown and file cannot be created: give schema= or write a batch before the file is closed"
            )
        num_rows, self.size_bytes = self._writer.finish()
        store, path = self._place
        flush(store, f"Write {path} in")
        return num_rows

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            self.close()
        elif not self.closed:
            self.closed = True
            if self._writer is not None:
                self._writer.abort()

    def _open(self, schema: pa.Schema) -> FileWriter:
        schema = marked_schema(stored_schema(plain_schema(schema)))
        check_new_columns(schema)
        page_bytes = self._max_page_bytes
        if self._cache_bytes is not None:
            share = max(1, self._cache_bytes // max(1, len(schema)))
            page_bytes = share if page_bytes is None else min(share, page_bytes)
        native = Schema.from_arrow(schema)
        self._writer = FileWriter(
            *self._place, native, version=self._version, compression=self._compression, page_bytes=page_bytes
        )
        self._schema = schema
        for key, value in self._metadata.items():
            self._writer.add_schema_metadata(key, value)
        return self._writer

    def _check_open(self) -> None:
        if self.closed:
            raise InvalidArgumentError("the file is closed, open another writer")


class _Conformed:
    """Batches with the columns of a schema, in its order."""

    def __init__(self, batches: list[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self._schema = schema

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        batches = [self._conform(batch) for batch in self._batches]
        return pa.RecordBatchReader.from_batches(self._schema, batches).__arrow_c_stream__(requested_schema)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for field in self._schema:
            index = batch.schema.get_field_index(field.name)
            if index < 0:
                raise _mismatch(field, "", f"is missing, expected {field.type}")
            column = batch.column(index)
            if plain_type(column.type) != field.type:
                raise _mismatch(field, str(column.type), f"expected type {field.type}, found {column.type}")
            if column.null_count and not field.nullable:
                raise _mismatch(field, "null", f"expected no nulls, found {column.null_count}")
            columns.append(plain_array(column))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _mismatch(field: pa.Field, found: str, message: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"column {field.name!r}: {message}", column=field.name, expected=str(field.type), found=found or None
    )
