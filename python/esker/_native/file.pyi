"""One data file: what it holds where."""

from typing import final

from .store import Store

__all__ = ["ColumnLayout", "FileLayout", "PageLayout", "inspect", "plain_bytes"]

@final
class PageLayout:
    """One page of a column."""

    @property
    def first_value(self) -> int:
        """Values of the column before this page."""

    @property
    def num_values(self) -> int:
        """Values in this page."""

    @property
    def encoding(self) -> str:
        """How they are encoded, for example `nullable(flat(64))`."""

    @property
    def buffers(self) -> list[tuple[int, int]]:
        """Position and size in bytes of each buffer."""

@final
class ColumnLayout:
    """One column of a file."""

    @property
    def index(self) -> int:
        """Its number in the file."""

    @property
    def field(self) -> str:
        """The field that it holds, as a dotted path."""

    @property
    def logical_type(self) -> str:
        """The field's type as the format spells it."""

    @property
    def pages(self) -> list[PageLayout]:
        """The pages, in order."""

    @property
    def num_bytes(self) -> int:
        """Bytes in the file."""

@final
class FileLayout:
    """One file."""

    @property
    def path(self) -> str:
        """Path relative to the store's root."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def version(self) -> str:
        """The version of the file format: "2.0"."""

    @property
    def num_rows(self) -> int:
        """Rows in the file."""

    @property
    def columns(self) -> list[ColumnLayout]:
        """The columns, in order."""

    @property
    def global_buffers(self) -> list[tuple[int, int]]:
        """Position and size in bytes of each global buffer; 0 is the file's descriptor."""

def inspect(store: Store, path: str) -> FileLayout:
    """What the data file at `path` holds where. Only its metadata are read.

    Raises:
        NotFoundError: No such file.
        CorruptFileError: No Lance file, or a damaged one.
    """

def plain_bytes(store: Store, path: str, column: int) -> int | None:
    """Bytes that the values of a column take without any encoding: what its bytes in the file are compared with.

    The column is read, a page at a time. None for the header of a struct, which holds no values.
    """
