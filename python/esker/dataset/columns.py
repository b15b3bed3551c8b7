"""Columns that come, go and change."""

from __future__ import annotations

import pyarrow as pa

from ..arrow.incoming import ReaderLike, coerce_reader
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
            InvalidArgumentError: One that the table does not have, or all of them.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1], "old": [2]}), "memory://doc-drop")
            >>> dataset.drop_columns(["old"])
            >>> dataset.schema.names
            ['id']
        """
        self._move_to(drop_columns(self._table, columns))

    def alter_columns(self, *alterations: AlterColumn) -> None:
        """Renames columns, lets them be null or not, and changes their types.

        A new type makes new files of the column, and drops the indices on it; names and nullability change no file.

        Args:
            *alterations: Dicts of a column's dotted `path`, and of `name`, `nullable`, `data_type` what changes.

        Raises:
            InvalidArgumentError: A column that the table does not have, a name that is taken, nulls in a column that
                shall have none.
            SchemaMismatchError: A value that the new type cannot hold.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-alter")
            >>> dataset.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
            >>> dataset.schema
            key: int32
        """
        self._move_to(alter_columns(self._table, alterations))

    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Adds columns behind those of the table; existing files stay as they are.

        Args:
            transforms: SQL expressions by name; a function from batches to batches of as many rows (see
                `esker.batch_udf`); a field, fields or a schema of columns that are null throughout, which writes no
                file; or the values themselves, in the order of the table's rows.
            read_columns: The columns that the function gets, all by default.
            reader_schema: Column types, where the values do not say.
            batch_size: Rows per batch that the function gets, at most.

        Raises:
            InvalidArgumentError: A column that is there already, an expression that does not parse, or values that are
                fewer or more than the table's rows.
            CommitConflictError: Another writer added rows meanwhile, and the values cannot be read a second time.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-add")
            >>> dataset.add_columns({"twice": "id * 2"})
            >>> dataset.to_table().to_pylist()
            [{'id': 1, 'twice': 2}, {'id': 2, 'twice': 4}]
        """
        self._move_to(add_transformed(self._table, transforms, read_columns, reader_schema, batch_size))

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Adds the columns of other data, row by row where the keys are equal; null where there is no such key.

        The other data are held in memory. Of several rows under one key the last one counts. Keys of different types
        match where their values are equal.

        Args:
            data_obj: The other data: whatever a write takes.
            left_on: The key's column in the table; `_rowid` and `_rowaddr` may be.
            right_on: The key's column in the other data, `left_on` by default.
            schema: Column types, where the data do not say.

        Raises:
            InvalidArgumentError: A column that is there already, or no such key.
            SchemaMismatchError: Keys that cannot be compared, such as text and numbers.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-merge")
            >>> dataset.merge(pa.table({"id": [2], "name": ["b"]}), "id")
            >>> dataset.to_table()["name"].to_pylist()
            [None, 'b']
        """
        other = coerce_reader(data_obj, schema).reader().read_all()
        self._move_to(add_columns(self._table, JoinedValues(other, left_on, right_on or left_on)))
