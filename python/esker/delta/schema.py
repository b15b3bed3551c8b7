"""The schema of a Delta table: fields and types under deltalake's names, to and from JSON and Arrow.

Spec: "Schema Serialization Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, cast

import pyarrow as pa

from ..arrow.nested import is_list_like
from ..exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError

_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


_UNREAD = {
    "variant": pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
    "geometry": pa.binary(),
    "geography": pa.binary(),
}
"""The Arrow types of columns whose values are not read."""

_OF_SPARK_ONLY = ("char(", "varchar(")
"""Types that Spark reads out of a log; deltalake opens no table that has one. So it is with `decimal` alone."""

_NOT_KEPT = ("PARQUET:", "ARROW:", "_PL_", "delta.columnMapping.", "delta.typeChanges")
"""Metadata of Arrow fields that say something of a file, not of a column."""
_NUMBERS = {
    "delta.identity.start",
    "delta.identity.step",
    "delta.identity.highWaterMark",
    "delta.identity.allowExplicitInsert",
}
"""Metadata that are numbers and booleans in the log, and texts in Arrow."""


class _Type:
    """The base of all types: to and from JSON and Arrow."""

    def _json(self) -> Any:
        raise NotImplementedError

    def to_arrow(self) -> pa.DataType:
        """The type in Arrow."""
        raise NotImplementedError

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def to_json(self) -> str:
        """The type as the log has it."""
        return json.dumps(self._json(), separators=(",", ":"))

    @classmethod
    def from_json(cls, type_json: str) -> Self:
        """A type out of what `to_json` gives.

        Raises:
            InvalidArgumentError: It is no type.
            InvalidTypeError: It is a type of another kind.
        """
        try:
            return cls._checked(_type(json.loads(type_json)))
        except (KeyError, AttributeError, UnsupportedError) as error:
            raise InvalidArgumentError(f"expected a type of the Delta protocol, found {type_json}") from error

    @classmethod
    def from_arrow(cls, data_type: Any) -> Self:
        """The type that an Arrow type is written as.

        Raises:
            InvalidTypeError: It is a type of another kind.
            UnsupportedError: The protocol has no such type.
        """
        return cls._checked(_of_arrow(_arrow_type(data_type), "type"))

    @classmethod
    def _checked(cls, found: DataType) -> Self:
        if not isinstance(found, cls):
            raise InvalidTypeError(f"expected {cls.__name__}, found {found!r}")
        return found


@dataclass(frozen=True)
class PrimitiveType(_Type):
    """A type without others inside: `string`, `long`, `decimal(10,2)`...

    Example:
        >>> from esker.delta import PrimitiveType
        >>> PrimitiveType("long").to_arrow()
        DataType(int64)
    """

    type: str

    def __post_init__(self) -> None:
        if not isinstance(self.type, str):
            raise InvalidTypeError(f"expected the name of a type, found {self.type!r}")
        if self.type.startswith("decimal("):
            object.__setattr__(self, "type", self.type.replace(" ", ""))
        try:
            self.to_arrow()
        except UnsupportedError as error:
            raise InvalidArgumentError(f"expected a type such as string, long or decimal(10,2): {error}") from None
        if self.type == "decimal" or self.type.startswith(_OF_SPARK_ONLY):
            raise InvalidArgumentError(
                f"expected a type that every reader of Delta tables knows, found {self.type!r}; "
                f"give {'decimal(10,0)' if self.type == 'decimal' else 'string'}"
            )

    @classmethod
    def _of_log(cls, name: str) -> PrimitiveType:
        """The type that a log names, which may be one that only Spark knows."""
        found = object.__new__(cls)
        object.__setattr__(found, "type", name)
        if name != "decimal" and not name.startswith(_OF_SPARK_ONLY):
            found.__post_init__()
        return found

    def to_arrow(self) -> pa.DataType:
        """The type in Arrow."""
        found = _PRIMITIVES.get(self.type)
        if found is not None:
            return found
        if self.type.startswith(_OF_SPARK_ONLY):
            return pa.string()
        if self.is_unread:
            return _UNREAD[self.type.partition("(")[0]]
        if self.type == "decimal":
            return pa.decimal128(10, 0)
        if self.type.startswith("decimal(") and self.type.endswith(")"):
            try:
                precision, scale = (int(part) for part in self.type[8:-1].split(","))
                if 0 <= scale <= precision:
                    return pa.decimal128(precision, scale)
            except ValueError:
                pass
        raise UnsupportedError(
            f"expected a primitive type of the Delta protocol, found {self.type!r}; upgrade esker to read it"
        )

    @property
    def is_unread(self) -> bool:
        """Whether a table may have such columns, of which this release reads and writes no values."""
        return self.type.partition("(")[0] in _UNREAD

    def _json(self) -> Any:
        return self.type

    def __repr__(self) -> str:
        return f'PrimitiveType("{self.type}")'


@dataclass(frozen=True, repr=False)
class VariantType(PrimitiveType):
    """Values of any type, `variant`: a table may have such columns; this release reads and writes none of their values.

    Example:
        >>> from esker.delta import VariantType
        >>> VariantType().to_json()
        '"variant"'
    """

    type: str = "variant"

    def __init__(self) -> None:
        object.__setattr__(self, "type", "variant")

    def __repr__(self) -> str:
        return "VariantType()"


@dataclass(frozen=True)
class ArrayType(_Type):
    """A list of one type."""

    element_type: DataType
    contains_null: bool = True
    type: str = field(default="array", init=False, repr=False)

    def __init__(self, element_type: DataType | str, contains_null: bool = True) -> None:
        object.__setattr__(self, "element_type", _given(element_type))
        object.__setattr__(self, "contains_null", contains_null)

    def to_arrow(self) -> pa.DataType:
        """The type in Arrow."""
        return pa.list_(pa.field("element", self.element_type.to_arrow(), self.contains_null))

    def _json(self) -> Any:
        return {"type": "array", "elementType": self.element_type._json(), "containsNull": self.contains_null}

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"


@dataclass(frozen=True)
class MapType(_Type):
    """Keys of one type with values of another."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True
    type: str = field(default="map", init=False, repr=False)

    def __init__(self, key_type: DataType | str, value_type: DataType | str, value_contains_null: bool = True) -> None:
        object.__setattr__(self, "key_type", _given(key_type))
        object.__setattr__(self, "value_type", _given(value_type))
        object.__setattr__(self, "value_contains_null", value_contains_null)

    def to_arrow(self) -> pa.DataType:
        """The type in Arrow."""
        return pa.map_(
            pa.field("key", self.key_type.to_arrow(), False),
            pa.field("value", self.value_type.to_arrow(), self.value_contains_null),
        )

    def _json(self) -> Any:
        return {
            "type": "map",
            "keyType": self.key_type._json(),
            "valueType": self.value_type._json(),
            "valueContainsNull": self.value_contains_null,
        }

    def __repr__(self) -> str:
        return f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={self.value_contains_null})"


