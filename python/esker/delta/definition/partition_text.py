"""Partition values as text, and the directories of a partition's files, spelled as Spark spells them.

| type | text |
|---|---|
| string | as it is; the empty one is null |
| timestamp | `2024-01-02T03:04:05.000006Z` |
| timestamp_ntz | `2024-01-02 03:04:05.000006` |
| float, double | the shortest text that reads back; `NaN`, `Infinity`, `-Infinity` |
| decimal | without an exponent |
| binary | refused: writers do not agree on its spelling |

Spec: "Partition Value Serialization".
"""

from __future__ import annotations

import math
from datetime import datetime
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidArgumentError, UnsupportedError

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(0x20)}
_MAX_NAME = 255


def check_partition_type(name: str, found: pa.DataType) -> None:
    """Raises for a type whose values are no partition values.

    Raises:
        UnsupportedError: A binary column: writers do not agree on how its values are spelled.
        InvalidArgumentError: A nested type.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.definition.partition_text import check_partition_type
        >>> check_partition_type("day", pa.date32())
    """
    if pa.types.is_binary(found) or pa.types.is_large_binary(found):
        raise UnsupportedError(
            f"column {name!r}: binary partition values are not written, since writers spell them in different ways; "
            "partition by another column",
            column=name,
        )
    if pa.types.is_nested(found) or pa.types.is_null(found):
        raise InvalidArgumentError(
            f"column {name!r}: expected a plain type to partition by, found {found}", column=name
        )


def partition_text(value: pa.Scalar) -> str | None:
    """A partition value as the log has it, None for null.

    Example:
        >>> import pyarrow as pa
        >>> from decimal import Decimal
        >>> from esker.delta.definition.partition_text import partition_text
        >>> partition_text(pa.scalar(Decimal("-1.50"), pa.decimal128(5, 2)))
        '-1.50'
    """
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_floating(kind):
        return _float_text(value)
    if pa.types.is_decimal(kind):
        return format(value.as_py(), "f")
    if pa.types.is_timestamp(kind):
        return _timestamp_text(value)
    if pa.types.is_date(kind):
        return str(pc.strftime(value, format="%Y-%m-%d").as_py())
    return str(value.as_py()) or None


def _float_text(value: pa.Scalar) -> str:
    number = value.as_py()
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    text = str(value.cast(pa.string()).as_py())
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def _timestamp_text(value: pa.Scalar) -> str:
    try:
        moment: datetime = value.cast(pa.timestamp("us", value.type.tz)).as_py()
    except (OverflowError, ValueError) as error:
        raise InvalidArgumentError(
            f"expected times of the years 1 to 9999 to partition by, found {value.cast(pa.int64()).as_py()} "
            f"({value.type} since 1970); partition by another column"
        ) from error
    text = moment.replace(tzinfo=None).isoformat(sep="T" if value.type.tz else " ", timespec="microseconds")
    if value.type.tz is None:
        return text
    return f"{text}Z"


def directory(column: str, text: str | None) -> str:
    """The directory of a partition value within its parent, with the characters escaped that Spark escapes.

    Example:
        >>> from esker.delta.definition.partition_text import directory
        >>> directory("time", "10:20")
        'time=10%3A20'
    """
    value = NULL_DIRECTORY if text is None else escape(text)
    return f"{escape(column)}={value}"


def directories(values: dict[str, str | None]) -> str:
    """The directories of a file's partition, each with a `/` behind it.

    A level that no store could hold, or that readers pass over as hidden (its name starts with `_` or `.`), is left
    out: values are only ever read from the log.
    """
    levels = [directory(column, text) for column, text in values.items()]
    fit = [level for level in levels if len(level.encode()) <= _MAX_NAME and level[0] not in "_."]
    return "".join(f"{level}/" for level in fit)


def escape(text: str) -> str:
    """A text as a part of a directory's name, by Hive's rule."""
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def encode_path(path: str) -> str:
    """A path as the log has it: a URI.

    Example:
        >>> from esker.delta.definition.partition_text import encode_path
        >>> encode_path("x=a%2Fb/é")
        'x=a%252Fb/%C3%A9'
    """
    return quote(path, safe="/-_.!~*'()=:@&+$,;")
