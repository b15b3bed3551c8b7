"""Writes: data files are staged, then one commit makes them visible."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from .._native import table as native
from ..arrow.incoming import ReaderLike
from ..commit.external import ExternalManifestStore
from ..commit.loop import Backoff, commit
from ..commit.orphans import StagedFiles
from ..commit.protocol import CommitLock
from ..exceptions import AlreadyExistsError, InvalidArgumentError, SchemaMismatchError
from ..fragment import FragmentMetadata
from ..lance.base_path import DatasetBasePath
from ..lance.change.run import DEFAULT_COMMIT_TIMEOUT, commit_limits
from ..lance.commit import LanceCommit, is_applied
from ..lance.io_stats import Session
from ..lance.log import LanceLog, NamingScheme
from ..lance.operation import LanceOperation, Transaction, application_properties, merge_message
from ..lance.write.staging import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MEMORY_LIMIT,
    Staged,
    external_blobs,
    open_target,
    refuse_options,
    stage,
)
from ..progress import Progress, report
from ..storage_version import DEFAULT_STORAGE_VERSION, may_stand_together, version_of_numbers

if TYPE_CHECKING:
    from . import LanceDataset


def write_dataset(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    commit_lock: CommitLock | None = None,
    progress: Progress | None = None,
    storage_options: dict[str, str] | None = None,
    data_storage_version: str | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    commit_message: str | None = None,
    transaction_properties: dict[str, str] | None = None,
    application: tuple[str, int] | None = None,
    durable: bool = True,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    allow_null_loss: bool = False,
    max_retries: int = 20,
    commit_timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT,
    backoff: Backoff | None = None,
    session: Session | None = None,
    manifest_store: ExternalManifestStore | str | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    **pylance_only: Any,
) -> LanceDataset:
    """Writes a table, or adds to one. The input is streamed: memory stays bounded however long it is.

    Args:
        data_obj: The rows: a table, a record batch, a reader, a dataset, a scanner, pandas, polars, a dict of columns,
            an iterator of batches (with `schema`), anything with `__arrow_c_stream__`.
        uri: Where the table is, or shall be.
        schema: Column types, where the data do not say.
        mode: "create" makes a new table; "append" adds rows, to a new table if there is none; "overwrite" makes a
            version that holds these rows only.
        max_rows_per_file: Rows after which a new file, and so a new fragment, is started.
        max_rows_per_group: Rows of a group of files of version 0.1; of no meaning for later ones.
        max_bytes_per_file: Bytes after which a new file is started.
        commit_lock: Held around the commit, for stores without put-if-absent; that which a dataset given as `uri` was
            opened with by default. The dataset that is returned goes on with it.
        progress: Called with the rows taken so far, or a `FragmentWriteProgress`.
        storage_options: Options of the store, such as credentials.
        data_storage_version: The file version, see `esker.storage_version`; None keeps the table's. An append of
            another version than the table's leaves the table with files of both.
        enable_v2_manifest_paths: False gives a new table V1 manifest names.
        enable_stable_row_ids: Whether the rows of a new table keep their `_rowid` when they move: when they are updated
            or files are compacted. A table has stable row ids from its creation or never, so this is of no effect on
            one that is there, as in pylance.
        commit_message: Noted on the transaction.
        transaction_properties: Noted on the transaction.
        application: An application's id and the number of this write among its own: what an earlier run wrote under
            that number, or a higher one, is not written again.
        durable: Whether data and commit are on stable storage on return.
        memory_limit: Bytes of values that may be buffered. A page takes an eighth of them at most, and at most 8 MiB.
        external_blob_mode: Whether blobs given by their URI stay where they are or are copied into the table.
        allow_external_blob_outside_bases: Must be True for blobs to stay outside the table.
        allow_null_loss: Whether files of version 0.1 may forget what they cannot keep: most nulls, and the difference
            between "" and null. Without it such values are refused.
        max_retries: Attempts of the commit after the first.
        commit_timeout: For all attempts together; None for no limit.
        backoff: The pauses between attempts.
        session: Keeps one account of what several datasets cost.
        manifest_store: What orders the versions where the table's store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one. All writers of the table must name it.
        initial_bases: Places beside its own root where files of a new table may lie.
        target_bases: Names or paths of base paths that the files go to in turn.
        target_all_bases: Whether they go to all of them, and to the table's own root, in turn.
        base_store_params: By the place of a base path, its options in place of `storage_options`.
        **pylance_only: Other options of pylance: refused unless None or False.

    Returns:
        The table at the version that this made.

    Raises:
        AlreadyExistsError: `mode` is "create" and there is a table.
        SchemaMismatchError: An append whose columns are not the table's.
        CommitConflictError: Another writer changed the table in a way that leaves no room.
        UnsupportedError: A file version, a type, or an option that this release does not have.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-write")
        >>> esker.write_dataset(pa.table({"id": [2]}), dataset, mode="append").version
        2
    """
    refuse_options(**pylance_only)
    _check_lock(commit_lock)
    target = open_target(
        uri,
        storage_options=storage_options,
        durable=durable,
        manifest_store=manifest_store,
        base_store_params=base_store_params,
    )
    lock = commit_lock or target.lock
    if session is not None:
        session._watch(target.log.store)
    properties = application_properties(application, merge_message(commit_message, transaction_properties))
    if application is not None and target.base is not None:
        latest = target.log.open()[0]
        if is_applied(latest, *application):
            return _at(uri, target.log, latest, storage_options, lock)
    staged = stage(
        target,
        data_obj,
        schema=schema,
        mode=mode,
        data_storage_version=data_storage_version,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        memory_limit=memory_limit,
        external_blobs=external_blobs(external_blob_mode, allow_external_blob_outside_bases),
        max_rows_per_group=max_rows_per_group,
        allow_null_loss=allow_null_loss,
        progress=progress,
        initial_bases=initial_bases,
        target_bases=target_bases,
        target_all_bases=target_all_bases,
    )
    with StagedFiles() as files:
        staged.tell(files)
        report(progress, [FragmentMetadata.from_native(fragment) for fragment in staged.fragments])
        limits = commit_limits(max_retries, commit_timeout, backoff)
        scheme: NamingScheme = "V2" if enable_v2_manifest_paths else "V1"
        first = LanceCommit(
            target.log,
            staged.transaction(properties),
            data_storage_version=staged.data_storage_version,
            enable_stable_row_ids=bool(enable_stable_row_ids),
            # An append to nothing creates too: if others were faster, it becomes an append to what they made.
            create=target.base is None and staged.mode != "overwrite",
            scheme=scheme,
            lock=lock,
            base=target.base,
        )
        try:
            version = commit(first, limits=limits, staged=files)
        except AlreadyExistsError:
            if staged.mode != "append" or target.base is not None:
                raise
        else:
            return _opened(uri, first, version, storage_options, lock)
        second = _append_to_newcomer(staged, scheme, properties, lock)
        return _opened(uri, second, commit(second, limits=limits, staged=files), storage_options, lock)


def commit_operation(
    base_uri: str | os.PathLike[str] | LanceDataset,
    operation: LanceOperation.BaseOperation | Transaction,
    *,
    read_version: int | None,
    commit_lock: CommitLock | None,
    storage_options: dict[str, str] | None,
    v2_names: bool,
    detached: bool,
    stable_row_ids: bool,
    max_retries: int,
    message: str | None,
    properties: dict[str, str] | None,
    application: tuple[str, int] | None,
    timeout: timedelta | None,
    backoff: Backoff | None,
    durable: bool,
    manifest_store: ExternalManifestStore | str | None,
) -> LanceDataset:
    """Commits a change that was prepared elsewhere. See `LanceDataset.commit`."""
    _check_lock(commit_lock)
    uuid = None
    if isinstance(operation, Transaction):
        if message is not None:
            raise InvalidArgumentError("commit_message cannot go with a Transaction, set its properties instead")
        read_version, uuid = operation.read_version, operation.uuid
        properties = {**(operation.transaction_properties or {}), **(properties or {})}
        operation = operation.operation
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(f"expected a LanceOperation or a Transaction, found {type(operation).__name__}")
    target = open_target(base_uri, storage_options=storage_options, durable=durable, manifest_store=manifest_store)
    lock = commit_lock or target.lock
    if read_version is None:
        if not isinstance(operation, LanceOperation.Overwrite | LanceOperation.Restore):
            raise InvalidArgumentError(f"read_version is required for {operation.name}, expected the version it read")
        read_version = target.read_version
    properties = application_properties(application, merge_message(message, properties))
    transaction = operation.to_native(read_version, properties, uuid=uuid)
    version = _files_version(transaction, target.base)
    change = LanceCommit(
        target.log,
        transaction,
        data_storage_version=version,
        enable_stable_row_ids=stable_row_ids,
        scheme="V2" if v2_names else "V1",
        lock=lock,
        base=target.base,
    )
    if detached:
        return _at(base_uri, change.log, change.detached(), storage_options, lock)
    committed = commit(change, limits=commit_limits(max_retries, timeout, backoff))
    return _opened(base_uri, change, committed, storage_options, lock)


def _append_to_newcomer(
    staged: Staged, scheme: NamingScheme, properties: dict[str, str] | None, lock: CommitLock | None
) -> LanceCommit:
    """The append of fragments that were staged for a new table to the table that another writer made meanwhile."""
    log = staged.target.log
    listing = log.newest()
    base = log.manifest(1, listing.scheme if listing.versions else scheme)
    base.check_readable()
    fits = may_stand_together(base.data_storage_version, staged.data_storage_version)
    fits = fits and _ids(base.schema.fields) == _ids(staged.schema.fields)
    if pa.schema(base.schema) != pa.schema(staged.schema) or not fits:
        raise SchemaMismatchError(
            f"another writer created the table at {log.uri} meanwhile, with other columns or another file version; "
            "nothing of ours is visible, run it again",
            expected=str(pa.schema(base.schema)),
            found=str(pa.schema(staged.schema)),
        )
    transaction = native.Transaction.append(base.version, staged.fragments, properties=properties)
    return LanceCommit(log, transaction, lock=lock)


def _ids(fields: list[native.Field]) -> list[int]:
    return [id_ for field in fields for id_ in (field.id, *_ids(field.children))]


def _opened(
    uri: str | os.PathLike[str] | LanceDataset,
    change: LanceCommit,
    version: int,
    storage_options: dict[str, str] | None,
    lock: CommitLock | None,
) -> LanceDataset:
    return _at(uri, change.log, change.committed(version), storage_options, lock)


def _at(
    uri: str | os.PathLike[str] | LanceDataset,
    log: LanceLog,
    manifest: native.Manifest,
    storage_options: dict[str, str] | None,
    lock: CommitLock | None,
) -> LanceDataset:
    from . import LanceDataset

    if isinstance(uri, LanceDataset):
        storage_options = storage_options if storage_options is not None else uri._storage_options
        name = uri.uri
    else:
        name = os.fspath(uri)
    return LanceDataset._at(name, log, manifest, storage_options, commit_lock=lock)


def _files_version(transaction: native.Transaction, base: native.Manifest | None) -> str | None:
    """The file version that a transaction's fragments share; None keeps the table's, as for fragments of several.

    Raises:
        InvalidArgumentError: They are of several, and there is no table yet.
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


def _check_lock(commit_lock: CommitLock | None) -> None:
    if commit_lock is not None and not callable(commit_lock):
        raise TypeError(f"commit_lock must be a function, found {type(commit_lock).__name__}")
