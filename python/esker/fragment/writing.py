"""Writing fragments without making them visible."""

from __future__ import annotations

import os
from typing import Literal, Unpack, overload

import pyarrow as pa

from ..arrow.incoming import ReaderLike
from ..lance.fragment_metadata import FragmentMetadata
from ..lance.handle import DatasetHandle
from ..lance.operation import Transaction
from ..lance.write.request import FileArguments, WriteRequest, open_for
from ..lance.write.staging import stage


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | DatasetHandle,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[True],
    mode: str = ...,
    **options: Unpack[FileArguments],
) -> Transaction: ...


@overload
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | DatasetHandle,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[False] = ...,
    mode: str = ...,
    **options: Unpack[FileArguments],
) -> list[FragmentMetadata]: ...


def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | DatasetHandle,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    **options: Unpack[FileArguments],
) -> list[FragmentMetadata] | Transaction:
    """Writes data files for a table without making them visible: a part of a write that many machines share.

    Args:
        data: The rows; whatever `write_dataset` takes.
        dataset_uri: The table, or where it will be.
        schema: Their column types, where the data do not say.
        return_transaction: Whether to return a transaction rather than the fragments.
        mode: "append" checks the columns against the table's and takes its field ids; "create" and "overwrite" bring
            their own.
        **options: How the files are written: the arguments of `write_dataset` that are about files and stores. Other
            options of pylance are refused.

    Returns:
        Fragments whose ids a commit assigns, or their transaction.

    Raises:
        SchemaMismatchError: An append whose columns are not the table's.
        UnsupportedError: A file version, a type, or an option that this release does not have.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.fragment import write_fragments
        >>> table = pa.table({"id": [1, 2]})
        >>> fragments = write_fragments(table, "memory://fragments", mode="create")
        >>> operation = esker.LanceOperation.Overwrite(table.schema, fragments)
        >>> esker.LanceDataset.commit("memory://fragments", operation).count_rows()
        2
    """
    request = WriteRequest.of(open_for(dataset_uri, options), data, schema, mode, options)
    staged = stage(request)
    fragments = [FragmentMetadata.from_native(fragment) for fragment in staged.fragments]
    staged.report(request.progress)
    return Transaction.from_native(staged.transaction()) if return_transaction else fragments
