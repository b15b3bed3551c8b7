"""Upserts: rows of a source against rows of the table, by key."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa

from .._native import table as native
from .._native.merge import MergeRequest, MergeSource, merge
from .._native.store import Store
from ..arrow.incoming import ReaderLike
from ..commit.orphans import StagedFiles
from ..exceptions import InvalidArgumentError, UnsupportedError
from ..lance.base_path import target_ids
from ..lance.change.run import commit_change, retry_limits
from ..lance.merge.clauses import MergeClauses
from ..lance.merge.explain import analyzed, explained
from ..lance.merge.in_place import check_columns_only, merged_columns
from ..lance.merge.outcome import NOTHING, ExecuteResult, PreparedMerge
from ..lance.merge.source import MergeRows, check_columns
from ..lance.operation import LanceOperation, Transaction
from ..lance.scan.predicate import Filter
from ..lance.write.staging import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE, DEFAULT_MEMORY_LIMIT, log_of
from ..storage_version import storage_version

if TYPE_CHECKING:
    from . import LanceDataset

CONFLICT_RETRIES = 10
"""How often a merge is computed again, as in pylance."""
RETRY_TIMEOUT = timedelta(seconds=30)
"""The time after which it is not, as in pylance."""
SYSTEM_COLUMNS = ("_rowid", "_rowaddr")


class MergeInsertApi:
    """What `LanceDataset` knows of upserts."""

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Starts an upsert: rows that are inserted, updated or deleted by how their keys compare, in one commit.

        Rows of the source and of the table match where their keys are equal. A key with a null matches nothing; NaN
        matches NaN, and 0.0 does not match -0.0. What happens to rows that match, and to those of either side that do
        not, is for the builder to say.

        Args:
            on: The key: one column or several. The table's declared (unenforced) primary key by default.

        Raises:
            InvalidArgumentError: No such column, or no key.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2], "v": ["a", "b"]}), "memory://doc-upsert")
            >>> merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            >>> merge.execute(pa.table({"id": [2, 3], "v": ["B", "C"]}))
            {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
            >>> dataset.to_table().to_pydict()
            {'id': [1, 2, 3], 'v': ['a', 'B', 'C']}
        """
        return MergeInsertBuilder(cast("LanceDataset", self), on)


