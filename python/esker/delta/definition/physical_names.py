"""Physical names and field ids of columns in data files (column mapping), as a writer needs them.

Spec: "Column Mapping", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import pyarrow as pa

from ..schema import ArrayType, DataType, Field, MapType, Schema, StructType
from .statistics_columns import Path

PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"


class PhysicalNames:
    """How columns are called within data files, and their field ids.

    Args:
        schema: The table's columns.
        mapped: Whether column mapping is on.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.physical_names import PhysicalNames
        >>> PhysicalNames(Schema([Field("x", "long")]), mapped=False).of("x")
        'x'
    """

    def __init__(self, schema: Schema, *, mapped: bool) -> None:
        self.mapped = mapped
        self._schema = schema
        self.by_path: dict[Path, str] = {}
        if mapped:
            self._collect(schema.fields, ())

    def _collect(self, fields: list[Field], above: Path) -> None:
        for field in fields:
            path = (*above, field.name)
            self.by_path[path] = str(field.metadata.get(PHYSICAL_NAME, field.name))
            if isinstance(field.type, StructType):
                self._collect(field.type.fields, path)

    def of(self, column: str) -> str:
        """The physical name of a column."""
        return self.by_path.get((column,), column)

    def file_schema(self, partition_by: list[str]) -> pa.Schema:
        """The schema of data files: without partition columns."""
        return pa.schema([_physical(f, self.mapped) for f in self._schema.fields if f.name not in partition_by])


def _physical(field: Field, mapped: bool) -> pa.Field:
    kind = _physical_type(field.type, mapped)
    if not mapped or FIELD_ID not in field.metadata:
        return pa.field(field.name, kind, field.nullable)
    metadata = {b"PARQUET:field_id": str(field.metadata[FIELD_ID]).encode()}
    return pa.field(str(field.metadata[PHYSICAL_NAME]), kind, field.nullable, metadata)


def _physical_type(kind: DataType, mapped: bool) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct([_physical(inner, mapped) for inner in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _physical_type(kind.element_type, mapped), kind.contains_null))
    if isinstance(kind, MapType):
        value = pa.field("value", _physical_type(kind.value_type, mapped), kind.value_contains_null)
        return pa.map_(pa.field("key", _physical_type(kind.key_type, mapped), False), value)
    return kind.to_arrow()
