"""The methods of `LanceDataset` that change rows: delete, truncate, update."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from ..commit.limits import CONFLICT_RETRIES, RETRY_TIMEOUT, retry_limits
from ..exceptions import of_changes
from ..lance.change.rows import delete_rows, update_rows
from ..lance.change.run import CommitTerms
from ..lance.handle import DatasetHandle
from ..lance.scan.predicate import Filter
from ..lance.write.request import DEFAULT_MEMORY_LIMIT


class DeleteResult(TypedDict):
    """The counts of a delete."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """The counts of an update."""

    num_rows_updated: int


class RowsApi(DatasetHandle):
    """The methods of `LanceDataset` that change rows."""

    @of_changes()
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
        """Deletes the rows for which a predicate is true, and moves this dataset to the new version.

        Data files do not change: deletion files hold the deleted rows. A fragment that loses its last row is removed
        from the table. Only the predicate's columns are read.

        Args:
            predicate: The text of a SQL WHERE clause, or a pyarrow expression. Rows for which it is null are kept.
            conflict_retries: How often the delete is computed again after others changed the same rows.
            retry_timeout: The time after which it is not retried; the first attempt may take longer.
            commit_message: The commit message, a property of the transaction.
            application: An application's id and the number of this change among its changes. If the application has
                committed this number, or a higher one, already, nothing is committed.
            durable: Whether files and commit are on stable storage on return.

        Returns:
            `num_deleted_rows`.

        Raises:
            InvalidChangeError: The predicate does not parse, or is not a condition.
            CommitConflictError: Other writers won every race, or committed a conflicting change.

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
        """Deletes all rows and moves this dataset to the new version. The columns are kept. Reads nothing.

        Raises:
            CommitConflictError: Other writers changed rows during every attempt.

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
        """Updates the rows for which a predicate is true, and moves this dataset to the new version.

        Whole rows are written to new fragments and deleted from the old ones; with stable row ids they keep their
        `_rowid`. The predicate's columns are read for all rows, the others for the selected rows. Memory is bounded.

        Args:
            updates: SQL expressions by column, over the old values of the row. Their values are cast to the column's
                type: numbers lose their fraction, text is parsed, and a value that does not fit is an error.
            where: The text of a SQL WHERE clause, or a pyarrow expression; all rows by default.
            conflict_retries: How often the update is computed again after others changed the same rows.
            retry_timeout: The time after which it is not retried; the first attempt may take longer.
            data_storage_version: The file version of the new files; None keeps the table's.
            commit_message: The commit message, a property of the transaction.
            application: An application's id and the number of this change among its changes. If the application has
                committed this number, or a higher one, already, nothing is committed.
            memory_limit: Bytes that writing the rows may buffer.
            durable: Whether files and commit are on stable storage on return.

        Returns:
            `num_rows_updated`.

        Raises:
            InvalidArgumentError: There are no updates, the table does not have a column, an expression does not parse,
                or a column cannot hold a value.
            SchemaMismatchError: A value for a non-nullable column is null.
            UnsupportedError: A name is that of a field within a column, or of a blob column of the second kind.
            CommitConflictError: Other writers won every race, or committed a conflicting change.

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