@dataclass(frozen=True)
class StructType(_Type):
    """Named fields."""

    fields: list[Field]
    type: str = field(default="struct", init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _given_fields(self.fields))

    def to_arrow(self) -> pa.DataType:
        """The type in Arrow."""
        return pa.struct([pa.field(inner.name, inner.type.to_arrow(), inner.nullable) for inner in self.fields])

    def _json(self) -> Any:
        return {"type": "struct", "fields": [inner._json() for inner in self.fields]}

    def __repr__(self) -> str:
        return f"StructType({self.fields!r})"


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct.

    Example:
        >>> from esker.delta import Field
        >>> Field("id", "long", nullable=False).to_arrow()
        pyarrow.Field<id: int64 not null>
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __init__(
        self,
        name: str,
        type: DataType | str,
        nullable: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidTypeError(f"expected the name of a field, found {name!r}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type", _given(type))
        object.__setattr__(self, "nullable", nullable)
        object.__setattr__(self, "metadata", dict(metadata or {}))

    def to_arrow(self) -> pa.Field:
        """The field in Arrow, with its metadata, and that of the fields within it, as texts."""
        return pa.field(self.name, _described(self.type), self.nullable, _texts(self.metadata))

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def to_json(self) -> str:
        """The field as the log has it."""
        return json.dumps(self._json(), separators=(",", ":"))

    @staticmethod
    def from_json(field_json: str) -> Field:
        """A field out of what `to_json` gives."""
        return _field(json.loads(field_json))

    @staticmethod
    def from_arrow(field: pa.Field) -> Field:
        """The field that an Arrow field is written as, with its metadata."""
        found = _arrow_field(field)
        metadata = {key.decode(): value.decode(errors="replace") for key, value in (found.metadata or {}).items()}
        kept: dict[str, Any] = {key: value for key, value in metadata.items() if not key.startswith(_NOT_KEPT)}
        for key in _NUMBERS & kept.keys():
            with suppress(ValueError):
                kept[key] = json.loads(kept[key])
        return Field(found.name, _of_arrow(found.type, found.name), found.nullable, kept)

    def _json(self) -> Any:
        return {
            "name": self.name,
            "type": self.type._json(),
            "nullable": self.nullable,
            "metadata": dict(self.metadata),
        }

    def __repr__(self) -> str:
        metadata = f", metadata={dict(self.metadata)!r}" if self.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{metadata})"


