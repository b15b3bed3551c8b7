"""`write_fragments`: writes data files for a table without committing them."""

from __future__ import annotations

import os
from typing import Literal, Unpack, overload

import pyarrow as pa

from ..arrow.incoming import ReaderLike
from ..lance.fragment_metadata import FragmentMetadata
from ..lance.handle import DatasetHandle
from ..lance.operation import Transaction
from ..lance.write.request import FileArguments, WriteRequest, open_for, refuse_unknown, spelled_out
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


@spelled_out(FileArguments)
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | DatasetHandle,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    **options: Unpack[FileArguments],
) -> list[FragmentMetadata] | Transaction:
    """Writes data files for a table without committing them: one machine's part of a distributed write.

    Args:
        data: The rows; whatever `write_dataset` takes.
        dataset_uri: The table, or the URI of a new one.
        schema: Their column types, if the data do not have any.
        return_transaction: Whether to return a transaction instead of the fragments.
        mode: "append" checks the columns against the table's and uses its field ids; "create" and "overwrite" assign
            new ones.
        **options: The arguments of `write_dataset` that are about files and stores, not those of a commit: nothing is
            committed.

    Returns:
        Fragments, whose ids the commit assigns, or their transaction.

    Raises:
        InvalidTypeError: There is no option of a name.
        SchemaMismatchError: The columns of an append are not those of the table.
        UnsupportedError: This release cannot write the file version or a type, or does not have an option.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.fragment import write_fragments
        >>> table = pa.table({"id": [1, 2]})
        >>> fragments = write_fragments(table, "memory://fragments", mode="create")
        >>> operation = esker.LanceOperation.Overwrite(table.schema, fragments)
        >>> esker.LanceDataset.commit("memory://fragments", operation).count_rows()
        2
    """
    refuse_unknown("write_fragments", options, FileArguments)
    request = WriteRequest.of(open_for(dataset_uri, options), data, schema, mode, options)
    staged = stage(request)
    fragments = [FragmentMetadata.from_native(fragment) for fragment in staged.fragments]
    staged.report(request.progress)
    return Transaction.from_native(staged.transaction()) if return_transaction else fragments
