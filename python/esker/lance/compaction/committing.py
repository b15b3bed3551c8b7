"""Commits what the tasks of a compaction wrote: each group whole or not at all.

```
results ──reserve ids──> one Rewrite of all groups ──others' changes──> deletes and updates: carried by the commit
                                                                        other files of a fragment: the group is left out
```

A group is lost only where its fragments got other columns, the table another schema, or somebody else rewrote them.
What a lost group had staged is deleted if no commit of it was ever visible: by ourselves, and, if others have the same
result, by the log, in which no number may be given twice. Otherwise it is left to a clean-up: a version or a branch may
have been made of a stray version (`..stray`) that is gone by now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..._native import table as native
from ...commit.loop import CommitLimits, commit, follow
from ...commit.orphans import Outcome, StagedFiles
from ...exceptions import CommitConflictError, NotFoundError
from ..change.run import commit_change
from ..cleanup.automatic import cleaned_up
from ..commit import LanceCommit
from ..deletion_merge import DeletionMerge
from ..log import LanceLog
from ..operation import LanceOperation
from ..stray import is_in_history
from ..version import TableVersion
from .results import CompactionMetrics, LostGroup, RewriteResult
from .unnamed import is_unnamed, written
from .vetting import StagedFilesGone, check_staged, vetted

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
    """The commit of a Rewrite: never on top of a version before the one that reserved the ids of its fragments, and
    never of files that a clean-up took before the transaction was staged."""

    reserved_at = 0
    """The version that reserved them."""
    unchecked: Sequence[RewriteResult] = ()
    """The results whose files are looked for once the transaction is staged."""

    def latest(self) -> int:
        """The newest version, which is that one at least.

        Raises:
            StagedFilesGone: Files of the results are not there.
        """
        found = max(super().latest(), self.reserved_at)
        if self.unchecked:
            check_staged(self.log.store, self.unchecked, uri=self.log.uri)
            self.unchecked = ()
        return found


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
        InvalidArgumentError: A result is damaged, or of another table, or two of them replace the same fragment.
    """
    metrics = CompactionMetrics()
    commits = []
    for version in dict.fromkeys(result.read_version for result in results):
        # The new fragments are numbered, and so stand in the table, in the order of the old ones.
        together = sorted((it for it in results if it.read_version == version), key=_first)
        commits.append(_Groups(log, ids or ReservedIds(), owned, together))
    # All of them are checked before the first one is committed.
    for groups in commits:
        groups.check(table)
    for groups in commits:
        table, done = groups.commit(table)
        metrics += done
    return table, metrics


def _first(result: RewriteResult) -> int:
    return min((fragment.id for fragment in result.old), default=0)


