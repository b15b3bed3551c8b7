"""Dynamic partition overwrite, as in Spark: replaces the partitions that have new rows, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from .replacement import Replacement, remove_actions


class PartitionReplacement(Replacement):
    """Takes out the files of some partitions.

    Args:
        target: The table, in the version whose files are removed.
        adds: The new files: their partitions are replaced.

    Example:
        `removes = PartitionReplacement(target, adds).removes()`
    """

    def __init__(self, target: WriteTarget, adds: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(target)
        self._partitions = {_key(add["partitionValues"]) for add in adds}
        self._removed: list[dict[str, Any]] = []

    def stage(self) -> None:
        """Selects the files to remove."""
        removed = remove_actions(self._snapshot, self._selection)
        self._removed = [action for action in removed if _key(action.get("partitionValues", {})) in self._partitions]

    def removes(self) -> list[dict[str, Any]]:
        """The `remove` actions."""
        return self._removed

    def survivors(self) -> Iterator[pa.RecordBatch]:
        """None: whole partitions are replaced."""
        return iter(())

    def read_set(self) -> ReadSet:
        """The files and partitions that a concurrent commit must not have changed."""
        paths = frozenset(action["path"] for action in self._removed)
        return ReadSet(files=paths, matches=lambda add: _key(add.get("partitionValues") or {}) in self._partitions)


def _key(values: Mapping[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((name, value or None) for name, value in values.items()))
