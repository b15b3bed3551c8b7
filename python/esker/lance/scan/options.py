"""`ScanOptions`: what a scan returns, and `ScanStatistics`: what it cost."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...exceptions import InvalidArgumentError, InvalidTypeError
from ...missing import missing_property
from ...progress import Progress
from .predicate import Filter

_COUNTED = "read iops, requests, bytes_read, rows, seconds, groups and groups_skipped"

Columns: TypeAlias = list[str] | dict[str, str]


@dataclass(frozen=True)
class ColumnOrdering:
    """One key of a sort order.

    Args:
        column_name: The column.
        ascending: Whether the smallest value comes first.
        nulls_first: Whether nulls come before values.
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True)
class ScanStatistics:
    """What a scan cost: requests to the store and their bytes; and how many rows it returned."""

    iops: int
    requests: int
    bytes_read: int
    rows: int
    seconds: float
    groups: int = 0
    """Groups of rows whose statistics the scan checked: the zones of zone maps, the groups of files of version 0.1."""
    groups_skipped: int = 0
    """Groups that the scan skipped by their statistics."""

    all_counts = missing_property("ScanStatistics", "all_counts", _COUNTED)
    all_times = missing_property("ScanStatistics", "all_times", _COUNTED)
    index_cache_hits = missing_property("ScanStatistics", "index_cache_hits", _COUNTED)
    index_cache_misses = missing_property("ScanStatistics", "index_cache_misses", _COUNTED)
    index_comparisons = missing_property("ScanStatistics", "index_comparisons", _COUNTED)
    indices_loaded = missing_property("ScanStatistics", "indices_loaded", _COUNTED)
    parts_loaded = missing_property("ScanStatistics", "parts_loaded", _COUNTED)


@dataclass(frozen=True)
class ScanOptions:
    """The options of a scan; `LanceDataset.scanner` documents them.

    `json_text` is whether JSON columns are returned as text, as users have them, or as JSONB, to be stored again.
    """

    columns: Columns | None = None
    filter: Filter | None = None
    limit: int | None = None
    offset: int | None = None
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    strict_batch_size: bool = False
    scan_in_order: bool = True
    fragment_ids: tuple[int, ...] | None = None
    row_range: tuple[int, int] | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    order_by: tuple[ColumnOrdering, ...] = ()
    include_deleted_rows: bool = False
    use_stats: bool = True
    blobs: Literal["bytes", "descriptions"] = "descriptions"
    json_text: bool = False
    string_view: bool = False
    scan_stats_callback: Callable[[ScanStatistics], object] | None = field(default=None, compare=False)
    progress: Progress | None = field(default=None, compare=False)


def blobs_as(blob_handling: str | None) -> Literal["bytes", "descriptions"]:
    """What `blob_handling` says that comes of blob columns.

    Raises:
        InvalidArgumentError: None of pylance's three words.

    Example:
        >>> from esker.lance.scan.options import blobs_as
        >>> blobs_as("all_binary"), blobs_as(None)
        ('bytes', 'descriptions')
    """
    allowed = {"all_binary", "all_descriptions", "blobs_descriptions"}
    if blob_handling is not None and blob_handling not in allowed:
        raise InvalidArgumentError(
            f"Invalid blob_handling: {blob_handling}. Expected one of: {', '.join(sorted(allowed))}"
        )
    return "bytes" if blob_handling == "all_binary" else "descriptions"


def integer(name: str, value: Any, *, least: int | None = None) -> int:
    """An integer option as an int. Accepts whatever Python accepts as an index.

    Raises:
        InvalidTypeError: The value is not an integer.
        InvalidArgumentError: It is less than `least`, or more than 2^63 - 1.

    Example:
        >>> from esker.lance.scan.options import integer
        >>> integer("limit", 3, least=0)
        3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"expected {name} as an integer, found {type(value).__name__}") from None
    if least is not None and number < least:
        rule = "non-negative" if least == 0 else f"at least {least}"
        raise InvalidArgumentError(f"{name if '_' in name else name.capitalize()} must be {rule}, found {number}")
    if number > _MOST:
        raise InvalidArgumentError(f"{name} must be at most 2^63 - 1, found {number}")
    return number


_MOST = 2**63 - 1


class ScannedFragment:
    """A fragment that a scan can be told to read."""

    @property
    def fragment_id(self) -> int:
        """The fragment's id within its table."""
        raise NotImplementedError
