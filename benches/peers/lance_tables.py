"""What esker and pylance share: their interface is the same, so one class drives both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from benches.peers.peer import Range, Reader

FILE_VERSIONS = ("2.0", "2.1", "2.2")
"""The versions of the file format that a run may compare: both write the same one."""
DEFAULT_FILE_VERSION = "2.2"


class LanceReader(Reader):
    """An open dataset of either module."""

    def __init__(self, module: ModuleType, path: str) -> None:
        self.dataset: Any = module.dataset(path)

    def count(self) -> int:
        return int(self.dataset.count_rows())

    def scan(self, columns: Sequence[str] | None = None, where: Range | None = None) -> pa.Table:
        return self.dataset.to_table(columns=list(columns) if columns else None, filter=where.sql if where else None)

    def stream(self) -> Iterator[pa.RecordBatch]:
        return iter(self.dataset.to_batches())

    def take(self, rows: pa.Array) -> pa.Table:
        return self.dataset.take(rows)
