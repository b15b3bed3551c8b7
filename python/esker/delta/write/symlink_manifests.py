"""Symlink manifests (`_symlink_format_manifest/`): lists of a table's files for engines that cannot read the log."""

from __future__ import annotations

import pyarrow as pa

from ..._native.delta import FileSelection
from ..._native.store import Store
from ...exceptions import InvalidArgumentError, UnsupportedError
from ...store.staging import StagingStore
from ..definition.partition_text import directories, partition_text


def symlink_manifests(store: Store, selection: FileSelection) -> None:
    """Writes lists of the table's files, for engines that read no log: one a partition, under
    `_symlink_format_manifest/`.

    Args:
        store: The table's.
        selection: All files of the version.

    Raises:
        InvalidArgumentError: The table has deletion vectors.
        UnsupportedError: The table is on a branch, whose files have no places of their own.

    Example:
        `symlink_manifests(store, snapshot.select(store))`
    """
    if isinstance(store, StagingStore):
        raise UnsupportedError(
            f"{store.uri}: expected a table whose files lie in its folder, found one on a branch: other engines do not "
            "find its files by their paths; export the ref, and generate the lists there",
            uri=store.uri,
        )
    described = pa.record_batch(selection.describe())
    if described.column("deletion_vector").null_count < len(selection):
        raise InvalidArgumentError("expected a table without deletion vectors: a list of files does not tell of them")
    lists: dict[str, list[str]] = {}
    partition = described.column("partition")
    names = [partition.type.field(i).name for i in range(partition.type.num_fields)]
    columns = [partition.field(i) for i in range(len(names))]
    for row, uri in enumerate(selection.uris()):
        values = {name: partition_text(column[row]) for name, column in zip(names, columns, strict=True)}
        lists.setdefault(directories(values), []).append(uri)
    for folder, uris in lists.items():
        store.put(f"_symlink_format_manifest/{folder}manifest", "".join(f"{uri}\n" for uri in uris).encode())