@dataclass(frozen=True)
class Schema:
    """The columns of a Delta table.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta import Schema
        >>> Schema.from_arrow(pa.schema([("id", pa.int64())]))
        Schema([Field(id, PrimitiveType("long"), nullable=True)])
    """

    fields: list[Field]
    type: str = field(default="struct", init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _given_fields(self.fields))

    @property
    def invariants(self) -> list[tuple[str, str]]:
        """The columns with an invariant, and its SQL."""
        return [(f.name, str(f.metadata["delta.invariants"])) for f in self.fields if "delta.invariants" in f.metadata]

    def to_arrow(self, as_large_types: bool = False) -> pa.Schema:
        """The schema in Arrow, with metadata; with `as_large_types` texts, bytes and lists have offsets of 64 bits."""
        fields = [found.to_arrow() for found in self.fields]
        return pa.schema([found.with_type(large(found.type)) for found in fields] if as_large_types else fields)

    def to_plain_arrow(self) -> pa.Schema:
        """The schema in Arrow without the metadata of fields: what rows of the table are read and written as."""
        return pa.schema([pa.field(found.name, found.type.to_arrow(), found.nullable) for found in self.fields])

    def json(self) -> dict[str, Any]:
        """The schema as the log has it, as an object."""
        return cast("dict[str, Any]", StructType(self.fields)._json())

    def to_json(self) -> str:
        """The schema as the log has it."""
        return json.dumps(self.json(), separators=(",", ":"))

    @staticmethod
    def from_json(schema_json: str) -> Schema:
        """A schema out of the log's JSON.

        Raises:
            InvalidArgumentError: It is no schema.
            UnsupportedError: It has a type that this release does not know.
        """
        found = json.loads(schema_json)
        fields = found.get("fields") if isinstance(found, dict) else None
        if not isinstance(fields, list):
            raise InvalidArgumentError(f'expected a struct, {{"type": "struct", "fields": [...]}}, found {schema_json}')
        return Schema([_field(field) for field in fields])

    @staticmethod
    def from_arrow(data_type: pa.Schema) -> Schema:
        """The schema that a table with an Arrow schema is written with.

        Raises:
            InvalidTypeError: It is no schema.
            UnsupportedError: The protocol has no such type.
        """
        # A name with a NUL is cut at it when a schema crosses the C data interface: pyarrow's own schema has it whole.
        try:
            whole = data_type if isinstance(data_type, pa.Schema) else pa.schema(data_type)
        except TypeError as error:
            raise InvalidTypeError(
                f"expected a Schema, or one with the Arrow PyCapsule interface, found {data_type!r}"
            ) from error
        return Schema([Field.from_arrow(found) for found in whole])

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __repr__(self) -> str:
        return f"Schema({self.fields!r})"


def _given(kind: DataType | str) -> DataType:
    if isinstance(kind, str):
        return VariantType() if kind == "variant" else PrimitiveType(kind)
    if not isinstance(kind, _Type):
        raise InvalidArgumentError(f"expected a type of the Delta protocol, found {kind!r} (Invalid data type)")
    return kind


def _described(kind: DataType) -> pa.DataType:
    """A type in Arrow with the metadata of the fields within it."""
    if isinstance(kind, StructType):
        return pa.struct([inner.to_arrow() for inner in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _described(kind.element_type), kind.contains_null))
    if isinstance(kind, MapType):
        value = pa.field("value", _described(kind.value_type), kind.value_contains_null)
        return pa.map_(pa.field("key", _described(kind.key_type), False), value)
    return kind.to_arrow()


