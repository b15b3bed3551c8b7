"""Rows that go and rows that change: delete, truncate, update.

Each is computed from the version that the dataset shows and committed on top of the newest one. Where others deleted
or changed other rows of the same fragments meanwhile, their deletions and ours are merged; where they changed the same
rows, ours is computed again from the newest version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, cast

import pyarrow as pa

from .._native import table as native
from .._native.expr import Expression
from ..arrow.blob_arrays import holds_blobs
from ..commit.orphans import StagedFiles
from ..exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from ..lance.change.row_changes import ChangedRows
from ..lance.change.run import commit_change, retry_limits
from ..lance.operation import LanceOperation
from ..lance.scan.predicate import Filter, to_predicate
from ..lance.write.staging import DEFAULT_MEMORY_LIMIT, log_of

if TYPE_CHECKING:
    from . import LanceDataset

CONFLICT_RETRIES = 10
"""How often a change is computed again, as in pylance."""
RETRY_TIMEOUT = timedelta(seconds=30)
"""The time after which it is not, as in pylance."""


class DeleteResult(TypedDict):
    """What a delete did."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """What an update did."""

    num_rows_updated: int


class RowsApi:
    """What `LanceDataset` knows of changes to its rows."""

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
        log = log_of(self._dataset, durable=durable)
        changed: ChangedRows | None = None
        staged = StagedFiles()

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            nonlocal changed
            staged.discard()
            changed = ChangedRows(self._dataset._with_manifest(manifest), log=log, staged=staged)
            described = str(to_predicate(predicate, changed.dataset._described_schema))
            changed.delete_where(predicate)
            return changed.delete_operation(described)

        with staged:
            commit_change(
                self._dataset,
                make,
                merge_deletions=True,
                message=commit_message,
                application=application,
                limits=limits,
                log=log,
                staged=staged,
            )
        return {"num_deleted_rows": changed.num_deleted if changed else 0}

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
        if not updates:
            raise InvalidArgumentError("expected updates, found none; name a column and its new value")
        for name, value in updates.items():
            if not isinstance(value, str):
                raise TypeError(f"expected SQL text as the new value of {name!r}, found {type(value).__name__}")
        log = log_of(self._dataset, durable=durable)
        changed: ChangedRows | None = None
        staged = StagedFiles()

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            nonlocal changed
            staged.discard()
            at = self._dataset._with_manifest(manifest)
            changed = ChangedRows(at, memory_limit=memory_limit, log=log, staged=staged)
            rows = Assignments(updates, changed.schema).applied(changed.take_out(where))
            changed.write(rows, changed.schema, data_storage_version=data_storage_version)
            return changed.update_operation(updates)

        with staged:
            commit_change(
                self._dataset,
                make,
                merge_deletions=True,
                message=commit_message,
                application=application,
                limits=limits,
                log=log,
                staged=staged,
            )
        return {"num_rows_updated": changed.num_deleted if changed else 0}

    @property
    def _dataset(self) -> LanceDataset:
        return cast("LanceDataset", self)


class Assignments:
    """New values of columns, computed from the columns of the same row.

    Args:
        updates: By column, a SQL expression.
        schema: The table's columns.

    Raises:
        InvalidArgumentError: A column that the table does not have, or an expression that does not parse.
        UnsupportedError: A field within a column, or a column of blobs of the second kind.

    Example:
        >>> import pyarrow as pa
        >>> from esker.dataset.rows import Assignments
        >>> rows = pa.record_batch({"a": [1, 2]})
        >>> [batch.to_pydict() for batch in Assignments({"a": "a * 10"}, rows.schema).applied([rows])]
        [{'a': [10, 20]}]
    """

    def __init__(self, updates: Mapping[str, str], schema: pa.Schema) -> None:
        self._values: dict[str, Expression] = {}
        for name, text in updates.items():
            if name not in schema.names:
                _refuse_column(name, schema)
            if holds_blobs(schema.field(name).type):
                raise UnsupportedError(f"column {name!r} of blobs cannot be updated yet, write the rows", column=name)
            self._values[name] = Expression.parse_sql(text, schema)

    def applied(self, batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the new values in place of the old ones."""
        for batch in batches:
            new = {name: _values(expression, batch, name) for name, expression in self._values.items()}
            for name, values in new.items():
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, batch.schema.field(place), values)
            yield batch


def _values(expression: Expression, batch: pa.RecordBatch, column: str) -> pa.Array:
    type_ = batch.schema.field(column).type
    storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    # Columns of no name at all still have rows.
    read = batch.select(expression.columns or batch.schema.names[:1])
    values = within_precision(pa.array(expression.evaluate(read, data_type=storage)), column)
    if values.null_count and not batch.schema.field(column).nullable:
        raise SchemaMismatchError(f"expected no nulls in column {column!r}, found one in {expression}", column=column)
    return pa.ExtensionArray.from_storage(type_, values) if storage is not type_ else values


def within_precision(values: pa.Array, column: str) -> pa.Array:
    """The values, if they are no decimals of more digits than their type has: arithmetic does not look.

    Raises:
        InvalidArgumentError: One of them has.
    """
    if pa.types.is_decimal(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(f"a value overflows column {column!r}: {error}", column=column) from error
    return values


def _refuse_column(name: str, schema: pa.Schema) -> None:
    if name.partition(".")[0] in schema.names:
        raise UnsupportedError(
            f"field {name!r} within a column cannot be updated by itself yet, give the whole column a value",
            column=name,
        )
    raise InvalidArgumentError(
        f"expected columns of the table ({', '.join(schema.names)}), found {name!r}", column=name
    )
