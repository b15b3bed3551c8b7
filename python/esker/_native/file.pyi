"""One data file: reader, writer and layout."""

from typing import final

from .scan import ArrowArrayExportable, BatchStream
from .schema import Schema
from .store import Store

__all__ = [
    "Alternative",
    "ColumnLayout",
    "FileLayout",
    "FileReader",
    "FileWriter",
    "PageLayout",
    "inspect",
    "plain_bytes",
    "why",
]

@final
class Alternative:
    """One way to write a page."""

    @property
    def name(self) -> str:
        """What it is called, for example `bit packed`."""

    @property
    def num_bytes(self) -> int:
        """Bytes of the values, counted or estimated; levels come on top of each."""

    @property
    def nanoseconds(self) -> int:
        """About how long it takes to decode them on one core."""

    @property
    def chosen(self) -> bool:
        """It is what would be written."""

    @property
    def reason(self) -> str:
        """Why it would be or not."""

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
    def buffers(self) -> list[tuple[int, int]]:
        """Position and size in bytes of each buffer that belongs to the column as a whole."""

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

    @property
    def data_bytes(self) -> int:
        """Bytes of pages, payloads and what aligns them."""

    @property
    def column_metadata_bytes(self) -> int:
        """Bytes of the metadata of all columns and their table."""

    @property
    def global_buffer_bytes(self) -> int:
        """Bytes of all global buffers."""

@final
class FileReader:
    """The open data file at `path` of a store.

    Raises:
        NotFoundError: No such file.
        CorruptFileError: No Lance file, or a damaged one.
    """

    def __new__(cls, store: Store, path: str) -> FileReader: ...
    @property
    def version(self) -> str:
        """The version of the file format: "2.0"."""

    @property
    def num_rows(self) -> int:
        """Rows in the file."""

    @property
    def schema(self) -> Schema:
        """The schema that the file holds."""

    def layout(self) -> FileLayout:
        """The layout of the file. Nothing but its metadata is read."""

    def read_global_buffer(self, index: int) -> bytes:
        """The bytes of a global buffer; 0 is the file's descriptor."""

    def read_range(
        self, start: int, num_rows: int, *, columns: list[str] | None, batch_size: int, batch_readahead: int
    ) -> BatchStream:
        """Neighbouring rows of the columns and dotted paths that `columns` names, None for all."""

    def take(
        self, rows: ArrowArrayExportable, *, columns: list[str] | None, batch_size: int, batch_readahead: int
    ) -> BatchStream:
        """Rows by their numbers: a uint64 array without nulls that rises strictly."""

@final
class FileWriter:
    """A data file that is being written. Nothing is visible at `path` before `finish`; forgotten, it leaves nothing.

    Args:
        store: Where the file goes.
        path: Its path in the store.
        schema: The columns.
        version: The file version, such as "2.0".
        compression: How small the file is to be: "fast", "balanced" or "small".
        page_bytes: Bytes of values in a page; None for the default.

    Raises:
        UnsupportedError: A type that the version cannot hold.
    """

    def __new__(
        cls, store: Store, path: str, schema: Schema, *, version: str, compression: str, page_bytes: int | None
    ) -> FileWriter: ...
    def write_batch(self, batch: ArrowArrayExportable) -> None:
        """Takes rows in; the batch's columns are the schema's, in order."""

    def add_global_buffer(self, data: bytes) -> int:
        """Adds bytes that belong to no column and returns their number, from 1."""

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Sets a key of the schema's metadata."""

    def finish(self) -> tuple[int, int]:
        """Makes the file visible and returns its rows and its size in bytes."""

    def abort(self) -> None:
        """Abandons the file and leaves nothing behind."""

def inspect(store: Store, path: str) -> FileLayout:
    """The layout of the data file at `path`. Only its metadata is read.

    Raises:
        NotFoundError: No such file.
        CorruptFileError: No Lance file, or a damaged one.
    """

def plain_bytes(store: Store, path: str, column: int) -> int | None:
    """Bytes that the values of a column take without any encoding: what its bytes in the file are compared with.

    The column is read, a page at a time. None for the header of a struct, which holds no values.
    """

def why(store: Store, path: str, column: int, page: int, compression: str) -> list[Alternative]:
    """The alternative encodings of one page of a column with their prices, computed from its values: the page is read.
    `compression` is what is chosen for, "fast", "balanced" or "small".

    Raises:
        InvalidArgumentError: No such column or page.
    """
