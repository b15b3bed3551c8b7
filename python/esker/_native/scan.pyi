"""Reading one version of a table: scan, take, count."""

from collections.abc import Sequence
from typing import Literal, Protocol, final, type_check_only

from ..exceptions import EskerError
from .expr import ArrowBatchExportable, Predicate
from .store import Store
from .table import Manifest

__all__ = ["BatchStream", "count_rows", "deleted_row_ids", "ruled_out", "scan", "string_views", "take", "take_ids"]

@type_check_only
class ArrowArrayExportable(Protocol):
    """Anything that hands out an array by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class BatchStream:
    """Record batches as they are decoded. Consumed once, by `pyarrow.RecordBatchReader.from_stream(it)`.

    The C stream interface carries only the text of an error; the error itself stays here in `error`.
    """

    @property
    def error(self) -> EskerError | None:
        """The error that ended the stream, also after it was handed out; None if there was none."""

    @property
    def groups(self) -> tuple[int, int]:
        """Groups of rows with statistics that the scan has seen, and how many of them it pruned."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def scan(
    store: Store,
    manifest: Manifest,
    *,
    columns: Sequence[str] | None = None,
    filter: Predicate | None = None,
    limit: int | None = None,
    offset: int | None = None,
    batch_size: int | None = None,
    fragment_ids: Sequence[int] | None = None,
    row_range: tuple[int, int] | None = None,
    with_row_id: bool = False,
    with_row_address: bool = False,
    scan_in_order: bool = True,
    include_deleted_rows: bool = False,
    use_stats: bool = True,
    blobs: Literal["bytes", "descriptions"] = "descriptions",
    order_by: Sequence[tuple[str, bool, bool]] = ...,
    strict_batch_size: bool = False,
    string_view: bool = False,
) -> BatchStream:
    """Rows of a version as batches.

    Args:
        store: Where the table lies.
        manifest: The version.
        columns: Top-level columns or dotted paths (`a.b`), in the order they shall come; None for all, empty for
            none (batches then carry only their row count). A dotted path comes as a column of that name. `_rowid`,
            `_rowaddr`, `_rowoffset`, `_row_created_at_version` and `_row_last_updated_at_version` are columns too, here and in `filter`, unless the table has its own.
        filter: Only rows for which it is true.
        limit: At most so many rows, after `filter` and `offset`.
        offset: Rows to leave out at the start, after `filter`.
        batch_size: At most so many rows per batch; None leaves it to the reader.
        fragment_ids: Only these fragments, in this order; None for all.
        row_range: Physical rows [start, end) of the one fragment that `fragment_ids` names.
        with_row_id: Adds `_rowid` (uint64) as the last column.
        with_row_address: Adds `_rowaddr` (uint64) as the last column, after `_rowid`.
        scan_in_order: False lets batches come as they are ready.
        include_deleted_rows: Deleted rows come too, as far as their fragment is there; their `_rowid` is null.
        use_stats: Whether groups of rows are pruned by statistics.
        blobs: The form in which blob columns are read.
        order_by: Columns or dotted paths, each with whether it ascends and whether nulls come first; the first
            ones decide. Rows with equal keys stay in the table's order. Holds the result in memory.
        strict_batch_size: Whether all batches but the last have `batch_size` rows.
        string_view: Whether texts are read as `string_view`, but for those of dictionaries and extension types.

    Raises:
        InvalidArgumentError: A column does not exist (`column`), a fragment does not exist.
        UnsupportedError: A type or an encoding that this release cannot read.
    """

def string_views(batch: ArrowBatchExportable) -> ArrowBatchExportable:
    """The batch with its texts as `string_view`, but for those of dictionaries and extension types."""

def take(
    store: Store,
    manifest: Manifest,
    indices: ArrowArrayExportable,
    *,
    columns: Sequence[str] | None = None,
    in_structs: bool = False,
    fragment_ids: Sequence[int] | None = None,
    blobs: Literal["bytes", "descriptions"] = "descriptions",
) -> BatchStream:
    """Rows by number (uint64, no nulls), in the order asked for and as often as asked for.

    Row numbers count live rows from 0 over all fragments, or over those of `fragment_ids` only.
    `columns` as in `scan`; with `in_structs`, paths leave their structs and lists in place, with only the fields that
    are asked for. Raises `OutOfRangeError` for a number beyond the last row.
    """

def take_ids(
    store: Store,
    manifest: Manifest,
    ids: ArrowArrayExportable,
    *,
    columns: Sequence[str] | None = None,
    in_structs: bool = False,
    blobs: Literal["bytes", "descriptions"] = "descriptions",
) -> BatchStream:
    """Rows by id (uint64, no nulls), in the order asked for and as often as asked for: by stable row id where the table
    has them, else by row address. Ids that no live row has are left out. `columns` and `in_structs` as in `take`.
    """

def deleted_row_ids(store: Store, begin: Manifest, end: Manifest) -> BatchStream:
    """The ids (`_rowid`) of the rows of `begin` that are not in `end`. Both need stable row ids."""

def ruled_out(
    store: Store, manifest: Manifest, filter: Predicate, *, fragment_ids: Sequence[int] | None = None
) -> tuple[int, int]:
    """How many groups of rows have statistics, and how many of them `filter` rules out. Opens the files, reads no rows."""

def count_rows(
    store: Store,
    manifest: Manifest,
    *,
    filter: Predicate | None = None,
    fragment_ids: Sequence[int] | None = None,
    use_stats: bool = True,
) -> int:
    """How many rows satisfy `filter`; only its columns are read. Without one, how many live rows there are."""
