"""Writes the data files of new columns: one per fragment, with a value for each physical row.

Values are computed for live rows. Deleted rows get the value of another row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, groupby
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import table as native
from ..._native.file import inspect
from ..._native.schema import Schema
from ..._native.store import Store
from ..._native.write import write_fragments
from ...arrow.batch_source import BatchSource
from ...arrow.blob_arrays import holds_blobs
from ...arrow.picking import taken
from ...arrow.struct_offsets import rebased
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidChangeError
from ...progress import byte_count
from ..system_columns import ROW_ADDRESS
from ..version import TableVersion
from ..write.checking import check_new_columns
from ..write.compression import compression_of
from ..write.request import DEFAULT_MAX_ROWS_PER_GROUP, DEFAULT_MEMORY_LIMIT
from ..write.staging import blob_folder
from .column_values import ColumnSource, Values

_OFFSET_BITS = 32
_OFFSET = (1 << _OFFSET_BITS) - 1
_NO_LIMIT = 2**62

_AT_ONCE = 8
"""Files that are written side by side: the most time of a small one goes to its sync, or to its request."""
_FEW_BYTES = 4 << 20
"""Values of a file that is written beside others."""


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
        every = table.fragments if fragments is None else fragments
        # `fields` is in the key for its field ids: after another writer's change the table may assign others.
        keys = {it.id: (it.id, tuple(file.path for file in it.files), fields) for it in every}
        missing = [fragment for fragment in every if keys[fragment.id] not in self._written]
        known = table.manifest.max_field_id
        for fragment, file in self._files_of(table, missing, fields, values):
            self._written[keys[fragment.id]] = _of_values_alone(file)
        result = []
        for fragment in every:
            file = self._written[keys[fragment.id]]
            # Where files name the structs and lists around values, the new file has them from now on.
            held = any(0 <= field <= known for field in file.fields)
            result.append(fragment.with_replacing_file(file) if held else fragment.with_file(file))
        return result

    def file_of(
        self, table: TableVersion, fragment: native.Fragment, fields: Schema, values: Values
    ) -> native.DataFile:
        """A file with some columns of one fragment."""
        [(_, file)] = self._files_of(table, [fragment], fields, values)
        return file

    def _files_of(
        self, table: TableVersion, fragments: Sequence[native.Fragment], fields: Schema, values: Values
    ) -> Iterator[tuple[native.Fragment, native.DataFile]]:
        """The fragments with a file each. Files of few bytes are written while the next values are computed."""
        turns = deque[tuple[native.Fragment, Future[native.DataFile]]]()

        def taken_in(fragment: native.Fragment, file: native.DataFile) -> tuple[native.Fragment, native.DataFile]:
            if has_blobs:
                self.staged.add(self._store, blob_folder(f"data/{file.path}"))
            self.staged.add(self._store, f"data/{file.path}")
            return fragment, file

        def first() -> tuple[native.Fragment, native.DataFile]:
            # It stays among the turns until it is taken in: Ctrl-C breaks off the wait for it.
            done = taken_in(turns[0][0], turns[0][1].result())
            turns.popleft()
            return done

        has_blobs = any(holds_blobs(field.type) for field in pa.schema(fields))
        with ThreadPoolExecutor(_AT_ONCE, "esker-columns") as pool:
            try:
                for fragment, batches in by_fragment(values(table, fragments), fragments):
                    few, rest = split_off(batches, _FEW_BYTES)
                    if rest is not None:
                        yield taken_in(fragment, self._file(table, fragment, fields, chain(few, rest)))
                        continue
                    if len(turns) >= 2 * _AT_ONCE:
                        yield first()
                    # It is among the turns before anybody writes it: Ctrl-C breaks off the start of a thread, too.
                    turns.append((fragment, Future[native.DataFile]()))
                    _start(pool, partial(self._file, table, fragment, fields, iter(few)), turns[-1][1])
                while turns:
                    yield first()
            finally:
                # Those that were written after another one failed are removed with the others.
                for fragment, file in turns:
                    if not file.cancel() and file.exception() is None:
                        taken_in(fragment, file.result())

    def _file(
        self, table: TableVersion, fragment: native.Fragment, fields: Schema, batches: Iterator[pa.RecordBatch]
    ) -> native.DataFile:
        schema = pa.schema(fields)
        written = BatchSource(schema, spread(batches, schema, fragment.physical_rows)).feed(
            lambda reader: write_fragments(
                self._store,
                rebased(reader),
                schema=fields,
                data_storage_version=table.manifest.storage_version_to_write,
                compression=compression_of(None, table.manifest),
                max_rows_per_file=_NO_LIMIT,
                max_bytes_per_file=_NO_LIMIT,
                memory_limit=DEFAULT_MEMORY_LIMIT,
                max_rows_per_group=_rows_per_group(table, fragment),
            )
        )
        return written[0].files[0]


def _rows_per_group(table: TableVersion, fragment: native.Fragment) -> int:
    """The rows of a group of the files that a fragment has, if they are of version 0.1: pylance reads groups of several
    files side by side, and refuses to filter or to delete where they differ."""
    if fragment.files and table.manifest.storage_version_to_write == "0.1":
        # The first column is never one of a list's items, of which a group has other numbers.
        for column in inspect(table.store, fragment.files[0].location).columns[:1]:
            for page in column.pages[:1]:
                return max(1, page.num_values)
    return DEFAULT_MAX_ROWS_PER_GROUP


def _start(pool: ThreadPoolExecutor, write: Callable[[], native.DataFile], promised: Future[native.DataFile]) -> None:
    try:
        pool.submit(_keep, write, promised)
    except RuntimeError:
        # The interpreter starts no more threads once its main one has ended, though others may go on.
        promised.set_result(write())


def _keep(write: Callable[[], native.DataFile], promised: Future[native.DataFile]) -> None:
    """Writes a file that was promised, unless nobody wants it any more."""
    if not promised.set_running_or_notify_cancel():
        return
    try:
        promised.set_result(write())
    except BaseException as error:
        promised.set_exception(error)


def by_fragment(
    batches: Iterator[pa.RecordBatch], fragments: Iterable[native.Fragment]
) -> Iterator[tuple[native.Fragment, Iterator[pa.RecordBatch]]]:
    """The fragments with the batches of each, which are taken before the next fragment is.

    Args:
        batches: Batches with row addresses, each of one fragment, in the fragments' order.
        fragments: The fragments. One without live rows has no batches.
    """
    filled = (batch for batch in batches if batch.num_rows)
    groups = groupby(filled, lambda batch: batch[ROW_ADDRESS][0].as_py() >> _OFFSET_BITS)
    following = next(groups, None)
    for fragment in fragments:
        if following is None or following[0] != fragment.id:
            yield fragment, iter(())
            continue
        yield fragment, following[1]
        following = next(groups, None)


def split_off(batches: Iterator[pa.RecordBatch], nbytes: int) -> tuple[list[pa.RecordBatch], Iterator[Any] | None]:
    """The first batches, up to about so many bytes, and the others, if there may be any.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.change.column_writer import split_off
        >>> split_off(iter([pa.record_batch({"id": [1, 2]})]), 1000)[1] is None
        True
    """
    few = []
    held = 0
    for batch in batches:
        few.append(batch)
        held += byte_count(batch)
        if held >= nbytes:
            return few, batches
    return few, None


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


def _of_values_alone(file: native.DataFile) -> native.DataFile:
    # From 2.1 on a struct or list has no column of its own, and pylance names none: not the structs around a new field,
    # which another file of the fragment lists, and not a new column's, as it takes a file of which nothing but they is
    # left, since it updated the values, for damaged. Files of 0.1 list no columns.
    if not file.column_indices:
        return file
    listed = list(zip(file.fields, file.column_indices, strict=True))
    kept = [(field, column) for field, column in listed if column >= 0]
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
