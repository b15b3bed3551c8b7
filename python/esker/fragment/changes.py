"""The methods of `LanceFragment` that stage a change of one fragment. Nothing is visible before it is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, overload

import pyarrow as pa

from .._native.deletion import RowsToDelete
from ..arrow.incoming import ReaderLike, coerce_reader
from ..exceptions import InvalidArgumentError, of_changes
from ..lance.change.column_update import update_columns
from ..lance.change.column_values import ColumnSource, JoinedValues
from ..lance.change.column_writer import ColumnWriter
from ..lance.change.columns import NewColumns, column_source
from ..lance.fragment_metadata import FragmentMetadata
from ..lance.handle import FragmentHandle
from ..lance.scan.options import ScanOptions
from ..lance.scan.predicate import Filter
from ..lance.scan.scan import Scan
from ..lance.system_columns import ROW_ADDRESS
from ..schema import LanceSchema
from ..udf import BatchUDF

_OFFSET_BITS = 32


class FragmentChangesApi(FragmentHandle):
    """The methods of `LanceFragment` that stage changes."""

    @of_changes()
    def delete(self, predicate: Filter) -> FragmentMetadata | None:
        """Deletes the rows for which a predicate is true: writes a deletion file and returns the changed fragment.

        Args:
            predicate: The text of a SQL WHERE clause, or a pyarrow expression.

        Returns:
            The fragment for a `LanceOperation.Delete`, unchanged if no row matches; None if no row is left.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-fragment-delete")
            >>> left = dataset.get_fragment(0).delete("id > 1")
            >>> left.num_rows
            1
            >>> operation = esker.LanceOperation.Delete([left], [], "id > 1")
            >>> esker.LanceDataset.commit(dataset, operation, read_version=1).count_rows()
            1
        """
        return self._without(self._addresses(predicate))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Deletes rows by offset: writes a deletion file and returns the changed fragment.

        Args:
            offsets: The rows' offsets among all physical rows of the fragment, including deleted ones, from 0.

        Returns:
            The fragment for a `LanceOperation.Delete`; None if no row is left.

        Raises:
            InvalidArgumentError: An offset is negative, or beyond the last row.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-fragment-delete-rows")
            >>> dataset.get_fragment(0).delete_rows([0, 2]).num_deletions
            2
        """
        numbers = [int(offset) for offset in offsets]
        # Old writers did not note the number.
        rows = self._fragment.physical_rows or 1 << _OFFSET_BITS
        wrong = [number for number in numbers if not 0 <= number < rows]
        if wrong:
            raise InvalidArgumentError(
                f"row offset {wrong[0]} is out of range, expected 0 to {rows - 1} in fragment {self._fragment.id}"
            )
        first = self._fragment.id << _OFFSET_BITS
        return self._without([pa.array([first | number for number in numbers], pa.uint64())])

    def merge_columns(
        self,
        value_func: NewColumns,
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Adds columns: writes their file and returns the changed fragment. See `LanceDataset.add_columns`.

        Args:
            value_func: SQL expressions by name, a function of batches, or the values themselves.
            columns: The columns that a function gets, all by default.
            batch_size: The maximum number of rows per batch that a function gets.
            reader_schema: Column types, if the values do not have any.

        Returns:
            The fragment and the schema of all columns, for a `LanceOperation.Merge` with all fragments of the table.

        Raises:
            InvalidArgumentError: The table has a column already, there are fewer or more values than rows, or a
                function has a `checkpoint_file`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-merge-columns")
            >>> fragment, schema = dataset.get_fragment(0).merge_columns({"twice": "id * 2"})
            >>> operation = esker.LanceOperation.Merge([fragment], schema)
            >>> esker.LanceDataset.commit(dataset, operation, read_version=1).to_table()["twice"].to_pylist()
            [2, 4]
        """
        if isinstance(value_func, BatchUDF) and value_func.keeps_results:
            raise InvalidArgumentError(
                "A checkpoint file cannot be used for one fragment: its result is not in the table yet; "
                "leave checkpoint_file out, or use LanceDataset.add_columns"
            )
        return self._with_columns(column_source(value_func, columns, reader_schema, batch_size))

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Adds the columns of other data, joined by key: writes their file and returns the changed fragment. See
        `LanceDataset.merge`.

        Args:
            data_obj: The other data; they are held in memory.
            left_on: The key's column in the table, or `_rowid` or `_rowaddr`.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, if the data do not have any.

        Returns:
            The fragment and the schema of all columns, for a `LanceOperation.Merge` with all fragments of the table.

        Example:
            `dataset.get_fragment(0).merge(pa.table({"id": [2], "name": ["b"]}), "id")`
        """
        other = coerce_reader(data_obj, schema).reader().read_all()
        return self._with_columns(JoinedValues(other, left_on, right_on or left_on))

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = ...,
        right_on: str | None = ...,
        schema: pa.Schema | None = ...,
        *,
        with_offsets: Literal[False] = ...,
    ) -> tuple[FragmentMetadata, list[int]]: ...

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = ...,
        right_on: str | None = ...,
        schema: pa.Schema | None = ...,
        *,
        with_offsets: Literal[True],
    ) -> tuple[FragmentMetadata, list[int], bytes]: ...

    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Updates columns by key, in place: writes a new file of these columns and returns the changed fragment.

        Rows whose key is not in the other data keep their values. If several rows have one key, the last one counts.

        Args:
            data_obj: The key and the columns to change, of the table's types; held in memory.
            left_on: The key's column in the table, or `_rowid` or `_rowaddr`.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, if the data do not have any.
            with_offsets: Whether to return which rows matched.

        Returns:
            The fragment and the ids of the fields that changed, for a `LanceOperation.Update` in the mode
            "rewrite_columns"; with `with_offsets` also the offsets of the rows that matched, as a portable roaring
            bitmap.

        Raises:
            InvalidArgumentError: The key does not exist, or the table does not have a column.
            SchemaMismatchError: A column has another type than in the table, or the keys cannot be compared.

        Example:
            >>> import esker, pyarrow as pa
            >>> from esker import LanceDataset, LanceOperation
            >>> rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
            >>> dataset = esker.write_dataset(rows, "memory://doc-update-columns")
            >>> new = pa.table({"id": [2], "name": ["B"]})
            >>> fragment, fields = dataset.get_fragment(0).update_columns(new, "id")
            >>> operation = LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
            >>> LanceDataset.commit(dataset, operation, read_version=1).to_table()["name"].to_pylist()
            ['a', 'B']
        """
        other = coerce_reader(data_obj, schema).reader().read_all()
        updated = update_columns(self._table, self._fragment, other, left_on, right_on or left_on)
        fragment = FragmentMetadata.from_native(updated.fragment)
        if with_offsets:
            return fragment, updated.fields, updated.matched
        return fragment, updated.fields

    def _addresses(self, predicate: Filter) -> Iterator[pa.Array]:
        options = ScanOptions(columns=[], filter=predicate, with_row_address=True, fragment_ids=(self._fragment.id,))
        return (batch[ROW_ADDRESS] for batch in Scan(self._table, options).to_batches())

    def _without(self, addresses: Iterable[pa.Array]) -> FragmentMetadata | None:
        rows = RowsToDelete()
        for part in addresses:
            rows.add(part)
        updated, removed, _ = rows.stage(self._table.store, self._table.manifest)
        if removed:
            return None
        return FragmentMetadata.from_native(updated[0] if updated else self._fragment)

    def _with_columns(self, source: ColumnSource) -> tuple[FragmentMetadata, LanceSchema]:
        with ColumnWriter(self._table.store) as writer:
            schema, fragments = writer.add(self._table, source, [self._fragment])
        return FragmentMetadata.from_native(fragments[0]), LanceSchema(schema)
