"""Reads one Parquet file of a table: columns by logical names, in the table's types, without deleted rows.

A reader holds the columns of its version and no log, so that it pickles and a task need not open the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs

from ..._native.delta import Snapshot, deletion_vector_elsewhere, read_deletion_vector
from ..._native.store import Store
from ...exceptions import UnsupportedError
from .conform import FileFields, MappingMode, conform, physical_name, plain
from .file_errors import each_batch, file_errors
from .filesystem import FileLocator
from .filters import BoundFilter
from .implied_terms import all_of
from .open_parquet import BATCH_ROWS, OpenParquet
from .parquet_footer import ParquetSources

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BUFFER_BYTES = 1024 * 1024
"""Bytes of a column that are read at a time from a local file."""
_BUFFERS_BYTES = 16 * 1024 * 1024
_LEAST_BUFFER_BYTES = 64 * 1024
ROW_NUMBER = pa.field("esker.row_number", pa.uint64(), nullable=False)
"""The column of row numbers, the last one where a caller asks for it."""
_UNREAD = b"esker.unread"
_DV_FIELDS = {
    "storageType": "storage_type",
    "pathOrInlineDv": "path_or_inline_dv",
    "offset": "offset",
    "sizeInBytes": "size_in_bytes",
    "cardinality": "cardinality",
}


@dataclass(frozen=True)
class TableFile:
    """One Parquet file of a version, and what the log says of it.

    Args:
        path: Its path.
        partition: Its partition values.
        deletion_vector: What the log says of its deleted rows.
        span: The row groups that begin between two places in the file, in bytes; None for all.
    """

    path: str
    partition: dict[str, pa.Scalar]
    deletion_vector: dict[str, Any] | None
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class TableFileReader:
    """Reads files of one version of a table.

    Args:
        store: The table's.
        files: Where its Parquet files are.
        annotated: Its columns, with what features keep in them.
        mode: How they lead to those of files.
        version: For errors.
        partition_columns: Logical names.
    """

    store: Store
    files: FileLocator
    annotated: pa.Schema
    mode: MappingMode
    version: int
    partition_columns: list[str]

    @classmethod
    def of(cls, store: Store, snapshot: Snapshot, files: FileLocator) -> TableFileReader:
        """The reader of a version.

        Example:
            `TableFileReader.of(store, snapshot, files).read(file, ["id"])`
        """
        mode = cast("MappingMode", snapshot.column_mapping)
        return cls(store, files, pa.schema(snapshot), mode, snapshot.version, snapshot.partition_columns)

    def plain_schema(self) -> pa.Schema:
        """The table's columns, without what features keep in them."""
        return pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in self.annotated])

    def physical_names(self) -> dict[str, str]:
        """The columns: for each logical name the physical one."""
        return {field.name: physical_name(field, self.mode) for field in self.annotated}

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
        """The rows of one file, as the table has them: without the deleted ones, columns by their logical names.

        Args:
            file: The file.
            columns: Logical names.
            where: Which rows are kept.
            extra: Columns that the file has beside the table's.
            only: The numbers of the rows to read, ascending, instead of all that are not deleted.
            numbered: Whether the numbers of the rows in the file are the last column, `ROW_NUMBER`.
            opened: The file as `open` opened it.
            group: The row group that is read, of all if not given.
        """
        check_read(self.annotated.field(name) for name in columns)
        deleted = self.deleted(file)
        filesystem, path = self.files.locate(file.path)
        sources = ParquetSources(is_filtered=where is not None)
        opened = opened or self.open(file, is_filtered=where is not None)
        parquet = opened.parquet
        there = list(parquet.schema_arrow)
        fields = [*(self.annotated.field(name) for name in columns), *extra]
        in_file = FileFields(there, self.mode)
        found = [None if field.name in file.partition else in_file.find(field) for field in fields]
        wanted = {there[index].name for index in found if index is not None}
        names = sorted(wanted)
        groups = [group] if group is not None else None
        if groups is None:
            groups = self._row_groups(parquet, sources.of(filesystem, path), file, where)
        if file.span is not None:
            groups = [number for number in groups if file.span[0] <= opened.place(number) < file.span[1]]
        if only is not None:
            groups = _groups_with(only, opened, groups)
            only = _within(only, opened, groups)
        batches: Iterator[tuple[int, Any]] = _empty_groups(opened, groups)
        chosen: pa.Array | None = None
        if names and only is not None and opened.is_sparse(groups, len(only)):
            # Their numbers are known: no batch has one of its own.
            chosen, deleted = only, None
            found_rows = opened.chosen(names, groups, only, self.files.place(file.path))
            batches = each_batch(found_rows, self.version, file.path)
        elif names:
            batches = each_batch(opened.numbered(names, groups), self.version, file.path)
        target = pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in fields])
        # pyarrow filters no views, in which deltalake writes texts.
        is_filtered_first = bool(names) and not any("view" in str(f.type) for f in there if f.name in wanted)
        # Where most rows may be dropped only those that stay are numbered.
        is_late = where is not None and where.sql is not None
        # Deletion vectors name rows by their number in the file.
        for first, batch in batches:
            rows, kept, numbers = batch.num_rows, None, None
            if chosen is not None:
                numbers = chosen.slice(first, rows) if numbered else None
            else:
                if only is not None:
                    kept = _among(only, first, rows)
                elif deleted is not None:
                    kept = pc.invert(_among(deleted, first, rows))
                if numbered and (kept is not None or not is_late):
                    numbers = pa.array(np.arange(first, first + rows, dtype=np.uint64))
            if kept is not None and is_filtered_first:
                # Before values are cast: they may be a few of many.
                batch, numbers = batch.filter(kept), numbers.filter(kept) if numbers is not None else None
                rows, kept = batch.num_rows, None
            arrays = []
            for field, index in zip(fields, found, strict=True):
                if field.name in file.partition:
                    arrays.append(pa.repeat(file.partition[field.name], rows))
                elif index is None:
                    arrays.append(pa.nulls(rows, plain(field.type)))
                else:
                    arrays.append(conform(batch.column(there[index].name), field.type, self.mode, field.name))
            made = pa.RecordBatch.from_arrays(arrays, schema=target) if arrays else _empty(rows)
            if numbers is not None:
                made = made.append_column(ROW_NUMBER, numbers)
            if kept is not None:
                made = made.filter(kept)
            if numbered and numbers is None and where is not None:
                places = where.places(made)
                made = made.take(places)
                numbers = pc.add(places.cast(pa.uint64()), pa.scalar(first, pa.uint64()))
                made = made.append_column(ROW_NUMBER, numbers)
            elif where is not None:
                made = where.keep(made)
            if made.num_rows:
                yield made

    def open(self, file: TableFile, *, is_filtered: bool = False, dictionaries: list[str] | None = None) -> OpenParquet:
        """A file, for several reads of it.

        Args:
            file: The file.
            is_filtered: Whether a filter may be compared with statistics.
            dictionaries: Columns that are handed out as numbers of a dictionary, by their names in the file.
        """
        import pyarrow.parquet as pq

        filesystem, path = self.files.locate(file.path)
        source = ParquetSources(is_filtered=is_filtered)
        is_near = isinstance(filesystem, pa_fs.LocalFileSystem)
        with file_errors(self.version, file.path):
            # Local files are read page by page; others a row group at a time, as each read of them takes long.
            found = pq.ParquetFile(
                source.open(filesystem, path),
                read_dictionary=dictionaries,
                coerce_int96_timestamp_unit="us",
                pre_buffer=not is_near,
                buffer_size=_BUFFER_BYTES if is_near else 0,
            )
            columns = found.metadata.num_columns
            if is_near and columns * _BUFFER_BYTES > _BUFFERS_BYTES:
                # Each column has a buffer of its own.
                found = pq.ParquetFile(
                    source.open(filesystem, path),
                    metadata=found.metadata,
                    read_dictionary=dictionaries,
                    coerce_int96_timestamp_unit="us",
                    buffer_size=max(_LEAST_BUFFER_BYTES, _BUFFERS_BYTES // columns),
                )
        return OpenParquet(found)

    def footer(self, file: TableFile) -> pq.FileMetaData:
        """The footer of a file."""
        return self.open(file).metadata

    def _row_groups(
        self, parquet: pq.ParquetFile, source: tuple[Any, Any], file: TableFile, where: BoundFilter | None
    ) -> list[int]:
        """The row groups that may hold rows that the filter keeps, by their own statistics."""
        import pyarrow.dataset as ds

        every = list(range(parquet.num_row_groups))
        if where is None or len(every) < 2:
            return every
        there = list(parquet.schema_arrow)
        in_file = FileFields(there, self.mode)
        names = {}
        for field in self.annotated:
            index = None if field.name in file.partition else in_file.find(field)
            if index is not None:
                names[field.name] = there[index].name
        expression = where.implied if self.mode == "none" and where.expression is not None else None
        if expression is None:
            expression = all_of(where.terms, names)
        if expression is None:
            return every
        present = [field for field in there if field.name not in file.partition]
        schema = pa.schema([*present, *(pa.field(name, value.type) for name, value in file.partition.items())])
        fragment = ds.ParquetFileFormat().make_fragment(*source, partition_expression=guarantee(file.partition))
        try:
            return [group.id for group in fragment.subset(expression, schema=schema).row_groups]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError):
            # The file's columns differ from the table's: rows are filtered after the cast.
            return every

    def deleted(self, file: TableFile) -> pa.Array | None:
        """The numbers of a file's deleted rows, ascending, None if all are there."""
        if file.deletion_vector is None:
            return None
        arguments = {ours: file.deletion_vector[theirs] for theirs, ours in _DV_FIELDS.items()}
        where = {name: arguments[name] for name in ("storage_type", "path_or_inline_dv")}
        elsewhere = deletion_vector_elsewhere(self.store.uri, **where)
        if elsewhere is None:
            return pa.array(read_deletion_vector(self.store, **arguments))
        # The files of a shallow clone, and their deletion vectors, lie in the source table.
        store, path = self.files.store_of(elsewhere)
        return pa.array(read_deletion_vector(store, **arguments, path=path))


