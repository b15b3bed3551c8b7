"""The staged files of one write: data files, and change data files where data files do not tell what changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..._native.store import Store
from ...commit.orphans import StagedFiles
from .change_data import ChangeDataWriter
from .conformed import conformed
from .data_files import DataFileWriter
from .plan import DeltaWritePlan
from .replacement import Replacement


@dataclass(frozen=True)
class StagedWrite:
    """The result of staging.

    Args:
        adds: The `add` actions of files of new rows.
        changes: `cdc` actions.
        rows: How many new rows there are.
        survivors: The `add` actions of files of rows that stay, which were in files that are removed.
    """

    adds: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    rows: int
    survivors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def files(self) -> list[dict[str, Any]]:
        """All `add` actions."""
        return [*self.adds, *self.survivors]


class Staging:
    """Stages the files of one write. As a context manager it deletes them when its block fails and no commit can name
    them.

    Args:
        plan: The write.
        store: The table's.
        staged: Takes in each file before it is put; if not given, one of its own.
        writes_changes: Whether change data files are written.

    Example:
        `with Staging(plan, store) as staging: staging.store(batches); written = staging.finish()`
    """

    def __init__(
        self,
        plan: DeltaWritePlan,
        store: Store,
        staged: StagedFiles | None = None,
        *,
        writes_changes: bool = False,
    ) -> None:
        after, request = plan.after, plan.request
        self.staged = StagedFiles() if staged is None else staged
        self._schema = after.schema
        self._rows = 0
        self._adds: list[dict[str, Any]] | None = None

        def writer() -> DataFileWriter:
            made = DataFileWriter(
                store,
                after.schema,
                after.partition_by,
                after.configuration,
                mapped=after.mapped,
                target_file_size=request.target_file_size,
                properties=request.parquet,
                tight=after.configuration.get("delta.enableDeletionVectors", "").lower() == "true",
                staged=self.staged,
            )
            made.max_rows = request.max_rows_per_file
            return made

        self._writer = writer
        self._data = writer()
        self._changes: ChangeDataWriter | None = None
        if writes_changes:
            self._changes = ChangeDataWriter(
                store,
                after,
                target_file_size=request.target_file_size,
                properties=request.parquet,
                staged=self.staged,
            )

    def store(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Stores new rows: batches that were conformed and checked."""
        for batch in batches:
            self._rows += batch.num_rows
            self._data.write(batch)
            if self._changes is not None:
                self._changes.write(batch, "insert")

    @property
    def tells(self) -> bool:
        """Whether change data files are written."""
        return self._changes is not None

    def tell(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Stores new rows of the table, which are in data files already, in change data files."""
        if self._changes is not None:
            for batch in batches:
                self._changes.write(batch, "insert")

    def store_survivors(self, replacement: Replacement | None) -> None:
        """Stores the surviving rows of removed files, and their removed rows in change data files; no new row follows.

        They are in files of their own: a write that loses a race still has those of its new rows.
        """
        if replacement is None:
            return
        if replacement.rewrites:
            self._adds = self._data.close()
            self._data = self._writer()
        for batch in conformed(replacement.survivors(), self._schema):
            self._data.write(batch)
        if self._changes is not None:
            for batch in conformed(replacement.removed_rows(), self._schema):
                self._changes.write(batch, "delete")

    def finish(self) -> StagedWrite:
        """Finishes all files, which are at the store then."""
        adds, survivors = self._data.close(), []
        if self._adds is not None:
            adds, survivors = self._adds, adds
        return StagedWrite(adds, self._changes.close() if self._changes is not None else [], self._rows, survivors)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._changes is not None:
                self._changes.stop()
        finally:
            self._data.stop()
        if kind is not None:
            self.staged.discard()
