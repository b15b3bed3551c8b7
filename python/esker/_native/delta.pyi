"""The Delta log: the versions of a table, their files, and file pruning by a filter."""

from collections.abc import Callable, Sequence
from typing import Any, final

from .expr import ArrowArrayExportable, Predicate
from .store import Store

__all__ = [
    "ArrowData",
    "ColumnSplice",
    "FileRows",
    "FileSelection",
    "Snapshot",
    "canonical_path",
    "decode_deletion_vector",
    "deletion_vector_elsewhere",
    "deletion_vector_file",
    "encode_deletion_vector",
    "read_changes",
    "read_deletion_vector",
    "z85_text",
]

_File = tuple[str, dict[str, str | None] | None, dict[str, Any] | None]
"""Canonical path, partition values by physical name, deletion vector; None for what its action says nothing of."""

@final
class ArrowData:
    """An array, or a record batch, that hands itself out by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Snapshot:
    """One version of a Delta table."""

    @staticmethod
    def load(store: Store, *, version: int | None = None, timezone: str | None = None) -> Snapshot:
        """Opens a version, or the newest.

        `timezone` is what timestamps without a zone mean as partition values; UTC if not given. Raises `NotFoundError`,
        `UnsupportedError` for features that this release does not have, `CorruptFileError` for a log that cannot be
        replayed.
        """

    def refresh(self, store: Store, *, version: int | None = None) -> Snapshot:
        """The newest version, or the newest up to `version`: only the commits after this one are read."""

    def is_replaced(self, store: Store) -> bool:
        """Whether the entry of this version is another one by now: another table was created in this one's place.

        False if that cannot be known: the entry was cleaned up, or a checkpoint of the same version stood for it.
        """

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def root(self) -> str:
        """The canonical place of the table, with a `/` at its end."""

    @property
    def checkpoint_version(self) -> int | None:
        """The checkpoint that it was replayed from, None if from version 0."""

    @property
    def in_commit_timestamp(self) -> int | None:
        """Milliseconds since the epoch, where in-commit timestamps are on."""

    @property
    def num_files(self) -> int:
        """How many files."""

    @property
    def metadata_json(self) -> str:
        """The metaData action."""

    @property
    def protocol_json(self) -> str:
        """The protocol action."""

    @property
    def column_mapping(self) -> str:
        """`none`, `name` or `id`."""

    @property
    def partition_columns(self) -> list[str]:
        """Logical names."""

    @property
    def transactions(self) -> dict[str, tuple[int, int | None]]:
        """For each application its version and when that was, in milliseconds since the epoch."""

    @property
    def domains(self) -> dict[str, str]:
        """The domain metadata: configurations by domain."""

    def parse_partition_values(self, column: str, values: Sequence[str | None]) -> ArrowData:
        """Values of a partition column as the log has them, as an array of the column's type."""

    def __arrow_c_schema__(self) -> object:
        """The columns; fields have the metadata of the log."""

    def write_checkpoint(
        self,
        store: Store,
        files: list[str],
        columns: object,
        *,
        sidecar: tuple[str, str, int] | None = None,
        tombstones_from: int,
        transactions_from: int | None = None,
    ) -> tuple[int, int, int]:
        """Writes the checkpoint of this version: bytes without sidecars, actions, adds among them.

        `files` are paths, of several parts told apart by the paths of files. `columns` is a schema: a struct for each
        action, to which fields are added that entries, or the checkpoint before, have beside. `sidecar` is where the
        files of a v2 checkpoint go: path, name and time of writing. Files that were removed before `tombstones_from`
        are left out, and so are applications last heard of before `transactions_from`: milliseconds since the epoch.
        """

    def select(self, store: Store, predicates: Sequence[Predicate] | None = None) -> FileSelection:
        """The files that may hold rows for which all predicates are true, by partition values and statistics."""

