"""Rows of Arrow as Python's, maps as dicts, with every release of pyarrow that esker takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .nested import is_list_like

_HAS_MAPS = int(pa.__version__.partition(".")[0]) >= 20
"""Whether pyarrow makes dicts of maps by itself."""


def python_rows(rows: pa.RecordBatch | pa.Table | pa.Array) -> list[Any]:
    """The rows of a batch or a table as dicts, or the values of an array.

    Args:
        rows: They.

    Raises:
        KeyError: A map has a key twice.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow.python_rows import python_rows
        >>> python_rows(pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
        [{'m': {'a': 1}}]
    """
    if _HAS_MAPS:
        return list(rows.to_pylist(maps_as_pydicts="strict"))
    return with_dicts(rows)


def with_dicts(rows: pa.RecordBatch | pa.Table | pa.Array) -> list[Any]:
    """The same by releases of pyarrow that make lists of pairs of maps."""
    kind = rows.type if isinstance(rows, pa.Array) else pa.struct(list(rows.schema))
    return [_with_dicts(row, kind) for row in rows.to_pylist()]


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        found = {key: _with_dicts(item, kind.item_type) for key, item in value}
        if len(found) < len(value):
            raise KeyError(f"expected each key of a map once, found {[key for key, _ in value]}")
        return found
    return [_with_dicts(item, kind.value_type) for item in value] if is_list_like(kind) else value
