"""Pydantic models as rows: the Arrow schema of a model's annotations, and the rows of its instances.

The names are those of `lance.pydantic`.

| annotation | Arrow type |
|---|---|
| `int`, `float`, `str`, `bool`, `bytes` | int64, float64, string, bool, binary |
| `date`, `datetime` | date32, timestamp[us] in the zone `tz` of the field's `json_schema_extra` |
| `list[T]`, `tuple[T, ...]` | list |
| a model | struct |
| an `Enum` of texts, of one other type, of several | dictionary of strings, that type, string |
| `Vector(dim)`, `MultiVector(dim)` | fixed-size list, list of those |

A column holds nulls if its annotation is `Optional`, or a vector that may be null. Pydantic 2 is needed, which
whoever has a model has imported.
"""

from __future__ import annotations

import enum
import sys
import types
import typing
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from ..exceptions import InvalidArgumentError

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "is_model", "models_to_table", "pydantic_to_schema"]

_PLAIN: dict[Any, Callable[[], pa.DataType]] = {
    int: pa.int64,
    float: pa.float64,
    str: pa.string,
    bool: pa.bool_,
    bytes: pa.binary,
    date: pa.date32,
}


class FixedSizeListMixin:
    """What `Vector` and `MultiVector` return is a subclass of it."""

    _dim: int
    _value_type: pa.DataType
    _nullable: bool
    _is_multiple = False

    @classmethod
    def dim(cls) -> int:
        """The number of values of a vector."""
        return cls._dim

    @classmethod
    def value_arrow_type(cls) -> pa.DataType:
        """The type of a value."""
        return cls._value_type

    @classmethod
    def nullable(cls) -> bool:
        """Whether the column may hold nulls."""
        return cls._nullable

    @classmethod
    def _arrow_type(cls) -> pa.DataType:
        one = pa.list_(cls._value_type, cls._dim)
        return pa.list_(one) if cls._is_multiple else one

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """How pydantic validates a value: lists of this length."""
        from pydantic_core import core_schema

        values = core_schema.list_schema(core_schema.float_schema(), min_length=cls._dim, max_length=cls._dim)
        if cls._is_multiple:
            values = core_schema.list_schema(values)
        return core_schema.no_info_after_validator_function(cls, values)


def Vector(dim: int, value_type: pa.DataType | None = None, nullable: bool = True) -> Any:
    """The annotation of a column of vectors.

    Args:
        dim: The number of values.
        value_type: Their type; float32 by default.
        nullable: Whether the column may hold nulls.

    Example:
        >>> import pydantic
        >>> from esker.arrow.pydantic_models import Vector, pydantic_to_schema
        >>> class Item(pydantic.BaseModel):
        ...     id: int
        ...     embedding: Vector(2)
        >>> pydantic_to_schema(Item).field("embedding").type
        FixedSizeListType(fixed_size_list<item: float>[2])
    """
    return _vector("FixedSizeList", dim, value_type, nullable, False)


def MultiVector(dim: int, value_type: pa.DataType | None = None, nullable: bool = True) -> Any:
    """The annotation of a column of lists of vectors; see `Vector`."""
    return _vector("MultiVectorList", dim, value_type, nullable, True)


def _vector(name: str, dim: int, value_type: pa.DataType | None, nullable: bool, is_multiple: bool) -> Any:
    values = {
        "_dim": dim,
        "_value_type": value_type or pa.float32(),
        "_nullable": nullable,
        "_is_multiple": is_multiple,
    }
    return type(name, (list, FixedSizeListMixin), values)


def pydantic_to_schema(model: Any) -> pa.Schema:
    """The Arrow schema of a model's annotations.

    Args:
        model: A subclass of `pydantic.BaseModel`.

    Raises:
        TypeError: An annotation has no Arrow type.

    Example:
        >>> import pydantic
        >>> from esker.arrow.pydantic_models import pydantic_to_schema
        >>> class Point(pydantic.BaseModel):
        ...     x: int
        ...     note: str | None = None
        >>> pydantic_to_schema(Point)
        x: int64 not null
        note: string
    """
    return pa.schema(_fields(model))


