"""`FeedSchemas`: the columns that a table had in the versions of a feed, beside those of the version that is open.

Rows of all versions are read as the open one's columns. Files are found by physical names: those of a table with column
mapping say nothing to one without.

Spec: "Column Mapping", "Add CDC File".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...exceptions import CorruptFileError, UnsupportedError

_MODE = "delta.columnMapping.mode"


class FeedSchemas:
    """What is known of the columns of a feed's versions.

    Args:
        opened: The `metaData` of the version that is open.

    Example:
        >>> from esker.delta.read.feed_schemas import FeedSchemas
        >>> with FeedSchemas({"schemaString": "{}", "configuration": {}}).told():
        ...     pass
    """

    def __init__(self, opened: dict[str, Any]) -> None:
        self._opened = opened
        self._until: int | None = None

    def see(self, metadata: dict[str, Any], until: int) -> None:
        """Looks at the columns that files had up to a version.

        Args:
            metadata: The `metaData` that held.
            until: The version from which on another one holds.

        Raises:
            UnsupportedError: They had names in files of which the open version knows nothing.
        """
        if _is_mapped(metadata) and not _is_mapped(self._opened):
            raise UnsupportedError(
                f"before version {until} the table had column mapping ({_MODE}), and has none in the version that is "
                f"open, whose columns cannot be found in older files; read the feed up to version {until - 1} with "
                f"DeltaTable(uri, version={until - 1}), and with this one start after version {until}",
                version=until,
            )
        if metadata.get("schemaString") != self._opened.get("schemaString"):
            self._until = until

    @contextmanager
    def told(self) -> Iterator[None]:
        """Reads files within; says of values that the columns of the open version do not have where they are from.

        Raises:
            UnsupportedError: The columns had other types.
        """
        try:
            yield
        except CorruptFileError as error:
            if self._until is None:
                raise
            raise UnsupportedError(
                f"the table had other columns before version {self._until}, with values that are none of the types of "
                f"the version that is open: {error}; read the feed up to version {self._until - 1} with "
                f"DeltaTable(uri, version={self._until - 1})",
                version=self._until,
            ) from error


def _is_mapped(metadata: dict[str, Any]) -> bool:
    configuration = metadata.get("configuration") or {}
    return str(configuration.get(_MODE, "none")).lower() != "none"


def parsed(metadata_json: str) -> dict[str, Any]:
    """The `metaData` of a version, as a snapshot has it.

    Example:
        >>> from esker.delta.read.feed_schemas import parsed
        >>> parsed('{"configuration": {}}')
        {'configuration': {}}
    """
    found: dict[str, Any] = json.loads(metadata_json)
    return found
