"""Converts pyarrow expressions to predicates of the Rust core."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .._native.expr import Predicate
from ..exceptions import InvalidArgumentError, UnsupportedError

_PLACEHOLDER = "__esker_no_substrait_type_{}"


def portable_predicate(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """A pyarrow expression as a predicate over exactly these columns. NaN and nulls compare as in pyarrow.

    Example:
        >>> import pyarrow as pa, pyarrow.compute as pc
        >>> from esker.arrow.predicate import portable_predicate
        >>> portable_predicate(pc.field("id") > 3, pa.schema([("id", pa.int64())])).columns
        ['id']
    """
    return predicate_of(expression, schema, as_arrow=True)


def predicate_of(expression: pc.Expression, schema: pa.Schema, *, as_arrow: bool) -> Predicate:
    """A pyarrow expression as a predicate over these columns.

    Args:
        expression: The expression.
        schema: The columns.
        as_arrow: Whether NaN and nulls compare as in pyarrow; otherwise they compare as in SQL.

    Raises:
        InvalidArgumentError: The expression does not fit the columns.
        UnsupportedError: It has a function or a type that the Rust core does not have.
    """
    try:
        # The pickled form of pyarrow: its size is linear in the expression; Substrait's doubles with every level.
        _, (data,) = expression.__reduce__()
    except pa.ArrowNotImplementedError:
        # pyarrow cannot pickle the expression: Substrait, which refers to columns by position.
        return Predicate.from_substrait(_to_substrait(expression, schema), schema)
    return Predicate.from_arrow_expression(bytes(data), schema, as_arrow)


def _to_substrait(expression: pc.Expression, schema: pa.Schema) -> bytes:
    """The expression as Substrait, with field references by position in `schema`."""
    from pyarrow.substrait import serialize_expressions

    # A column of a type that Substrait lacks must not break filters on other columns: a placeholder with another name
    # and type keeps its position.
    portable = pa.schema(
        [
            field if _portable(field.type) else pa.field(_PLACEHOLDER.format(i), pa.int8())
            for i, field in enumerate(schema)
        ]
    )
    try:
        return bytes(serialize_expressions([expression], ["filter"], portable))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        replaced = [old.name for old, new in zip(schema, portable, strict=True) if old.name != new.name]
        for name in replaced:
            if f"FieldRef.Name({name})" in str(error):
                raise UnsupportedError(
                    f"column {name!r} of type {schema.field(name).type} cannot be in a pyarrow filter; "
                    "write the filter as SQL text",
                    column=name,
                    type=str(schema.field(name).type),
                ) from error
        if isinstance(error, pa.ArrowNotImplementedError):
            raise UnsupportedError(f"filter {_told(expression)} has no form in Substrait: {error}") from error
        raise InvalidArgumentError(f"filter {_told(expression)} does not fit the table: {error}") from error


def _told(expression: pc.Expression) -> str:
    """An expression for a message. pyarrow may cut a long text in the middle of a character."""
    try:
        return str(expression)
    except UnicodeDecodeError:
        return "expression"


def _portable(type_: pa.DataType) -> bool:
    """Whether pyarrow has a Substrait type for it. The list is that of pyarrow 26; older releases have no more."""
    if isinstance(type_, pa.BaseExtensionType):
        return False
    if pa.types.is_struct(type_):
        # pyarrow refuses field metadata within a struct, too.
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return all(field.metadata is None and _portable(field.type) for field in fields)
    if pa.types.is_list(type_):
        return _portable(type_.value_type)
    return not (
        pa.types.is_duration(type_)
        or pa.types.is_decimal256(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_nested(type_)
    )
