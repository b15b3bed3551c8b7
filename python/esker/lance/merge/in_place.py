"""Upserts in place (`write_mode="rewrite_columns"`): rows do not move; their fragments get new files of the source's
columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..._native import table as native
from ..._native.merge import MergeRequest, MergeSource, changed_rows
from ...arrow.batches import read_all
from ...arrow.blob_arrays import holds_blobs
from ...arrow.picking import kept
from ...commit.orphans import StagedFiles
from ...exceptions import InvalidArgumentError
from ..change.column_update import update_columns
from ..fragment_metadata import FragmentMetadata
from ..operation import LanceOperation
from ..system_columns import ROW_ADDRESS
from ..version import TableVersion
from .clauses import MergeClauses
from .outcome import PreparedMerge


def check_columns_only(clauses: MergeClauses, on: Sequence[str], source: pa.Schema, table: pa.Schema) -> None:
    """Refuses a merge that cannot be done in place.

    Raises:
        InvalidArgumentError: Rows may be inserted or deleted, or the source has all columns, only the key, or blobs.
    """
    reason = None
    if clauses.when_matched != "update" or clauses.insert or clauses.delete_unmatched:
        reason = "a merge that only updates rows that match"
    elif len(source.names) == len(table.names):
        reason = "a source that lacks columns of the table"
    elif all(name in on for name in source.names):
        reason = "columns beside the key"
    elif any(holds_blobs(field.type) or (field.metadata or {}).get(b"lance-encoding:blob") for field in source):
        reason = "a source without blobs"
    if reason is not None:
        raise InvalidArgumentError(
            f"expected {reason} for write_mode 'rewrite_columns', found another; use 'auto' or 'rewrite_rows'"
        )


def merged_columns(table: TableVersion, source: MergeSource, request: MergeRequest, on: Sequence[str]) -> PreparedMerge:
    """Merges a source in place and stages the new files; nothing is visible yet.

    The rows of the source that update a row are held in memory.

    Args:
        table: The base version.
        source: The rows.
        request: How they are matched and merged.
        on: The key columns, which do not change.
    """
    rows = read_all(changed_rows(table.store, table.manifest, source, request)).drop_columns(list(on))
    updated: list[native.Fragment] = []
    offsets: dict[int, bytes] = {}
    fields: list[int] = []
    there = {fragment.id: fragment for fragment in table.fragments}
    fragments = pc.shift_right(rows[ROW_ADDRESS], pa.scalar(32, pa.uint64()))
    # Ctrl-C or an error at one fragment leaves no files of those before it.
    with StagedFiles() as staged:
        for number in sorted(pc.unique(fragments).to_pylist()):
            if number not in there:
                raise InvalidArgumentError(f"expected fragment {number} in version {table.number}, found none")
            own = kept(rows, pc.equal(fragments, pa.scalar(number, pa.uint64())))
            changed = update_columns(table, there[number], own, ROW_ADDRESS, ROW_ADDRESS)
            staged.add(table.store, _staged(changed.fragment))
            updated.append(changed.fragment)
            fields = changed.fields
            offsets[number] = changed.matched
    operation = LanceOperation.Update(
        updated_fragments=[FragmentMetadata.from_native(fragment) for fragment in updated],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets=offsets if table.has_stable_row_ids else None,
    )
    return PreparedMerge(
        operation,
        {"num_inserted_rows": 0, "num_updated_rows": rows.num_rows, "num_deleted_rows": 0},
        [_staged(fragment) for fragment in updated],
        sum(fragment.files[-1].file_size_bytes or 0 for fragment in updated),
    )


def _staged(fragment: native.Fragment) -> str:
    return f"data/{fragment.files[-1].path}"
