"""`DatasetOptimizer`: what `LanceDataset.optimize` gives."""

from __future__ import annotations

from typing import Any

from ..lance.change.run import commit_change
from ..lance.cleanup.automatic import INTERVAL, OLDER_THAN, AutoCleanupConfig, config_of
from ..lance.compaction.options import CompactionMode
from ..lance.compaction.results import CompactionMetrics
from ..lance.compaction.run import compact
from ..lance.handle import DatasetHandle
from ..lance.operation import LanceOperation
from ..missing import missing_method
from ..missing_names import INDEX


class DatasetOptimizer:
    """The upkeep of a table: `LanceDataset.optimize`.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-optimize")
        >>> dataset.optimize.enable_auto_cleanup({"interval": 20, "older_than_seconds": 14 * 24 * 3600})
        >>> dataset.config()["lance.auto_cleanup.older_than"]
        '1209600s'
    """

    def __init__(self, dataset: DatasetHandle) -> None:
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        io_buffer_size: int | None = None,
        compaction_mode: CompactionMode | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: list[int] | None = None,
        data_storage_version: str | None = None,
        memory_limit: int | None = None,
    ) -> CompactionMetrics:
        """Joins small fragments and removes deleted rows from files; moves this dataset to the new version.

        Each group of fragments is one commit, beside other writers: deletes and updates that they commit meanwhile are
        carried into the new fragments, and a group that is lost all the same is planned anew. `lost` of the result
        names the groups that stayed as they were. A second run finds nothing to do.

        Options that are not given are taken from the table's config, under `lance.compaction.` and their name, or have
        the defaults below.

        Args:
            target_rows_per_fragment: Fragments with fewer rows are joined until they have as many (1,048,576).
            max_rows_per_group: Rows per group in files of version 0.1 (1,024).
            max_bytes_per_file: Bytes after which a new file is started (90 GiB).
            materialize_deletions: Whether fragments are rewritten for their deleted rows alone (True).
            materialize_deletions_threshold: The share of deleted rows above which they are (0.1).
            defer_index_remap: A hint of pylance, of no effect here: no index is written anew; without stable row ids a
                fragment reuse index translates the addresses in indices.
            num_threads: Pages that are encoded at a time, and parts that are read ahead; by default as the processors
                and `memory_limit` allow.
            batch_size: Rows that are read at once.
            io_buffer_size: Bytes of rows that are read ahead (as `memory_limit` allows).
            compaction_mode: "reencode", "try_binary_copy" or "force_binary_copy": whether pages are copied as they are.
            binary_copy_read_batch_bytes: Bytes of whole pages that are read ahead, to be copied (16 MiB at most, and as
                `memory_limit` allows).
            max_source_fragments: The most fragments to rewrite in this run, oldest first.
            max_source_rows: The most live rows to rewrite.
            max_source_bytes: The most bytes of data files to rewrite.
            excluded_fragment_ids: Fragments that stay as they are; those on both sides of them are not joined.
            data_storage_version: The file version of new files; the table's by default.
            memory_limit: Bytes that may be taken at once, beside one value (512 MiB).

        Raises:
            InvalidArgumentError: An option is not what it must be.
            CommitConflictError: All groups were lost to writers that rewrote columns, again and again. Those that other
                compactions took are no error, and named in `lost`.
            CommitStateUnknownError: The store failed before it was known whether a group is committed.

        Example:
            >>> import esker, pyarrow as pa
            >>> rows = pa.table({"id": range(40)})
            >>> dataset = esker.write_dataset(rows, "memory://doc-compact", max_rows_per_file=10)
            >>> dataset.optimize.compact_files()
            CompactionMetrics(fragments_removed=4, fragments_added=1, files_removed=4, files_added=1)
        """
        options = {name: value for name, value in locals().items() if name != "self" and value is not None}
        table, metrics = compact(self._dataset._table, options)
        self._dataset._move_to(table)
        return metrics

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Any) -> None:
        """Has writers clean the table up by themselves: see `write_dataset(auto_cleanup_options=...)`.

        Args:
            auto_cleanup_config: After how many versions (`interval`), and how old versions must be that go
                (`older_than_seconds`).
            **kwargs: Of no effect, as in pylance.

        Raises:
            InvalidArgumentError: A number is negative.
        """
        del kwargs
        self._update(dict(config_of(auto_cleanup_config)))

    def disable_auto_cleanup(self, **kwargs: Any) -> None:
        """Has writers leave all versions where they are.

        Args:
            **kwargs: Of no effect, as in pylance.
        """
        del kwargs
        self._update({INTERVAL: None, OLDER_THAN: None})

    def _update(self, values: dict[str, str | None]) -> None:
        operation = LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap(values, False))
        self._dataset._move_to(commit_change(self._dataset._table, lambda _: operation))

    optimize_indices = missing_method("DatasetOptimizer", "optimize_indices", INDEX)


class OptimizeApi(DatasetHandle):
    """The property of `LanceDataset` for upkeep."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """The upkeep of the table: compaction and automatic clean-up."""
        return DatasetOptimizer(self)
