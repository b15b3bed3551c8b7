"""Blobs: their locations and their bytes."""

from collections.abc import Sequence
from typing import Any, final

from .store import Store
from .table import Manifest

__all__ = ["LocatedBlob", "locate_blobs", "read_blob_ranges", "read_blobs"]

@final
class LocatedBlob:
    """One blob that is not null: its location, and ranges of its bytes on request."""

    @property
    def address(self) -> int:
        """The address of its row."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each (offset, length), in the order asked for. Raises `InvalidArgumentError` beyond its end."""

def locate_blobs(
    store: Store, manifest: Manifest, column: str, rows: Any, *, selector: str
) -> list[LocatedBlob | None]:
    """The blobs of some rows, in the order asked for; None for a null. Only their descriptions are read.

    Args:
        store: Where the table lies.
        manifest: Its version.
        column: A blob column; one within a struct by its dotted path.
        rows: Numbers, a uint64 array.
        selector: What the numbers are: "ids", "addresses" or "indices".

    Raises:
        InvalidArgumentError: Not a blob column, a row that is deleted or does not exist, an unknown selector.
    """

def read_blobs(
    store: Store, manifest: Manifest, column: str, rows: Any, *, selector: str
) -> list[tuple[int, bytes | None]]:
    """The address of each row and the bytes of its blob. Arguments are those of `locate_blobs`."""

def read_blob_ranges(
    store: Store, manifest: Manifest, column: str, rows: Any, ranges: Sequence[tuple[int, int]], *, selector: str
) -> list[tuple[int, int, bytes | None]]:
    """For each row and its (offset, length): the request's number, the row's address, the bytes (None for a null)."""
