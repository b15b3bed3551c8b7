"""Values of new columns, and the files that they go to: one file for each fragment, with a row for each physical row.

Values are computed for the rows that count. Deleted rows repeat the value of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import table as native
from ..._native.store import Store
from ..._native.write import write_fragments as write_native
from ...arrow.incoming import BatchSource
from ...arrow.struct_offsets import rebased
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError, NotFoundError
from ...fragment import LanceFragment
from ...udf import BatchUDF
from ..write.staging import DEFAULT_MEMORY_LIMIT, check_input_schema
from .join_keys import JoinKeys

if TYPE_CHECKING:
    from ...dataset import LanceDataset

ROW_ADDRESS = "_rowaddr"
_SYSTEM_KEYS = ("_rowid", ROW_ADDRESS)
"""What a row may be called by beside its columns."""
_OFFSET = (1 << 32) - 1
_NO_LIMIT = 2**62

Values = Callable[["LanceDataset", LanceFragment], Iterator[pa.RecordBatch]]
"""The values of one fragment's rows, in batches that also hold the rows' addresses."""


class ColumnSource(Protocol):
    """Where the values of new columns come from."""

    again: bool
    """Whether they can be computed a second time."""

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """The new columns."""

    def values(self, dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The values of one fragment's rows, with the rows' addresses. Fragments are asked for in order."""

    def finish(self) -> None:
        """Called when all fragments have their values."""


class ColumnWriter:
    """Writes files of new columns, each once however often its commit starts anew.

    As a context manager it removes them if its block fails, unless a commit may name them.

    Args:
        store: The table's.

    Example:
        `with ColumnWriter(store) as writer: schema, fragments = writer.add(dataset, source)`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[tuple[Any, ...], native.DataFile] = {}
        self.staged = StagedFiles()
        """The files, for the commit that names them."""

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.staged.__exit__(kind, error, traceback)

    def add(
        self, dataset: LanceDataset, source: ColumnSource, fragments: Sequence[LanceFragment] | None = None
    ) -> tuple[native.Schema, list[native.Fragment]]:
        """The table's schema with the new columns, and its fragments (or those given) with their files.

        Raises:
            InvalidArgumentError: A column that is there already.
        """
        new = source.schema(dataset)
        check_input_schema(new)
        schema = dataset._manifest.schema
        fields = native.Schema.from_arrow(new, first_id=dataset._manifest.max_field_id + 1)
        extended = schema.extended(fields)
        written = self.write(dataset, fields, source.values, fragments)
        source.finish()
        return extended, written

    def write(
        self,
        dataset: LanceDataset,
        fields: native.Schema,
        values: Values,
        fragments: Sequence[LanceFragment] | None = None,
    ) -> list[native.Fragment]:
        """All fragments of the table, or those given, each with a file of the new columns."""
        result = []
        for fragment in dataset.get_fragments() if fragments is None else fragments:
            found = fragment.metadata.to_native()
            # Field ids are in the key: a table that changed meanwhile may give other ones.
            key = (found.id, tuple(file.path for file in found.files), fields)
            if key not in self._written:
                self._written[key] = self.file_of(dataset, fragment, fields, values)
            result.append(found.with_file(self._written[key]))
        return result

    def file_of(
        self, dataset: LanceDataset, fragment: LanceFragment, fields: native.Schema, values: Values
    ) -> native.DataFile:
        """A file with some columns of one fragment."""
        schema = pa.schema(fields)
        batches = spread(values(dataset, fragment), schema, fragment.physical_rows)
        source = BatchSource(schema, batches)
        try:
            written = write_native(
                self._store,
                rebased(source.reader()),
                schema=fields,
                data_storage_version=dataset.data_storage_version,
                max_rows_per_file=_NO_LIMIT,
                max_bytes_per_file=_NO_LIMIT,
                memory_limit=DEFAULT_MEMORY_LIMIT,
            )
        except Exception:
            if source.failure is not None:
                raise source.failure from None
            raise
        file = written[0].files[0]
        self.staged.add(self._store, f"data/{file.path}")
        return file


def spread(batches: Iterator[pa.RecordBatch], schema: pa.Schema, physical_rows: int) -> Iterator[pa.RecordBatch]:
    """Values of the rows that count, at the places of these rows among all physical ones.

    Args:
        batches: The values, with the rows' addresses in rising order.
        schema: The columns to take.
        physical_rows: All rows of the fragment.
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
            yield pa.RecordBatch.from_arrays(columns.columns, schema=schema)
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
    # Deleted rows repeat a value: a null may be more than the column or the file's version allows.
    where = positions.fill_null(0)
    return pa.RecordBatch.from_arrays([columns[field.name].take(where) for field in schema], schema=schema)


