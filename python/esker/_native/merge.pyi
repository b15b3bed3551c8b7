"""Merges (upserts): a source's rows are joined with a table's rows by key."""

from collections.abc import Sequence
from typing import Literal, final

from .delta import ArrowData
from .expr import ArrowBatchExportable, Predicate
from .scan import BatchStream
from .schema import ArrowSchemaExportable
from .store import Store
from .table import Manifest, Operation
from .write import ArrowStreamExportable

__all__ = [
    "DiskQuota",
    "KeyJoin",
    "MergeRequest",
    "MergeSource",
    "Merged",
    "RowPartitions",
    "changed_rows",
    "merge",
]

@final
class DiskQuota:
    """Bytes that temporary files of several holders may take, together.

    Args:
        limit: How many; any number if not given.
    """

    def __new__(cls, limit: int | None = None) -> DiskQuota: ...
    @property
    def used(self) -> int:
        """Bytes that are taken."""

@final
class MergeSource:
    """The source rows of a merge, which can be read any number of times.

    Args:
        stream: The rows; read to its end.
        memory_limit: Bytes above which they go to a file in the folder for temporary files. The file has no name and is
            gone with this object, or with the process.
        disk: What its bytes are taken of.
    """

    def __new__(
        cls, stream: ArrowStreamExportable, *, memory_limit: int, disk: DiskQuota | None = None
    ) -> MergeSource: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, in their order."""

    @property
    def num_rows(self) -> int:
        """How many."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes in that file; 0 if all rows are in memory."""

@final
class KeyJoin:
    """The keys of a source, joined with batches of a table's keys, from any number of threads.

    Args:
        stream: The key's columns, of all rows of the source, in their order.

    Raises:
        UnsupportedError: A column of a type whose values cannot be compared; more than 4 billion rows.
    """

    def __new__(cls, stream: ArrowStreamExportable) -> KeyJoin: ...
    @property
    def num_rows(self) -> int:
        """How many rows the source has."""

    def find(self, batch: ArrowBatchExportable, *, first: int = 0, most: int | None = None) -> tuple[ArrowData, int]:
        """The pairs whose keys are equal: a batch of `source` and `target`, numbers of rows as uint32.

        They ascend by the row of the batch. A key with a null equals none. And the row of the batch to go on with, the
        number of its rows at its end.

        Args:
            batch: The key's columns, in their order and of their types.
            first: The row to begin with.
            most: How many pairs are enough.
        """

@final
class RowPartitions:
    """Rows by partition, in the order in which they came; beyond a limit in a file without a name.

    Args:
        schema: The columns.
        parts: How many partitions.
        memory_limit: Bytes that are kept in memory.
        disk: What the file's bytes are taken of.
    """

    def __new__(
        cls, schema: ArrowSchemaExportable, parts: int, *, memory_limit: int, disk: DiskQuota | None = None
    ) -> RowPartitions: ...
    @property
    def rows(self) -> list[int]:
        """How many rows each partition has."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes in that file; 0 if all rows are in memory."""

    def push_by_key(self, batch: ArrowBatchExportable, keys: ArrowBatchExportable) -> None:
        """Adds rows, those of one key to one partition."""

    def push_to(self, batch: ArrowBatchExportable, part: int) -> None:
        """Adds rows to a partition."""

    def read(self, part: int) -> list[ArrowData]:
        """The rows of a partition, as batches."""

@final
class Merged:
    """A merge that is ready to be committed."""

    @property
    def operation(self) -> Operation:
        """The Update that makes it visible."""

    @property
    def num_inserted_rows(self) -> int:
        """Rows of the source that were added."""

    @property
    def num_updated_rows(self) -> int:
        """Rows of the table that were updated."""

    @property
    def num_deleted_rows(self) -> int:
        """Rows of the table that were deleted."""

    @property
    def files(self) -> list[str]:
        """The staged files, relative to the table's root: orphans if it is not committed."""

    @property
    def bytes_written(self) -> int:
        """Bytes of its data files."""

    @property
    def rows_scanned(self) -> int:
        """Rows of the table whose keys were read."""

    @property
    def partitions(self) -> int:
        """The number of partitions in which keys were matched."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes of rows and keys that were spilled to disk, without the source itself."""

@final
class MergeRequest:
    """How rows are merged.

    Args:
        on: The key columns, which source and table both have.
        when_matched: What happens to rows of the table that match.
        condition: With "update": only where this is true. A predicate over two struct columns, `source` and `target`,
            with the columns of the source and of the table that it reads, in the order of the structs' fields.
        insert: Whether rows of the source that match none are added.
        when_not_matched_by_source: What happens to rows of the table that match none of the source.
        delete_filter: With "delete": only those for which this is true.
        data_storage_version: The version of new files.
        max_rows_per_file: Rows after which a new file is started.
        max_bytes_per_file: Bytes after which a new file is started.
        memory_limit: Bytes for keys, pairs and buffered rows, together.
        target_bases: The base paths that new files go to in turn; None is the table's own root.
    """

    def __new__(
        cls,
        *,
        on: Sequence[str],
        when_matched: Literal["keep", "update", "delete", "fail"],
        condition: tuple[Predicate, Sequence[str], Sequence[str]] | None = None,
        insert: bool = False,
        when_not_matched_by_source: Literal["keep", "delete"] = "keep",
        delete_filter: Predicate | None = None,
        data_storage_version: str,
        max_rows_per_file: int,
        max_bytes_per_file: int,
        memory_limit: int,
        target_bases: Sequence[int | None] = ...,
    ) -> MergeRequest: ...

def merge(store: Store, manifest: Manifest, source: MergeSource, request: MergeRequest) -> Merged:
    """Merges rows into a version of a table; nothing is visible yet. On an error no file stays behind.

    Args:
        store: Where the table lies.
        manifest: Its version.
        source: Rows with columns of the table, of its types.
        request: How.

    Raises:
        InvalidArgumentError: Several rows of the source match one of the table, or one matches and none should.
        UnsupportedError: A key column of a type whose values cannot be compared.
    """

def changed_rows(store: Store, manifest: Manifest, source: MergeSource, request: MergeRequest) -> BatchStream:
    """The rows of the source that match rows of the table, with the addresses of those as `_rowaddr`.

    Held in memory; nothing is written. Arguments and errors are those of `merge`.
    """
