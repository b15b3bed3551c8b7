"""Commits of changes that were prepared elsewhere: one, several as one, or beside the history."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..commit.external import ExternalManifestStore
from ..commit.loop import Backoff
from ..commit.protocol import CommitLock
from ..lance.change.run import DEFAULT_COMMIT_TIMEOUT
from ..lance.operation import BulkCommitResult, LanceOperation, Transaction, merged_append
from ..lance.write.staging import refuse_options
from .write import commit_operation

if TYPE_CHECKING:
    from . import LanceDataset


class CommitsApi:
    """What `LanceDataset` knows of commits."""

    @staticmethod
    def commit(
        base_uri: str | os.PathLike[str] | LanceDataset,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
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
        **pylance_only: Any,
    ) -> LanceDataset:
        """Makes a change visible that was prepared elsewhere, as a new version.

        Args:
            base_uri: The table.
            operation: What changes, or a whole transaction.
            read_version: The version that it was made from; not needed for an overwrite or a restore.
            commit_lock: Held around the put, for stores without put-if-absent; that which a dataset given as `base_uri`
                was opened with by default. The dataset that is returned goes on with it.
            storage_options: Options of the store.
            enable_v2_manifest_paths: False gives a new table V1 manifest names.
            detached: Makes a version beside the history, which only its number leads to.
            max_retries: Attempts after the first.
            commit_message: Noted on the transaction.
            enable_stable_row_ids: Whether a table that this creates has stable row ids.
            transaction_properties: Noted on the transaction.
            application: An application's id and the number of this commit among its own. A number that is not above
                the last one that the table has of the application was committed already, and is not committed again.
            commit_timeout: For all attempts together; None for no limit.
            backoff: The pauses between attempts.
            durable: Whether the commit is on stable storage on return.
            manifest_store: What orders the versions where the table's store has no put-if-absent: an
                `esker.commit.ExternalManifestStore`, or the URI of one. All writers of the table must name it.
            **pylance_only: Refused unless None.

        Returns:
            The table at the new version.

        Raises:
            CommitConflictError: Another writer's change leaves no room for this one.
            InvalidArgumentError: `read_version` is missing, or the operation does not fit the table.
            UnsupportedError: An operation that can only be read back.

        Example:
            `LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=3)`
        """
        refuse_options(**pylance_only)
        return commit_operation(
            base_uri,
            operation,
            read_version=read_version,
            commit_lock=commit_lock,
            storage_options=storage_options,
            v2_names=enable_v2_manifest_paths is not False,
            stable_row_ids=bool(enable_stable_row_ids),
            detached=bool(detached),
            max_retries=max_retries,
            message=commit_message,
            properties=transaction_properties,
            application=application,
            timeout=commit_timeout,
            backoff=backoff,
            durable=durable,
            manifest_store=manifest_store,
        )

    @staticmethod
    def commit_batch(
        dest: str | os.PathLike[str] | LanceDataset,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT,
        backoff: Backoff | None = None,
        durable: bool = True,
        manifest_store: ExternalManifestStore | str | None = None,
        **pylance_only: Any,
    ) -> BulkCommitResult:
        """Makes several appends visible as one version.

        Args:
            dest: The table.
            transactions: Appends, in the order in which their rows shall come.
            commit_lock: See `commit`, as for all that follows.
            storage_options: See `commit`.
            enable_v2_manifest_paths: See `commit`.
            detached: See `commit`.
            max_retries: See `commit`.
            commit_timeout: See `commit`.
            backoff: See `commit`.
            durable: See `commit`.
            manifest_store: See `commit`.
            **pylance_only: Refused unless None.

        Returns:
            The table at the new version, and the transaction that made it.

        Raises:
            UnsupportedError: One of them is no append.
            CommitConflictError: Another writer's change leaves no room.

        Example:
            `LanceDataset.commit_batch(uri, transactions)["dataset"].version`
        """
        refuse_options(**pylance_only)
        merged = merged_append(transactions)
        committed = commit_operation(
            dest,
            merged,
            read_version=None,
            commit_lock=commit_lock,
            storage_options=storage_options,
            v2_names=enable_v2_manifest_paths is not False,
            stable_row_ids=False,
            detached=bool(detached),
            max_retries=max_retries,
            message=None,
            properties=None,
            application=None,
            timeout=commit_timeout,
            backoff=backoff,
            durable=durable,
            manifest_store=manifest_store,
        )
        return {"dataset": committed, "merged": merged}
