"""`ScannerBuilder`: collects the options of a scan, under pylance's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError
from ..lance.scan.options import (
    ColumnOrdering,
    Columns,
    ScannedFragment,
    ScanOptions,
    ScanStatistics,
    blobs_as,
    integer,
)
from ..lance.scan.predicate import Filter
from ..progress import Progress, as_progress
from .hints import ScanHints, optional_integer
from .lance_scanner import LanceScanner, ScannedDataset


def _refused(name: str) -> Callable[..., Any]:
    """A setter for an unsupported option that would change the result: accepts only None and False."""

    def refuse(self: ScannerBuilder, *values: Any, **named: Any) -> ScannerBuilder:
        if any(value is not None and value is not False for value in (*values, *named.values())):
            raise UnsupportedError(f"scan option {name} is not supported yet, leave it out", operation=name)
        return self

    refuse.__name__ = name
    refuse.__doc__ = "Raises `UnsupportedError`: not supported yet."
    return refuse


# Options of `LanceDataset.scanner` whose setters have other names, as in pylance.
_SETTERS = {
    "fragments": "with_fragments",
    "full_text_query": "full_text_search",
    "index_segments": "with_index_segments",
}
_NO_OPTIONS = frozenset({"apply_defaults", "ds", "set", "to_scanner"})


DEFAULT_BATCH_SIZE = "LANCE_DEFAULT_BATCH_SIZE"
"""The environment variable with the rows of a batch where a scan does not say, as for pylance."""


def _default_batch_size() -> int | None:
    text = os.environ.get(DEFAULT_BATCH_SIZE)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise InvalidArgumentError(f"expected a number of rows in {DEFAULT_BATCH_SIZE}, found {text!r}")
    return int(text)


class ScannerBuilder(ScanHints):
    """Collects the options of a scan one by one. `LanceDataset.scanner` takes them all at once.

    Example:
        `ScannerBuilder(dataset).columns(["id"]).limit(10).to_scanner().to_table()`
    """

    def __init__(self, ds: ScannedDataset) -> None:
        super().__init__(ds)
        self._given: dict[str, Any] = {"batch_size": _default_batch_size()}

    def apply_defaults(self, default_opts: dict[str, Any]) -> ScannerBuilder:
        """Sets many options by name."""
        for name, value in default_opts.items():
            self.set(name, value)
        return self

    def set(self, name: str, value: Any) -> ScannerBuilder:
        """Sets one option by name. None leaves it as it is.

        Raises:
            InvalidTypeError: There is no such option.
            UnsupportedError: This release does not have the option.
        """
        setter = getattr(self, _SETTERS.get(name, name), None)
        if setter is None or name.startswith("_") or name in _NO_OPTIONS:
            raise InvalidTypeError(f"unknown scan option {name!r}")
        if value is not None:
            setter(value)
        return self

    def columns(self, cols: Columns | None = None) -> ScannerBuilder:
        """The columns to return: names (nested ones with dots), or a dict of name to SQL expression."""
        if cols is not None and not isinstance(cols, list | tuple | dict):
            raise TypeError(f"columns must be a list or dict[name, expression], found {type(cols).__name__}")
        return self._with(columns=list(cols) if isinstance(cols, tuple) else cols)

    def filter(self, filter: Filter | None) -> ScannerBuilder:
        """Only rows for which this SQL text or pyarrow expression is true."""
        return self._with(filter=filter)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """The maximum number of rows to return."""
        return self._with(limit=optional_integer("limit", n, 0))

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """The number of rows to skip at the start."""
        return self._with(offset=optional_integer("offset", n, 0))

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """The maximum number of rows per batch."""
        return self._with(batch_size=optional_integer("batch_size", batch_size, 1))

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """The approximate maximum number of bytes per batch."""
        return self._with(batch_size_bytes=optional_integer("batch_size_bytes", batch_size_bytes, 1))

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Whether all batches but the last hold exactly `batch_size` rows."""
        return self._with(strict_batch_size=strict_batch_size)

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Whether rows are returned in the table's order; otherwise batches are returned as they become ready."""
        return self._with(scan_in_order=scan_in_order)

    def with_fragments(self, fragments: Iterable[ScannedFragment] | None) -> ScannerBuilder:
        """Scans only these fragments, in this order; one that is given twice is scanned twice."""
        if fragments is None:
            return self._with(fragment_ids=None)
        ids = []
        for item in fragments:
            if not isinstance(item, ScannedFragment):
                raise TypeError(f"fragments must be an iterable of LanceFragment, found {type(item).__name__} in it")
            ids.append(item.fragment_id)
        return self._with(fragment_ids=tuple(ids))

    def row_range(self, row_range: tuple[int, int] | None) -> ScannerBuilder:
        """Only physical rows [start, end) of the one fragment that is scanned: a slice of it, for parallel readers."""
        if row_range is None:
            return self._with(row_range=None)
        start, end = (integer("row_range", bound, least=0) for bound in row_range)
        if end < start:
            raise InvalidArgumentError(f"expected a row_range whose start is not after its end, found {start}..{end}")
        return self._with(row_range=(start, end))

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Whether to add the column `_rowid`."""
        return self._with(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Whether to add the column `_rowaddr`: fragment id << 32 | offset within the fragment."""
        return self._with(with_row_address=with_row_address)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Whether to include deleted rows of fragments that still exist. Needs `with_row_id`, null for these rows."""
        return self._with(include_deleted_rows=flag)

    def blob_handling(self, blob_handling: str | None) -> ScannerBuilder:
        """What blob columns are returned as: "all_binary" returns the bytes, "blobs_descriptions" (or its synonym
        "all_descriptions") returns where the blobs are stored."""
        return self._with(blobs=blobs_as(blob_handling))

    def order_by(self, orderings: Sequence[ColumnOrdering | str] | None) -> ScannerBuilder:
        """The order of the rows; a plain name means ascending with nulls last. Holds the result in memory."""
        if isinstance(orderings, ColumnOrdering | str):
            raise InvalidTypeError(f"order_by must be a list of columns, found {orderings!r}: write [{orderings!r}]")
        keys = []
        for item in orderings or ():
            if not isinstance(item, ColumnOrdering | str):
                raise TypeError(f"orderings must be a list of ColumnOrdering, found {type(item).__name__} in it")
            keys.append(ColumnOrdering(item) if isinstance(item, str) else item)
        return self._with(order_by=tuple(keys))

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Whether to skip groups of rows by their statistics: zone maps, and the statistics of files of version 0.1."""
        return self._with(use_stats=bool(use_stats))

    def string_view(self, string_view: bool = True) -> ScannerBuilder:
        """Whether texts are returned as `string_view`, also within structs, lists and maps."""
        return self._with(string_view=bool(string_view))

    def progress(self, callback: Progress | Callable[[int], object]) -> ScannerBuilder:
        """A callback for each batch, with the number of rows so far, or a `Progress`."""
        return self._with(progress=as_progress(callback))

    def scan_stats_callback(self, callback: Callable[[ScanStatistics], object]) -> ScannerBuilder:
        """A callback for the statistics of the scan, called when it has been read to its end."""
        return self._with(scan_stats_callback=callback)

    full_text_search = _refused("full_text_query")
    minhash_search = _refused("minhash_search")
    nearest = _refused("nearest")
    row_addr_allowlist = _refused("row_addr_allowlist")
    row_addr_blocklist = _refused("row_addr_blocklist")
    row_addr_prefilter = _refused("row_addr_allowlist")
    substrait_aggregate = _refused("substrait_aggregate")
    with_index_segments = _refused("index_segments")

    def to_scanner(self) -> LanceScanner:
        """The scanner."""
        options = ScanOptions(json_text=True, **self._given)
        if options.include_deleted_rows and not options.with_row_id:
            raise InvalidArgumentError("include_deleted_rows needs with_row_id=True: a null _rowid marks deleted rows")
        if options.strict_batch_size and options.batch_size_bytes is not None:
            raise InvalidArgumentError("strict_batch_size cannot be combined with batch_size_bytes, leave one out")
        return LanceScanner(self.ds, options)

    def _with(self, **changes: Any) -> ScannerBuilder:
        self._given |= changes
        return self
