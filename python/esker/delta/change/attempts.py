"""Runs a change of rows until it is committed: a lost race whose winner leaves no room computes it again.

```
prepare -> commit ─ the winners did not touch what was read ──> rebased: the same entry, a later version
              └──── they did ─> staged files deleted, prepared again from the newest version
```

Spec: the reference's `OptimisticTransaction`; by which rules, see `log/conflict.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...commit.loop import follow
from ...commit.orphans import StagedFiles
from ..log.commit import CommitRequest, DeltaCommit, LogEntry
from ..log.target import WriteTarget


@dataclass(frozen=True)
class PreparedChange:
    """A change as it was computed from one version.

    Args:
        entry: What would be committed; None if nothing changes.
        metrics: What the caller is told.
    """

    entry: LogEntry | None
    metrics: Mapping[str, Any]


class _NothingLeftError(Exception):
    """Others have done meanwhile what there was to do."""


def run_change(
    target: WriteTarget, prepare: Callable[[WriteTarget, StagedFiles], PreparedChange], commit: CommitRequest
) -> dict[str, Any]:
    """Commits a change, and tells its metrics. One that changes nothing writes no version.

    Args:
        target: The table.
        prepare: Computes the change from the version of a target, and stages its files.
        commit: What the caller wants of the commit.

    Raises:
        CommitConflictError: Others won every race.

    Example:
        `run_change(target, prepare, CommitRequest())["num_deleted_rows"]`
    """
    with StagedFiles() as staged:
        prepared = prepare(target, staged)
        if prepared.entry is None:
            return dict(prepared.metrics)

        def again(version: int) -> DeltaCommit:
            nonlocal prepared
            staged.discard()
            there = target.later(version)
            prepared = prepare(there, staged)
            if prepared.entry is None:
                raise _NothingLeftError
            return DeltaCommit(there, prepared.entry, commit)

        try:
            version = DeltaCommit(target, prepared.entry, commit).run(staged, rerun=again, runs_again=True)
        except _NothingLeftError:
            if target.refresh is not None:
                follow(target.refresh, "what others changed")
            return dict(prepared.metrics)
    target.committed(version)
    return dict(prepared.metrics)
