"""Tables over several roots, and tables that borrow or copy another one's files."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .._native import table as native
from .._native.store import Store, path_at_home
from ..exceptions import AlreadyExistsError, UnsupportedError
from ..lance.base_path import DatasetBasePath, checked_base
from ..lance.change.run import commit_change
from ..lance.log import TRANSACTIONS, LanceLog
from ..lance.operation import LanceOperation
from .versions import check_version

if TYPE_CHECKING:
    from . import LanceDataset


class BasePathsApi:
    """What `LanceDataset` knows of other roots, and of tables that borrow its files."""

    _log: LanceLog
    _manifest: native.Manifest
    _storage_options: dict[str, str] | None

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """The roots beside the table's own, by their ids.

        Example:
            >>> import esker, pyarrow as pa
            >>> esker.write_dataset(pa.table({"id": [1]}), "memory://doc-bases").base_paths()
            {}
        """
        return {parts[0]: DatasetBasePath.from_parts(parts) for parts in sorted(self._manifest.base_paths)}

    def add_bases(
        self, new_bases: Sequence[DatasetBasePath], transaction_properties: dict[str, str] | None = None
    ) -> LanceDataset:
        """Lets files of the table lie in more places: writes name them as `target_bases`.

        Args:
            new_bases: The places. Neither their names nor their paths may be in use.
            transaction_properties: Noted on the transaction.

        Returns:
            This dataset, at the version that this made.

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
        dataset = cast("LanceDataset", self)
        parts = [checked_base(base).to_parts() for base in new_bases]
        if not parts:
            return dataset
        operation = LanceOperation.UpdateBases([DatasetBasePath.from_parts(base) for base in parts])
        commit_change(dataset, lambda _: operation, properties=transaction_properties)
        return dataset

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: int | str | tuple[str | None, int | None],
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> LanceDataset:
        """Makes a table elsewhere that shows a version of this one and borrows its files: none is copied.

        What is written to the clone lies in the clone. It needs the files of this table for as long as it lasts: a
        clean-up of old versions here does not know of it.

        Args:
            target_path: Where the clone goes; there must be no table, and nobody else may be making one.
            reference: The version to clone; (None, version) and ("main", version) are the same, (None, None) is the
                latest.
            storage_options: Options of the clone's store; those of this table by default.
            **kwargs: Passed on to `LanceDataset`, which opens the clone.

        Raises:
            AlreadyExistsError: There is a table at `target_path`.
            NotFoundError: No such version.
            UnsupportedError: A tag or a branch.

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
        reference: int | str | tuple[str | None, int | None],
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> LanceDataset:
        """Makes a table elsewhere that shows a version of this one, with copies of all files of that version.

        Arguments and errors are those of `shallow_clone`. A copy that fails leaves files behind at `target_path`, and
        no table.

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
        reference: int | str | tuple[str | None, int | None],
        storage_options: dict[str, str] | None,
        is_shallow: bool,
        options: dict[str, Any],
    ) -> LanceDataset:
        from . import LanceDataset

        source = cast("LanceDataset", self)
        if (version := _version_of(reference)) is None:
            version = source.latest_version
        source = source if version == source.version else source.checkout_version(version)
        chosen = storage_options if storage_options is not None else self._storage_options
        log = LanceLog.at(target_path, storage_options=chosen, manifest_store=options.get("manifest_store"))
        if not is_shallow and not log.listing().versions:
            for path in files_of(source._store, source._manifest):
                source._store.copy(path, log.store, path_at_home(path))
        _commit_clone(source, log, is_shallow)
        return LanceDataset(target_path, storage_options=chosen, **options)


def files_of(store: Store, manifest: native.Manifest) -> list[str]:
    """The paths of all files that a version needs beside its manifest: of data, blobs, deletions and indices."""
    paths: list[str] = []
    for fragment in manifest.fragments():
        if fragment.deletion_file is not None:
            paths.append(fragment.deletion_file)
        for data_file in fragment.files:
            paths.append(data_file.location)
            # Blobs of 2.2 files lie in a folder of the file's name.
            if (data_file.file_major_version, data_file.file_minor_version) >= (2, 2):
                paths += store.list_paths(data_file.location.removesuffix(".lance") + "/")
    for index in manifest.indices:
        paths += store.list_paths(index.folder)
    return paths


def _commit_clone(source: LanceDataset, log: LanceLog, is_shallow: bool) -> None:
    version = source.version
    operation = native.Operation.clone_of(
        is_shallow=is_shallow, ref_name=None, ref_version=version, ref_path=source._log.uri
    )
    transaction = native.Transaction(version, operation)
    made = transaction.apply_clone(source._manifest, timestamp_ns=time.time_ns())
    taken = log.listing().versions
    if not taken:
        name = f"{transaction.read_version}-{transaction.uuid}.txn"
        log.store.put(TRANSACTIONS + name, transaction.encode())
        if log.put(version, "V2", made.encode()):
            log.landed(version)
            return
    raise AlreadyExistsError(
        f"a table at {log.uri} exists already, expected none where a clone goes; choose another place", uri=log.uri
    )


def _version_of(reference: int | str | tuple[str | None, int | None]) -> int | None:
    if isinstance(reference, tuple):
        branch, version = reference
        if branch not in (None, "main"):
            raise UnsupportedError(f"expected a version of the main branch, found branch {branch!r}: not supported yet")
        return None if version is None else check_version(version)
    return check_version(reference)
