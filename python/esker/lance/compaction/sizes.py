"""How large fragments are, and into how many files their rows go."""

from __future__ import annotations

from ..._native import table as native
from ..._native.scan import count_rows
from ..version import TableVersion
from ..write.request import DEFAULT_MAX_BYTES_PER_FILE
from .options import CompactionSettings

FULL = 0.5
"""The share of `max_bytes_per_file` from which on a file counts as full."""

TOO_LARGE = 1.5
"""How many times `max_bytes_per_file` a file must have to be split."""

LEAST_ROWS = 1024
"""Rows that a file has at least, however small `max_bytes_per_file` is; `batch_size` where that is given."""


def live_rows(table: TableVersion, fragment: native.Fragment) -> int:
    """The live rows of a fragment."""
    known = fragment.num_rows
    # The manifests of old writers have no counts: read the files.
    return known if known is not None else count_rows(table.store, table.manifest, fragment_ids=[fragment.id])


def data_bytes(fragment: native.Fragment) -> int | None:
    """The bytes of a fragment's data files; None where their writer did not say."""
    sizes = [file.file_size_bytes for file in fragment.files]
    return None if None in sizes else sum(size or 0 for size in sizes)


def is_full(rows: int, nbytes: int | None, settings: CompactionSettings) -> bool:
    """Whether rows fill a file of `max_bytes_per_file`, and cannot be made into several of that size.

    Fewer rows than a file has at least fill none: the files of few rows are joined however many bytes they have.
    """
    most = _most_bytes(settings)
    if nbytes is None or nbytes < FULL * most or rows < _least_rows(settings):
        return False
    return not is_too_large(rows, nbytes, settings)


def is_too_large(rows: int, nbytes: int | None, settings: CompactionSettings) -> bool:
    """Whether rows are to be split over several files of `max_bytes_per_file`."""
    return nbytes is not None and nbytes > TOO_LARGE * _most_bytes(settings) and rows >= 2 * _least_rows(settings)


def num_files(rows: int, nbytes: int | None, settings: CompactionSettings) -> int:
    """Into how many files of the same number of rows some rows go.

    Each has at least `target_rows_per_fragment` rows, unless that makes it larger than `max_bytes_per_file`.

    Args:
        rows: The live rows.
        nbytes: What their files have now, None if that is not known.
        settings: The options of the compaction.

    Example:
        >>> from esker.lance.compaction.options import CompactionSettings
        >>> from esker.lance.compaction.sizes import num_files
        >>> num_files(250, 250_000, CompactionSettings(target_rows_per_fragment=100))
        2
    """
    by_rows = rows // max(settings.target_rows_per_fragment, 1)
    by_bytes = 0 if nbytes is None else -(-nbytes // _most_bytes(settings))
    return max(1, by_rows, min(by_bytes, rows // _least_rows(settings)))


def _most_bytes(settings: CompactionSettings) -> int:
    return settings.max_bytes_per_file or DEFAULT_MAX_BYTES_PER_FILE


def _least_rows(settings: CompactionSettings) -> int:
    return max(1, settings.batch_size or LEAST_ROWS)
