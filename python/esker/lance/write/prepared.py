"""Commits operations and transactions that were prepared elsewhere, as by workers; see `LanceDataset.commit`."""

from __future__ import annotations

from dataclasses import dataclass

from ..._native import table as native
from ..._native.file import FileReader
from ...commit.limits import commit_limits
from ...commit.loop import commit
from ...exceptions import InvalidArgumentError, NotFoundError
from ...storage_version import DEFAULT_STORAGE_VERSION, version_of_numbers
from ..cleanup.automatic import cleaned_up
from ..commit import LanceCommit
from ..log import is_detached
from ..operation import LanceOperation, Transaction, application_properties, merge_message
from ..version import TableVersion
from .table import WriteCommit
from .target import LanceTarget


@dataclass(frozen=True)
class PreparedChange:
    """A change that was prepared elsewhere and is to be committed.

    Attributes:
        operation: The operation.
        read_version: Its base version; None, for an overwrite or a restore, means the newest version.
        properties: The properties of the transaction.
        uuid: The transaction's id, None for a new one.
    """

    operation: LanceOperation.BaseOperation
    read_version: int | None
    properties: dict[str, str] | None
    uuid: str | None


def prepared_change(
    operation: LanceOperation.BaseOperation | Transaction, read_version: int | None, how: WriteCommit
) -> PreparedChange:
    """The change that the arguments of `LanceDataset.commit` mean.

    Raises:
        InvalidArgumentError: A message is given for a `Transaction`, which has its own properties.
    """
    uuid, properties = None, how.properties
    if isinstance(operation, Transaction):
        if how.message is not None:
            raise InvalidArgumentError("commit_message cannot go with a Transaction, set its properties instead")
        read_version, uuid = operation.read_version, operation.uuid
        properties = {**(operation.transaction_properties or {}), **(properties or {})}
        operation = operation.operation
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(f"expected a LanceOperation or a Transaction, found {type(operation).__name__}")
    noted = application_properties(how.application, merge_message(how.message, properties))
    return PreparedChange(operation, read_version, noted, uuid)


def commit_prepared(target: LanceTarget, prepared: PreparedChange, how: WriteCommit, *, detached: bool) -> TableVersion:
    """Commits a change that was prepared elsewhere and returns the new version. See `LanceDataset.commit`.

    Args:
        target: The table.
        prepared: The change.
        how: How it is committed.
        detached: Whether to commit a detached version, which is not in the history.

    Raises:
        InvalidArgumentError: The change needs a base version (`read_version`), and none is given; or that is detached,
            and the change is to be one of the history.
    """
    operation, read_version = prepared.operation, prepared.read_version
    # As in pylance: an overwrite without retries is one of the version that it names, and of no other.
    is_strict = isinstance(operation, LanceOperation.Overwrite) and how.max_retries == 0 and not detached
    if read_version is None:
        if not isinstance(operation, LanceOperation.Overwrite | LanceOperation.Restore):
            raise InvalidArgumentError(f"read_version is required for {operation.name}, expected the version it read")
        read_version = 0 if is_strict else target.read_version
    if is_detached(read_version) and not detached:
        # The number after it is one of a detached version, too: what is put there is in nobody's history.
        raise InvalidArgumentError(
            f"expected read_version as a version of the history, found the detached version {read_version}; commit "
            "with detached=True, or restore it and prepare the change again",
            uri=target.log.uri,
            version=read_version,
        )
    lock = how.lock or target.lock
    transaction = operation.to_native(read_version, prepared.properties, uuid=prepared.uuid)
    change = LanceCommit(
        target.log,
        transaction,
        data_storage_version=_files_version(transaction, target.base),
        enable_stable_row_ids=how.stable_row_ids,
        strict=is_strict,
        scheme="V2" if how.v2_names else "V1",
        lock=lock,
        base=target.base,
    )
    if isinstance(operation, LanceOperation.DataReplacement):
        _check_replacing_files(change, operation)
    if detached:
        return target.at(change.detached(), lock)
    version = commit(change, limits=commit_limits(how.max_retries, how.timeout, how.backoff))
    return cleaned_up(target.at(change.committed(version), lock))


def _check_replacing_files(change: LanceCommit, operation: LanceOperation.DataReplacement) -> None:
    """Checks that the files have the rows of their fragments, which no version of a fragment has others of.

    Raises:
        InvalidArgumentError: One has more or fewer.
        NotFoundError: One is not there.
    """
    try:
        manifest = change.read_manifest
    except NotFoundError:
        manifest = None
    if manifest is None:
        # It is cleaned up or says nothing: what it meant is judged by the commit.
        return
    store = change.log.mounted(manifest).store
    rows = {fragment.id: fragment.physical_rows for fragment in manifest.fragments()}
    for group in operation.replacements:
        expected = rows.get(group.fragment_id)
        found = FileReader(store, group.new_file.location).num_rows
        if expected and found != expected:
            raise InvalidArgumentError(
                f"{group.new_file.path}: expected {expected} rows as fragment {group.fragment_id} has, found {found}; "
                "deleted rows count, too"
            )


def _files_version(transaction: native.Transaction, base: native.Manifest | None) -> str | None:
    """The file version that all fragments of a transaction share; None, which keeps the table's, if they differ.

    Raises:
        InvalidArgumentError: They differ, and there is no table yet.
    """
    numbers = (
        (file.file_major_version, file.file_minor_version)
        for fragment in transaction.fragments
        for file in fragment.files
    )
    found = {version_of_numbers(major, minor) for major, minor in numbers}
    if len(found) > 1 and base is None:
        raise InvalidArgumentError(f"expected fragments of one file version for a new table, found {sorted(found)}")
    if len(found) == 1:
        return found.pop()
    return None if base is not None else DEFAULT_STORAGE_VERSION
