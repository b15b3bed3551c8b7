"""The values of filters that are tuples, as what they are compared with: a column's type, or their own.

| value | beside a column | means |
|---|---|---|
| a text | of any type | the value that it is as a partition value: `2024-1-1`, `+1`, `NaN` |
| bytes | of texts | the text in UTF-8 |
| a number, a time | of a type that has it | that value |
| a number, a time | of a type that lacks it (1.5, an integer) | itself: what the column has is compared with it |

NaN is equal to itself and greater than all numbers where it is compared with partition values, as in deltalake.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from numbers import Integral
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError
from ..definition.partition_text import partition_text
from .session_zone import instant

_DAY = re.compile(r"\s*\+?(\d{1,4})-(\d{1,2})-(\d{1,2})((?:[ T]\d.*)?)\s*", re.ASCII)
_CLOCK = re.compile(r"[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(.*)", re.ASCII)
_COMPARISONS = {
    "=": lambda column, value: column == value,
    "==": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
OPERATORS = tuple(_COMPARISONS)
"""Those with one value."""


def compared(column: pc.Expression, operator: str, value: pa.Scalar, *, in_partition: bool) -> pc.Expression:
    """A column compared with a value.

    Args:
        column: The column.
        operator: One of `OPERATORS`.
        value: What `typed_value` returns.
        in_partition: Whether the column is a partition column.

    Example:
        >>> import pyarrow as pa
        >>> import pyarrow.compute as pc
        >>> from esker.delta.read.filter_values import compared
        >>> compared(pc.field("p"), "=", pa.scalar(float("nan")), in_partition=True)
        <pyarrow.compute.Expression is_nan(p)>
    """
    if not in_partition or not pa.types.is_floating(value.type):
        return _COMPARISONS[operator](column, value)
    if not value.is_valid or not math.isnan(value.as_py()):
        found = _COMPARISONS[operator](column, value)
        return found | column.is_nan() if operator in (">", ">=") else found
    if operator in ("=", "==", ">="):
        return column.is_nan()
    if operator in ("!=", "<"):
        return ~column.is_nan()
    return column.is_valid() if operator == "<=" else column < value


def typed_value(
    value: Any, type_: pa.DataType, name: str, *, in_partition: bool, may_be_empty: bool, zone: str | None
) -> pa.Scalar | None:
    """A value to compare a column with, None for null.

    Args:
        value: It as the caller gave it.
        type_: The column's type.
        name: The column's name, for errors.
        in_partition: Whether it is a partition column.
        may_be_empty: Whether the empty text is one, rather than null.
        zone: What times without a zone mean; UTC if None.

    Raises:
        InvalidArgumentError: It is none that the column's values can be compared with.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.filter_values import typed_value
        >>> typed_value("2024-1-1", pa.date32(), "day", in_partition=True, may_be_empty=False, zone=None)
        <pyarrow.Date32Scalar: datetime.date(2024, 1, 1)>
    """
    if value is None or (isinstance(value, str) and not value and not may_be_empty):
        return None
    if isinstance(value, dict | list | tuple | set):
        raise InvalidArgumentError(
            f"expected one value of type {type_} for column {name!r}, found {value!r} (Could not encode partition "
            f"value for type: {value!r})",
            column=name,
        )
    try:
        given = pa.scalar(_spelled(value, type_))
        return _fitted(given, type_, in_partition, zone)
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        pa.ArrowTypeError,
        OverflowError,
        UnicodeDecodeError,
    ) as error:
        raise InvalidArgumentError(
            f"expected a value of type {type_} for column {name!r}, found {value!r}", column=name
        ) from error


def _spelled(value: Any, type_: pa.DataType) -> Any:
    """A value in the words that a cast to a type knows."""
    if is_text(type_) and not isinstance(value, str):
        # As partition values are spelled; Python writes booleans and times otherwise.
        return value.decode() if isinstance(value, bytes) else partition_text(pa.scalar(value))
    # pyarrow asks more digits of a decimal, and fewer of a float, than a number needs.
    if isinstance(value, Integral | Decimal) and pa.types.is_floating(type_):
        return float(value)
    if isinstance(value, Integral) and pa.types.is_decimal(type_):
        return Decimal(int(value))
    if isinstance(value, str) and _is_moment(type_):
        return _with_zeros(value)
    if isinstance(value, str) and pa.types.is_integer(type_) and re.fullmatch(r"\+\d+", value, re.ASCII):
        return value[1:]
    return value


def _with_zeros(text: str) -> str:
    """A day, or a time, with as many digits as a cast asks for."""
    day = _DAY.fullmatch(text)
    if day is None:
        return text
    clock = _CLOCK.fullmatch(day[4])
    behind = f" {int(clock[1]):02}:{int(clock[2]):02}:{int(clock[3]):02}{clock[4]}" if clock else day[4]
    return f"{int(day[1]):04}-{int(day[2]):02}-{int(day[3]):02}{behind}"


def _fitted(given: pa.Scalar, type_: pa.DataType, in_partition: bool, zone: str | None) -> pa.Scalar:
    """A value in a column's type, or as it is where that type does not have it but compares with it."""
    if pa.types.is_timestamp(type_) and type_.tz is not None and not pa.types.is_time(given.type):
        return _cast_or_itself(given, type_, lambda: instant(given, type_, zone))
    typed = _cast_or_itself(given, type_, lambda: given.cast(type_))
    if not _are_alike(given.type, type_) or (in_partition and pa.types.is_floating(type_)):
        # A float of 32 bits is looked for among partition values as its text is read.
        return typed
    return typed if _is_the_same(typed, given) else given


def _cast_or_itself(given: pa.Scalar, type_: pa.DataType, cast: Any) -> pa.Scalar:
    try:
        return cast()
    except pa.ArrowInvalid:
        if not _are_alike(given.type, type_):
            raise
        return given


def _is_the_same(typed: pa.Scalar, given: pa.Scalar) -> bool:
    try:
        return bool(typed.cast(given.type).equals(given))
    except pa.ArrowInvalid:
        # As decimals integers have all digits that their type may have, which are more than those of the value.
        return bool(typed.as_py() == given.as_py())


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are types of numbers, or of days and times, which pyarrow compares with each other."""
    return (_is_number(one) and _is_number(other)) or (_is_moment(one) and _is_moment(other))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _is_moment(type_: pa.DataType) -> bool:
    return bool(pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def is_text(type_: pa.DataType) -> bool:
    """Whether values of a type are texts.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.filter_values import is_text
        >>> is_text(pa.string_view())
        True
    """
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))
