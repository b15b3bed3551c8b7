"""The methods of `LanceDataset` for base paths and clones (docs/changing-tables.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from ..exceptions import CommitStateUnknownError
from ..lance.base_path import DatasetBasePath, base_paths_of, checked_base
from ..lance.change.run import commit_change
from ..lance.clone import clone
from ..lance.handle import DatasetHandle
from ..lance.log import LanceLog
from ..lance.operation import LanceOperation
from ..lance.refs.places import Reference, place_of, table_at


class BasePathsApi(DatasetHandle):
    """The methods of `LanceDataset` for base paths and clones."""

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """The base paths of the table, by their ids.

        Example:
            >>> import esker, pyarrow as pa
            >>> esker.write_dataset(pa.table({"id": [1]}), "memory://doc-bases").base_paths()
            {}
        """
        return {base.id or 0: base for base in base_paths_of(self._table.manifest)}

    def add_bases(
        self, new_bases: Sequence[DatasetBasePath], transaction_properties: dict[str, str] | None = None
    ) -> Self:
        """Adds base paths to the table. Writes can put files there by `target_bases`.

        Args:
            new_bases: The base paths. Neither their names nor their paths may be in use.
            transaction_properties: Properties of the transaction.

        Returns:
            This dataset, at the new version.

        Raises:
            InvalidArgumentError: A name, path or id is in use.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-add-bases")
            >>> dataset = dataset.add_bases([esker.DatasetBasePath("memory://doc-cold", "cold")])
            >>> rows = pa.table({"id": [2]})
            >>> dataset = esker.write_dataset(rows, dataset, mode="append", target_bases=["cold"])
            >>> [file.base_id for fragment in dataset.get_fragments() for file in fragment.data_files()]
            [None, 1]
        """
        parts = [checked_base(base).to_parts() for base in new_bases]
        if not parts:
            return self
        operation = LanceOperation.UpdateBases([DatasetBasePath.from_parts(base) for base in parts])
        self._move_to(commit_change(self._table, lambda _: operation, properties=transaction_properties))
        return self

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Creates a table at `target_path` that shares the files of a version of this table. No file is copied.

        New files of the clone are written to the clone. It needs the shared files for as long as it exists, but a
        clean-up of this table does not know of the clone.

        Args:
            target_path: The path or URI of the clone. There must be no table, and no other process may be creating one.
            reference: The version to clone: a number on the branch of this dataset, a tag, or (branch, number); no
                branch and "main" are the main line, no number is the newest version.
            storage_options: Options of the clone's store; those of this table by default.
            **kwargs: Passed on to `LanceDataset`, which opens the clone.

        Raises:
            AlreadyExistsError: There is a table at `target_path`.
            CommitStateUnknownError: The store failed, and it is not known whether the clone is there; or it is there,
                and could not be opened, which the message tells.
            InvalidArgumentError: The version is a detached one.
            NotFoundError: There is no such version, tag or branch; or a branch of another table belongs at
                `target_path`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-source")
            >>> clone = dataset.shallow_clone("memory://doc-clone", 1)
            >>> _ = clone.delete("id = 1")
            >>> clone.count_rows(), dataset.count_rows()
            (1, 2)
        """
        return self._clone(target_path, reference, storage_options, True, kwargs)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Creates a table at `target_path` with copies of all files of a version of this table.

        Arguments and errors are those of `shallow_clone`. A copy that fails leaves files at `target_path`, but no
        table.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-original")
            >>> dataset.deep_clone("memory://doc-copy", 1).count_rows()
            2
        """
        return self._clone(target_path, reference, storage_options, False, kwargs)

    def _clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: dict[str, str] | None,
        is_shallow: bool,
        options: dict[str, Any],
    ) -> Self:
        source = table_at(self._table, place_of(self._table, reference))
        chosen = storage_options if storage_options is not None else source.storage_options
        log = LanceLog.at(target_path, storage_options=chosen, manifest_store=options.get("manifest_store"))
        clone(source, log, is_shallow=is_shallow)
        try:
            return self._open(target_path, storage_options=chosen, **options)
        except OSError as error:
            raise CommitStateUnknownError(
                f"{error}; the clone at {log.uri} is there, but could not be opened: open it, and do not clone again",
                uri=log.uri,
                version=source.number,
            ) from error
