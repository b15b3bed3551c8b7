"""`LanceSchema`: the schema of a Lance table, with an id for every field; and schemas as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ._native.schema import Field, Schema
from .declared_keys import CLUSTERING_KEY, PRIMARY_KEY, check_primary_key, is_in_primary_key, place_in
from .exceptions import InvalidArgumentError

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]


class LanceField:
    """A column or a field within one, with its field id.

    Example:
        >>> import pyarrow as pa
        >>> from esker.schema import LanceSchema
        >>> LanceSchema.from_pyarrow(pa.schema([("x", pa.int32())])).field("x").id()
        0
    """

    def __init__(self, field: Field) -> None:
        self._field = field

    def name(self) -> str:
        """The name within its parent."""
        return self._field.name

    def id(self) -> int:
        """The field id, unique within the table."""
        return self._field.id

    def logical_type(self) -> str:
        """The format's name of the type, such as "int64" or "fixed_size_list:float:768"."""
        return self._field.logical_type

    def nullable(self) -> bool:
        """Whether nulls are allowed."""
        return self._field.nullable

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the Arrow field."""
        return {key: value.decode("utf-8", "replace") for key, value in self._field.metadata.items()}

    def is_unenforced_primary_key(self) -> bool:
        """Whether it is part of the primary key that the schema declares, and nobody enforces."""
        return self._field.unenforced_primary_key or is_in_primary_key(self.metadata)

    def unenforced_primary_key_position(self) -> int | None:
        """Its place in the primary key, from 1 on; None if it is not part of it, or its place is not told."""
        return place_in(PRIMARY_KEY, self.metadata) or None

    def is_unenforced_clustering_key(self) -> bool:
        """Whether it is part of the clustering key that the schema declares."""
        return place_in(CLUSTERING_KEY, self.metadata) is not None

    def unenforced_clustering_key_position(self) -> int | None:
        """Its place in the clustering key, from 1 on; None if it is not part of it, or its place is not told."""
        return place_in(CLUSTERING_KEY, self.metadata) or None

    def children(self) -> list[LanceField]:
        """The fields within, in order."""
        return [LanceField(child) for child in self._field.children]

    def __repr__(self) -> str:
        return f"LanceField(id={self.id()}, name={self.name()!r}, type={self.logical_type()!r})"


class LanceSchema:
    """The columns of a table with their field ids.

    Example:
        >>> import pyarrow as pa
        >>> from esker.schema import LanceSchema
        >>> LanceSchema.from_pyarrow(pa.schema([("x", pa.int32())])).to_pyarrow()
        x: int32
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """The columns of an Arrow schema with fresh ids, depth first from 0.

        Raises:
            InvalidArgumentError: A column of the declared primary key may hold nulls, or is no plain value.
        """
        check_primary_key(schema)
        return LanceSchema(Schema.from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """The Arrow schema, without the ids."""
        return pa.schema(self._schema)

    def fields(self) -> list[LanceField]:
        """The columns, in order."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """The field at a dotted path, None if there is none."""
        found = self._schema.find(name)
        return None if found is None else LanceField(found)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """The field at a dotted path, whatever its case, None if there is none."""
        exact = self.field(name)
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)]
        return exact if exact is not None else _find(self.fields(), parts)

    def unenforced_primary_key(self) -> list[LanceField]:
        """The fields of the declared primary key, in its order; those whose place is not told are the last."""
        key = [field for field in _all_of(self.fields()) if field.is_unenforced_primary_key()]
        return sorted(key, key=lambda field: field.unenforced_primary_key_position() or _LAST)

    def unenforced_clustering_key(self) -> list[LanceField]:
        """The fields of the declared clustering key, in its order."""
        key = [field for field in _all_of(self.fields()) if field.is_unenforced_clustering_key()]
        return sorted(key, key=lambda field: field.unenforced_clustering_key_position() or _LAST)

    def __iter__(self) -> Iterator[LanceField]:
        return iter(self.fields())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LanceSchema) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self._schema)

    def __repr__(self) -> str:
        return f"Schema {{ fields: {self.fields()!r} }}"

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceSchema, (self._schema,)


_LAST = 2**32
"""A place behind all that a field can have in a key."""
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.]+)")
"""A name along a path, in backticks or not."""


def _all_of(fields: list[LanceField]) -> Iterator[LanceField]:
    """Fields and those within them, depth first."""
    for field in fields:
        yield field
        yield from _all_of(field.children())


def _find(fields: list[LanceField], path: list[str]) -> LanceField | None:
    """The field at a path, whatever its case."""
    head = path[0].casefold() if path else ""
    for field in fields:
        if field.name().casefold() == head:
            return field if len(path) == 1 else _find(field.children(), path[1:])
    return None


# The names of types in JSON are those of the Lance format, as pylance spells them.
_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "duration:ms": pa.duration("ms"),
    "duration:us": pa.duration("us"),
    "duration:ns": pa.duration("ns"),
}
# What earlier releases of esker wrote in their place; they are read.
_EARLIER = {
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "utf8": "string",
    "large_utf8": "large_string",
    "date32": "date32:day",
    "date64": "date64:ms",
}


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """A schema as plain JSON values.

    Args:
        schema: The schema.

    Raises:
        InvalidArgumentError: A type has no name in JSON.

    Example:
        >>> import pyarrow as pa
        >>> from esker.schema import schema_to_json
        >>> schema_to_json(pa.schema([("x", pa.int32())]))
        {'fields': [{'name': 'x', 'type': {'type': 'int32'}, 'nullable': True}]}
    """
    result: dict[str, Any] = {"fields": [_field_to_json(field) for field in schema]}
    if schema.metadata:
        result["metadata"] = _decoded(schema.metadata)
    return result


def json_to_schema(schema_json: dict[str, Any]) -> pa.Schema:
    """The schema of JSON values that `schema_to_json` returned.

    Args:
        schema_json: The JSON values.

    Raises:
        InvalidArgumentError: They do not describe a schema.

    Example:
        >>> from esker.schema import json_to_schema
        >>> json_to_schema({"fields": [{"name": "x", "type": {"type": "int32"}, "nullable": True}]})
        x: int32
    """
    try:
        fields = [_field_from_json(field) for field in schema_json["fields"]]
    except (KeyError, TypeError) as error:
        raise InvalidArgumentError(f"expected a schema as schema_to_json writes it, found no {error}") from error
    return pa.schema(fields, metadata=schema_json.get("metadata"))


def _decoded(metadata: dict[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in metadata.items()}


def _field_to_json(field: pa.Field) -> dict[str, Any]:
    result: dict[str, Any] = {"name": field.name, "type": _type_to_json(field.type), "nullable": field.nullable}
    if field.metadata:
        result["metadata"] = _decoded(field.metadata)
    return result


def _type_to_json(type_: pa.DataType) -> dict[str, Any]:
    for name, simple in _SIMPLE.items():
        if type_ == simple:
            return {"type": name}
    if pa.types.is_timestamp(type_):
        return {"type": f"timestamp:{type_.unit}:{type_.tz or '-'}"}
    if pa.types.is_decimal(type_):
        return {"type": f"decimal:{type_.bit_width}:{type_.precision}:{type_.scale}"}
    if pa.types.is_fixed_size_binary(type_):
        return {"type": "fixed_size_binary", "length": type_.byte_width}
    if pa.types.is_fixed_size_list(type_):
        return {"type": "fixed_size_list", "fields": [_field_to_json(type_.value_field)], "length": type_.list_size}
    if pa.types.is_list(type_):
        return {"type": "list", "fields": [_field_to_json(type_.value_field)]}
    if pa.types.is_large_list(type_):
        return {"type": "large_list", "fields": [_field_to_json(type_.value_field)]}
    if pa.types.is_struct(type_):
        return {"type": "struct", "fields": [_field_to_json(type_.field(i)) for i in range(type_.num_fields)]}
    if pa.types.is_dictionary(type_):
        index, value = (_type_to_json(part)["type"] for part in (type_.index_type, type_.value_type))
        return {"type": f"dict:{value}:{index}:{str(bool(type_.ordered)).lower()}"}
    raise InvalidArgumentError(f"type {type_} has no spelling in JSON", type=str(type_))


def _field_from_json(field: dict[str, Any]) -> pa.Field:
    return pa.field(field["name"], _type_from_json(field["type"]), field["nullable"], metadata=field.get("metadata"))


def _type_from_json(spec: dict[str, Any]) -> pa.DataType:
    name, *rest = str(spec["type"]).split(":", 2)
    children = [_field_from_json(child) for child in spec.get("fields", ())]
    simple = _SIMPLE.get(_EARLIER.get(spec["type"], spec["type"]))
    if simple is not None:
        return simple
    if name == "dict":
        value, index, ordered = str(spec["type"]).removeprefix("dict:").rsplit(":", 2)
        return pa.dictionary(_type_from_json({"type": index}), _type_from_json({"type": value}), ordered == "true")
    if name == "timestamp":
        return pa.timestamp(rest[0], None if rest[1] == "-" else rest[1])
    if name == "decimal":
        precision, scale = (int(part) for part in rest[1].split(":"))
        return (pa.decimal256 if rest[0] == "256" else pa.decimal128)(precision, scale)
    if name == "fixed_size_binary":
        return pa.binary(spec["length"])
    if name == "fixed_size_list":
        return pa.list_(children[0], spec["length"])
    if name == "list":
        return pa.list_(children[0])
    if name == "large_list":
        return pa.large_list(children[0])
    if name == "struct":
        return pa.struct(children)
    if name == "dictionary":
        return pa.dictionary(children[0].type, children[1].type)
    raise InvalidArgumentError(f"expected the name of a type, found {spec['type']!r}", type=spec["type"])
