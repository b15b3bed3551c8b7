"""The columns that a scan may name: few of a wide table, whose Arrow schema takes longer to make than many a scan."""

from __future__ import annotations

import pyarrow as pa

from ..version import TableVersion
from .names import Names
from .options import ScanOptions

_WIDE = 64


def named_columns(table: TableVersion, options: ScanOptions) -> tuple[pa.Schema, pa.Schema] | None:
    """The columns whose names occur in the columns and the filter of a scan: as its output has them, and as its filter
    has them. More than those that are meant may be among them, and one that is spelled otherwise is not.

    Returns:
        None if any column may be meant, or if there are few.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.lance.scan.named_columns import named_columns
        >>> from esker.lance.scan.options import ScanOptions
        >>> wide = pa.table({f"c{number}": [number] for number in range(100)})
        >>> table = esker.write_dataset(wide, "memory://doc-wide")._table
        >>> named_columns(table, ScanOptions(columns=["c7"], filter="C12 > 3"))[0].names
        ['c7', 'c12']
    """
    columns, filter = options.columns, options.filter
    if not isinstance(columns, list | dict) or not isinstance(filter, str | None):
        return None
    sources = list(columns.values()) if isinstance(columns, dict) else columns
    if "*" in sources or not all(isinstance(source, str) for source in sources):
        return None
    known = table.manifest.schema
    names = known.names
    if len(names) < _WIDE:
        return None
    schema = known.select(Names(names).named_in("\n".join([*sources, filter or ""])))
    described = pa.schema(schema.described())
    return pa.schema(schema) if options.blobs == "bytes" else described, described
