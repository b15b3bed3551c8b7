"""Rows to delete from a Lance table."""

from typing import final

from .scan import ArrowArrayExportable
from .store import Store
from .table import Fragment, Manifest

__all__ = ["RowsToDelete"]

@final
class RowsToDelete:
    """Rows of one version to delete, collected by address in roaring bitmaps."""

    def __new__(cls) -> RowsToDelete: ...
    def add(self, addresses: ArrowArrayExportable) -> int:
        """Adds the rows at these addresses (`_rowaddr` of a scan: uint64, no nulls) and returns how many of them were not
        among its rows yet."""

    def stage(self, store: Store, manifest: Manifest) -> tuple[list[Fragment], list[int], int]:
        """Writes the deletion files that take these rows from a version, each with the rows that the version deleted before.

        Returns the fragments with their new deletion files, the ids of fragments that lost all rows, and how many rows
        were not deleted before. Raises `InvalidArgumentError` for addresses of another version's rows.
        """

    def encode_offsets(self, fragment_id: int) -> bytes:
        """The offsets of its rows of one fragment, as a portable roaring bitmap."""

    def __len__(self) -> int: ...
