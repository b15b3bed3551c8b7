"""The columns whose statistics a table keeps: those that `delta.dataSkippingStatsColumns` names, else the first ones.

Spec: "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from ...exceptions import InvalidArgumentError

Path = tuple[str, ...]


def statistics_columns(schema: pa.Schema, configuration: Mapping[str, str]) -> list[Path]:
    """The leaves whose statistics are kept, by their paths in the table's logical schema.

    Args:
        schema: The columns of the data files: those of the table without its partition columns.
        configuration: The table's properties.

    Raises:
        InvalidArgumentError: `dataSkippingNumIndexedCols` is no number from -1 on.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.definition.statistics_columns import statistics_columns
        >>> schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
        >>> statistics_columns(schema, {"delta.dataSkippingNumIndexedCols": "1"})
        [('a',)]
    """
    leaves = [path for field in schema for path in _leaves(field, ())]
    named = configuration.get("delta.dataSkippingStatsColumns")
    if named:
        wanted = [_column_path(part) for part in _split(named, ",")]
        return [path for path in leaves if any(path[: len(prefix)] == prefix for prefix in wanted)]
    text = configuration.get("delta.dataSkippingNumIndexedCols", "32")
    try:
        number = int(text)
    except ValueError:
        number = -2
    if number < -1:
        raise InvalidArgumentError(f"expected delta.dataSkippingNumIndexedCols as a number from -1 on, found {text!r}")
    return leaves if number == -1 else leaves[:number]


def _leaves(field: pa.Field, above: Path) -> Iterator[Path]:
    path = (*above, field.name)
    if pa.types.is_struct(field.type):
        for i in range(field.type.num_fields):
            yield from _leaves(field.type.field(i), path)
    else:
        yield path


def _column_path(text: str) -> Path:
    return tuple(part.strip().strip("`") for part in _split(text.strip(), "."))


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text, but for separators within backticks."""
    parts, quoted = [""], False
    for letter in text:
        quoted ^= letter == "`"
        if letter == separator and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
