"""Rows that go and rows that change: delete, truncate, update."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from ..commit.limits import CONFLICT_RETRIES, RETRY_TIMEOUT, retry_limits
from ..lance.change.rows import delete_rows, update_rows
from ..lance.change.run import CommitTerms
from ..lance.handle import DatasetHandle
from ..lance.scan.predicate import Filter
from ..lance.write.request import DEFAULT_MEMORY_LIMIT


class DeleteResult(TypedDict):
    """What a delete did."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """What an update did."""

    num_rows_updated: int


class RowsApi(DatasetHandle):
    """The methods of `LanceDataset` that change rows."""

    def delete(
        self,
        predicate: Filter,
        *,
        conflict_retries: int = CONFLICT_RETRIES,
        retry_timeout: timedelta = RETRY_TIMEOUT,
        commit_message: str | None = None,
        application: tuple[str, int] | None = None,
        durable: bool = True,
    ) -> DeleteResult:
        """Deletes the rows for which a predicate is true, and moves to the version without them.

        Data files stay as they are: deletion files beside them say which rows no longer count. A fragment that loses
        its last row leaves the table. Only the predicate's columns are read.

        Args:
            predicate: The text of a SQL WHERE clause, or a pyarrow expression. Rows for which it is null stay.
            conflict_retries: How often it is computed again, where others changed the same rows meanwhile.
            retry_timeout: After this time it is not tried again, however long the first try takes.
            commit_message: Noted on the transaction.
            application: An application's id and the number of this change among its own: what an earlier run did under
                that number, or a higher one, is not done again.
            durable: Whether files and commit are on stable storage on return.

        Returns:
            `num_deleted_rows`.

        Raises:
            InvalidArgumentError: A predicate that does not parse, or is no condition.
            CommitConflictError: Others were faster every time, or changed the table in a way that leaves no room.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-delete")
            >>> dataset.delete("id < 3")
            {'num_deleted_rows': 2}
            >>> dataset.to_table()["id"].to_pylist()
            [3]
        """
        limits = retry_limits(conflict_retries, retry_timeout)
        terms = CommitTerms(limits, commit_message, application, durable)
        table, count = delete_rows(self._table, predicate, terms)
        self._move_to(table)
        return {"num_deleted_rows": count}

    def truncate_table(self) -> None:
        """Deletes all rows and moves to the version without them. The columns stay. Reads nothing.

        Raises:
            CommitConflictError: Others changed rows meanwhile, again and again.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-truncate")
            >>> dataset.truncate_table()
            >>> dataset.count_rows(), dataset.schema.names
            (0, ['id'])
        """
        self.delete("true")

    def update(
        self,
        updates: Mapping[str, str],
        where: Filter | None = None,
        conflict_retries: int = CONFLICT_RETRIES,
        retry_timeout: timedelta = RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        commit_message: str | None = None,
        application: tuple[str, int] | None = None,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        durable: bool = True,
    ) -> UpdateResult:
        """Changes values of the rows for which a predicate is true, and moves to the version with them.

        The rows are written anew, as a whole, to new fragments, and deleted where they were; with stable row ids they
        keep their `_rowid`. The predicate's columns are read of all rows, the others of those that it selects; memory
        stays bounded however many they are.

        Args:
            updates: By column, a SQL expression over the row's columns as they were. Its values are cast to the
                column's type: numbers lose what lies behind the point, text is parsed, what does not fit is an error.
            where: The text of a SQL WHERE clause, or a pyarrow expression; all rows by default.
            conflict_retries: How often it is computed again, where others changed the same rows meanwhile.
            retry_timeout: After this time it is not tried again, however long the first try takes.
            data_storage_version: The file version of the new files; None keeps the table's.
            commit_message: Noted on the transaction.
            application: An application's id and the number of this change among its own: what an earlier run did under
                that number, or a higher one, is not done again.
            memory_limit: Bytes that writing the rows anew may buffer.
            durable: Whether files and commit are on stable storage on return.

        Returns:
            `num_rows_updated`.

        Raises:
            InvalidArgumentError: No updates, a column that the table does not have, an expression that does not parse,
                a value that the column cannot hold.
            SchemaMismatchError: A null in a column that has none.
            UnsupportedError: A field within a column, or a column of blobs of the second kind.
            CommitConflictError: Others were faster every time, or changed the table in a way that leaves no room.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2], "n": [10, 20]}), "memory://doc-update")
            >>> dataset.update({"n": "n + id"}, where="id = 2")
            {'num_rows_updated': 1}
            >>> dataset.to_table().to_pylist()
            [{'id': 1, 'n': 10}, {'id': 2, 'n': 22}]
        """
        limits = retry_limits(conflict_retries, retry_timeout)
        terms = CommitTerms(limits, commit_message, application, durable)
        table, count = update_rows(
            self._table,
            updates,
            where,
            terms,
            data_storage_version=data_storage_version,
            memory_limit=memory_limit,
        )
        self._move_to(table)
        return {"num_rows_updated": count}
