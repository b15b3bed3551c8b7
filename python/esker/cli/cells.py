"""The values of a result: as Python has them, and as text where Python has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column. Times that Python cannot hold, or not to the nanosecond, are texts as Arrow writes them.

    Example:
        >>> import pyarrow as pa
        >>> from esker.cli.cells import values_of
        >>> values_of(pa.chunked_array([pa.array([0, 3 * 10**11], pa.timestamp("s"))]))[1]
        '11476-08-15 05:20:00'
    """
    # Python's times end at microseconds: nanoseconds would be cut off without a word.
    if "time64[ns]" not in str(column.type):
        try:
            return list(column.to_pylist())
        except (OverflowError, ValueError):
            pass
    return [_value(scalar) for scalar in column]


def unique_names(names: Sequence[str]) -> list[str]:
    """The names of columns, each once: a join returns columns of one name.

    Example:
        >>> from esker.cli.cells import unique_names
        >>> unique_names(["id", "id", "x"])
        ['id', 'id_1', 'x']
    """
    unique: list[str] = []
    for name in names:
        number, free = 0, name
        while free in unique or (number and free in names):
            number += 1
            free = f"{name}_{number}"
        unique.append(free)
    return unique


def _value(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar | pa.DictionaryScalar):
        return _value(scalar.value)
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(item) for name, item in scalar.items()}
    if isinstance(scalar, pa.MapScalar):
        return [tuple(_value(pair[name]) for name in pair) for pair in scalar.values]
    if isinstance(scalar, pa.ListScalar | pa.FixedSizeListScalar | pa.LargeListScalar):
        return [_value(item) for item in scalar.values]
    if scalar.type != pa.time64("ns"):
        try:
            return scalar.as_py()
        except (OverflowError, ValueError):
            pass
    if pa.types.is_timestamp(scalar.type) and scalar.type.tz is not None:
        # Arrow may not know the zone either.
        scalar = scalar.cast(pa.timestamp(scalar.type.unit, "UTC"))
    if pa.types.is_duration(scalar.type):
        return f"{scalar.value} {scalar.type.unit}"
    return scalar.cast(pa.string()).as_py()
