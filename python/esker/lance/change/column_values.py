"""`ColumnSource`: the values of new columns, from SQL expressions, functions, streams or other tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from ..._native import table as native
from ...arrow.batch_source import BatchSource
from ...arrow.batches import owned
from ...arrow.combining import combined
from ...arrow.json_columns import as_json_text, stored_batch, stored_schema
from ...arrow.picking import taken
from ...exceptions import InvalidArgumentError, NotFoundError, SchemaMismatchError
from ...udf import BatchUDF
from ..scan.options import Columns, ScanOptions
from ..scan.scan import Scan
from ..system_columns import ROW_ADDRESS, ROW_ID
from ..version import TableVersion
from .assignments import within_precision
from .join_keys import SYSTEM_KEYS, JoinKeys

Values = Callable[[TableVersion, Sequence[native.Fragment]], Iterator[pa.RecordBatch]]
"""Returns the values of some fragments' rows in their order, in batches of one fragment that also hold the row
addresses."""


class ColumnSource(Protocol):
    """The values of new columns."""

    again: bool
    """Whether the values can be computed a second time, for a rerun of the commit."""

    def schema(self, table: TableVersion) -> pa.Schema:
        """The new columns."""

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The values of some fragments' rows, with the row addresses; see `Values`."""

    def finish(self) -> None:
        """Called after the last fragment."""


class ExpressionValues:
    """Values of SQL expressions, by the names of the new columns."""

    again = True

    def __init__(self, expressions: dict[str, str], batch_size: int | None) -> None:
        self._expressions = expressions
        self._batch_size = batch_size

    def schema(self, table: TableVersion) -> pa.Schema:
        """The new columns."""
        return Scan(table, ScanOptions(columns=self._expressions)).schema

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The values of some fragments' rows."""
        for batch in _batches(table, fragments, self._expressions, self._batch_size):
            for name in self._expressions:
                within_precision(batch[name], name)
            yield batch

    def finish(self) -> None:
        """Does nothing: fragments are independent of each other."""


class FunctionValues:
    """Values that a function computes from batches of the table."""

    again = True

    def __init__(self, function: BatchUDF, read_columns: list[str] | None, batch_size: int | None) -> None:
        self._function = function
        self._read_columns = read_columns
        self._batch_size = batch_size

    def schema(self, table: TableVersion) -> pa.Schema:
        """The new columns: as declared, or as the function returns them for the first rows."""
        if self._function.output_schema is None:
            first = next(iter(_batches(table, None, self._read_columns, self._batch_size)), None)
            if first is None:
                raise InvalidArgumentError("expected output_schema of a function for a table without rows, found none")
            self._function.output_schema = self._function(self._input(first)).schema
        return stored_schema(self._function.output_schema)

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The values of some fragments' rows."""
        numbers = Counter[int]()
        for batch in _batches(table, fragments, self._read_columns, self._batch_size):
            if batch.num_rows == 0:
                continue
            fragment = batch[ROW_ADDRESS][0].as_py() >> 32
            result = self._function.of_batch((table.number, fragment, numbers[fragment]), self._input(batch))
            numbers[fragment] += 1
            # The function may fill the same memory anew for the next batch.
            yield owned(stored_batch(result)).append_column(ROW_ADDRESS, batch[ROW_ADDRESS])

    def finish(self) -> None:
        """Does nothing: fragments are independent of each other."""

    @staticmethod
    def _input(batch: pa.RecordBatch) -> pa.RecordBatch:
        return as_json_text(batch.drop_columns([ROW_ADDRESS]))


class StreamValues:
    """Values of a stream, one for each row of the table, in the table's order. It can be read only once."""

    again = False

    def __init__(self, source: BatchSource) -> None:
        self._schema = source.schema
        self._batches: Iterator[pa.RecordBatch] = iter(source.reader())
        self._rest: pa.RecordBatch | None = None

    def schema(self, table: TableVersion) -> pa.Schema:
        """The new columns."""
        return self._schema

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The next values of the stream, for some fragments' rows, with their row addresses."""
        for addresses in _batches(table, fragments, []):
            start = 0
            while start < addresses.num_rows:
                batch = self._next()
                if batch is None:
                    raise SchemaMismatchError(
                        "Stream ended before producing values for all rows in dataset: expected a value for each row"
                    )
                size = min(batch.num_rows, addresses.num_rows - start)
                self._rest = batch.slice(size)
                part = addresses[ROW_ADDRESS].slice(start, size)
                yield batch.slice(0, size).append_column(ROW_ADDRESS, part)
                start += size

    def finish(self) -> None:
        """Checks that the stream has ended.

        Raises:
            SchemaMismatchError: It has more values than the table has rows.
        """
        if self._next() is not None:
            raise SchemaMismatchError(
                "Stream produced more values than expected for dataset: expected one for each row of the table"
            )

    def _next(self) -> pa.RecordBatch | None:
        while self._rest is None or self._rest.num_rows == 0:
            self._rest = next(self._batches, None)
            if self._rest is None:
                return None
        return self._rest


class JoinedValues:
    """The columns of another table, joined by key."""

    again = True

    def __init__(self, other: pa.Table, left_on: str, right_on: str) -> None:
        self._keys = JoinKeys.of(other, left_on, right_on)
        self._columns = combined(other.drop_columns([right_on]))
        self._left_on = left_on

    def schema(self, table: TableVersion) -> pa.Schema:
        """The new columns."""
        names = table.schema.names
        if self._left_on not in (*names, *SYSTEM_KEYS):
            raise NotFoundError(f"expected the key {self._left_on!r} among the table's columns ({', '.join(names)})")
        self._keys.check_in(table.schema)
        # A row whose key is not in the other table gets nulls.
        schema = self._columns.schema
        return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)

    def values(self, table: TableVersion, fragments: Sequence[native.Fragment]) -> Iterator[pa.RecordBatch]:
        """The values of some fragments' rows."""
        columns = [] if self._left_on in SYSTEM_KEYS else [self._left_on]
        by_id = self._left_on == ROW_ID
        for batch in _batches(table, fragments, columns, with_row_id=by_id):
            rows = taken(self._columns, self._keys.rows(batch[self._left_on]))
            values = [rows[name].combine_chunks() for name in rows.column_names]
            yield pa.RecordBatch.from_arrays([*values, batch[ROW_ADDRESS]], names=[*rows.column_names, ROW_ADDRESS])

    def finish(self) -> None:
        """Does nothing: fragments are independent of each other."""


def _batches(
    table: TableVersion,
    fragments: Sequence[native.Fragment] | None,
    columns: Columns | None,
    batch_size: int | None = None,
    *,
    with_row_id: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Columns of some fragments' rows, or of all rows, with the row addresses."""
    options = ScanOptions(
        columns=columns,
        batch_size=batch_size,
        fragment_ids=None if fragments is None else tuple(fragment.id for fragment in fragments),
        with_row_id=with_row_id,
        with_row_address=True,
    )
    return Scan(table, options).to_batches()