@final
class FileSelection:
    """Some files of a version."""

    def __len__(self) -> int: ...
    def paths(self) -> list[str]:
        """Canonical paths: relative to the table, or absolute."""

    def log_paths(self) -> list[str]:
        """Paths as spelled in the log."""

    def uris(self) -> list[str]:
        """Absolute paths, or URIs."""

    def partitions(self) -> list[dict[str, Any]]:
        """The partitions that they lie in, each once: texts by logical name, None for null."""

    def describe(self) -> ArrowData:
        """A batch of one row a file: `path`, `size_bytes`, `modification_time`, `partition` and `deletion_vector`."""

    def statistics_texts(self, store: Store) -> list[str | None]:
        """The statistics of the files as JSON; None for a file that has none, or whose log entry is gone."""

    def statistics(self, store: Store, *, bounds: bool = True) -> tuple[list[list[str]], ArrowData]:
        """The paths of leaf columns, and a batch: `num_records`, then for each path `null_count`, `min` and `max`.

        Without `bounds` there are no paths, and the batch is `num_records` alone.
        """

@final
class ColumnSplice:
    """A copy of a Parquet file with some of its columns replaced; the pages of the others are copied as they are."""

    def __new__(cls, store: Store, path: str) -> ColumnSplice: ...
    @property
    def fits(self) -> bool:
        """Whether columns of the file can be replaced."""

    @property
    def row_groups(self) -> list[int]:
        """The number of rows of each row group."""

    def begin(self, store: Store, path: str, schema: bytes, *, only: bool = False) -> None:
        """Begins the copy, at a path of a store.

        `schema` is a Parquet file without rows that has the columns that are replaced; with `only` there are no others.
        """

    def append(self, rows: int, part: Callable[[str], bytes]) -> None:
        """Copies the next row group, of which so many rows stay; none of it if that is 0.

        `part` gives the new values of a column, as a Parquet file that has one row group of it alone.
        """

    def finish(self) -> int:
        """Ends the copy, which is visible then; its size in bytes."""

    def abort(self) -> None:
        """Leaves nothing behind of a copy that is not finished."""

@final
class FileRows:
    """Chosen rows of some columns of a Parquet file, batch by batch, with the types of its Parquet schema.

    `columns` are places at the top of the file's schema, `groups` row groups, ascending; `rows` are numbers in the file,
    an array of uint64, ascending. Rows of other row groups are passed over; no batch has rows of two.
    """

    def __new__(
        cls,
        store: Store,
        path: str,
        *,
        columns: Sequence[int],
        groups: Sequence[int],
        rows: ArrowArrayExportable,
        batch_rows: int,
    ) -> FileRows: ...
    def __iter__(self) -> FileRows: ...
    def __next__(self) -> ArrowData: ...

def encode_deletion_vector(rows: Sequence[ArrowArrayExportable]) -> tuple[bytes, int]:
    """The bytes of the deletion vector of some rows, and how many rows those are.

    `rows` are numbers of rows, arrays of uint64 in any order.
    """

def decode_deletion_vector(data: bytes) -> ArrowData:
    """The rows of a deletion vector's bytes, ascending, as an array of uint64."""

def deletion_vector_file(vectors: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The bytes of a file of deletion vectors, and the offset of each."""

def z85_text(data: bytes) -> str:
    """Bytes in Z85, filled up with zeros to whole groups of four."""

def read_deletion_vector(
    store: Store,
    *,
    storage_type: str,
    path_or_inline_dv: str,
    offset: int | None,
    size_in_bytes: int,
    cardinality: int,
    path: str | None = None,
) -> ArrowData:
    """The numbers of the deleted rows of a file, ascending, as an array of uint64.

    `path` is where the vector's file is in `store`, if that is not the table's.
    """

def deletion_vector_elsewhere(root: str, *, storage_type: str, path_or_inline_dv: str) -> str | None:
    """The canonical path of a deletion vector's file, if it lies outside of the table at `root`."""

def read_changes(
    store: Store, root: str, first: int, last: int
) -> list[tuple[int, bool | None, list[_File], list[_File], list[_File]]]:
    """What the versions `first` to `last` changed: number, whether they turn the feed on, cdc files, adds, removes.

    Raises `NotFoundError` for a version whose entry is not there.
    """

def canonical_path(root: str, path: str) -> str:
    """The canonical form of a path in the log."""
