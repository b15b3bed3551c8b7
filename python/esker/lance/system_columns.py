"""Columns that every table has and no file holds."""

from __future__ import annotations

import pyarrow as pa

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_OFFSET = "_rowoffset"
CREATED_AT_VERSION = "_row_created_at_version"
LAST_UPDATED_AT_VERSION = "_row_last_updated_at_version"

SYSTEM_COLUMNS = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT_VERSION, LAST_UPDATED_AT_VERSION)
"""Columns that no file holds: a row's id, its address, its number among the live rows, which `take` goes by, and the
versions that first held it and last changed it."""


def with_system_columns(schema: pa.Schema) -> pa.Schema:
    """The schema that a filter sees: the table's columns, and the system columns that they do not hide.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.system_columns import with_system_columns
        >>> with_system_columns(pa.schema([("a", pa.int8())])).names[:4]
        ['a', '_rowid', '_rowaddr', '_rowoffset']
    """
    for name in SYSTEM_COLUMNS:
        if schema.get_field_index(name) < 0:
            schema = schema.append(pa.field(name, pa.uint64()))
    return schema
