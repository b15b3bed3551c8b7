"""Writing data files."""

from collections.abc import Sequence, Set
from typing import Literal, Protocol, type_check_only

from .schema import Schema
from .store import Store
from .table import Fragment, Manifest

__all__ = ["spill_row_lineage", "write_fragments"]

@type_check_only
class ArrowStreamExportable(Protocol):
    """Anything that hands out record batches by the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def write_fragments(
    store: Store,
    stream: ArrowStreamExportable,
    *,
    schema: Schema,
    data_storage_version: str,
    compression: str,
    max_rows_per_file: int,
    max_bytes_per_file: int,
    memory_limit: int,
    external_blobs: Literal["refuse", "reference", "ingest"] = "refuse",
    max_rows_per_group: int = 1024,
    allow_null_loss: bool = False,
    base: Manifest | None = None,
    target_bases: Sequence[int | None] = ...,
) -> list[Fragment]:
    """Writes a stream as data files and returns a fragment for each, with id 0.

    The stream's columns must be those of `schema` by name, order and type (nullability and metadata may differ); its
    field ids go into the files. No rows make no file. On an error no file stays behind.

    Args:
        store: Where the table lies; files go to `data/`.
        stream: The rows.
        schema: Names, types, nullability and field ids.
        data_storage_version: The file version: "2.0".
        compression: How small the files are to be: "fast", "balanced" or "small".
        max_rows_per_file: Rows after which a new file is started.
        max_bytes_per_file: Bytes after which a new file is started, as far as pages allow.
        memory_limit: Bytes that may be buffered for all columns together.
        external_blobs: How blobs that are given by their URI are stored.
        max_rows_per_group: Rows of a group of files of version 0.1.
        allow_null_loss: Whether nulls that files of version 0.1 cannot represent are written as the values that readers will see.
        target_bases: The base paths that files go to in turn; None is the table's own root.
        base: The table whose dictionaries files of version 0.1 share.

    Raises:
        SchemaMismatchError: The stream is not of `schema`, or a column that is not nullable holds a null.
        UnsupportedError: A type or a null that the file version cannot hold (`column`, `type`, `file_version`).
    """

def spill_row_lineage(
    store: Store, manifest: Manifest, fragments: Sequence[Fragment], moved_from: Set[int]
) -> tuple[list[Fragment], list[str]]:
    """Writes the lineage of rows that moved to files of their own, where the table's config asks for it and it is long.

    Returns the fragments, of which some have such a file, and the paths of these files relative to the table's root. On
    an error no file stays behind.

    Args:
        store: Where the table lies.
        manifest: The version that the rows come from.
        fragments: New fragments with the ids that their rows keep.
        moved_from: The ids of the fragments that the rows come from.

    Raises:
        InvalidArgumentError: The config asks for it in words that mean nothing.
    """
