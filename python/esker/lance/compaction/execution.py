"""Rewrites the fragments of one group: their live rows, in order, in new files. Nothing of it is visible yet."""

from __future__ import annotations

from collections.abc import Sequence

from ..._native import table as native
from ..._native.compaction import rewrite_fragments
from ...storage_version import version_of_numbers
from ..log import LanceLog
from ..version import TableVersion
from ..write.request import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_GROUP
from .options import CompactionOptionError, CompactionSettings
from .results import RewriteResult
from .sizes import data_bytes, live_rows, num_files


def rewrite_group(
    table: TableVersion, group: Sequence[native.Fragment], settings: CompactionSettings, log: LanceLog
) -> RewriteResult:
    """Writes the live rows of some fragments to new ones.

    Args:
        table: The version that has the fragments.
        group: The fragments, in the table's order.
        settings: The options of the compaction.
        log: The table's log, whose store the files go to.

    Raises:
        CompactionOptionError: The mode is "force_binary_copy", and pages cannot be copied.

    Example:
        `rewrite_group(table, table.fragments[:2], settings, table.writable_log(durable=True))`
    """
    version = settings.data_storage_version or table.manifest.data_storage_version
    if settings.compaction_mode == "force_binary_copy":
        _check_copyable(group, version)
    outcome = rewrite_fragments(
        log.store,
        table.manifest,
        [fragment.id for fragment in group],
        data_storage_version=version,
        max_rows_per_file=rows_per_file(table, group, settings),
        # How many rows a file gets says how large it is; this is the most that an object store takes.
        max_bytes_per_file=DEFAULT_MAX_BYTES_PER_FILE,
        memory_limit=settings.memory_limit,
        max_rows_per_group=settings.max_rows_per_group or DEFAULT_MAX_ROWS_PER_GROUP,
        copy_pages=settings.compaction_mode != "reencode",
        batch_rows=settings.batch_size or None,
        threads=settings.num_threads or None,
        ahead_bytes=settings.io_buffer_size or None,
        copied_bytes=settings.binary_copy_read_batch_bytes or None,
    )
    return RewriteResult(table.number, tuple(group), tuple(outcome.fragments), frozenset(outcome.files))


def _check_copyable(group: Sequence[native.Fragment], version: str) -> None:
    """Checks what pylance asks for: no deleted rows, and files of the version that is to be written.

    Raises:
        CompactionOptionError: They are others.
    """
    advice = 'compact with compaction_mode="try_binary_copy"'
    for file in (file for fragment in group for file in fragment.files):
        found = version_of_numbers(file.file_major_version, file.file_minor_version)
        if found != version:
            raise CompactionOptionError(
                f"binary copy target is {version}, but data file {file.path!r} uses {found}; {advice}",
                file_version=found,
                path=file.path,
            )
    if version == "0.1":
        raise CompactionOptionError(f"binary copy is not supported for files of version 0.1; {advice}")
    for fragment in group:
        if fragment.deletion_file is not None:
            raise CompactionOptionError(
                f"binary copy is not supported for fragment {fragment.id}, which has deleted rows; {advice}"
            )


def rows_per_file(table: TableVersion, group: Sequence[native.Fragment], settings: CompactionSettings) -> int:
    """How many rows each new file gets, so that all have about the same number."""
    rows = sum(live_rows(table, fragment) for fragment in group)
    sizes = [data_bytes(fragment) for fragment in group]
    nbytes = None if None in sizes else sum(size or 0 for size in sizes)
    return max(1, -(-rows // num_files(rows, nbytes, settings)))
