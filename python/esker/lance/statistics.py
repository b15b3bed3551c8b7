"""Counts over a version, under pylance's names: rows that are deleted, small fragments, bytes of each field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypedDict

from .._native import table as native
from .._native.file import FileReader
from .._native.schema import Field
from ..store.stores import is_behind_network
from .version import TableVersion


class DatasetStats(TypedDict):
    """Counts of rows and fragments, as `LanceStats.dataset_stats` returns them."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


@dataclass
class FieldStatistics:
    """What one field takes.

    Attributes:
        id: The field's id.
        bytes_on_disk: Bytes of its pages in all data files, as they are stored; 0 in files of version 0.1, as in
            pylance, and for pages whose one value is in the file's metadata.
    """

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """What the fields of a version take, in the order of the schema, each before its children."""

    fields: list[FieldStatistics]


def dataset_stats(table: TableVersion, max_rows_per_group: int) -> DatasetStats:
    """Counts from the manifest. Nothing is read."""
    fragments = table.fragments
    return {
        "num_deleted_rows": sum(fragment.num_deletions for fragment in fragments),
        "num_fragments": len(fragments),
        "num_small_files": sum(fragment.physical_rows < max_rows_per_group for fragment in fragments),
    }


def data_stats(table: TableVersion) -> DataStatistics:
    """Bytes of each field. Reads the metadata of all data files.

    Raises:
        NotFoundError: A file is missing.
        CorruptFileError: A file is damaged.
    """
    files = [file for fragment in table.fragments for file in fragment.files if file.file_major_version >= 2]

    def held(file: native.DataFile) -> Counter[int]:
        columns = FileReader(table.store, file.location).layout().columns
        sizes = {column.index: column.num_bytes for column in columns}
        pairs = zip(file.fields, file.column_indices, strict=True)
        return Counter({field: sizes.get(column, 0) for field, column in pairs if field >= 0 and column >= 0})

    total: Counter[int] = Counter()
    with ThreadPoolExecutor(16 if is_behind_network(table.log.uri) else 1) as threads:
        for found in threads.map(held, files):
            total.update(found)
    return DataStatistics([FieldStatistics(id_, total[id_]) for id_ in _ids(table.manifest.schema.fields)])


def _ids(fields: list[Field]) -> Iterator[int]:
    for field in fields:
        yield field.id
        yield from _ids(field.children)
