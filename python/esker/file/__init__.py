"""Data files without a table: read and written one at a time, with the names and arguments of pylance's `lance.file`.

A table keeps its rows in such files and adds versions, deletes and schema evolution: most programs want one, see
`esker.dataset`.

>>> import pyarrow as pa
>>> from esker.file import LanceFileReader, LanceFileWriter
>>> with LanceFileWriter("memory://doc-file/numbers.lance") as writer:
...     writer.write_batch(pa.table({"n": [1, 2, 3]}))
>>> LanceFileReader("memory://doc-file/numbers.lance").take_rows([0, 2]).to_table()["n"].to_pylist()
[1, 3]
"""

from .metadata import (
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceColumnStatistics,
    LanceFileMetadata,
    LanceFileStatistics,
    LancePageMetadata,
)
from .reader import LanceFileReader, ReaderResults
from .session import LanceFileSession, ListResult
from .writer import LanceFileWriter, stable_version

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceColumnStatistics",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "ReaderResults",
    "stable_version",
]
