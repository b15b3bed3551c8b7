"""System columns: columns that every table has and no file holds."""

from __future__ import annotations

import pyarrow as pa

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_OFFSET = "_rowoffset"
CREATED_AT_VERSION = "_row_created_at_version"
LAST_UPDATED_AT_VERSION = "_row_last_updated_at_version"

SYSTEM_COLUMNS = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT_VERSION, LAST_UPDATED_AT_VERSION)
"""Row id, row address, row number among the live rows (as in `take`), and the versions that inserted and last updated
the row."""

_FIELDS = tuple(pa.field(name, pa.uint64()) for name in SYSTEM_COLUMNS)


def with_system_columns(schema: pa.Schema) -> pa.Schema:
    """The schema for filters: the table's columns, and the system columns whose names they do not use.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.system_columns import with_system_columns
        >>> with_system_columns(pa.schema([("a", pa.int8())])).names[:4]
        ['a', '_rowid', '_rowaddr', '_rowoffset']
    """
    for field in _FIELDS:
        if schema.get_field_index(field.name) < 0:
            schema = schema.append(field)
    return schema
