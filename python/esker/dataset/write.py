"""`write_dataset`: creates, appends to or overwrites a table."""

from __future__ import annotations

import os
from typing import Unpack

import pyarrow as pa

from ..arrow.incoming import ReaderLike
from ..exceptions import InvalidArgumentError
from ..lance.handle import DatasetHandle
from ..lance.write.request import WriteArguments, spelled_out
from ..lance.write.table import write_given
from .lance_dataset import LanceDataset


@spelled_out(WriteArguments)
def write_dataset(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | DatasetHandle | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    **options: Unpack[WriteArguments],
) -> LanceDataset:
    """Creates, appends to or overwrites a table. The input is streamed with bounded memory.

    Args:
        data_obj: The rows: a table, a record batch, a reader, a dataset, a scanner, pandas, polars, a dict of columns,
            an iterator of batches (with `schema`), anything with `__arrow_c_stream__`.
        uri: The table, or the URI of a new one.
        schema: Column types, if the data do not have any.
        mode: "create" makes a new table; "append" adds rows, to a new table if there is none; "overwrite" makes a
            version that holds these rows only.
        max_rows_per_file: Rows after which a new file, and with it a new fragment, is started.
        max_rows_per_group: Rows per group in files of version 0.1; of no effect for later versions.
        max_bytes_per_file: Bytes after which a new file is started.
        commit_lock: Held around the commit, for stores without put-if-absent; by default the lock that a dataset given
            as `uri` was opened with. The returned dataset keeps it.
        progress: Called with the rows taken so far, a `FragmentWriteProgress`, or an `esker.progress.Progress`.
        storage_options: Options of the store, such as credentials.
        data_storage_version: The file version, see `esker.storage_version`; None keeps the table's. An append of
            another version than the table's leaves the table with files of both.
        compression: How small the files are to be: "fast" leaves out general compression, "balanced" has it where it
            makes a column smaller but not slower to read, "small" takes the smallest of all. None for what the table
            has, or "balanced". A new table and an overwrite keep it as `esker.compression` in the config, and all
            later writes follow it; an append uses it for its own files. Field metadata go before it. Files of version
            0.1 are never compressed, those of 2.0 only by "small".
        enable_v2_manifest_paths: False gives a new table V1 manifest names.
        enable_stable_row_ids: Whether a new table has stable row ids: rows keep their `_rowid` when they are updated or
            files are compacted. Of no effect on a table that exists, as in pylance.
        commit_message: The commit message, a property of the transaction.
        transaction_properties: Further properties of the transaction.
        application: An application's id and the number of this write among its writes. If the application has
            committed this number, or a higher one, already, nothing is written.
        durable: Whether data and commit are on stable storage on return.
        memory_limit: Bytes of values to buffer at most. A page has at most an eighth of them, and at most 8 MiB.
        external_blob_mode: What to do with blobs that are given by their URI: "reference" leaves them where they are,
            "ingest" copies them into the table.
        allow_external_blob_outside_bases: Must be True to leave blobs outside the table.
        allow_null_loss: Whether files of version 0.1 may lose what they cannot hold: most nulls, and the difference
            between "" and null. Otherwise such values are refused.
        max_retries: Attempts of the commit after the first.
        commit_timeout: The time for all attempts together; None for no limit.
        backoff: The pauses between attempts.
        session: The caches that several datasets share, and one account of their requests.
        auto_cleanup_options: Has a new table clean itself up: after how many versions (`interval`, by default 20), and
            how old the versions must be that go (`older_than_seconds`, by default 14 days). The keys
            `lance.auto_cleanup.*` of the config hold it. Of no effect on a table that exists, as in pylance.
        manifest_store: The external manifest store of a table whose store has no put-if-absent: an
            `esker.commit.ExternalManifestStore`, or the URI of one. All writers of the table must use it.
        initial_bases: The base paths of a new table: places outside its root that may hold files of it.
        target_bases: Names or paths of base paths that the files are written to in turn.
        target_all_bases: Whether they are written to all base paths, and to the table's own root, in turn.
        base_store_params: Options by the path of a base path; they replace `storage_options` for it.
        **options: The arguments from `max_rows_per_file` on. Other options of pylance are refused unless None or False.

    Returns:
        The table at the new version.

    Raises:
        InvalidArgumentError: There is no `uri`, or a value does not fit.
        AlreadyExistsError: `mode` is "create", and there is a table.
        InvalidTypeError: There is no argument of a name.
        SchemaMismatchError: The columns of an append are not those of the table.
        CommitConflictError: Another writer committed a conflicting change.
        UnsupportedError: This release cannot write the file version or a type, or does not have an option.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-write")
        >>> esker.write_dataset(pa.table({"id": [2]}), dataset, mode="append").version
        2
    """
    if uri is None:
        raise InvalidArgumentError("expected the uri of a table, found None")
    return LanceDataset._of(write_given(uri, data_obj, schema, mode, options))
