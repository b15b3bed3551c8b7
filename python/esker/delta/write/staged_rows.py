"""Reads staged rows back, where a write runs again: the stream that they came from is used up.

The table may have other columns, partitions and constraints by then, so that the rows are written to it like any
others; or it keeps a change data feed, which tells of them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..._native.store import Store
from ..log.entries import commit_path
from ..log.snapshots import load_snapshot
from ..read.filesystem import FileLocator
from ..read.scan import TableScan
from .plan import DeltaWritePlan


def staged_rows(
    plan: DeltaWritePlan, store: Store, adds: Sequence[Mapping[str, Any]], *, filled: bool = False
) -> pa.RecordBatchReader:
    """The rows of staged files, with the columns that they were given with.

    Args:
        plan: What they were staged by: for a new table.
        store: Where they are.
        adds: Their `add` actions.
        filled: Whether they have all columns of the table.

    Example:
        `write_deltalake(plan.uri, staged_rows(plan, store, writer.adds), mode="append")`
    """
    # A log with one entry that names the staged files, kept in memory while they are read.
    place = Store(f"memory://{uuid.uuid4()}")
    actions = [*plan.after.actions_after(None), *(("add", dict(add)) for add in adds)]
    lines = [json.dumps({name: fields}) for name, fields in actions]
    place.put(commit_path(0), "\n".join(lines).encode())
    scan = TableScan(place, load_snapshot(place), FileLocator(store, "", dict(plan.storage_options or {})))
    place.delete(commit_path(0))
    schema = pa.schema([field for field in scan.schema if filled or field.name not in plan.missing])
    return pa.RecordBatchReader.from_batches(schema, scan.batches(schema.names))
