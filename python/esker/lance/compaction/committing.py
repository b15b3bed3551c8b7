"""Commits what the tasks of a compaction wrote: each group whole or not at all.

```
results ──reserve ids──> one Rewrite of all groups ──others' changes──> deletes and updates: carried by the commit
                                                                        other files of a fragment: the group is left out
```

A group is lost only where its fragments got other columns, the table another schema, or somebody else rewrote them.
What a lost group had staged is deleted once the log shows that no version refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._native import table as native
from ...commit.loop import CommitLimits, commit, follow
from ...commit.orphans import Outcome, StagedFiles
from ...exceptions import CommitConflictError, NotFoundError
from ..change.run import commit_change
from ..cleanup.automatic import cleaned_up
from ..commit import DeletionMerge, LanceCommit
from ..log import LanceLog
from ..operation import LanceOperation
from ..version import TableVersion
from .results import CompactionMetrics, LostGroup, RewriteResult, transaction_id

LIMITS = CommitLimits(max_retries=200, max_reruns=0)
"""Lost races for a version number cost little beside a rewrite: give up late."""

RESERVATIONS = 4
"""How often ids are asked for again after the table was overwritten or restored."""


@dataclass(frozen=True)
class ReservedIds:
    """Ids of fragments that nobody else gets, rising.

    Attributes:
        numbers: The ids.
        version: The version that reserved them: a listing may not show it yet.
    """

    numbers: Sequence[int] = ()
    version: int = 0

    def part(self, start: int, end: int) -> ReservedIds:
        """Some of them."""
        return ReservedIds(self.numbers[start:end], self.version)


def reserve(table: TableVersion, log: LanceLog, count: int) -> ReservedIds:
    """Reserves ids of fragments, by a commit of its own.

    Args:
        table: A version of the table.
        log: The log to commit to.
        count: How many.

    Raises:
        CommitConflictError: The table was overwritten or restored again and again, or other writers won every race.
    """
    operation = LanceOperation.ReserveFragments(count)
    for _ in range(RESERVATIONS):
        try:
            reserved = commit_change(table, lambda _: operation, log=log, limits=LIMITS)
            break
        except CommitConflictError:
            # Overwritten or restored meanwhile: ids are as good on top of that.
            table = table.newest()
    else:
        reserved = commit_change(table, lambda _: operation, log=log, limits=LIMITS)
    highest = reserved.manifest.max_fragment_id or 0
    return ReservedIds(range(highest - count + 1, highest + 1), reserved.number)


class RewriteCommit(LanceCommit):
    """The commit of a Rewrite: never on top of a version before the one that reserved the ids of its fragments."""

    reserved_at = 0
    """The version that reserved them."""

    def latest(self) -> int:
        """The newest version, which is that one at least."""
        return max(super().latest(), self.reserved_at)


def commit_rewrites(
    table: TableVersion,
    results: Sequence[RewriteResult],
    *,
    log: LanceLog,
    ids: ReservedIds | None = None,
    owned: bool = False,
) -> tuple[TableVersion, CompactionMetrics]:
    """Commits results, those together that were read from one version; returns the version that has them.

    Args:
        table: A version of the table.
        results: What tasks wrote.
        log: The log to commit to.
        ids: Ids that were reserved for the new fragments; others are reserved if these are too few.
        owned: Whether nobody else can commit these results: then their files are deleted where nothing was put.

    Raises:
        CommitStateUnknownError: The store failed before it was known whether the groups are committed.
    """
    metrics = CompactionMetrics()
    for version in dict.fromkeys(result.read_version for result in results):
        # The new fragments are numbered, and so stand in the table, in the order of the old ones.
        together = sorted((it for it in results if it.read_version == version), key=_first)
        table, done = _Groups(log, ids or ReservedIds(), owned).commit(table, together)
        metrics += done
    return table, metrics


def _first(result: RewriteResult) -> int:
    return min((fragment.id for fragment in result.old), default=0)


class _Groups:
    """The commits of groups that were read from one version."""

    def __init__(self, log: LanceLog, ids: ReservedIds, owned: bool) -> None:
        self._log = log
        self._ids = ids
        self._owned = owned

    def commit(self, table: TableVersion, results: Sequence[RewriteResult]) -> tuple[TableVersion, CompactionMetrics]:
        """Commits the groups together, but for those that are lost."""
        error: CommitConflictError | None = None
        written: set[str] = set()
        gone: set[int] = set()
        try:
            table, transaction = self._commit(table, results)
            written, gone = _writes(transaction), _replaces(transaction)
        except CommitConflictError as conflict:
            error = conflict
        metrics = CompactionMetrics()
        for result in results:
            ids = tuple(fragment.id for fragment in result.old)
            if (result.files & written) or (not result.files and gone.issuperset(ids)):
                metrics += result.metrics
            elif self._is_lost(result):
                metrics += CompactionMetrics(lost=(LostGroup(ids, error or self._conflict(result)),))
            else:
                # An earlier commit of the same result, whose reply got lost, or somebody else's.
                metrics += result.metrics
                table = table.newest()
        return table, metrics

    def _commit(self, table: TableVersion, results: Sequence[RewriteResult]) -> tuple[TableVersion, native.Transaction]:
        """The version that has the groups, and the transaction that made it."""
        log = self._log
        staged = StagedFiles()
        try:
            with staged:
                base = self._base(results[0].read_version)
                log.mount(base)
                new = [fragment for result in results for fragment in result.new]
                ids = self._ids if len(self._ids.numbers) >= len(new) else reserve(table, log, len(new))
                numbered = [fragment.with_id(number) for fragment, number in zip(new, ids.numbers, strict=False)]
                transaction = native.Transaction(
                    base.version, _operation(results, numbered), uuid=transaction_id(results)
                )
                current = RewriteCommit(
                    log, transaction, lock=table.commit_lock, base=base, reconcile=DeletionMerge(log, base)
                )
                current.reserved_at = ids.version
                version = commit(current, limits=LIMITS, staged=staged)
        except CommitConflictError:
            raise
        except BaseException:
            if self._owned and staged.outcome in (Outcome.PENDING, Outcome.REFUSED):
                self._discard(results)
            raise
        # Without groups that were lost to others. Where an earlier commit of the same results landed, it says which.
        landed = current.transaction
        if current.made is None or current.made.version != version:
            landed = log.transaction(current.committed(version)) or landed
        shown = table

        def show() -> None:
            nonlocal shown
            shown = table.at(current.committed(version))

        follow(show, f"version {version}")
        return cleaned_up(shown), landed

    def _conflict(self, result: RewriteResult) -> CommitConflictError:
        ids = ", ".join(str(fragment.id) for fragment in result.old)
        return CommitConflictError(
            f"Commit conflict: fragments {ids} of version {result.read_version} of {self._log.uri} were rewritten, or "
            "got other files, by another writer; their Rewrite was left out, plan the compaction again",
            uri=self._log.uri,
            operation="Rewrite",
            version=result.read_version,
            retryable=True,
        )

    def _base(self, version: int) -> native.Manifest:
        """The version that the results were read from."""
        try:
            return self._log.open(version)[0]
        except NotFoundError as error:
            raise CommitConflictError(
                f"Commit conflict: version {version} of {self._log.uri}, which the rewritten fragments were read from, "
                "was cleaned up; nothing of ours is visible, plan the compaction again",
                uri=self._log.uri,
                operation="Rewrite",
                version=version,
                retryable=True,
            ) from error

    def _is_lost(self, result: RewriteResult) -> bool:
        """Whether no version has the files of a refused result, which are deleted then. They may be in one: somebody
        else may have committed the same result, or this process itself did, and the reply got lost."""
        refers = _refers(self._log, result)
        if refers is False:
            self._discard([result])
        return not refers

    def _discard(self, results: Sequence[RewriteResult]) -> None:
        StagedFiles((self._log.store, place) for result in results for place in result.staged).discard()


def _operation(results: Sequence[RewriteResult], numbered: Sequence[native.Fragment]) -> native.Operation:
    groups, start = [], 0
    for result in results:
        end = start + len(result.new)
        groups.append((list(result.old), list(numbered[start:end])))
        start = end
    return native.Operation.rewrite(groups, [])


def _refers(log: LanceLog, result: RewriteResult) -> bool | None:
    """Whether a version refers to the files of a result; None if it cannot be told, since versions are gone."""
    if not result.files:
        return False
    listing = log.listing()
    versions = [number for number in listing.versions if number > result.read_version]
    if len(versions) < listing.latest - result.read_version:
        return None
    for number in versions:
        try:
            manifest = log.manifest(number, listing.scheme)
        except NotFoundError:
            return None
        transaction = log.transaction(manifest)
        if transaction is None:
            return None
        if transaction.operation == "Rewrite" and _writes(transaction) & result.files:
            return True
    return False


def _writes(transaction: native.Transaction) -> set[str]:
    groups = transaction.decoded().fields()["groups"]
    return {file.location for _, new in groups for fragment in new for file in fragment.files}


def _replaces(transaction: native.Transaction) -> set[int]:
    return {fragment.id for old, _ in transaction.decoded().fields()["groups"] for fragment in old}
