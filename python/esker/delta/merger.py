"""`TableMerger`: the clauses of a merge, one after the other, and its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .log.commit import CommitRequest
from .log.target import WriteTarget
from .merge.clauses import Clause, Side, check_texts
from .merge.run import MergeRequest, merge_rows


class TableMerger:
    """A merge of rows into a table, as `DeltaTable.merge` begins it.

    Of each kind (matched, not matched, not matched by source) the first clause whose predicate is true is what happens
    to a row. A row for which none is stays as it is.

    Args:
        target: The table.
        request: The merge, without clauses.
        commit: What the caller wants of the commit.

    Example:
        `table.merge(rows, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()`
    """

    def __init__(self, target: WriteTarget, request: MergeRequest, commit: CommitRequest) -> None:
        self._target = target
        self._request = request
        self._commit = commit

    def _with(self, side: Side, clause: Clause) -> TableMerger:
        self._request = replace(self._request, clauses=self._request.clauses.added(side, clause))
        return self

    def when_matched_update(self, updates: dict[str, str], predicate: str | None = None) -> TableMerger:
        """Gives rows of the table that a row of the source matches new values.

        Args:
            updates: SQL for each column that changes, over both rows.
            predicate: For which of them, as SQL; all if not given.

        Returns:
            The same merger.

        Raises:
            TypeError: Updates that are no texts.

        Example:
            `merger.when_matched_update({"n": "t.n + s.n"}, predicate="s.n > 0")`
        """
        check_texts("when_matched_update", updates)
        return self._with("matched", Clause("update", predicate, dict(updates)))

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Gives rows of the table that a row of the source matches its values, column by column of the same name.

        Args:
            predicate: For which of them, as SQL; all if not given.
            except_cols: Columns that stay as they are.

        Returns:
            The same merger.

        Example:
            `merger.when_matched_update_all(except_cols=["created"])`
        """
        return self._with("matched", Clause("update", predicate, {}, True, tuple(except_cols or ())))

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Deletes rows of the table that a row of the source matches.

        Args:
            predicate: Which of them, as SQL; all if not given.

        Returns:
            The same merger.

        Example:
            `merger.when_matched_delete("s.is_gone")`
        """
        return self._with("matched", Clause("delete", predicate))

    def when_not_matched_insert(self, updates: dict[str, str], predicate: str | None = None) -> TableMerger:
        """Inserts a row for each row of the source that matches none of the table.

        Args:
            updates: SQL for each column, over the row of the source; columns without are null.
            predicate: For which of them, as SQL; all if not given.

        Returns:
            The same merger.

        Raises:
            TypeError: Updates that are no texts.

        Example:
            `merger.when_not_matched_insert({"id": "s.id", "n": "s.n"})`
        """
        check_texts("when_not_matched_insert", updates)
        return self._with("not_matched", Clause("insert", predicate, dict(updates)))

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Inserts the rows of the source that match none of the table, column by column of the same name.

        Args:
            predicate: Which of them, as SQL; all if not given.
            except_cols: Columns that are null in them.

        Returns:
            The same merger.

        Example:
            `merger.when_not_matched_insert_all(predicate="s.n > 0")`
        """
        return self._with("not_matched", Clause("insert", predicate, {}, True, tuple(except_cols or ())))

    def when_not_matched_by_source_update(self, updates: dict[str, str], predicate: str | None = None) -> TableMerger:
        """Gives rows of the table that no row of the source matches new values.

        Args:
            updates: SQL for each column that changes, over the row of the table.
            predicate: For which of them, as SQL; all if not given.

        Returns:
            The same merger.

        Raises:
            TypeError: Updates that are no texts.

        Example:
            `merger.when_not_matched_by_source_update({"is_current": "false"})`
        """
        check_texts("when_not_matched_by_source_update", updates)
        return self._with("not_matched_by_source", Clause("update", predicate, dict(updates)))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Deletes rows of the table that no row of the source matches.

        Args:
            predicate: Which of them, as SQL; all if not given.

        Returns:
            The same merger.

        Example:
            `merger.when_not_matched_by_source_delete("t.day < '2024-01-01'")`
        """
        return self._with("not_matched_by_source", Clause("delete", predicate))

    def execute(self) -> dict[str, Any]:
        """Runs the merge. What changes nothing writes no version; a race that is lost is run again.

        Returns:
            Numbers of rows, files and milliseconds, under deltalake's keys.

        Raises:
            InvalidArgumentError: SQL that does not parse, or names no column; several rows of the source for one of
                the table; values that do not fit their column; rows that a constraint refuses.
            CommitConflictError: Others won every race. Nothing of it is visible.

        Example:
            `merger.execute()["num_target_rows_updated"]`
        """
        return merge_rows(self._target, self._request, self._commit)
