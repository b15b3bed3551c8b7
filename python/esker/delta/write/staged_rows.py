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
from ...exceptions import CommitConflictError
from ..log.entries import commit_path
from ..log.snapshots import load_snapshot
from ..read.filesystem import FileLocator
from ..read.scan import TableScan
from ..schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from .plan import DeltaWritePlan

_INTEGERS = ("byte", "short", "integer", "long")
_TEXTS = ("string", "binary")


def check_read_back(given: Schema, staged: DeltaWritePlan, plan: DeltaWritePlan) -> None:
    """Raises where staged rows are not the caller's any more for what the table is by now.

    A float was rounded for a column that is a double now; an empty text is null in a partition.

    Args:
        given: The columns of the rows as they were given.
        staged: What they were staged by.
        plan: What they would be written by now.

    Raises:
        CommitConflictError: Values of a column may be others.

    Example:
        `check_read_back(incoming, first.plan, plan)`
    """
    then, now = (_types(each.after.schema.fields) for each in (staged, plan))
    parted = set(staged.after.partition_by) - set(plan.after.partition_by)
    for field in given.fields:
        kind = then[field.name]
        is_text = isinstance(kind, PrimitiveType) and kind.type in _TEXTS
        if not _is_exact(field.type, kind, now[field.name]) or (is_text and field.name in parted):
            raise CommitConflictError(
                f"our WRITE to {plan.uri} lost a race to a change of column {field.name!r}, and its rows were written "
                f"for the column as it was, which may have changed their values; nothing of ours is visible, run it "
                "again on the newest version",
                uri=plan.uri,
                operation="WRITE",
                version=staged.read_version,
                retryable=True,
            )


def _types(fields: Sequence[Field]) -> dict[str, DataType]:
    return {field.name: field.type for field in fields}


def _is_exact(given: DataType, then: DataType, now: DataType) -> bool:
    """Whether values of a type that were written as another one are what they were, or are to be that one still."""
    if given == then or then == now:
        return True
    if isinstance(given, StructType) and isinstance(then, StructType) and isinstance(now, StructType):
        before, after = _types(then.fields), _types(now.fields)
        return all(_is_exact(f.type, before[f.name], after.get(f.name, f.type)) for f in given.fields)
    if isinstance(given, ArrayType) and isinstance(then, ArrayType) and isinstance(now, ArrayType):
        return _is_exact(given.element_type, then.element_type, now.element_type)
    if isinstance(given, MapType) and isinstance(then, MapType) and isinstance(now, MapType):
        keys = _is_exact(given.key_type, then.key_type, now.key_type)
        return keys and _is_exact(given.value_type, then.value_type, now.value_type)
    known = [each.type for each in (given, then) if isinstance(each, PrimitiveType)]
    return len(known) == 2 and all(kind in _INTEGERS for kind in known)


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