class ExpressionValues:
    """SQL expressions by the names of the new columns."""

    again = True

    def __init__(self, expressions: dict[str, str], batch_size: int | None) -> None:
        self._expressions = expressions
        self._batch_size = batch_size

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """The new columns."""
        return dataset._scan(columns=self._expressions).projected_schema

    def values(self, dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The values of one fragment's rows."""
        from ...dataset.rows import within_precision

        options = {"with_row_address": True, "batch_size": self._batch_size}
        for batch in fragment.to_batches(columns=self._expressions, **options):
            for name in self._expressions:
                within_precision(batch[name], name)
            yield batch

    def finish(self) -> None:
        """Nothing: each fragment stands for itself."""


class FunctionValues:
    """A function of batches of the table."""

    again = True

    def __init__(self, function: BatchUDF, read_columns: list[str] | None, batch_size: int | None) -> None:
        self._function = function
        self._read_columns = read_columns
        self._batch_size = batch_size

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """The new columns: as declared, or as the function returns them for the first rows."""
        if self._function.output_schema is None:
            first = next(iter(self._batches(dataset, None)), None)
            if first is None:
                raise InvalidArgumentError("expected output_schema of a function for a table without rows, found none")
            self._function.output_schema = self._function(self._input(first)).schema
        return self._function.output_schema

    def values(self, dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The values of one fragment's rows."""
        for number, batch in enumerate(self._batches(dataset, fragment)):
            result = self._function.of_batch((dataset.version, fragment.fragment_id, number), self._input(batch))
            yield result.append_column(ROW_ADDRESS, batch[ROW_ADDRESS])

    def finish(self) -> None:
        """Nothing: each fragment stands for itself."""

    def _batches(self, dataset: LanceDataset, fragment: LanceFragment | None) -> Iterator[pa.RecordBatch]:
        scan = dataset._scan if fragment is None else fragment.scanner
        return scan(columns=self._read_columns, with_row_address=True, batch_size=self._batch_size).to_batches()

    @staticmethod
    def _input(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.drop_columns([ROW_ADDRESS])


class StreamValues:
    """Values that come from elsewhere, one for each row of the table in its order."""

    again = False

    def __init__(self, source: BatchSource) -> None:
        self._schema = source.schema
        self._batches: Iterator[pa.RecordBatch] = iter(source.reader())
        self._rest: pa.RecordBatch | None = None

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """The new columns."""
        return self._schema

    def values(self, dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The next values, with the addresses of one fragment's rows."""
        for addresses in fragment.to_batches(columns=[], with_row_address=True):
            start = 0
            while start < addresses.num_rows:
                batch = self._next()
                if batch is None:
                    raise InvalidArgumentError("expected a value for each row of the table, found fewer in the stream")
                size = min(batch.num_rows, addresses.num_rows - start)
                self._rest = batch.slice(size)
                part = addresses[ROW_ADDRESS].slice(start, size)
                yield batch.slice(0, size).append_column(ROW_ADDRESS, part)
                start += size

    def finish(self) -> None:
        """Refuses values that are left over.

        Raises:
            InvalidArgumentError: There are some.
        """
        if self._next() is not None:
            raise InvalidArgumentError("expected a value for each row of the table, found more in the stream")

    def _next(self) -> pa.RecordBatch | None:
        while self._rest is None or self._rest.num_rows == 0:
            self._rest = next(self._batches, None)
            if self._rest is None:
                return None
        return self._rest


class JoinedValues:
    """The columns of another table, by key."""

    again = True

    def __init__(self, other: pa.Table, left_on: str, right_on: str) -> None:
        if right_on not in other.column_names:
            raise InvalidArgumentError(
                f"expected the key {right_on!r} among the columns of the data ({', '.join(other.column_names)})",
                column=right_on,
            )
        self._keys = JoinKeys(other[right_on], left_on)
        self._columns = other.drop_columns([right_on]).combine_chunks()
        self._left_on = left_on

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """The new columns."""
        names = dataset._table_schema.names
        if self._left_on not in (*names, *_SYSTEM_KEYS):
            raise NotFoundError(f"expected the key {self._left_on!r} among the table's columns ({', '.join(names)})")
        self._keys.check(
            pa.uint64() if self._left_on in _SYSTEM_KEYS else dataset._table_schema.field(self._left_on).type
        )
        # A key that is not there makes a null.
        return pa.schema([field.with_nullable(True) for field in self._columns.schema])

    def values(self, dataset: LanceDataset, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The values of one fragment's rows."""
        columns = [] if self._left_on in _SYSTEM_KEYS else [self._left_on]
        by_id = self._left_on == "_rowid"
        for batch in fragment.to_batches(columns=columns, with_row_id=by_id, with_row_address=True):
            rows = self._columns.take(self._keys.rows(batch[self._left_on]))
            values = [rows[name].combine_chunks() for name in rows.column_names]
            yield pa.RecordBatch.from_arrays([*values, batch[ROW_ADDRESS]], names=[*rows.column_names, ROW_ADDRESS])

    def finish(self) -> None:
        """Nothing: each fragment stands for itself."""
