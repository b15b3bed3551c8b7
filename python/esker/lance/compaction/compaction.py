"""`Compaction`: the steps of a compaction for many processes, under pylance's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..handle import DatasetHandle
from .committing import commit_rewrites
from .options import CompactionOptions
from .results import CompactionMetrics, RewriteResult
from .run import compact, plan_compaction, settings_of
from .tasks import CompactionPlan


class Compaction:
    """Compacts a table: at once with `execute`, or over many processes with `plan`, tasks and `commit`.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.optimize import Compaction
        >>> rows = pa.table({"id": range(40)})
        >>> dataset = esker.write_dataset(rows, "memory://doc-compaction", max_rows_per_file=10)
        >>> plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
        >>> results = [task.execute(dataset) for task in plan.tasks]
        >>> Compaction.commit(dataset, results)
        CompactionMetrics(fragments_removed=4, fragments_added=2, files_removed=4, files_added=2)
    """

    @staticmethod
    def execute(dataset: DatasetHandle, options: CompactionOptions | Mapping[str, Any]) -> CompactionMetrics:
        """Compacts a table and moves the dataset to the new version. See `DatasetOptimizer.compact_files`.

        Args:
            dataset: The table.
            options: The options by name.
        """
        table, metrics = compact(dataset._table, options)
        dataset._move_to(table)
        return metrics

    @staticmethod
    def plan(dataset: DatasetHandle, options: CompactionOptions | Mapping[str, Any]) -> CompactionPlan:
        """Plans the compaction of a version: groups of fragments, each of which one task rewrites. Nothing is written.

        Args:
            dataset: The table, at the version to compact.
            options: The options by name.

        Raises:
            InvalidArgumentError: An option is unknown, or not what it must be.
        """
        return plan_compaction(dataset._table, options)

    @staticmethod
    def commit(
        dataset: DatasetHandle,
        rewrites: Sequence[RewriteResult],
        options: CompactionOptions | Mapping[str, Any] | None = None,
    ) -> CompactionMetrics:
        """Commits results of tasks, all or some of a plan's, and moves the dataset to the new version.

        Deletes and updates that others committed meanwhile are carried into the new fragments. Groups whose fragments
        somebody rewrote, or whose columns or schema changed, are left out: `lost` of the metrics names them. To commit
        the same results again, after an unknown outcome, is safe.

        Args:
            dataset: The table.
            rewrites: What `CompactionTask.execute` returned.
            options: Options by name; none of them changes a commit.

        Raises:
            CommitConflictError: All groups are lost.
            CommitStateUnknownError: The store failed before it was known whether the groups are committed.

        Example:
            `Compaction.commit(dataset, [task.execute(dataset) for task in plan.tasks])`
        """
        table = dataset._table
        table.check_writable()
        settings_of(table, options or {})
        table, metrics = commit_rewrites(table, rewrites, log=table.writable_log(durable=True))
        dataset._move_to(table)
        if metrics.lost and not metrics.fragments_removed:
            raise metrics.lost[0].error
        return metrics
