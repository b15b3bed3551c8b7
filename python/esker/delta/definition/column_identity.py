"""What makes a column of a mapped table the same one under another schema: its id and its name in data files.

A column that is new to a table never has them from elsewhere: from a field of another table, or from a column that was
dropped, whose values lie in old files under them.

Spec: "Column Mapping", "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

from ..schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from .physical_names import FIELD_ID, PHYSICAL_NAME
from .schema_merge import is_void, wider_type


def identified(schema: Schema, known: Schema | None) -> Schema:
    """The columns with the ids and physical names that others of the same paths have, and with none of their own.

    Args:
        schema: The columns.
        known: Those whose ids and names are kept, where a path has the same type, or one that holds all its values; of
            structs, lists and maps, what lies in them may differ. None for no ids and names at all.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.column_identity import identified
        >>> table = Schema([Field("a", "integer", metadata={"delta.columnMapping.id": 7})])
        >>> mine = Field("a", "long", metadata={"delta.columnMapping.id": 1})
        >>> [field.metadata for field in identified(Schema([mine, Field("b", "long")]), table).fields]
        [{'delta.columnMapping.id': 7}, {}]
    """
    return Schema(_fields(schema.fields, [] if known is None else known.fields))


def _fields(fields: list[Field], known: list[Field]) -> list[Field]:
    there = {field.name.lower(): field for field in known}
    return [_field(field, there.get(field.name.lower())) for field in fields]


def _field(field: Field, known: Field | None) -> Field:
    metadata = {key: value for key, value in field.metadata.items() if key not in (FIELD_ID, PHYSICAL_NAME)}
    if known is not None and not _holds(field.type, known.type):
        known = None
    if known is not None:
        metadata |= {key: known.metadata[key] for key in (FIELD_ID, PHYSICAL_NAME) if key in known.metadata}
    return Field(field.name, _type(field.type, None if known is None else known.type), field.nullable, metadata)


def _type(kind: DataType, known: DataType | None) -> DataType:
    if isinstance(kind, StructType):
        return StructType(_fields(kind.fields, known.fields if isinstance(known, StructType) else []))
    if isinstance(kind, ArrayType):
        below = known.element_type if isinstance(known, ArrayType) else None
        return ArrayType(_type(kind.element_type, below), kind.contains_null)
    if isinstance(kind, MapType):
        keys = known.key_type if isinstance(known, MapType) else None
        values = known.value_type if isinstance(known, MapType) else None
        return MapType(_type(kind.key_type, keys), _type(kind.value_type, values), kind.value_contains_null)
    return kind


def _holds(kind: DataType, known: DataType) -> bool:
    """Whether files with values of the known type can be read as the other one."""
    if isinstance(kind, PrimitiveType) and isinstance(known, PrimitiveType):
        return kind == known or is_void(known) or wider_type(known, kind) == kind
    return type(kind) is type(known)