def check_read(fields: Iterable[pa.Field]) -> None:
    """Raises for a column whose values this release does not read.

    Args:
        fields: Columns of a table, with what features keep in them.

    Raises:
        UnsupportedError: It names the column and its type.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.file_reader import check_read
        >>> check_read([pa.field("a", pa.int8())])
    """
    for field in fields:
        unread = (field.metadata or {}).get(_UNREAD)
        if unread is not None:
            raise UnsupportedError(
                f"column {field.name!r} is of type {unread.decode()}, which this release does not read; "
                "name the other columns to read them",
                column=field.name,
            )


def guarantee(partition: dict[str, pa.Scalar]) -> pc.Expression:
    """The partition values of a file as an expression that holds for all its rows.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.file_reader import guarantee
        >>> guarantee({"p": pa.scalar("a")})
        <pyarrow.compute.Expression (p == "a")>
    """
    whole = None
    for name, value in partition.items():
        column = pc.field(name)
        term = column == value if value.is_valid else column.is_null()
        whole = term if whole is None else whole & term
    return pc.scalar(True) if whole is None else whole


def _groups_with(rows: pa.Array, opened: OpenParquet, groups: list[int]) -> list[int]:
    """Those of the row groups that hold some of the rows."""
    bounds = np.searchsorted(rows.to_numpy(), np.array(opened.starts, np.uint64))
    return [group for group in groups if bounds[group] < bounds[group + 1]]


