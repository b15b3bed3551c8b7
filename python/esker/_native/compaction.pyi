"""Compaction: the live rows of some fragments, in order, as new fragments."""

from collections.abc import Sequence
from typing import final

from .store import Store
from .table import Fragment, Manifest

__all__ = ["RewriteOutcome", "rewrite_fragments"]

@final
class RewriteOutcome:
    """New fragments that wait to be committed, and what it took to make them."""

    @property
    def fragments(self) -> list[Fragment]:
        """The new fragments, with id 0: together the live rows of the old ones, in order.

        In a table with stable row ids they have the ids of the rows and the versions that created and last changed them.
        """

    @property
    def files(self) -> list[str]:
        """The staged files, relative to the table's root: orphans if the fragments are not committed."""

    @property
    def num_rows(self) -> int:
        """Rows of the new fragments."""

    @property
    def bytes_written(self) -> int:
        """Bytes of the new data files."""

    @property
    def pages_copied(self) -> int:
        """Pages that were copied as they are."""

    @property
    def pages_encoded(self) -> int:
        """Pages that were encoded anew."""

    @property
    def bytes_copied(self) -> int:
        """Bytes of the copied pages."""

def rewrite_fragments(
    store: Store,
    manifest: Manifest,
    fragment_ids: Sequence[int],
    *,
    data_storage_version: str,
    max_rows_per_file: int,
    max_bytes_per_file: int,
    memory_limit: int,
    max_rows_per_group: int = 1024,
    target_bases: Sequence[int | None] = ...,
    copy_pages: bool = True,
    page_bytes: int | None = None,
    batch_rows: int | None = None,
    threads: int | None = None,
    ahead_bytes: int | None = None,
    copied_bytes: int | None = None,
) -> RewriteOutcome:
    """Writes the live rows of fragments, in order, to new files; nothing is visible yet.

    No rows make no file. On an error, and on Ctrl-C, no file stays behind.

    Args:
        store: Where the table lies.
        manifest: Its version.
        fragment_ids: The fragments, in the order of their rows.
        data_storage_version: The version of the new files, such as "2.2".
        max_rows_per_file: Rows after which a new file is started.
        max_bytes_per_file: Bytes after which a new file is started, by an estimate from the old files.
        memory_limit: Bytes that may be held: what is read ahead and what waits to be written.
        max_rows_per_group: Rows of a group of files of version 0.1.
        target_bases: The base paths that files go to in turn; None is the table's own root.
        copy_pages: Whether large pages of which all rows are alive are copied as they are.
        page_bytes: The size of a full page; pages of an eighth of it are large. By default 8 MiB, or what the memory allows.
        batch_rows: The most rows that are read at once.
        threads: Pages that are encoded at a time, and parts that are read ahead; by default as many as there are processors.
        ahead_bytes: Bytes of rows that are read ahead; by default as the memory allows.
        copied_bytes: Bytes of whole pages that are read ahead, to be copied; by default as the memory allows.

    Raises:
        InvalidArgumentError: A fragment that the version does not have, or one named twice.
        CorruptFileError: An old file that cannot be read.
        UnsupportedError: A type or a null that the file version cannot hold.
    """
