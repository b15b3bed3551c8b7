"""Writes of whole tables."""

from __future__ import annotations

import os
from typing import Unpack

import pyarrow as pa

from ..arrow.incoming import ReaderLike
from ..lance.handle import DatasetHandle
from ..lance.write.request import WriteArguments
from ..lance.write.table import write_given
from .lance_dataset import LanceDataset


def write_dataset(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | DatasetHandle,
    schema: pa.Schema | None = None,
    mode: str = "create",
    **options: Unpack[WriteArguments],
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
        progress: Called with the rows taken so far, a `FragmentWriteProgress`, or an `esker.progress.Progress`.
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
        **options: The arguments from `max_rows_per_file` on. Other options of pylance are refused unless None or False.

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
    return LanceDataset._of(write_given(uri, data_obj, schema, mode, options))
