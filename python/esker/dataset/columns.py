"""The methods of `LanceDataset` that add, alter and drop columns."""

from __future__ import annotations

import pyarrow as pa

from ..arrow.incoming import ReaderLike, coerce_reader
from ..exceptions import of_changes
from ..lance.change.column_values import JoinedValues
from ..lance.change.columns import AlterColumn, NewColumns, add_columns, add_transformed, alter_columns, drop_columns
from ..lance.handle import DatasetHandle


class ColumnsApi(DatasetHandle):
    """The methods of `LanceDataset` that change columns."""

    def drop_columns(self, columns: list[str]) -> None:
        """Drops columns. Their values stay in the files, and in older versions.

        Args:
            columns: Dotted paths.

        Raises:
            InvalidArgumentError: The table does not have a column, or no column would remain.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1], "old": [2]}), "memory://doc-drop")
            >>> dataset.drop_columns(["old"])
            >>> dataset.schema.names
            ['id']
        """
        self._move_to(drop_columns(self._table, columns))

    @of_changes()
    def alter_columns(self, *alterations: AlterColumn) -> None:
        """Changes names, nullability and types of columns.

        A new type writes new files of the column and drops the indices on it; names and nullability change no file.

        Args:
            *alterations: Dicts with a column's dotted `path`, and any of `name`, `nullable` and `data_type`.

        Raises:
            InvalidChangeError: The table does not have a column, a name is taken, or a column that is to be
                non-nullable holds nulls.
            SchemaMismatchError: The new type cannot hold a value.
            UnsupportedError: A field within a list or map, or a struct of a table of 0.1 or 2.0, gets a new type.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-alter")
            >>> dataset.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
            >>> dataset.schema
            key: int32
        """
        self._move_to(alter_columns(self._table, alterations))

    @of_changes()
    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Adds columns after those of the table; existing files do not change.

        Args:
            transforms: SQL expressions by name; a function from batches to batches of as many rows (see
                `esker.batch_udf`); a field, fields or a schema of columns that are null in all rows, which writes no
                file; or the values themselves, in the order of the table's rows.
            read_columns: The columns that the function gets, all by default.
            reader_schema: Column types, if the values do not have any.
            batch_size: The maximum number of rows per batch that the function gets.

        Raises:
            InvalidChangeError: The table has a column already, an expression does not parse, or there are fewer or
                more values than rows.
            CommitConflictError: Another writer added rows meanwhile, and the values cannot be read a second time.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-add")
            >>> dataset.add_columns({"twice": "id * 2"})
            >>> dataset.to_table().to_pylist()
            [{'id': 1, 'twice': 2}, {'id': 2, 'twice': 4}]
        """
        self._move_to(add_transformed(self._table, transforms, read_columns, reader_schema, batch_size))

    @of_changes()
    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Adds the columns of other data, joined by key. Rows whose key is not in the other data get nulls.

        The other data are held in memory. If several of their rows have one key, the last one counts. Keys of different
        types match if their values are equal.

        Args:
            data_obj: The other data: whatever a write takes.
            left_on: The key's column in the table, or `_rowid` or `_rowaddr`.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, if the data do not have any.

        Raises:
            InvalidChangeError: The table has a column already.
            InvalidChangeError: The other data have no such key, or nothing else.
            NotFoundError: The table has no such key.
            SchemaMismatchError: The keys cannot be compared, such as text and numbers.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-merge")
            >>> dataset.merge(pa.table({"id": [2], "name": ["b"]}), "id")
            >>> dataset.to_table()["name"].to_pylist()
            [None, 'b']
        """
        other = coerce_reader(data_obj, schema).reader().read_all()
        self._move_to(add_columns(self._table, JoinedValues(other, left_on, right_on or left_on)))
