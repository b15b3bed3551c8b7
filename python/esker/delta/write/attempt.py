"""One attempt of a write: its rows in staged files, computed from one version of the table.

```
first attempt ── lost race ──> again: same table ──────> files of new rows stay, survivors and changes are staged anew
                               └──── another table ────> new rows are read back, and all is staged anew
```
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ...commit.orphans import StagedFiles
from ...progress import Progress, Tally, counted
from ..log.commit import CommitRequest, DeltaCommit
from ..log.target import WriteTarget
from ..read.sql_names import in_own_words
from ..schema import Schema
from .checked import checked
from .conformed import conformed
from .entry import write_entry
from .plan import DeltaWritePlan, WriteRequest, plan_write
from .replacement import Replacement, replaced_files, writes_changes
from .staged_rows import check_read_back, staged_rows
from .staging import StagedWrite, Staging


@dataclass(frozen=True)
class WriteAttempt:
    """A write as it was staged for one version.

    Args:
        target: The table, in that version.
        incoming: The columns of the rows as they were given.
        plan: The write.
        written: Its staged files.
        replacement: The files that it removes.
    """

    target: WriteTarget
    incoming: Schema
    plan: DeltaWritePlan
    written: StagedWrite
    replacement: Replacement | None

    @property
    def paths(self) -> frozenset[str]:
        """The staged files that its entry names."""
        return frozenset(action["_staged"] for action in [*self.written.files, *self.written.changes])

    def commit(self, request: CommitRequest) -> DeltaCommit:
        """The commit that names the staged files."""
        return DeltaCommit(self.target, write_entry(self.plan, self.written, self.replacement), request)

    def again(self, target: WriteTarget, staged: StagedFiles) -> WriteAttempt:
        """The same write from a later version, with the files of its new rows if the table has not changed otherwise.

        Args:
            target: The table, in the later version.
            staged: Takes in new files; those that are of no use any more stay in it.

        Raises:
            CommitConflictError: The files do not say any more what the caller gave, which the table could hold now.
        """
        request, store = self.plan.request, target.store
        plan = plan_write(target, self.incoming, request)
        adds = self.written.adds
        check_read_back(self.incoming, self.plan, plan)
        if plan.after != self.plan.after or plan.missing != self.plan.missing:
            return _staged(target, plan, self.incoming, staged_rows(self.plan, store, adds), staged)
        replacement = _replaced(plan, target)
        with Staging(plan, store, staged, writes_changes=writes_changes(plan, replacement)) as staging:
            if staging.tells:
                staging.tell(conformed(staged_rows(plan, store, adds, filled=True), plan.after.schema))
            staging.store_survivors(replacement)
            kept = staging.finish()
        written = StagedWrite(adds, kept.changes, self.written.rows, kept.survivors)
        return _attempt(target, self.incoming, plan, written, replacement)


def first_attempt(
    target: WriteTarget,
    rows: pa.RecordBatchReader,
    request: WriteRequest,
    staged: StagedFiles,
    progress: Progress | None = None,
) -> WriteAttempt:
    """Stages the rows of a caller.

    Args:
        target: The table, or the place of one.
        rows: They are taken once.
        request: How they are written.
        staged: Takes in each file before it is put.
        progress: Is told of rows and files.

    Example:
        `first_attempt(target, rows, request, staged).commit(CommitRequest()).run(staged)`
    """
    incoming = Schema.from_arrow(rows.schema)
    return _staged(target, plan_write(target, incoming, request), incoming, rows, staged, progress)


def attempt_of(
    target: WriteTarget,
    incoming: Schema,
    plan: DeltaWritePlan,
    written: StagedWrite,
    staged: StagedFiles,
    *,
    tells: bool,
) -> WriteAttempt:
    """An attempt whose new rows others have staged by a plan: the tasks of a job.

    Args:
        target: The table, in the version of the plan.
        incoming: The columns of the rows as they were given.
        plan: The write.
        written: The files of its new rows, and those of changes that tell of them.
        staged: Takes in the files that are added to them.
        tells: Whether files of changes tell of the new rows.

    Example:
        `attempt_of(target, incoming, plan, written, staged, tells=False).commit(CommitRequest()).run(staged)`
    """
    replacement = _replaced(plan, target)
    with Staging(plan, target.store, staged, writes_changes=tells and replacement is not None) as staging:
        staging.store_survivors(replacement)
        kept = staging.finish()
    whole = StagedWrite(written.adds, [*written.changes, *kept.changes], written.rows, kept.survivors)
    return _attempt(target, incoming, plan, whole, replacement)


def _staged(
    target: WriteTarget,
    plan: DeltaWritePlan,
    incoming: Schema,
    rows: pa.RecordBatchReader,
    staged: StagedFiles,
    progress: Progress | None = None,
) -> WriteAttempt:
    replacement = _replaced(plan, target)
    with Staging(plan, target.store, staged, writes_changes=writes_changes(plan, replacement)) as staging:
        taken = counted(rows, progress, "writing rows")
        staging.store(checked(conformed(taken, plan.after.schema), plan))
        staging.store_survivors(replacement)
        written = staging.finish()
    tally = Tally(progress, "writing files", unit="files", total=len(written.files))
    tally.add(rows=written.rows, bytes=sum(add["size"] for add in written.files), files=len(written.files))
    return _attempt(target, incoming, plan, written, replacement)


def _attempt(
    target: WriteTarget, incoming: Schema, plan: DeltaWritePlan, written: StagedWrite, replacement: Replacement | None
) -> WriteAttempt:
    if replacement is not None:
        replacement.told(written.adds)
    return WriteAttempt(target, incoming, plan, written, replacement)


def _replaced(plan: DeltaWritePlan, target: WriteTarget) -> Replacement | None:
    with in_own_words(plan.request.given_predicate or "", plan.request.predicate or ""):
        return replaced_files(plan, target)
