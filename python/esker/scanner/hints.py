"""`ScanHints`: setters for options that tune pylance's scans, or belong to a search, which is refused anyway."""

from __future__ import annotations

from typing import Any, Self

from ..exceptions import InvalidArgumentError
from ..lance.scan.options import integer
from ..lance.scan.projection import require_column
from ..lance.system_columns import SYSTEM_COLUMNS
from .lance_scanner import ScannedDataset


class ScanHints:
    """The options of a scan that are of no effect here, under pylance's names."""

    def __init__(self, ds: ScannedDataset) -> None:
        self.ds = ds

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """A hint of pylance, of no effect here."""
        optional_integer("batch_readahead", nbatches, 1)
        return self

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """A hint of pylance, of no effect here."""
        optional_integer("fragment_readahead", nfragments, 0)
        return self

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """A hint of pylance, of no effect here."""
        optional_integer("io_buffer_size", io_buffer_size, 0)
        return self

    def late_materialization(self, late_materialization: bool | list[str]) -> Self:
        """A hint of pylance, of no effect here: whether columns are read after the filter, or which of them.

        Raises:
            InvalidArgumentError: It is neither, or the table does not have a column.
        """
        named = late_materialization if isinstance(late_materialization, list | tuple) else []
        if not isinstance(late_materialization, bool | list | tuple) or not all(isinstance(it, str) for it in named):
            raise InvalidArgumentError(
                f"late_materialization must be a bool or a list of strings, found {late_materialization!r}"
            )
        for name in named:
            if name not in SYSTEM_COLUMNS:
                require_column(name, self.ds._table.described_schema)
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """A hint of pylance, of no effect here."""
        return self

    def prefilter(self, prefilter: bool) -> Self:
        """Of no effect here: it belongs to a search."""
        return self

    def fast_search(self, flag: bool) -> Self:
        """Of no effect here: it belongs to a search."""
        return self

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Of no effect here: it belongs to a search."""
        return self


def optional_integer(name: str, value: Any, least: int) -> int | None:
    """An integer option as an int, None if it is not given.

    Raises:
        TypeError: The value is not an integer.
        InvalidArgumentError: It is less than `least`.

    Example:
        >>> from esker.scanner.hints import optional_integer
        >>> optional_integer("limit", None, 0)
    """
    return None if value is None else integer(name, value, least=least)
