"""Scans the rows of a version: its files in order, several read ahead, as record batches.

Files whose columns are exactly the table's are read by pyarrow's dataset. Files with deletion vectors, physical names,
widened types or nanoseconds are read one by one, and each batch is cast to the table's types.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.delta import FileSelection, Snapshot
from ..._native.store import Store
from .conform import conform, plain
from .file_errors import FinerTimesError, after, file_errors, named_file_errors
from .file_reader import TableFile, TableFileReader, guarantee
from .filesystem import FileLocator
from .filters import BoundFilter
from .fragment_guarantees import fragment_guarantees
from .hidden_nulls import loosened, may_hide
from .open_parquet import BATCH_ROWS, OpenParquet
from .parquet_footer import ParquetSources

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

__all__ = ["TableFile", "TableScan"]


class TableScan:
    """The rows of one version.

    Args:
        store: The table's.
        snapshot: The version.
        files: Where its Parquet files are.
        selection: Which of them are read; all if not given.
        kept: For each of these whether it is read after all.
    """

    def __init__(
        self,
        store: Store,
        snapshot: Snapshot,
        files: FileLocator,
        selection: FileSelection | None = None,
        kept: Sequence[bool] | None = None,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._files = files
        self._selection = selection if selection is not None else snapshot.select(store)
        self._kept = kept
        self._reader = TableFileReader.of(store, snapshot, files)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, without what features keep in them."""
        return pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in self._reader.annotated])

    @staticmethod
    def schema_of(snapshot: Snapshot) -> pa.Schema:
        """The columns of a version, without what features keep in them."""
        return pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in pa.schema(snapshot)])

    @property
    def read_schema(self) -> pa.Schema:
        """The columns as pyarrow's dataset reads them: fields may be null that may be below a null only."""
        return pa.schema(
            [field.with_type(loosened(field.type)) if may_hide(field.type) else field for field in self.schema]
        )

    def conformed(self, rows: pa.RecordBatch | pa.Table) -> Any:
        """Rows that pyarrow's dataset read, with the table's types."""
        kinds = {field.name: field.type for field in self.schema if may_hide(field.type)}
        for index, field in enumerate(rows.schema):
            if field.name in kinds:
                kind = kinds[field.name]
                rows = rows.set_column(
                    index, field.with_type(kind), conform(rows.column(index), kind, "none", field.name)
                )
        return rows

    def table_files(self) -> list[TableFile]:
        """The files, with their partition values."""
        found = self._selected()
        return found if self._kept is None else list(compress(found, self._kept))

    def _selected(self) -> list[TableFile]:
        batch = pa.record_batch(self._selection.describe())
        partition = batch.column("partition")
        names = [partition.type.field(i).name for i in range(partition.type.num_fields)]
        columns = [partition.field(i) for i in range(len(names))]
        vectors = batch.column("deletion_vector").to_pylist()
        return [
            TableFile(path, {name: column[row] for name, column in zip(names, columns, strict=True)}, vectors[row])
            for row, path in enumerate(batch.column("path").to_pylist())
        ]

    def guarantees(self) -> list[pc.Expression]:
        """For each of `table_files` an expression that is true for all its rows, by the log."""
        found = fragment_guarantees(self._selected(), self._selection, self._store)
        return found if self._kept is None else list(compress(found, self._kept))

    def is_plain(self, data_files: list[TableFile]) -> bool:
        """Whether pyarrow's dataset reads these files right."""
        if self._reader.mode != "none" or any(_was_widened(field) for field in self._reader.annotated):
            return False
        if any(file.deletion_vector is not None for file in data_files):
            return False
        return not any(_holds_null_type(field.type) for field in self._reader.annotated)

    def dataset(
        self,
        data_files: list[TableFile],
        *,
        schema: pa.Schema | None = None,
        read_options: ds.ParquetReadOptions | None = None,
        is_filtered: bool = True,
        guarantees: Sequence[pc.Expression] | None = None,
    ) -> ds.FileSystemDataset:
        """The files as pyarrow's dataset; partition values are known to it without opening a file.

        Args:
            data_files: The files.
            schema: In place of the table's.
            read_options: How pyarrow reads Parquet.
            is_filtered: Whether its rows may be filtered.
            guarantees: For each file what is true of all its rows; its partition values if not given.
        """
        import pyarrow.dataset as ds

        options = read_options or ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        format_ = ds.ParquetFileFormat(
            read_options=options, default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
        )
        fragments = []
        sources = ParquetSources(is_filtered=is_filtered)
        for number, file in enumerate(data_files):
            filesystem, path = self._files.locate(file.path)
            source, where = sources.of(filesystem, path)
            known = guarantee(file.partition) if guarantees is None else guarantees[number]
            fragments.append(format_.make_fragment(source, where, partition_expression=known))
        return ds.FileSystemDataset(fragments, schema or self.read_schema, format_, self._files.filesystem)

    def batches(
        self, columns: list[str] | None = None, where: BoundFilter | None = None, *, threads: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of the columns asked for; those that the filter keeps."""
        names = self.schema.names if columns is None else columns
        read = list(names)
        if where is not None:
            wanted = where.columns if where.columns is not None else self.schema.names
            read += [name for name in wanted if name not in read]
        data_files = self.table_files()
        given = 0
        if self.is_plain(data_files):
            try:
                for batch in self._plain(data_files, names, read, where):
                    given += batch.num_rows
                    yield batch
                return
            except FinerTimesError:
                pass  # Each file is read alone, as times are cut then.
        for batch in after(self._ahead(data_files, read, where, threads or min(8, os.cpu_count() or 1)), given):
            yield batch.select(names)

    def _plain(
        self, data_files: list[TableFile], names: list[str], read: list[str], where: BoundFilter | None
    ) -> Iterator[pa.RecordBatch]:
        dataset = self.dataset(data_files, is_filtered=where is not None)
        expression = where.implied if where is not None else None
        batches = dataset.to_batches(columns=read, filter=expression, batch_size=BATCH_ROWS)
        parts = self._parts(dataset, data_files, read, expression)
        while True:
            with named_file_errors(self._snapshot.version, parts):
                batch = next(batches, None)
            if batch is None:
                return
            kept = where.keep(batch) if where is not None and where.is_widened else batch
            if kept.num_rows:
                yield self.conformed(kept.select(names))

    def plain_table(self, data_files: list[TableFile], columns: list[str], where: BoundFilter | None) -> pa.Table:
        """The rows of files that are plain (`is_plain`) that the filter keeps, by pyarrow's dataset."""
        expression = where.expression if where is not None else None
        with file_errors(self._snapshot.version):
            dataset = self.dataset(data_files, is_filtered=where is not None)
        try:
            with named_file_errors(self._snapshot.version, self._parts(dataset, data_files, columns, expression)):
                return dataset.to_table(columns=columns, filter=expression)
        except FinerTimesError:
            schema = pa.schema([self.schema.field(name) for name in columns])
            return pa.Table.from_batches(self.batches(columns, where), schema)

    def table_as(self, wanted: pa.Schema) -> pa.Table:
        """All rows, with the columns of a schema: those that the table does not have are nulls, as in a dataset."""
        names = [name for name in self.schema.names if name in wanted.names]
        read = names or self.schema.names[:1]
        schema = pa.schema([self.schema.field(name) for name in read])
        rows = pa.Table.from_batches(self.batches(read), schema)
        columns = [
            rows[field.name].cast(field.type) if field.name in names else pa.nulls(rows.num_rows, field.type)
            for field in wanted
        ]
        return pa.Table.from_arrays(columns, schema=wanted)

    @staticmethod
    def _parts(
        dataset: ds.FileSystemDataset, data_files: list[TableFile], columns: list[str], where: pc.Expression | None
    ) -> Iterator[tuple[str, Callable[[], Iterator[pa.RecordBatch]]]]:
        """For each file what reads its part of a scan."""
        for file, fragment in zip(data_files, dataset.get_fragments(), strict=True):
            read = partial(fragment.to_batches, dataset.schema, columns=columns, filter=where, batch_size=BATCH_ROWS)
            yield file.path, read

    def _ahead(
        self, data_files: list[TableFile], columns: list[str], where: BoundFilter | None, threads: int
    ) -> Iterator[pa.RecordBatch]:
        """Files in their order, the next ones being read while one is handed out."""
        pending: deque[Future[list[pa.RecordBatch]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for file in data_files:
                    pending.append(pool.submit(self._read_all, file, columns, where))
                    if len(pending) > threads:
                        yield from pending.popleft().result()
                while pending:
                    yield from pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _read_all(self, file: TableFile, columns: list[str], where: BoundFilter | None) -> list[pa.RecordBatch]:
        return list(self.read(file, columns, where))

    def physical_names(self) -> dict[str, str]:
        """The columns: for each logical name the physical one."""
        return self._reader.physical_names()

    def read(
        self,
        file: TableFile,
        columns: list[str],
        where: BoundFilter | None = None,
        *,
        extra: Sequence[pa.Field] = (),
        only: pa.Array | None = None,
        numbered: bool = False,
        opened: OpenParquet | None = None,
        group: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one file; arguments as in `TableFileReader.read`."""
        return self._reader.read(
            file, columns, where, extra=extra, only=only, numbered=numbered, opened=opened, group=group
        )

    def open(self, file: TableFile, *, dictionaries: list[str] | None = None) -> OpenParquet:
        """A file, for several reads of it; arguments as in `TableFileReader.open`."""
        return self._reader.open(file, dictionaries=dictionaries)

    def place(self, file: TableFile) -> tuple[Store, str]:
        """The store that a file is in, and its path there."""
        return self._files.place(file.path)

    def footer(self, file: TableFile) -> pq.FileMetaData:
        """The footer of a file."""
        return self._reader.footer(file)

    def count(self, file: TableFile) -> int:
        """The number of rows that a file holds, deleted ones among them."""
        return int(self.footer(file).num_rows)

    def deleted(self, file: TableFile) -> pa.Array | None:
        """The numbers of a file's deleted rows, ascending, None if all are there."""
        return self._reader.deleted(file)


def _was_widened(field: pa.Field) -> bool:
    if any(key.startswith(b"delta.typeChanges") for key in field.metadata or {}):
        return True
    return any(_was_widened(inner) for inner in _inner(field.type))


def _holds_null_type(type_: pa.DataType) -> bool:
    return pa.types.is_null(type_) or any(_holds_null_type(inner.type) for inner in _inner(type_))


def _inner(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(type_):
        return [type_.field(i) for i in range(type_.num_fields)]
    if pa.types.is_list(type_):
        return [type_.value_field]
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    return []
