"""How columns are encoded that are copied: a dictionary that saved nothing in the old file is not tried again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..properties import ColumnProperties, WriterProperties

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_SAVES = 0.9
"""A dictionary saves something if values take less than this part of their plain size."""


def encodings_like(metadata: pq.FileMetaData, given: WriterProperties | None) -> WriterProperties:
    """The properties of a writer, without dictionaries for numbers that the first row group of a file has without.

    Args:
        metadata: The footer of a file that is copied.
        given: What the caller wants of Parquet: it comes first.

    Example:
        `encodings_like(pq.read_metadata(path), None).column_properties`
    """
    properties = given or WriterProperties()
    if properties.default_column_properties is not None or not metadata.num_row_groups:
        return properties
    group = metadata.row_group(0)
    plain = {}
    for index in range(group.num_columns):
        column = group.column(index)
        size = _WIDTHS.get(column.physical_type, 0) * column.num_values
        if size and column.total_uncompressed_size >= _SAVES * size:
            plain[column.path_in_schema] = ColumnProperties(dictionary_enabled=False)
    return replace(properties, column_properties={**plain, **(properties.column_properties or {})})
