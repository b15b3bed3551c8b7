"""`MergeInsertBuilder`: upserts, under pylance's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Literal

import pyarrow as pa

from ..arrow.incoming import ReaderLike
from ..commit.limits import CONFLICT_RETRIES, RETRY_TIMEOUT, retry_limits
from ..commit.orphans import StagedFiles
from ..exceptions import InvalidArgumentError, of_changes
from ..lance.base_path import base_paths_of, target_ids
from ..lance.change.run import CommitTerms
from ..lance.handle import DatasetHandle
from ..lance.merge.explain import analyzed, explained
from ..lance.merge.merge import MergeSpecification, execute, kept_source, key_columns, prepare
from ..lance.merge.outcome import ExecuteResult
from ..lance.merge.source import check_columns
from ..lance.operation import Transaction
from ..lance.scan.predicate import Filter
from ..missing import missing_method
from ..missing_names import LOG_OF_ROWS
from ..progress import Progress, as_progress
from ..storage_version import storage_version


class MergeInsertApi(DatasetHandle):
    """The methods of `LanceDataset` that upsert."""

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Starts an upsert: inserts, updates and deletes rows by key, in one commit.

        Rows of the source and of the table match if their keys are equal. A key with a null matches nothing; NaN
        matches NaN, and 0.0 does not match -0.0. The methods of the builder set what happens to rows that match, and to
        rows of either side that do not.

        Args:
            on: The key: one column or several. The table's declared (unenforced) primary key by default.

        Raises:
            InvalidArgumentError: The table does not have a column, or there is no key.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2], "v": ["a", "b"]}), "memory://doc-upsert")
            >>> merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            >>> merge.execute(pa.table({"id": [2, 3], "v": ["B", "C"]}))
            {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
            >>> dataset.to_table().to_pydict()
            {'id': [1, 2, 3], 'v': ['a', 'B', 'C']}
        """
        return MergeInsertBuilder(self, on)


