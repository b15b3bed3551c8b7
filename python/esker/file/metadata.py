"""The metadata of a data file: its sections, columns, pages and buffers (docs/format.md)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from .._native.file import FileReader

_FOOTER_NUMBERS = {"0.1": (0, 2), "2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}


@dataclass(frozen=True)
class LanceBufferDescriptor:
    """The position of a buffer in its file.

    Args:
        position: Its first byte.
        size: Its size in bytes.
    """

    position: int
    size: int


@dataclass(frozen=True)
class LancePageMetadata:
    """One page of a column.

    Args:
        buffers: Its buffers.
        encoding: How its values are encoded, as text for people to read.
    """

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True)
class LanceColumnMetadata:
    """One column of a file.

    Args:
        column_buffers: The buffers that belong to the column as a whole.
        pages: Its pages, in order.
    """

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True)
class LanceFileMetadata:
    """One file.

    Args:
        schema: Its columns.
        major_version: The first number of its footer.
        minor_version: The second number of its footer: a file of version 2.0 has 0 and 3, one of 0.1 has 0 and 2.
        num_rows: The number of its rows.
        num_data_bytes: Bytes of pages, including padding.
        num_column_metadata_bytes: Bytes of the metadata of all columns.
        num_global_buffer_bytes: Bytes of the global buffers.
        global_buffers: The global buffers; 0 is the file's descriptor.
        columns: The columns. Version 2.0 has one for each list and struct too, later versions for leaves only.
    """

    schema: pa.Schema
    major_version: int
    minor_version: int
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]


@dataclass(frozen=True)
class LanceColumnStatistics:
    """The size of one column.

    Args:
        num_pages: The number of its pages.
        size_bytes: Bytes of its pages in the file.
    """

    num_pages: int
    size_bytes: int


@dataclass(frozen=True)
class LanceFileStatistics:
    """The size of each column of a file.

    Args:
        columns: One entry per column.
    """

    columns: list[LanceColumnStatistics]


def metadata_of(reader: FileReader) -> LanceFileMetadata:
    """The metadata of an open file. No page is read.

    Example:
        `metadata_of(reader).num_rows`
    """
    layout = reader.layout()
    major, minor = _FOOTER_NUMBERS[layout.version]
    return LanceFileMetadata(
        schema=pa.schema(reader.schema),
        major_version=major,
        minor_version=minor,
        num_rows=layout.num_rows,
        num_data_bytes=layout.data_bytes,
        num_column_metadata_bytes=layout.column_metadata_bytes,
        num_global_buffer_bytes=layout.global_buffer_bytes,
        global_buffers=_described(layout.global_buffers),
        columns=[
            LanceColumnMetadata(
                _described(column.buffers),
                [LancePageMetadata(_described(page.buffers), page.encoding) for page in column.pages],
            )
            for column in layout.columns
        ],
    )


def statistics_of(reader: FileReader) -> LanceFileStatistics:
    """The size of each column of an open file. No page is read.

    Example:
        `statistics_of(reader).columns[0].size_bytes`
    """
    columns = reader.layout().columns
    return LanceFileStatistics([LanceColumnStatistics(len(c.pages), c.num_bytes) for c in columns])


def _described(buffers: list[tuple[int, int]]) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(position, size) for position, size in buffers]