def is_model(found: Any) -> bool:
    """Whether something is a pydantic model's class."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(found, type) and issubclass(found, pydantic.BaseModel)


def models_to_table(model: Any, data: Any, schema: pa.Schema | None = None) -> pa.Table:
    """The rows of instances of one model.

    Args:
        model: The class of all of them; instances of subclasses are refused.
        data: A list of instances.
        schema: The columns; by default those of the model's annotations.

    Raises:
        TypeError: The model is no pydantic model, or the data are no list of its instances.
        InvalidArgumentError: The list is empty.

    Example:
        >>> import pydantic
        >>> from esker.arrow.pydantic_models import models_to_table
        >>> class Point(pydantic.BaseModel):
        ...     x: int
        >>> models_to_table(Point, [Point(x=1), Point(x=2)]).to_pydict()
        {'x': [1, 2]}
    """
    if not is_model(model):
        raise TypeError(f"`model_class` must be a Pydantic BaseModel subclass, got {model!r}")
    if not isinstance(data, list):
        raise TypeError(f"Pydantic model data must be provided as a list, got {type(data)!r}")
    for place, item in enumerate(data):
        if type(item) is not model:
            raise TypeError(
                f"data[{place}] must be an instance of {model!r} exactly (subclasses are not accepted), "
                f"got {type(item)!r}"
            )
    if not data:
        raise InvalidArgumentError("`data` must be a non-empty list of Pydantic model instances.")
    rows = [_plain(item.model_dump()) for item in data]
    return pa.Table.from_pylist(rows, schema=schema or pydantic_to_schema(model))


def _plain(value: Any) -> Any:
    """The value with the values of enumerations in their place."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _fields(model: Any) -> list[pa.Field]:
    return [_field(name, field) for name, field in model.model_fields.items()]


def _field(name: str, field: Any) -> pa.Field:
    within = _without_none(field.annotation)
    nullable = _allows_none(field.annotation)
    if isinstance(within, type) and issubclass(within, FixedSizeListMixin) and within is field.annotation:
        nullable = within.nullable()
    return pa.field(name, _type(within, field), nullable)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _allows_none(annotation: Any) -> bool:
    return _is_union(annotation) and type(None) in typing.get_args(annotation)


def _without_none(annotation: Any) -> Any:
    if not _allows_none(annotation):
        return annotation
    others = [one for one in typing.get_args(annotation) if one is not type(None)]
    return others[0] if len(others) == 1 else annotation


def _type(annotation: Any, field: Any) -> pa.DataType:
    if annotation in _PLAIN:
        return _PLAIN[annotation]()
    if annotation is datetime:
        return pa.timestamp("us", tz=(field.json_schema_extra or {}).get("tz"))
    if typing.get_origin(annotation) in (list, tuple) and typing.get_args(annotation):
        item = typing.get_args(annotation)[0]
        return pa.list_(_type(_without_none(item), field))
    if isinstance(annotation, type):
        if is_model(annotation):
            return pa.struct(_fields(annotation))
        if issubclass(annotation, FixedSizeListMixin):
            return annotation._arrow_type()
        if issubclass(annotation, enum.Enum):
            return _type_of_enum(annotation, field)
    raise TypeError(
        f"Converting Pydantic type to Arrow Type: unsupported type {annotation}; name the type of a list's items, or "
        "take another annotation"
    )


def _type_of_enum(annotation: type[enum.Enum], field: Any) -> pa.DataType:
    of = {type(member.value) for member in annotation}
    if of == {str}:
        return pa.dictionary(pa.int32(), pa.string())
    return _type(of.pop(), field) if len(of) == 1 else pa.string()