class MergeInsertBuilder:
    """An upsert in the making; see `LanceDataset.merge_insert`. Its methods return it.

    The key columns of the whole table are read, of its other columns what a condition names and what the source lacks,
    and of those the rows that match. The source is read once: what is larger than the memory limit waits on disk.
    """

    def __init__(self, dataset: LanceDataset, on: str | Iterable[str] | None) -> None:
        self._dataset = dataset
        self._on = _key(dataset, on)
        self._clauses = MergeClauses()
        self._conflict_retries = CONFLICT_RETRIES
        self._retry_timeout = RETRY_TIMEOUT
        self._data_storage_version: str | None = None
        self._memory_limit = DEFAULT_MEMORY_LIMIT
        self._in_place = False
        self._target_bases: list[int | None] = []

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Rows of the source take the place of the rows of the table that they match.

        Columns that the source lacks keep their values, and so do fields that its structs lack, even below a null: that
        is a null in the fields that the source has. Takes the place of other `when_matched` clauses.

        Args:
            condition: SQL over `source.column` and `target.column`: rows for which it is not true stay as they are.
        """
        if condition is not None and not isinstance(condition, str):
            raise TypeError(f"expected the condition as SQL text, found {type(condition).__name__}")
        self._clauses.when_matched, self._clauses.condition = "update", condition
        return self

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Rows of the table that match go. The source need have no columns but the key."""
        self._clauses.when_matched, self._clauses.condition = "delete", None
        return self

    def when_matched_fail(self) -> MergeInsertBuilder:
        """The merge fails with `InvalidArgumentError` if any rows match."""
        self._clauses.when_matched, self._clauses.condition = "fail", None
        return self

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Rows of the source that match none are inserted, with nulls in columns and fields that the source lacks."""
        self._clauses.insert = True
        return self

    def when_not_matched_by_source_delete(self, expr: Filter | None = None) -> MergeInsertBuilder:
        """Rows of the table that match none of the source go.

        Args:
            expr: A filter over the table's columns: only rows for which it is true go.

        Raises:
            InvalidArgumentError: The filter does not parse, or names a column that is not there.
        """
        self._clauses.delete_unmatched, self._clauses.delete_filter = True, expr
        self._clauses.delete_predicate(self._dataset)
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often the merge is computed again where others changed the same rows meanwhile; 10 by default."""
        self._conflict_retries = max_retries
        retry_limits(max_retries, self._retry_timeout)
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """The time after which it is not computed again, however long the first try takes; 30 seconds by default."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"expected a timedelta, found {type(timeout).__name__}")
        retry_limits(self._conflict_retries, timeout)
        self._retry_timeout = timeout
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """The file version of new files; the table's by default."""
        self._data_storage_version = storage_version(version, self._dataset._manifest, "append")
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Of no effect: the key columns are read in any case."""
        del use_index
        return self

    def write_mode(self, mode: Literal["auto", "rewrite_rows", "rewrite_columns"]) -> MergeInsertBuilder:
        """Whether changed rows are written anew as a whole, or stay and get new columns.

        Args:
            mode: "rewrite_rows" and "auto" write whole rows to new fragments. "rewrite_columns" writes the source's
                columns, for all rows of each fragment that holds a row which matches, to a new file of that fragment:
                less where rows are wide and many of them change. It takes a source that lacks columns of the table,
                only updates rows that match, and holds the rows that change in memory.
        """
        if mode not in ("auto", "rewrite_rows", "rewrite_columns"):
            raise InvalidArgumentError(
                f"invalid write_mode: expected 'auto', 'rewrite_rows' or 'rewrite_columns', found {mode!r}"
            )
        self._in_place = mode == "rewrite_columns"
        return self

    def memory_limit(self, nbytes: int) -> MergeInsertBuilder:
        """Bytes that the merge may hold, about; 128 MiB by default. What is larger waits on disk.

        A source that is in memory anyway (a table, a batch) does not count. pylance has no such limit.
        """
        if nbytes <= 0:
            raise InvalidArgumentError(f"expected memory_limit > 0, found {nbytes}")
        self._memory_limit = nbytes
        return self

    def target_bases(self, bases: list[str]) -> MergeInsertBuilder:
        """New files go to these base paths of the table in turn.

        Args:
            bases: Their names or paths.
        """
        self._target_bases = target_ids(list(self._dataset.base_paths().values()), bases, None)
        return self

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """New files go to all base paths of the table in turn, and to its own root if `include_primary`."""
        targets = target_ids(list(self._dataset.base_paths().values()), None, True)
        self._target_bases = [id_ for id_ in targets if include_primary or id_ is not None]
        return self

    def mark_sstables_as_compacted(self, sstables: Any) -> MergeInsertBuilder:
        """Raises `UnsupportedError`: there is no write-ahead log."""
        raise UnsupportedError(
            "mark_sstables_as_compacted is not supported yet", operation="mark_sstables_as_compacted"
        )

    def execute(
        self,
        data_obj: ReaderLike,
        *,
        schema: pa.Schema | None = None,
        commit_message: str | None = None,
        application: tuple[str, int] | None = None,
        durable: bool = True,
    ) -> ExecuteResult:
        """Merges rows, commits, and moves the dataset to the version that this makes.

        Where others changed other rows meanwhile, their change and this one are merged. Where they changed the same
        rows, or may have inserted rows under the same keys, this one is computed again from the newest version.

        Args:
            data_obj: The source, as in `write_dataset`. A stream may be read only once: it is kept for as long as it takes.
            schema: Its column types, where it does not say.
            commit_message: Noted on the transaction.
            application: An application's id and the number of this change among its own: what an earlier run did under
                that number, or a higher one, is not done again.
            durable: Whether files and commit are on stable storage on return.

        Returns:
            `num_inserted_rows`, `num_updated_rows` and `num_deleted_rows`.

        Raises:
            InvalidArgumentError: No clause; several rows of the source match one of the table, which is updated or
                deleted; a row matches and `when_matched_fail` was called; a condition that does not parse.
            SchemaMismatchError: The source's columns are not of the table.
            CommitConflictError: Others were faster every time, or changed the table in a way that leaves no room.
        """
        source = self._source(data_obj, schema)
        log = log_of(self._dataset, durable=durable)
        merged: PreparedMerge | None = None
        staged = StagedFiles()

        def make(manifest: native.Manifest) -> LanceOperation.BaseOperation:
            nonlocal merged
            staged.discard()
            merged = self._merge(manifest, *source, store=log.store)
            for path in merged.files:
                staged.add(log.store, path)
            return merged.operation

        limits = retry_limits(self._conflict_retries, self._retry_timeout)
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
        return merged.result if merged is not None else NOTHING.copy()

    def execute_uncommitted(
        self, data_obj: ReaderLike, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, ExecuteResult]:
        """Merges rows and returns the transaction that makes the change visible, for `LanceDataset.commit`.

        Arguments and errors are those of `execute`, but for conflicts.
        """
        merged = self._merge(self._dataset._manifest, *self._source(data_obj, schema))
        return Transaction(self._dataset.version, merged.operation), merged.result

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """How a merge would go, as text. Nothing is read.

        Args:
            schema: The source's columns; the table's by default.
            verbose: Of no effect.
        """
        del verbose
        self._clauses.check()
        table = self._dataset._table_schema
        source = table if schema is None else schema
        check_columns(source, table, on=self._on, insert=self._clauses.insert, update=self._clauses.updates)
        condition = self._clauses.update_condition(source, self._dataset)
        return explained(self._dataset, self._on, self._clauses, source, condition)

    def analyze_plan(self, data_obj: ReaderLike, *, schema: pa.Schema | None = None) -> str:
        """Merges rows without a commit and tells how it went, as text. What was written is removed again.

        Arguments and errors are those of `execute`, but for conflicts.
        """
        started = time.perf_counter()
        rows, source = self._source(data_obj, schema)
        merged = self._merge(self._dataset._manifest, rows, source)
        elapsed = time.perf_counter() - started
        StagedFiles((self._dataset._store, path) for path in merged.files).discard()
        condition = self._clauses.update_condition(rows, self._dataset)
        plan = explained(self._dataset, self._on, self._clauses, rows, condition)
        return analyzed(plan, merged, source, elapsed)

    def _source(self, data_obj: ReaderLike, schema: pa.Schema | None) -> tuple[pa.Schema, MergeSource]:
        self._clauses.check()
        table = self._dataset._table_schema
        for name in SYSTEM_COLUMNS:
            if name in table.names:
                raise UnsupportedError(
                    f"rows of a table with a column named {name!r} cannot be changed, rename the column", column=name
                )
        clauses = self._clauses
        rows = MergeRows(data_obj, schema, table=table, on=self._on, insert=clauses.insert, update=clauses.updates)
        if self._in_place:
            check_columns_only(self._clauses, self._on, rows.schema, table)
        # A condition that makes no sense is found before anything is read.
        self._clauses.update_condition(rows.schema, self._dataset)
        return rows.schema, rows.keep(self._memory_limit // 4)

    def _merge(
        self, manifest: native.Manifest, rows: pa.Schema, source: MergeSource, *, store: Store | None = None
    ) -> PreparedMerge:
        dataset = self._dataset._with_manifest(manifest)
        clauses = self._clauses
        check_columns(rows, dataset._table_schema, on=self._on, insert=clauses.insert, update=clauses.updates)
        request = self._request(rows, dataset)
        if self._in_place:
            return merged_columns(dataset, source, request, self._on)
        return PreparedMerge.of(merge(store or dataset._store, manifest, source, request))

    def _request(self, rows: pa.Schema, dataset: LanceDataset) -> MergeRequest:
        return MergeRequest(
            on=self._on,
            when_matched=self._clauses.when_matched,
            condition=self._clauses.update_condition(rows, dataset),
            insert=self._clauses.insert,
            when_not_matched_by_source="delete" if self._clauses.delete_unmatched else "keep",
            delete_filter=self._clauses.delete_predicate(dataset),
            data_storage_version=storage_version(self._data_storage_version, dataset._manifest, "append"),
            max_rows_per_file=DEFAULT_MAX_ROWS_PER_FILE,
            max_bytes_per_file=DEFAULT_MAX_BYTES_PER_FILE,
            memory_limit=self._memory_limit,
            target_bases=self._target_bases,
        )


def _key(dataset: LanceDataset, on: str | Iterable[str] | None) -> list[str]:
    """The key columns by the table's names for them."""
    fields = dataset._manifest.schema.fields
    wanted = [on] if isinstance(on, str) else list(on or [])
    if not wanted:
        wanted = [field.name for field in fields if field.unenforced_primary_key]
    if not wanted:
        raise InvalidArgumentError(
            "expected key columns, found none: name them in on, or declare a primary key in the table's schema"
        )
    names = [field.name for field in fields]
    found = []
    for name in wanted:
        similar = [known for known in names if known.lower() == name.lower()]
        if name not in names and len(similar) != 1:
            raise InvalidArgumentError(
                f"expected a key among the table's columns ({', '.join(names)}), found {name!r}", column=name
            )
        found.append(name if name in names else similar[0])
    if len(set(found)) != len(found):
        raise InvalidArgumentError(f"duplicate key column in {found}, name each once")
    return found
