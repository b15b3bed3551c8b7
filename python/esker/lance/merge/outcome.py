"""A merge that is ready to be committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from ..._native.merge import Merged
from ..operation import LanceOperation
from ..operation.operations import operation_from_native


class ExecuteResult(TypedDict):
    """What a merge did."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


NOTHING: ExecuteResult = {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
"""What a merge did that was done before."""


@dataclass
class PreparedMerge:
    """A change and what there is to say of it.

    Attributes:
        operation: It.
        result: The rows that it touches.
        files: What it wrote, relative to the table's root: of no use if it is not committed.
        metrics: How its keys were matched.
    """

    operation: LanceOperation.BaseOperation
    result: ExecuteResult
    files: list[str]
    bytes_written: int = 0
    metrics: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(merged: Merged) -> PreparedMerge:
        """What the Rust core made."""
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
        )
