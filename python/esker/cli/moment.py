"""Times of commits, as the command line writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_of(seconds: int, format: str) -> str:
    """A time in UTC by its seconds since the Unix epoch, which are written as they are where they lie in no calendar.

    Args:
        seconds: The seconds: what who has committed gave, which may have been milliseconds.
        format: As `datetime.strftime` takes it.

    Example:
        >>> from esker.cli.moment import moment_of
        >>> moment_of(0, "%Y-%m-%d"), moment_of(10**15, "%Y-%m-%d")
        ('1970-01-01', '@1000000000000000')
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime(format)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds}"
