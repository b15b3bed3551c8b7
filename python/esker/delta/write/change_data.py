"""Change data files: the rows that a write inserted and deleted, where its data files do not tell them apart.

An overwrite that replaces some rows of a file rewrites the others. In a table that keeps a change data feed it writes
what changed to files under `_change_data/`, which hold all changes of the version.

Spec: "Add CDC File", "Writer Requirements for AddCDCFile".
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..._native.store import Store
from ...commit.orphans import StagedFiles
from ..definition.feed_columns import check_feed_columns
from ..definition.table_state import TableState
from ..properties import WriterProperties
from ..schema import Field, Schema
from .data_files import MEMORY_LIMIT, DataFileWriter

CHANGE_TYPE = pa.field("_change_type", pa.string())
FOLDER = "_change_data/"
_NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}


class ChangeDataWriter:
    """Stages files of changes.

    Args:
        store: The table's.
        state: What the table is after the write.
        target_file_size: Bytes of a file, about.
        properties: How Parquet is written.
        staged: Takes in each file before it is put.
        memory_limit: Bytes that files in the making hold.

    Example:
        `changes = ChangeDataWriter(store, state); changes.write(batch, "delete"); actions = changes.close()`
    """

    def __init__(
        self,
        store: Store,
        state: TableState,
        *,
        target_file_size: int | None = None,
        properties: WriterProperties | None = None,
        staged: StagedFiles | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        check_feed_columns(state.schema.to_plain_arrow().names)
        columns = Schema([*state.schema.fields, Field(CHANGE_TYPE.name, "string")])
        self._writer = DataFileWriter(
            store,
            columns,
            state.partition_by,
            {**state.configuration, **_NO_STATISTICS},
            mapped=state.mapped,
            target_file_size=target_file_size,
            properties=properties,
            stem=(FOLDER, "cdc"),
            memory_limit=memory_limit,
            staged=staged,
        )

    def write(self, batch: pa.RecordBatch, kind: str) -> None:
        """Rows of the table that all changed in one way: `insert`, `delete`, `update_preimage`, `update_postimage`."""
        kinds = pa.repeat(pa.scalar(kind), batch.num_rows)
        self._writer.write(batch.append_column(CHANGE_TYPE, kinds))

    def close(self) -> list[dict[str, Any]]:
        """Finishes all files and hands out their `cdc` actions."""
        kept = ("path", "partitionValues", "size", "_staged")
        return [{**{key: add[key] for key in kept}, "dataChange": False} for add in self._writer.close()]

    def stop(self) -> None:
        """Drops what is not written yet, and returns once no put is running."""
        self._writer.stop()

    def abandon(self) -> None:
        """Deletes what was staged, unless a commit may name it."""
        self._writer.abandon()

    def __enter__(self) -> ChangeDataWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
