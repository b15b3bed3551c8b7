"""The methods of `LanceDataset` that commit operations and transactions which were prepared elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Generic, Self, TypedDict, TypeVar

from ..commit.external import ExternalManifestStore
from ..commit.limits import DEFAULT_COMMIT_TIMEOUT
from ..commit.loop import Backoff
from ..commit.protocol import CommitLock
from ..lance.handle import DatasetHandle, table_or_uri
from ..lance.operation import LanceOperation, Transaction, merged_append
from ..lance.refs.opening import open_at
from ..lance.refs.places import Reference, check_number, place_of, table_at
from ..lance.version import TableVersion
from ..lance.write.prepared import commit_prepared, prepared_change
from ..lance.write.table import WriteCommit
from ..lance.write.target import open_target
from ..missing import refuse_options

_Dataset = TypeVar("_Dataset", bound=DatasetHandle)


class BulkCommitResult(TypedDict, Generic[_Dataset]):
    """What `LanceDataset.commit_batch` returns."""

    dataset: _Dataset
    merged: Transaction


class CommitsApi(DatasetHandle):
    """The methods of `LanceDataset` that commit changes which were prepared elsewhere."""

    @classmethod
    def commit(
        cls,
        base_uri: str | os.PathLike[str] | DatasetHandle,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: Reference | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        transaction_properties: dict[str, str] | None = None,
        application: tuple[str, int] | None = None,
        commit_timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT,
        backoff: Backoff | None = None,
        durable: bool = True,
        manifest_store: ExternalManifestStore | str | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
    ) -> Self:
        """Commits a change that was prepared elsewhere, as a new version.

        Args:
            base_uri: The table.
            operation: The operation, or a whole transaction.
            read_version: The base version of the operation; not needed for an overwrite or a restore. A tag, or a tuple
                (branch, number), commits to the branch of that version.
            commit_lock: Held around the put, for stores without put-if-absent; by default the lock that a dataset given
                as `base_uri` was opened with. The returned dataset keeps it.
            storage_options: Options of the store.
            enable_v2_manifest_paths: False gives a new table V1 manifest names.
            detached: Whether to commit a detached version: not in the history, opened only by its number.
            max_retries: Attempts after the first. An overwrite without any is one of the version that it names, or of
                no table: it is refused if others have committed anything since, as in pylance.
            commit_message: The commit message, a property of the transaction.
            enable_stable_row_ids: Whether a table that this creates has stable row ids.
            transaction_properties: Further properties of the transaction.
            application: An application's id and the number of this commit among its commits. If the application has
                committed this number, or a higher one, to the table already, nothing is committed.
            commit_timeout: The time for all attempts together; None for no limit.
            backoff: The pauses between attempts.
            durable: Whether the commit is on stable storage on return.
            manifest_store: The external manifest store of a table whose store has no put-if-absent: an
                `esker.commit.ExternalManifestStore`, or the URI of one. All writers of the table must use it.
            namespace_client: Refused unless None, like `table_id`, `namespace_client_managed_versioning` and
                `base_store_params`.
            table_id: See `namespace_client`.
            namespace_client_managed_versioning: See `namespace_client`.
            base_store_params: See `namespace_client`.

        Returns:
            The table at the new version.

        Raises:
            CommitConflictError: Another writer's change conflicts with this one.
            InvalidArgumentError: `read_version` is missing, or the operation does not fit the table.
            UnsupportedError: The operation can be read back, but not committed.

        Example:
            `LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=3)`
        """
        refuse_options(
            namespace_client=namespace_client,
            table_id=table_id,
            namespace_client_managed_versioning=namespace_client_managed_versioning,
            base_store_params=base_store_params,
        )
        how = WriteCommit(
            lock=commit_lock,
            v2_names=enable_v2_manifest_paths is not False,
            stable_row_ids=bool(enable_stable_row_ids),
            message=commit_message,
            properties=transaction_properties,
            application=application,
            max_retries=max_retries,
            timeout=commit_timeout,
            backoff=backoff,
        )
        table: Any = table_or_uri(base_uri)
        if isinstance(read_version, str | tuple):
            table = _branch_at(table, read_version, storage_options, manifest_store)
            number: int | None = table.number
        else:
            number = None if read_version is None else check_number(read_version)
        prepared = prepared_change(operation, number, how)
        target = open_target(
            table,
            storage_options=storage_options,
            durable=durable,
            manifest_store=manifest_store,
        )
        return cls._of(commit_prepared(target, prepared, how, detached=bool(detached)))

    @classmethod
    def commit_batch(
        cls,
        dest: str | os.PathLike[str] | DatasetHandle,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT,
        *,
        backoff: Backoff | None = None,
        durable: bool = True,
        manifest_store: ExternalManifestStore | str | None = None,
    ) -> BulkCommitResult[Self]:
        """Commits several appends as one version.

        Args:
            dest: The table.
            transactions: Appends, in the order of their rows in the table.
            commit_lock: See `commit`.
            storage_options: See `commit`.
            enable_v2_manifest_paths: See `commit`.
            detached: See `commit`.
            max_retries: See `commit`.
            base_store_params: Refused unless None.
            commit_timeout: See `commit`.
            backoff: See `commit`.
            durable: See `commit`.
            manifest_store: See `commit`.

        Returns:
            The table at the new version, and the transaction that made it.

        Raises:
            InvalidChangeError: There are no transactions.
            UnsupportedError: A transaction is not an append.
            CommitConflictError: Another writer's change conflicts with them.

        Example:
            `LanceDataset.commit_batch(uri, transactions)["dataset"].version`
        """
        refuse_options(base_store_params=base_store_params)
        merged = merged_append(transactions)
        committed = cls.commit(
            dest,
            merged,
            commit_lock=commit_lock,
            storage_options=storage_options,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            detached=detached,
            max_retries=max_retries,
            commit_timeout=commit_timeout,
            backoff=backoff,
            durable=durable,
            manifest_store=manifest_store,
        )
        return {"dataset": committed, "merged": merged}


def _branch_at(
    table: TableVersion | str | os.PathLike[str],
    reference: Reference,
    storage_options: dict[str, str] | None,
    manifest_store: ExternalManifestStore | str | None,
) -> TableVersion:
    """The version that a change was prepared from, by a tag or on a branch."""
    if isinstance(table, TableVersion):
        return table_at(table, place_of(table, reference))
    return open_at(table, reference, storage_options=storage_options, manifest_store=manifest_store)
