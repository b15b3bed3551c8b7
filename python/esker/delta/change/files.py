"""The files that a change of rows stages: data files, files of changes, deletion vectors; and their actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...commit.orphans import StagedFiles
from ..definition.table_state import TableState
from ..properties import WriterProperties
from ..write.change_data import ChangeDataWriter
from ..write.conformed import conformed
from ..write.data_files import DEFAULT_FILE_SIZE, DataFileWriter
from .budget import Budget
from .changed_table import ChangedTable, MatchedFile
from .copied_encodings import encodings_like
from .vectors import VectorWriter

_LEAST_FILE = 32 * 1024 * 1024
"""Bytes of a file that is copied, up to which the new one may be larger."""


class ChangedFiles:
    """Stages what a change of rows writes. As a context manager it stops its writers.

    Args:
        table: The version that is changed.
        staged: Takes in each file before it is put.
        parquet: How Parquet is written.
        keeps_changes: Whether files of changes are written.
        copied: A file that is copied: numbers are encoded as they are there.
        after: What the table is after the change, if it is something else than before.
        budget: What files in the making may hold.

    Example:
        `with ChangedFiles(table, staged, None, keeps_changes=False) as files: files.remove(found)`
    """

    def __init__(
        self,
        table: ChangedTable,
        staged: StagedFiles,
        parquet: WriterProperties | None,
        *,
        keeps_changes: bool,
        copied: MatchedFile | None = None,
        after: TableState | None = None,
        budget: Budget | None = None,
    ) -> None:
        state = after or table.state
        if copied is not None:
            parquet = encodings_like(table.scan.footer(copied.file), parquet)
        size = None
        if copied is not None and "delta.targetFileSize" not in state.configuration:
            # Files stay about as large as they are, and few of their bytes are in memory.
            size = min(DEFAULT_FILE_SIZE, max(_LEAST_FILE, int(copied.remove.get("size") or 0)))
        self.schema = state.schema
        # Files of data and of changes are in the making at once.
        written = (budget or Budget()).written // (2 if keeps_changes else 1)
        self._removes: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []
        self._data = DataFileWriter(
            table.target.store,
            state.schema,
            state.partition_by,
            state.configuration,
            mapped=state.mapped,
            target_file_size=size,
            properties=parquet,
            memory_limit=written,
            tight=table.writes_vectors,
            staged=staged,
        )
        self._vectors = VectorWriter(table, staged)
        self._changes: ChangeDataWriter | None = None
        if keeps_changes:
            self._changes = ChangeDataWriter(
                table.target.store, state, properties=parquet, staged=staged, memory_limit=written
            )
        self.added = self.changed = self.vectors = 0

    @property
    def keeps_changes(self) -> bool:
        """Whether files of changes are written."""
        return self._changes is not None

    def write(self, rows: pa.RecordBatch) -> None:
        """Rows for new data files."""
        for batch in conformed([rows], self.schema):
            self._data.write(batch)

    def change(self, rows: pa.RecordBatch, kind: str) -> None:
        """Rows that changed, where files of changes are written."""
        if self._changes is not None and rows.num_rows:
            for batch in conformed([rows], self.schema):
                self._changes.write(batch, kind)

    def remove(self, found: MatchedFile) -> None:
        """Takes a file out."""
        self._removes.append(found.remove)

    def delete(self, found: MatchedFile) -> None:
        """Takes a file out, and puts it in again without the rows that are meant."""
        self.remove(found)
        self._vectors.delete(found)
        self.vectors += 1

    def add_copies(self, adds: Sequence[dict[str, Any]]) -> None:
        """Files that are staged already, by their `add` actions."""
        self._copies.extend(adds)

    @property
    def removed(self) -> int:
        """How many files are taken out for good."""
        return len(self._removes) - self.vectors

    def close(self) -> list[tuple[str, dict[str, Any]]]:
        """Finishes all files, which are at the store then, and hands out the actions."""
        adds = [*self._copies, *self._data.close()]
        changes = self._changes.close() if self._changes is not None else []
        self.added, self.changed = len(adds), len(changes)
        return [
            *(("remove", action) for action in self._removes),
            *(("add", action) for action in self._vectors.close()),
            *(("add", _as_logged(action)) for action in adds),
            *(("cdc", _as_logged(action)) for action in changes),
        ]

    def __enter__(self) -> ChangedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._changes is not None:
                self._changes.stop()
        finally:
            self._data.stop()


def _as_logged(action: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in action.items() if key != "_staged"}
