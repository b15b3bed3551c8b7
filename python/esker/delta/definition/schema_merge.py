"""Schema evolution: the columns of a table after rows with other columns were merged into it.

Columns that only the rows have are added. A column of the type `void`, of which nothing but nulls is there, becomes
what the rows have. Where the table has type widening on, a column becomes the wider type of the two, and its metadata
keep the narrower one, which older files have. Without it rows are cast to the table's types.

Spec: "Type Widening", "Change Metadata".
"""

from __future__ import annotations

from typing import Any

from ...exceptions import SchemaMismatchError
from ..schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType

TYPE_CHANGES = "delta.typeChanges"
_INTEGERS = ["byte", "short", "integer", "long"]


class SchemaMerge:
    """Merges columns of rows into those of a table.

    Args:
        widens: Whether columns may become wider types.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.schema_merge import SchemaMerge
        >>> merged = SchemaMerge(widens=True).schema(Schema([Field("a", "short")]), Schema([Field("a", "long")]))
        >>> merged.fields[0].type, merged.fields[0].metadata["delta.typeChanges"]
        (PrimitiveType("long"), [{'fromType': 'short', 'toType': 'long'}])
    """

    def __init__(self, *, widens: bool = False) -> None:
        self._widens = widens
        self.widened: list[str] = []
        """The columns that became wider, by their paths."""

    def schema(self, table: Schema, data: Schema) -> Schema:
        """The table's columns, and behind them those that only the data have; fields of structs alike.

        Raises:
            SchemaMismatchError: One name has a plain type here and a nested one there.
        """
        return Schema(self._fields(table.fields, data.fields, ""))

    def _fields(self, table: list[Field], data: list[Field], above: str) -> list[Field]:
        given = {field.name: field for field in data}
        merged = []
        for field in table:
            other = given.pop(field.name, None)
            changes: list[dict[str, Any]] = []
            path = f"{above}{field.name}"
            kind = field.type if other is None else self._type(field.type, other.type, path, "", changes)
            metadata = dict(field.metadata)
            if changes:
                metadata[TYPE_CHANGES] = [*metadata.get(TYPE_CHANGES, []), *changes]
                self.widened.append(path)
            merged.append(Field(field.name, kind, field.nullable, metadata))
        # Existing rows have no value for them.
        return [*merged, *(Field(field.name, field.type, True, field.metadata) for field in given.values())]

    def _type(self, table: DataType, data: DataType, path: str, inside: str, changes: list[dict[str, Any]]) -> DataType:
        if is_void(data):
            return table
        if is_void(table):
            # Nothing but nulls is there, which are nulls of any type.
            return data
        if isinstance(table, StructType) and isinstance(data, StructType):
            return StructType(self._fields(table.fields, data.fields, f"{path}."))
        if isinstance(table, ArrayType) and isinstance(data, ArrayType):
            element = self._type(table.element_type, data.element_type, path, _below(inside, "element"), changes)
            return ArrayType(element, table.contains_null)
        if isinstance(table, MapType) and isinstance(data, MapType):
            key = self._type(table.key_type, data.key_type, path, _below(inside, "key"), changes)
            value = self._type(table.value_type, data.value_type, path, _below(inside, "value"), changes)
            return MapType(key, value, table.value_contains_null)
        if not isinstance(table, PrimitiveType) or not isinstance(data, PrimitiveType):
            raise SchemaMismatchError(
                f"column {path!r}: expected {table!r}, found {data!r}",
                column=path,
                expected=str(table),
                found=str(data),
            )
        wider = wider_type(table, data) if self._widens else None
        if wider is None:
            return table
        change = {"fromType": table.type, "toType": wider.type}
        changes.append({**change, "fieldPath": inside} if inside else change)
        return wider


def keeping_types(table: Schema, data: Schema) -> Schema:
    """The data's columns, with the table's type for those of which the data have nothing but nulls.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.delta.definition.schema_merge import keeping_types
        >>> keeping_types(Schema([Field("a", "string")]), Schema([Field("a", "void"), Field("b", "long")]))
        Schema([Field(a, PrimitiveType("string"), nullable=True), Field(b, PrimitiveType("long"), nullable=True)])
    """
    types = {field.name: field.type for field in table.fields}
    kept = [types.get(field.name, field.type) if is_void(field.type) else field.type for field in data.fields]
    return Schema(
        [Field(field.name, kind, field.nullable, field.metadata) for field, kind in zip(data.fields, kept, strict=True)]
    )


def is_void(kind: DataType) -> bool:
    """Whether a type has no value but null.

    Example:
        >>> from esker.delta import PrimitiveType
        >>> from esker.delta.definition.schema_merge import is_void
        >>> is_void(PrimitiveType("void")), is_void(PrimitiveType("long"))
        (True, False)
    """
    return isinstance(kind, PrimitiveType) and kind.type == "void"


def _below(inside: str, part: str) -> str:
    return f"{inside}.{part}" if inside else part


def wider_type(table: PrimitiveType, data: PrimitiveType) -> PrimitiveType | None:
    """The type that a column becomes for rows of another type; None if it stays as it is.

    Integers become wider ones, `float` becomes `double`, decimals get more digits on both sides of the point.

    Example:
        >>> from esker.delta import PrimitiveType
        >>> from esker.delta.definition.schema_merge import wider_type
        >>> wider_type(PrimitiveType("decimal(5,2)"), PrimitiveType("decimal(6,4)"))
        PrimitiveType("decimal(7,4)")
    """
    if table.type in _INTEGERS and data.type in _INTEGERS:
        return data if _INTEGERS.index(data.type) > _INTEGERS.index(table.type) else None
    if (table.type, data.type) == ("float", "double"):
        return data
    if table.type.startswith("decimal") and data.type.startswith("decimal"):
        old, new = table.to_arrow(), data.to_arrow()
        scale = max(old.scale, new.scale)
        digits = max(old.precision - old.scale, new.precision - new.scale)
        if digits + scale > 38 or (digits + scale, scale) == (old.precision, old.scale):
            return None
        return PrimitiveType(f"decimal({digits + scale},{scale})")
    return None
