"""Writes checkpoints: all actions of a version in Parquet, so that readers need not replay the log.

```
_delta_log/{version:020}.checkpoint.parquet                            one file
_delta_log/{version:020}.checkpoint.{part:010}.{parts:010}.parquet     several, on request, told apart by path
_delta_log/{version:020}.checkpoint.{uuid}.parquet                     delta.checkpointPolicy = v2, its files in
_delta_log/_sidecars/{uuid}.parquet
_delta_log/_last_checkpoint                                            where a reader may begin
```

This module decides what a checkpoint holds and what it leaves out; Rust replays the log and writes the files.

Spec: "Checkpoints", "Checkpoint Format", "Last Checkpoint File".
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from ..._native.delta import Snapshot
from ..._native.store import Store
from ...exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from ..definition.durations import TOMBSTONES, TRANSACTIONS, milliseconds, retention
from ..definition.protocol import check_writable, features_of
from ..definition.table_state import TableState
from .checkpoint_files import SIDECARS
from .checkpoint_schema import SIDECAR_CHECKPOINT, SINGLE_CHECKPOINT, action_columns
from .entries import LOG
from .snapshots import load_snapshot

LAST_CHECKPOINT = f"{LOG}_last_checkpoint"


def write_checkpoint(store: Store, snapshot: Snapshot, *, parts: int | None = None) -> None:
    """Writes the checkpoint of a version, and then the hint that leads to it.

    Args:
        store: The table's.
        snapshot: The version.
        parts: How many files it is cut into; one if not given.

    Raises:
        NotFoundError: The version was cleaned up.
        UnsupportedError: The table has features that this release does not write, or several parts are asked for where
            the table has v2 checkpoints.

    Example:
        `write_checkpoint(store, Snapshot.load(store))`
    """
    if parts is not None and parts < 1:
        raise InvalidArgumentError(f"expected at least one part, found {parts}")
    state = TableState.of(snapshot)
    check_writable(state.protocol)
    v2 = "v2Checkpoint" in features_of(state.protocol)
    if v2 and parts is not None and parts > 1:
        raise UnsupportedError("a table with v2 checkpoints has none of several parts; leave parts out")
    base = f"{LOG}{snapshot.version:020}.checkpoint"
    names, actions, sidecar = [f"{base}.parquet"], SINGLE_CHECKPOINT, None
    hint: dict[str, Any] = {}
    now = time.time_ns() // 1_000_000
    if v2 and state.configuration.get("delta.checkpointPolicy", "").lower() == "v2":
        name = f"{uuid.uuid4()}.parquet"
        names, actions, sidecar = [f"{base}.{uuid.uuid4()}.parquet"], SIDECAR_CHECKPOINT, (SIDECARS + name, name, now)
    elif parts is not None and parts > 1:
        names = [f"{base}.{number:010}.{parts:010}.parquet" for number in range(1, parts + 1)]
        hint["parts"] = parts
    kept = state.configuration.get(TRANSACTIONS)

    def write(snapshot: Snapshot) -> tuple[int, int, int]:
        return snapshot.write_checkpoint(
            store,
            names,
            action_columns(state, actions),
            sidecar=sidecar,
            tombstones_from=now - retention(state.configuration, TOMBSTONES),
            transactions_from=now - milliseconds(kept) if kept is not None else None,
        )

    try:
        size, rows, adds = write(snapshot)
    except NotFoundError:
        # Files that it was read from were cleaned up: with the version, which is then said, or it has others by now.
        size, rows, adds = write(load_snapshot(store, version=snapshot.version))
    _leave_hint(store, {"version": snapshot.version, "size": rows, **hint, "sizeInBytes": size, "numOfAddFiles": adds})


def _leave_hint(store: Store, hint: dict[str, Any]) -> None:
    """Names a checkpoint as the last, unless a newer one is named."""
    try:
        newest = json.loads(store.get(LAST_CHECKPOINT)).get("version", -1)
    except (NotFoundError, ValueError, AttributeError):
        newest = -1
    if isinstance(newest, int) and newest > hint["version"]:
        return
    store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())
