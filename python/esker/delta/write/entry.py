"""The log entry of a write: its staged files, the files that they replace, and what the table becomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..log.commit import LogEntry
from ..log.conflict import ReadSet
from .plan import MODES, DeltaWritePlan
from .replacement import Replacement
from .staging import StagedWrite


def write_entry(plan: DeltaWritePlan, written: StagedWrite, replacement: Replacement | None = None) -> LogEntry:
    """The entry that commits staged files, data files and files of changes.

    Args:
        plan: The write.
        written: What it has staged.
        replacement: The files that it removes.

    Example:
        `DeltaCommit(target, write_entry(plan, staging.finish())).run(staging.staged)`
    """
    removes = replacement.removes() if replacement is not None else []
    partitions = json.dumps(plan.after.partition_by, separators=(",", ":"))
    parameters: dict[str, Any] = {"mode": MODES[plan.request.mode], "partitionBy": partitions}
    if plan.request.predicate is not None:
        parameters["predicate"] = plan.request.predicate
    # Spark's names, as texts, and behind them deltalake's.
    metrics: dict[str, Any] = {
        "numFiles": str(len(written.files)),
        "numOutputRows": str(written.rows),
        "numOutputBytes": str(sum(add["size"] for add in written.files)),
    }
    if removes:
        metrics["numRemovedFiles"] = str(len(removes))
    if written.changes:
        metrics["numAddedChangeFiles"] = str(len(written.changes))
    metrics |= {
        "num_added_files": len(written.files),
        "num_removed_files": len(removes),
        "num_added_rows": written.rows,
    }
    actions = [
        *plan.after.actions_after(plan.before),
        *(("remove", action) for action in removes),
        *(("add", _as_logged(add)) for add in written.files),
        *(("cdc", _as_logged(change)) for change in written.changes),
    ]
    read = replacement.read_set() if replacement is not None else ReadSet()
    return LogEntry("WRITE", parameters, actions, read, metrics, keeps_numbers=True)


def _as_logged(action: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in action.items() if key != "_staged"}