class _Groups:
    """The commits of groups that were read from one version."""

    def __init__(self, log: LanceLog, ids: ReservedIds, owned: bool, results: Sequence[RewriteResult]) -> None:
        self._log = log
        self._ids = ids
        self._owned = owned
        self._results = results
        self._was_shown = False
        """Whether a commit of theirs was visible and was taken away again (`StagedFiles.was_shown`)."""
        self._own: set[str] = set()
        """The uuids of their transactions."""

    def check(self, table: TableVersion) -> None:
        """Checks the results where others may have handed them in.

        Raises:
            InvalidArgumentError: They are damaged, or of another table.
        """
        # Without their version they are lost, which their commit finds.
        with suppress(CommitConflictError):
            if not self._owned:
                self._results = vetted(table.at(self._base()), self._results)

    def commit(self, table: TableVersion) -> tuple[TableVersion, CompactionMetrics]:
        """Commits the groups together, but for those that are lost."""
        error: CommitConflictError | None = None
        done: set[str] = set()
        gone: set[int] = set()
        metrics = CompactionMetrics()
        results = self._results
        while results and error is None and not done and not gone:
            try:
                table, transaction = self._commit(table, results)
                done, gone = written(transaction), _replaces(transaction)
            except StagedFilesGone as conflict:
                # The others are whole.
                lost = [result for result in results if not result.places.isdisjoint(conflict.paths)]
                metrics += CompactionMetrics(lost=tuple(LostGroup(_ids(result), conflict) for result in lost))
                results = [result for result in results if result.places.isdisjoint(conflict.paths)]
            except CommitConflictError as conflict:
                error = conflict
        for result in results:
            ids = _ids(result)
            if (result.files & done) or (not result.files and gone.issuperset(ids)):
                metrics += result.metrics
            elif self._is_committed(result, error):
                # An earlier commit of the same result, whose reply got lost, or somebody else's.
                metrics += result.metrics
                table = _shown(table.newest, table)
            else:
                metrics += CompactionMetrics(lost=(LostGroup(ids, error or self._conflict(result)),))
                if not self._was_shown and (self._owned or self._is_unnamed(table, result)):
                    self._discard([result])
        return table, metrics

    def _commit(self, table: TableVersion, results: Sequence[RewriteResult]) -> tuple[TableVersion, native.Transaction]:
        """The version that has the groups, and the transaction that made it."""
        log = self._log
        staged = StagedFiles()
        try:
            with staged:
                new = [fragment for result in results for fragment in result.new]
                ids = self._ids if len(self._ids.numbers) >= len(new) else reserve(table, log, len(new))
                # The commit of the ids may have cleaned up.
                base = self._base()
                log.mount(base)
                numbered = [fragment.with_id(number) for fragment, number in zip(new, ids.numbers, strict=False)]
                # Its own id, and so its own file: the same results may be committed again, with other ids and other
                # groups, and the transaction of a version that landed earlier stays as it is.
                transaction = native.Transaction(base.version, _operation(results, numbered))
                self._own.add(transaction.uuid)
                current = RewriteCommit(
                    log, transaction, lock=table.commit_lock, base=base, reconcile=DeletionMerge(log, base)
                )
                current.reserved_at, current.unchecked = ids.version, results
                version = commit(current, limits=LIMITS, staged=staged)
        except CommitConflictError:
            raise
        except BaseException as error:
            if isinstance(error, NotFoundError):
                # Others' deletes are carried by the deletion files of the version that was read: is it gone by now?
                self._base()
            if self._owned and staged.outcome in (Outcome.PENDING, Outcome.REFUSED):
                self._discard(results)
            raise
        finally:
            self._was_shown |= staged.was_shown
        # The transaction as it landed: without groups that were lost to others.
        return cleaned_up(_shown(lambda: table.at(current.committed(version)), table)), current.transaction

    def _conflict(self, result: RewriteResult) -> CommitConflictError:
        ids = ", ".join(map(str, _ids(result)))
        return CommitConflictError(
            f"Commit conflict: fragments {ids} of version {result.read_version} of {self._log.uri} were rewritten, or "
            "got other files, by another writer; their Rewrite was left out, plan the compaction again",
            uri=self._log.uri,
            operation="Rewrite",
            version=result.read_version,
            retryable=True,
        )

    def _base(self) -> native.Manifest:
        """The version that the results were read from."""
        version = self._results[0].read_version
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

    def _is_committed(self, result: RewriteResult, error: CommitConflictError | None) -> bool:
        """Whether a version has a refused result: by somebody else, or by an earlier try, whose reply got lost."""
        if self._owned:
            # A refusal is an answer: had a reply been lost before, the outcome would be unknown.
            return False
        try:
            return _was_committed(self._log, result)
        except OSError:
            if error is not None:
                raise
            # The other groups have landed, and are reported.
            return False

    def _is_unnamed(self, table: TableVersion, result: RewriteResult) -> bool:
        # In doubt a clean-up looks.
        with suppress(OSError):
            return is_unnamed(table, self._log, result, self._own)
        return False

    def _discard(self, results: Sequence[RewriteResult]) -> None:
        StagedFiles((self._log.store, place) for result in results for place in result.staged).discard()


def _shown(show: Callable[[], TableVersion], before: TableVersion) -> TableVersion:
    """The version to show after a commit, which stands even if that fails."""
    shown = before

    def work() -> None:
        nonlocal shown
        shown = show()

    follow(work, f"a compaction of {before.log.uri}")
    return shown


def _ids(result: RewriteResult) -> tuple[int, ...]:
    return tuple(fragment.id for fragment in result.old)


def _operation(results: Sequence[RewriteResult], numbered: Sequence[native.Fragment]) -> native.Operation:
    groups, start = [], 0
    for result in results:
        end = start + len(result.new)
        groups.append((list(result.old), list(numbered[start:end])))
        start = end
    return native.Operation.rewrite(groups, [])


def _was_committed(log: LanceLog, result: RewriteResult) -> bool:
    """Whether a version of the history is a Rewrite that committed a result, as far as versions are there."""
    listing = log.listing()
    for number in (number for number in listing.versions if number > result.read_version):
        with suppress(NotFoundError):
            transaction = log.transaction(log.manifest(number, listing.scheme))
            is_it = transaction is not None and transaction.operation == "Rewrite" and _made(transaction, result)
            if is_it and is_in_history(log, number, listing.scheme):
                return True
    return False


def _made(transaction: native.Transaction, result: RewriteResult) -> bool:
    """Whether a Rewrite committed a result."""
    if result.files:
        return not result.files.isdisjoint(written(transaction))
    return _replaces(transaction).issuperset(_ids(result))


def _replaces(transaction: native.Transaction) -> set[int]:
    return {fragment.id for old, _ in transaction.decoded().fields()["groups"] for fragment in old}
