"""deltalake's words for values that do not fit their column, which programs look for in messages."""

from __future__ import annotations

import re

import pyarrow as pa

_NAMES = {
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.string_view(): "Utf8View",
    pa.bool_(): "Boolean",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
}
_TEXT = re.compile(r"(?:Cast|Parser) error: .*", re.DOTALL)
_NUMBER = re.compile(r"Integer value (?P<value>-?\d+) not in range")


def in_deltalakes_words(path: str, found: pa.DataType, kind: pa.DataType, error: Exception) -> str:
    """What deltalake says of a cast that fails.

    Args:
        path: The column.
        found: The type of its values.
        kind: The type that they should have.
        error: pyarrow's error.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.cast_words import in_deltalakes_words
        >>> in_deltalakes_words("x", pa.decimal128(5, 1), pa.decimal128(4, 1), ValueError())
        'Cannot cast field x from Decimal128(5, 1) to Decimal128(4, 1)'
    """
    text = _TEXT.search(str(error))
    if text is not None:
        return text.group()
    number = _NUMBER.search(str(error))
    if number is not None:
        # It names the types the other way round.
        return (
            f"Cast error: Failed to convert into Arrow schema: Cast error: Failed to cast {path} from {_name(kind)} to "
            f"{_name(found)}: Can't cast value {number['value']} to type {_name(kind)}; "
            f"Cast error: Can't cast value {number['value']} to type {_name(kind)}"
        )
    return f"Cannot cast field {path} from {_name(found)} to {_name(kind)}"


def _name(kind: pa.DataType) -> str:
    """The name of a type in Arrow's library for Rust."""
    if pa.types.is_decimal128(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    if pa.types.is_integer(kind):
        return str(kind).replace("uint", "UInt").replace("int", "Int")
    return _NAMES.get(kind, str(kind))
