"""Changes to one fragment, made without being visible: what many workers do before one of them commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import pyarrow as pa
import pyarrow.compute as pc

from .._native.deletion import RowsToDelete
from ..arrow.blob_arrays import holds_blobs
from ..arrow.incoming import ReaderLike, coerce_reader
from ..exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..lance.change.join_keys import JoinKeys
from ..udf import BatchUDF

if TYPE_CHECKING:
    from ..dataset.columns import NewColumns
    from ..lance.scan.predicate import Filter
    from ..schema import LanceSchema
    from . import FragmentMetadata, LanceFragment

ROW_ADDRESS = "_rowaddr"
_OFFSET_BITS = 32


class FragmentChangesApi:
    """What `LanceFragment` knows of changes to itself."""

    def delete(self, predicate: Filter) -> FragmentMetadata | None:
        """What is left of the fragment without the rows for which a predicate is true: its deletion file is written.

        Args:
            predicate: The text of a SQL WHERE clause, or a pyarrow expression.

        Returns:
            The fragment for a `LanceOperation.Delete`, as it is if no row matches; None if no row is left.

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
        """What is left of the fragment without some rows: its deletion file is written.

        Args:
            offsets: The rows' numbers among all physical rows of the fragment, deleted ones included, from 0.

        Returns:
            The fragment for a `LanceOperation.Delete`; None if no row is left.

        Raises:
            InvalidArgumentError: A number behind the last row, or a negative one.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-fragment-delete-rows")
            >>> dataset.get_fragment(0).delete_rows([0, 2]).num_deletions
            2
        """
        numbers = [int(offset) for offset in offsets]
        if any(not 0 <= number < 1 << _OFFSET_BITS for number in numbers):
            raise InvalidArgumentError(f"expected row offsets from 0 to 2^32 - 1, found {min(numbers)}..{max(numbers)}")
        first = self._self.fragment_id << _OFFSET_BITS
        return self._without([pa.array([first | number for number in numbers], pa.uint64())])

    def merge_columns(
        self,
        value_func: NewColumns,
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """The fragment with new columns, whose file is written. Arguments are those of `LanceDataset.add_columns`.

        Args:
            value_func: SQL expressions by name, a function of batches, or the values themselves.
            columns: The columns that a function gets, all by default.
            batch_size: Rows per batch that a function gets, at most.
            reader_schema: Column types, where the values do not say.

        Returns:
            The fragment and the schema of all columns, for a `LanceOperation.Merge` with all fragments of the table.

        Raises:
            InvalidArgumentError: A column that is there already, values that are fewer or more than the rows, or a
                function with a `checkpoint_file`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-merge-columns")
            >>> fragment, schema = dataset.get_fragment(0).merge_columns({"twice": "id * 2"})
            >>> operation = esker.LanceOperation.Merge([fragment], schema)
            >>> esker.LanceDataset.commit(dataset, operation, read_version=1).to_table()["twice"].to_pylist()
            [2, 4]
        """
        from ..dataset.columns import column_source

        if isinstance(value_func, BatchUDF) and value_func.keeps_results:
            raise InvalidArgumentError(
                "A checkpoint file cannot be used for one fragment: its result is not in the table yet; "
                "leave checkpoint_file out, or use LanceDataset.add_columns"
            )
        return self._with_columns(column_source(value_func, columns, reader_schema, batch_size))

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """The fragment with the columns of other data, by key. Arguments are those of `LanceDataset.merge`.

        Args:
            data_obj: The other data; they are held in memory.
            left_on: The key's column in the table; `_rowid` and `_rowaddr` may be.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, where the data do not say.

        Returns:
            The fragment and the schema of all columns, for a `LanceOperation.Merge` with all fragments of the table.

        Example:
            `dataset.get_fragment(0).merge(pa.table({"id": [2], "name": ["b"]}), "id")`
        """
        from ..lance.change.new_columns import JoinedValues

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
        """The fragment with other values in some columns, by key; a new file holds these columns, rows stay in place.

        Rows whose key the other data lack keep their values. Of several rows under one key the last one counts.

        Args:
            data_obj: The key and the columns to change, of the table's types; held in memory.
            left_on: The key's column in the table; `_rowid` and `_rowaddr` may be.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, where the data do not say.
            with_offsets: Whether to tell which rows matched.

        Returns:
            The fragment and the ids of the fields that changed, for a `LanceOperation.Update` in the mode
            "rewrite_columns"; and, if asked for, the offsets of rows that matched, as a portable roaring bitmap.

        Raises:
            InvalidArgumentError: No such key, or a column that the table does not have.
            SchemaMismatchError: A column of another type than the table's, or a key that cannot be compared with it.

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
        from ..lance.change.new_columns import ColumnWriter
        from . import FragmentMetadata

        dataset = self._self._ds
        update = ColumnUpdate(
            coerce_reader(data_obj, schema).reader().read_all(), left_on, right_on or left_on, dataset._table_schema
        )
        fields = dataset._manifest.schema.select(update.columns)
        with ColumnWriter(dataset._store) as writer:
            file = writer.file_of(dataset, self._self, fields, lambda _, fragment: update.values(fragment))
        changed = FragmentMetadata.from_native(self._self.metadata.to_native().with_replacing_file(file))
        if with_offsets:
            return changed, file.fields, update.matched.encode_offsets(self._self.fragment_id)
        return changed, file.fields

    def _addresses(self, predicate: Filter) -> Iterator[pa.Array]:
        scanner = self._self.scanner(columns=[], filter=predicate, with_row_address=True)
        return (batch[ROW_ADDRESS] for batch in scanner.to_batches())

    def _without(self, addresses: Iterable[pa.Array]) -> FragmentMetadata | None:
        from . import FragmentMetadata

        rows = RowsToDelete()
        for part in addresses:
            rows.add(part)
        updated, removed, _ = rows.stage(self._self._ds._store, self._self._ds._manifest)
        if removed:
            return None
        return FragmentMetadata.from_native(updated[0]) if updated else self._self.metadata

    def _with_columns(self, source: Any) -> tuple[FragmentMetadata, LanceSchema]:
        from ..lance.change.new_columns import ColumnWriter
        from ..schema import LanceSchema
        from . import FragmentMetadata

        dataset = self._self._ds
        with ColumnWriter(dataset._store) as writer:
            schema, fragments = writer.add(dataset, source, [self._self])
        return FragmentMetadata.from_native(fragments[0]), LanceSchema(schema)

    @property
    def _self(self) -> LanceFragment:
        return cast("LanceFragment", self)


class ColumnUpdate:
    """New values of columns by key, put over the old ones.

    Args:
        other: The key and the new values.
        left_on: The key's column in the table, or `_rowid`, `_rowaddr`.
        right_on: The key's column in `other`.
        table: The table's columns.
    """

    def __init__(self, other: pa.Table, left_on: str, right_on: str, table: pa.Schema) -> None:
        if right_on not in other.column_names:
            raise InvalidArgumentError(
                f"expected the key {right_on!r} among the columns of the data ({', '.join(other.column_names)})",
                column=right_on,
            )
        if left_on not in (*table.names, "_rowid", ROW_ADDRESS):
            raise InvalidArgumentError(f"expected a key of the table, found {left_on!r}", column=left_on)
        self.columns = [name for name in other.column_names if name != right_on]
        if not self.columns:
            raise InvalidArgumentError("expected columns to change beside the key, found none")
        self._schema = pa.schema([_like(other.schema.field(name), table) for name in self.columns])
        self._keys = JoinKeys(other[right_on], left_on)
        self._keys.check(table.field(left_on).type if left_on in table.names else pa.uint64())
        self._new = other.select(self.columns).combine_chunks()
        self._left_on = left_on
        self.matched = RowsToDelete()
        """The rows that the data had a key for."""

    def values(self, fragment: LanceFragment) -> Iterator[pa.RecordBatch]:
        """The values of one fragment's rows, old and new, with the rows' addresses."""
        read = list(dict.fromkeys([*self.columns, self._left_on, ROW_ADDRESS]))
        for batch in fragment.to_batches(columns=read, blob_handling="all_binary"):
            rows = self._keys.rows(batch[self._left_on])
            hit = rows.is_valid()
            self.matched.add(batch[ROW_ADDRESS].filter(hit))
            columns = [_over(batch[name], self._new[name], rows, hit) for name in self.columns]
            yield pa.RecordBatch.from_arrays([*columns, batch[ROW_ADDRESS]], names=[*self.columns, ROW_ADDRESS])


def _over(old: pa.Array, new: pa.ChunkedArray, rows: pa.Array, hit: pa.Array) -> pa.Array:
    """The new value where there is one: taken by position from both, which works for values of any type."""
    new_values = new.combine_chunks()
    new_values = new_values.cast(old.type) if new_values.type != old.type else new_values
    both = pa.concat_arrays([_without_null_values(old), _without_null_values(new_values)])
    own = pa.array(range(len(old)), pa.int64())
    return both.take(pc.if_else(hit, pc.add(rows.cast(pa.int64()), len(old)), own))


def _without_null_values(values: pa.Array) -> pa.Array:
    """The same values with nulls in the indices of dictionaries rather than among their values, which do not join."""
    type_ = values.type
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(type_, _without_null_values(values.storage))
    if pa.types.is_dictionary(type_):
        if values.dictionary.null_count == 0:
            return values
        return values.cast(type_.value_type).dictionary_encode().cast(type_)
    if pa.types.is_struct(type_) and type_.num_fields:
        children = [_without_null_values(values.field(n)) for n in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=values.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        # A copy starts at zero: offsets within a buffer take no mask.
        whole = values.take(pa.array(range(len(values)), pa.int64()))
        return kind.from_arrays(whole.offsets, _without_null_values(whole.values), type=type_, mask=whole.is_null())
    return values


def _like(found: pa.Field, table: pa.Schema) -> pa.Field:
    if found.name not in table.names:
        raise InvalidArgumentError(
            f"expected columns of the table ({', '.join(table.names)}), found {found.name!r}", column=found.name
        )
    expected = table.field(found.name)
    if holds_blobs(expected.type):
        raise UnsupportedError(
            f"column {found.name!r} of blobs cannot be updated yet, write the rows", column=found.name
        )
    if expected.type != found.type:
        raise SchemaMismatchError(
            f"column {found.name!r} has another type than the table, expected {expected.type}, found {found.type}; "
            "cast it first",
            column=found.name,
            expected=str(expected.type),
            found=str(found.type),
        )
    return expected
