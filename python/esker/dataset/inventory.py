"""The methods of `LanceDataset` that tell what a table is made of, and that delete it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..lance.drop import drop
from ..lance.file_lists import all_files, tracked_files
from ..lance.handle import DatasetHandle
from ..lance.migration import migrate_manifest_paths_v2
from ..lance.statistics import DatasetStats, DataStatistics, data_stats, dataset_stats
from ..lance.storage_options import StorageOptionsAccessor
from ..missing import missing_method
from ..missing_names import INDEX


class LanceStats:
    """Statistics of a table: `LanceDataset.stats`.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-stats")
        >>> dataset.stats.dataset_stats()
        {'num_deleted_rows': 0, 'num_fragments': 1, 'num_small_files': 1}
    """

    def __init__(self, dataset: DatasetHandle) -> None:
        self._dataset = dataset

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Rows that are deleted, fragments, and those with fewer rows than `max_rows_per_group`. Nothing is read."""
        return dataset_stats(self._dataset._table, max_rows_per_group)

    def data_stats(self) -> DataStatistics:
        """Bytes of each field in the data files. Reads the metadata of each file.

        Raises:
            NotFoundError: A file is missing.
        """
        return data_stats(self._dataset._table)

    index_stats = missing_method("LanceStats", "index_stats", INDEX)


class InventoryApi(DatasetHandle):
    """The methods of `LanceDataset` that tell what a table is made of, and that delete it."""

    @property
    def stats(self) -> LanceStats:
        """Statistics of the version that this dataset shows."""
        return LanceStats(self)

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """The storage options that this dataset was opened with, None without any."""
        options = self._table.storage_options
        return None if options is None else dict(options)

    def latest_storage_options(self) -> dict[str, str] | None:
        """The same: options are not renewed by themselves."""
        return self.initial_storage_options

    @property
    def storage_options_accessor(self) -> StorageOptionsAccessor | None:
        """The storage options as an object of pylance's interface, None without any."""
        options = self._table.storage_options
        return None if options is None else StorageOptionsAccessor(options)

    def tracked_files(
        self, *, min_version: int | None = None, progress: Callable[[int, int | None], object] | None = None
    ) -> pa.RecordBatchReader:
        """The files that the versions of this branch refer to, version by version.

        Args:
            min_version: Only versions from this one on.
            progress: Called after each version with the number of versions read and of all.

        Returns:
            Rows with `version`, `base_uri` (the root that the file lies under), `path` from there, and `type`:
            "manifest", "data file", "deletion file", "transaction file" or "index file".

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-tracked")
            >>> sorted(dataset.tracked_files().read_all()["type"].to_pylist())
            ['data file', 'manifest', 'transaction file']
        """
        return tracked_files(self._table, min_version, progress)

    def all_files(self) -> pa.RecordBatchReader:
        """The files that lie below the root of this dataset, whether a version refers to them or not; those of its base
        paths are not among them.

        Returns:
            Rows with `base_uri`, `path` from there, `size_bytes` and `last_modified`.

        Example:
            >>> import esker, pyarrow as pa
            >>> esker.write_dataset(pa.table({"id": [1]}), "memory://doc-all-files").all_files().read_all().num_rows
            3
        """
        return all_files(self._table)

    def migrate_manifest_paths_v2(self) -> None:
        """Renames the manifests of a table with V1 names, so that the newest version is found by one request. Nobody
        else may use the table meanwhile. Tables with V2 names stay as they are.

        Raises:
            UnsupportedError: The table has an external manifest store.

        Example:
            `esker.dataset("old.lance").migrate_manifest_paths_v2()`
        """
        migrate_manifest_paths_v2(self._table.writable_log(durable=True))

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: dict[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Deletes a table with all its versions, tags and branches, and whatever else lies in its folder.

        Args:
            base_uri: The table.
            storage_options: Options of the store; `manifest_store` among them for a table that has one.
            ignore_not_found: Whether it is no error if nothing lies there.

        Raises:
            NotFoundError: Nothing lies there.
            InvalidArgumentError: What lies there is no table, or it is a branch of one. Nothing is deleted then.

        Example:
            >>> import esker, pyarrow as pa
            >>> _ = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-drop-table")
            >>> esker.LanceDataset.drop("memory://doc-drop-table")
            >>> esker.LanceDataset.drop("memory://doc-drop-table", ignore_not_found=True)
        """
        drop(base_uri, storage_options, ignore_not_found=bool(ignore_not_found))


def check_read_params(read_params: dict[str, Any] | None) -> None:
    """Checks the argument `read_params` of `dataset`, whose entries are hints of pylance.

    Raises:
        TypeError: It is no dict.
    """
    if read_params is not None and not isinstance(read_params, dict):
        raise TypeError(f"expected read_params as a dict, found {type(read_params).__name__}")
