"""`PreparedMerge`: a merge that is ready to be committed, and `ExecuteResult`: its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from ..._native.merge import Merged
from ..operation import LanceOperation
from ..operation.operations import operation_from_native
from ..write.staging import blob_folder


class ExecuteResult(TypedDict):
    """The counts of a merge."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


NOTHING: ExecuteResult = {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
"""The counts of a merge that its application had committed before."""


@dataclass
class PreparedMerge:
    """A merge that is staged, with its counts and metrics.

    Attributes:
        operation: The operation to commit.
        result: How many rows it inserts, updates and deletes.
        files: The staged files, relative to the table's root: orphans if it is not committed.
        bytes_written: The size of the new data files in bytes.
        metrics: The cost of matching the keys.
        has_blobs: Whether blobs may lie beside the data files.
    """

    operation: LanceOperation.BaseOperation
    result: ExecuteResult
    files: list[str]
    bytes_written: int = 0
    metrics: dict[str, int] = field(default_factory=dict)
    has_blobs: bool = False

    @property
    def staged(self) -> list[str]:
        """The staged files, and the folders of blobs beside them."""
        beside = [blob_folder(path) for path in self.files if path.endswith(".lance")] if self.has_blobs else []
        return [*beside, *self.files]

    @staticmethod
    def of(merged: Merged, *, has_blobs: bool) -> PreparedMerge:
        """The merge that the Rust core computed."""
        return PreparedMerge(
            operation_from_native(merged.operation),
            {
                "num_inserted_rows": merged.num_inserted_rows,
                "num_updated_rows": merged.num_updated_rows,
                "num_deleted_rows": merged.num_deleted_rows,
            },
            merged.files,
            merged.bytes_written,
            {
                "partitions": merged.partitions,
                "rows_scanned": merged.rows_scanned,
                "spilled_bytes": merged.spilled_bytes,
            },
            has_blobs,
        )
