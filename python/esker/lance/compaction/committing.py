"""Commits what the tasks of a compaction wrote: each group whole or not at all.

```
results ──reserve ids──> one Rewrite of all groups ──conflict──> two halves, each again
                             │ landed                               └─ a single group: lost, or there already
```

Deletes and updates that others committed meanwhile are carried into the new fragments. A group is lost only where its
fragments got other columns, the table another schema, or somebody else rewrote them. What a lost group had staged is
deleted once the log shows that no version refers to it.
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


class CarriedChanges(DeletionMerge):
    """Adapts a Rewrite to deletes and updates of its old fragments, and notes the deletion files that this takes.

    Args:
        log: The table's log.
        base: The version that the fragments were read from.
        staged: Gets the deletion files.
    """

    def __init__(self, log: LanceLog, base: native.Manifest, staged: StagedFiles) -> None:
        super().__init__(log, base)
        self._staged = staged

    def __call__(
        self, ours: native.Transaction, manifest: native.Manifest, theirs: native.Transaction
    ) -> native.Transaction | None:
        """Ours, on top of `theirs`; None if the rows must be rewritten again."""
        adapted = super().__call__(ours, manifest, theirs)
        if adapted is not None:
            for _, new in adapted.decoded().fields().get("groups", ()):
                for fragment in new:
                    if fragment.deletion_file is not None:
                        self._staged.add(self._log.store, fragment.deletion_file)
        return adapted


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
        """Commits the groups together; where that is in conflict with others, each half of them by itself."""
        try:
            table = self._commit(table, results)
        except CommitConflictError as error:
            # The table may have become another one, whose ids are not reserved.
            self._ids = ReservedIds()
            if len(results) > 1:
                middle = len(results) // 2
                table, first = self.commit(table, results[:middle])
                table, second = self.commit(table, results[middle:])
                return table, first + second
            if not self._is_lost(results[0]):
                return table.newest(), results[0].metrics
            ids = tuple(fragment.id for fragment in results[0].old)
            return table, CompactionMetrics(lost=(LostGroup(ids, error),))
        return table, sum((result.metrics for result in results), CompactionMetrics())

    def _commit(self, table: TableVersion, results: Sequence[RewriteResult]) -> TableVersion:
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
                    log,
                    transaction,
                    lock=table.commit_lock,
                    base=base,
                    reconcile=CarriedChanges(log, base, staged),
                )
                current.reserved_at = ids.version
                version = commit(current, limits=LIMITS, staged=staged)
        except CommitConflictError:
            raise
        except BaseException:
            if self._owned and staged.outcome in (Outcome.PENDING, Outcome.REFUSED):
                self._discard(results)
            raise
        shown = table

        def show() -> None:
            nonlocal shown
            shown = table.at(current.committed(version))

        follow(show, f"version {version}")
        return cleaned_up(shown)

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