class MergeInsertBuilder:
    """The builder of an upsert; see `LanceDataset.merge_insert`. Its methods return it.

    A merge reads the key columns of the whole table; the columns of a condition and those that the source lacks are
    read for rows that match. The source is read once, and spills to disk above the memory limit.
    """

    def __init__(self, dataset: DatasetHandle, on: str | Iterable[str] | None = None) -> None:
        self._dataset = dataset
        self._spec = MergeSpecification(key_columns(dataset._table, on))
        self._conflict_retries = CONFLICT_RETRIES
        self._retry_timeout = RETRY_TIMEOUT

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Rows of the table are updated with the rows of the source that match them.

        Columns that the source lacks keep their values, and so do fields that its structs lack, even if the struct is
        null in the source: only the fields that the source has become null. Replaces other `when_matched` clauses.

        Args:
            condition: SQL over `source.column` and `target.column`: rows for which it is not true are not updated. A
                column that only one side has needs no side; the table has `_rowid` and `_rowaddr` as well.
        """
        if condition is not None and not isinstance(condition, str):
            raise TypeError(f"expected the condition as SQL text, found {type(condition).__name__}")
        self._spec.clauses.when_matched, self._spec.clauses.condition = "update", condition
        return self

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Rows of the table that match are deleted. The source needs only the key columns."""
        self._spec.clauses.when_matched, self._spec.clauses.condition = "delete", None
        return self

    def when_matched_fail(self) -> MergeInsertBuilder:
        """The merge fails with `InvalidChangeError` if any rows match."""
        self._spec.clauses.when_matched, self._spec.clauses.condition = "fail", None
        return self

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Rows of the source without a match are inserted, with nulls in columns and fields that the source lacks."""
        self._spec.clauses.insert = True
        return self

    @of_changes()
    def when_not_matched_by_source_delete(self, expr: Filter | None = None) -> MergeInsertBuilder:
        """Rows of the table without a match are deleted.

        Args:
            expr: A filter over the table's columns: only rows for which it is true are deleted.

        Raises:
            InvalidArgumentError: The filter does not parse, or has a column that does not exist.
        """
        self._spec.clauses.delete_unmatched, self._spec.clauses.delete_filter = True, expr
        self._spec.clauses.delete_predicate(self._dataset._table)
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often the merge is computed again after others changed the same rows; 10 by default."""
        self._conflict_retries = max_retries
        retry_limits(max_retries, self._retry_timeout)
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """The time after which the merge is not computed again; the first attempt may take longer. 30 seconds by
        default."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"expected a timedelta, found {type(timeout).__name__}")
        retry_limits(self._conflict_retries, timeout)
        self._retry_timeout = timeout
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """The file version of new files; the table's by default."""
        self._spec.data_storage_version = storage_version(version, self._dataset._table.manifest, "append")
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Of no effect: the key columns are read in any case."""
        del use_index
        return self

    def write_mode(self, mode: Literal["auto", "rewrite_rows", "rewrite_columns"]) -> MergeInsertBuilder:
        """Whether updated rows are rewritten to new fragments, or updated in place by new files of some columns.

        Args:
            mode: "rewrite_rows" and "auto" write whole rows to new fragments. "rewrite_columns" updates in place: it
                writes the source's columns of each fragment with a match, for all rows of the fragment, to a new file.
                That writes less if rows are wide and many of them change. It needs a source that lacks columns of the
                table and a merge that only updates rows that match, and it holds the updating rows in memory.
        """
        if mode not in ("auto", "rewrite_rows", "rewrite_columns"):
            raise InvalidArgumentError(
                f"invalid write_mode: expected 'auto', 'rewrite_rows' or 'rewrite_columns', found {mode!r}"
            )
        self._spec.in_place = mode == "rewrite_columns"
        return self

    def memory_limit(self, nbytes: int) -> MergeInsertBuilder:
        """Bytes that the merge may hold in memory, approximately; 128 MiB by default. Above that it spills to disk.

        A source that is in memory already (a table, a batch) does not count. pylance has no such limit.
        """
        if nbytes <= 0:
            raise InvalidArgumentError(f"expected memory_limit > 0, found {nbytes}")
        self._spec.memory_limit = nbytes
        return self

    def target_bases(self, bases: list[str]) -> MergeInsertBuilder:
        """New files are written to these base paths of the table in turn.

        Args:
            bases: Their names or paths.
        """
        table = self._dataset._table
        self._spec.target_bases = target_ids(base_paths_of(table.manifest), bases, None, root=table.log.uri)
        return self

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """New files are written to all base paths of the table in turn, and to its own root if `include_primary`."""
        table = self._dataset._table
        targets = target_ids(base_paths_of(table.manifest), None, True, root=table.log.uri)
        self._spec.target_bases = [id_ for id_ in targets if include_primary or id_ is not None]
        return self

    mark_sstables_as_compacted = missing_method("MergeInsertBuilder", "mark_sstables_as_compacted", LOG_OF_ROWS)

    @of_changes()
    def execute(
        self,
        data_obj: ReaderLike,
        *,
        schema: pa.Schema | None = None,
        commit_message: str | None = None,
        application: tuple[str, int] | None = None,
        durable: bool = True,
        progress: Progress | Callable[[int], object] | None = None,
    ) -> ExecuteResult:
        """Merges rows, commits, and moves the dataset to the new version.

        If others changed other rows meanwhile, the deletion vectors are merged. If they changed the same rows, or may
        have inserted rows with the same keys, the merge is computed again from the newest version.

        Args:
            data_obj: The source: whatever a write takes. It is read only once, and kept until the commit.
            schema: Its column types, if it does not have any.
            commit_message: The commit message, a property of the transaction.
            application: An application's id and the number of this change among its changes. If the application has
                committed this number, or a higher one, already, nothing is committed.
            durable: Whether files and commit are on stable storage on return.
            progress: Called with the rows of the source read so far, or an `esker.progress.Progress`, which is told of
                the files that the merge writes, too.

        Returns:
            `num_inserted_rows`, `num_updated_rows` and `num_deleted_rows`.

        Raises:
            InvalidChangeError: There is no clause; several rows of the source match one row of the table that is
                updated or deleted; a row matches and `when_matched_fail` was called; or a condition does not parse.
            SchemaMismatchError: A column of the source is not in the table, or has another type.
            CommitConflictError: Other writers won every race, or committed a conflicting change.
        """
        table = self._dataset._table
        watching = as_progress(progress)
        source = kept_source(table, self._spec, data_obj, schema, watching)
        limits = retry_limits(self._conflict_retries, self._retry_timeout)
        terms = CommitTerms(limits, commit_message, application, durable)
        committed, result = execute(table, self._spec, source, terms, watching)
        self._dataset._move_to(committed)
        return result

    @of_changes()
    def execute_uncommitted(
        self, data_obj: ReaderLike, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, ExecuteResult]:
        """Merges rows without a commit, and returns the transaction for `LanceDataset.commit`.

        Arguments and errors are those of `execute`, except for conflicts.
        """
        table = self._dataset._table
        merged = prepare(table, self._spec, kept_source(table, self._spec, data_obj, schema))
        return Transaction(table.number, merged.operation), merged.result

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """The plan of a merge, as text. Nothing is read.

        Args:
            schema: The source's columns; the table's by default.
            verbose: Of no effect.
        """
        del verbose
        spec, table = self._spec, self._dataset._table
        spec.clauses.check()
        source = table.schema if schema is None else schema
        check_columns(source, table.schema, on=spec.on, insert=spec.clauses.insert, update=spec.clauses.updates)
        return explained(table, spec.on, spec.clauses, source, spec.clauses.update_condition(source, table))

    def analyze_plan(self, data_obj: ReaderLike, *, schema: pa.Schema | None = None) -> str:
        """Merges rows without a commit, deletes the staged files, and returns the plan with its metrics, as text.

        Arguments and errors are those of `execute`, except for conflicts.
        """
        started = time.perf_counter()
        spec, table = self._spec, self._dataset._table
        source = kept_source(table, spec, data_obj, schema)
        merged = prepare(table, spec, source)
        elapsed = time.perf_counter() - started
        StagedFiles((table.store, path) for path in merged.staged).discard()
        condition = spec.clauses.update_condition(source.schema, table)
        plan = explained(table, spec.on, spec.clauses, source.schema, condition)
        return analyzed(plan, merged, source.rows, elapsed)

    def execute_batches(self, new_data: ReaderLike) -> ExecuteResult:
        """`execute` of rows that are in memory. pylance has it apart; here both know such rows by themselves.

        Args:
            new_data: The source: a table, batches, or a reader over them.
        """
        return self.execute(_in_memory(new_data))

    def execute_uncommitted_batches(self, new_data: ReaderLike) -> tuple[Transaction, ExecuteResult]:
        """`execute_uncommitted` of rows that are in memory; see `execute_batches`."""
        return self.execute_uncommitted(_in_memory(new_data))

    def analyze_plan_batches(self, new_data: ReaderLike) -> str:
        """`analyze_plan` of rows that are in memory; see `execute_batches`."""
        return self.analyze_plan(_in_memory(new_data))


def _in_memory(data: ReaderLike) -> ReaderLike:
    """The rows as a table, so that they are not kept a second time; what is no list of batches is left as it is."""
    if isinstance(data, list) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return pa.Table.from_batches(data)
    return data.read_all() if isinstance(data, pa.RecordBatchReader) else data