def _texts(metadata: Mapping[str, Any]) -> dict[str, str] | None:
    """Metadata as Arrow has it: what is no text is JSON."""
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for key, value in metadata.items()
    }
    return texts or None


def _given_fields(fields: Any) -> list[Field]:
    if not isinstance(fields, Sequence) or not all(isinstance(found, Field) for found in fields):
        raise InvalidTypeError(f"expected a list of fields, found {fields!r}")
    return list(fields)


def _arrow_field(found: Any) -> pa.Field:
    return found if isinstance(found, pa.Field) else pa.field(found)


def _arrow_type(found: Any) -> pa.DataType:
    """A type of pyarrow, or of any other library with the Arrow PyCapsule interface."""
    return found if isinstance(found, pa.DataType) else pa.field(found).type


def _field(value: Any) -> Field:
    try:
        return Field(value["name"], _type(value["type"]), value.get("nullable", True), value.get("metadata") or {})
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(f"expected a field with name and type, found {value!r}") from error


def _type(value: Any) -> DataType:
    if isinstance(value, str):
        try:
            return VariantType() if value == "variant" else PrimitiveType._of_log(value)
        except InvalidArgumentError:
            raise UnsupportedError(
                f"expected a column with a type of the Delta protocol, found {value!r}; upgrade esker to read it"
            ) from None
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"expected a type of the Delta protocol, found {value!r} (Invalid data type)")
    kind = value["type"]
    if kind == "struct":
        return StructType([_field(inner) for inner in value["fields"]])
    if kind == "array":
        return ArrayType(_type(value["elementType"]), value.get("containsNull", True))
    if kind == "map":
        return MapType(_type(value["keyType"]), _type(value["valueType"]), value.get("valueContainsNull", True))
    raise UnsupportedError(f"expected a struct, an array or a map, found {kind!r}; upgrade esker to read it")


def _of_arrow(found: pa.DataType, name: str) -> DataType:
    if isinstance(found, pa.BaseExtensionType):
        return _of_arrow(found.storage_type, name)
    if pa.types.is_dictionary(found):
        return _of_arrow(found.value_type, name)
    if pa.types.is_struct(found):
        return StructType([Field.from_arrow(found.field(i)) for i in range(found.num_fields)])
    if pa.types.is_map(found):
        return MapType(_of_arrow(found.key_type, name), _of_arrow(found.item_type, name), found.item_field.nullable)
    if is_list_like(found):
        return ArrayType(_of_arrow(found.value_type, name), found.value_field.nullable)
    return PrimitiveType(_primitive(found, name))


def _primitive(found: pa.DataType, name: str) -> str:
    types = pa.types
    if types.is_large_string(found) or types.is_string_view(found):
        return "string"
    if types.is_large_binary(found) or types.is_binary_view(found) or types.is_fixed_size_binary(found):
        return "binary"
    if types.is_decimal(found) and found.precision <= 38 and found.scale >= 0:
        return f"decimal({found.precision},{found.scale})"
    if types.is_timestamp(found):
        return "timestamp_ntz" if found.tz is None else "timestamp"
    if types.is_date(found):
        return "date"
    # As in deltalake, unsigned integers become signed integers of the same width.
    widths = {pa.uint8(): "byte", pa.uint16(): "short", pa.uint32(): "integer", pa.uint64(): "long"}
    for arrow, delta in [*((arrow, delta) for delta, arrow in _PRIMITIVES.items()), *widths.items()]:
        if found == arrow:
            return delta
    raise UnsupportedError(f"column {name!r}: the Delta protocol has no type for {found}", column=name)


def large(found: pa.DataType) -> pa.DataType:
    """The type with offsets of 64 bits wherever it has offsets.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.schema import large
        >>> large(pa.list_(pa.string()))
        LargeListType(large_list<item: large_string>)
    """
    if pa.types.is_string(found):
        return pa.large_string()
    if pa.types.is_binary(found):
        return pa.large_binary()
    if pa.types.is_list(found):
        inner = found.value_field
        return pa.large_list(inner.with_type(large(inner.type)))
    if pa.types.is_struct(found):
        fields = [found.field(i) for i in range(found.num_fields)]
        return pa.struct([inner.with_type(large(inner.type)) for inner in fields])
    if pa.types.is_map(found):
        key, value = found.key_field, found.item_field
        return pa.map_(key.with_type(large(key.type)), value.with_type(large(value.type)))
    return found
