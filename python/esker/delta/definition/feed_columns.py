"""The columns that a change data feed adds to those of the table, which therefore has none of these names.

Spec: "Add CDC File", "Writer Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterable

from ...exceptions import InvalidArgumentError

RESERVED = ("_change_type", "_commit_version", "_commit_timestamp")


def check_feed_columns(names: Iterable[str], *, version: int | None = None) -> None:
    """Checks that no column of a table with a change data feed has a name of the feed's own columns.

    Raises:
        InvalidArgumentError: One has.

    Example:
        >>> from esker.delta.definition.feed_columns import check_feed_columns
        >>> check_feed_columns(["id", "_change"])
    """
    for name in names:
        if name.lower() in RESERVED:
            raise InvalidArgumentError(
                f"expected no column of a change data feed ({', '.join(RESERVED)}) in a table that keeps one, found "
                f"{name!r}; give the column another name, or set delta.enableChangeDataFeed to false",
                column=name,
                version=version,
            )
