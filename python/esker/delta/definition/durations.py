"""Durations in the properties of tables, such as `interval 7 days`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...exceptions import InvalidArgumentError

TOMBSTONES = ("delta.deletedFileRetentionDuration", "interval 1 week")
TRANSACTIONS = "delta.setTransactionRetentionDuration"
"""Without it the transaction versions of applications are kept for ever."""
LOG_FILES = ("delta.logRetentionDuration", "interval 30 days")
_UNITS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_PART = re.compile(r"(-?\d+)\s+([a-z]+?)s?(?=\s|$)")


def milliseconds(text: str) -> int:
    """A duration in milliseconds.

    Raises:
        InvalidArgumentError: It is none. Months and years are no durations: they differ.

    Example:
        >>> from esker.delta.definition.durations import milliseconds
        >>> milliseconds("interval 1 week")
        604800000
    """
    rest = text.strip().lower().removeprefix("interval").strip()
    parts = _PART.findall(rest)
    if not parts or _PART.sub("", rest).strip() or any(unit not in _UNITS for _, unit in parts):
        raise InvalidArgumentError(f"expected a duration such as 'interval 7 days', found {text!r}")
    return int(sum(int(number) * _UNITS[unit] for number, unit in parts))


def retention(configuration: Mapping[str, str], property: tuple[str, str]) -> int:
    """What a property of a table says, in milliseconds, or its default."""
    name, default = property
    return milliseconds(configuration.get(name, default))