def _within(rows: pa.Array, opened: OpenParquet, groups: list[int]) -> pa.Array:
    """Those of the rows that some row groups hold."""
    bounds = np.searchsorted(rows.to_numpy(), np.array(opened.starts, np.uint64)).tolist()
    parts = [rows.slice(bounds[group], bounds[group + 1] - bounds[group]) for group in groups]
    whole = sum(map(len, parts)) == len(rows)
    return rows if whole else pa.concat_arrays([*parts, rows.slice(0, 0)])


def _empty_groups(opened: OpenParquet, groups: list[int]) -> Iterator[tuple[int, Any]]:
    """Batches without columns, of no more rows each than others have."""
    for group in groups:
        first, end = opened.starts[group], opened.starts[group + 1]
        for start in range(first, end, BATCH_ROWS):
            yield start, _Rows(min(BATCH_ROWS, end - start))


class _Rows:
    """A batch without columns."""

    def __init__(self, rows: int) -> None:
        self.num_rows = rows


def _empty(rows: int) -> pa.RecordBatch:
    struct = pa.array([{}] * rows, pa.struct([]))
    return pa.RecordBatch.from_struct_array(struct)


def _among(chosen: pa.Array, first: int, rows: int) -> pa.Array:
    """Which of the rows from `first` on are chosen."""
    numbers = chosen.to_numpy()
    start, end = np.searchsorted(numbers, np.array([first, first + rows], np.uint64))
    mask = np.zeros(rows, bool)
    mask[numbers[start:end] - np.uint64(first)] = True
    return pa.array(mask)
