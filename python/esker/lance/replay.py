"""A commit that a table took provisionally, committed again on top of what others have committed meanwhile.

A transaction over a branch stages the commits of its tables. When the branch has moved by its end, each commit goes
through the format's conflict rules again, against the others' changes alone, and becomes a later version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._native.table import Fragment, Manifest, Operation, Transaction
from ..commit.conflicts import application_conflict
from ..commit.loop import CommitLimits, commit
from ..commit.protocol import CommittedChange, Verdict
from ..exceptions import CommitConflictError
from .commit import LanceCommit
from .deletion_merge import DeletionMerge
from .log import LanceLog

_KEEP_IDS = ("Append", "Overwrite", "UpdateConfig", "ReserveFragments", "Project", "UpdateBases")
"""Operations that name no fragment of the version that they were computed from."""


STABLE_ROW_IDS = 2
"""The bit for stable row ids in the reader feature flags."""


class LanceReplay:
    """The provisional commits of one table, committed again one after the other.

    Args:
        log: The table's log, over the content that has the others' commits.
        common: The newest version that both have.

    Example:
        `[replay.again(5, first), replay.again(6, second)] == [7, 8]`
    """

    def __init__(self, log: LanceLog, common: int) -> None:
        self._log = log
        self._common = common
        self._own: set[str] = set()
        self._versions: dict[int, int] = {}
        self._fragments: dict[int, int] = {}
        self._carried: set[int] = set()
        self._has_stable_row_ids = False

    def again(self, version: int, first: LanceCommit) -> int:
        """Commits once more what was committed as `version`; the version that it is now.

        Raises:
            CommitConflictError: The others' changes conflict with it.
        """
        made, before = first.made, first.put_on
        if made is None:
            raise CommitConflictError(
                f"version {version} of {self._log.uri} cannot be committed again: run it again", retryable=True
            )
        self._has_stable_row_ids = bool(made.reader_feature_flags & STABLE_ROW_IDS)
        transaction = self._renumbered(first.transaction)
        replayed = _Replayed(self._log, transaction, first, self._common, self._own)
        self._own.add(transaction.uuid)
        if replayed.applied(replayed.latest()):
            raise application_conflict(self._log.uri, first.operation)
        now = commit(replayed, limits=CommitLimits(max_retries=0, max_reruns=0))
        self._versions[version] = now
        # What a restore brings back has the ids that it had.
        if replayed.made is not None and first.operation != "Restore":
            self._note_fragments(before, made, replayed.put_on, replayed.made)
        return now

    def _note_fragments(
        self, before: Manifest | None, made: Manifest, before_now: Manifest | None, made_now: Manifest
    ) -> None:
        """Notes which ids the fragments have now that this transaction has made."""
        then, now = _new_ids(before, made), _new_ids(before_now, made_now)
        if len(then) != len(now):
            # A rewrite into which deletes of others were carried, that left nothing of a new fragment.
            raise CommitConflictError(
                f"fragments that the transaction made of {self._log.uri} have lost all rows to others meanwhile; run "
                "the transaction again",
                retryable=True,
            )
        for old, new in zip(then, now, strict=True):
            self._fragments[old] = new
        # What others deleted meanwhile is deleted in what a rewrite made: later changes of it do not know that.
        deletions = {fragment.id: fragment.num_deletions for fragment in made_now.fragments()}
        self._carried |= {
            fragment.id
            for fragment in made.fragments()
            if fragment.id in self._fragments and deletions[self._fragments[fragment.id]] != fragment.num_deletions
        }

    def _renumbered(self, transaction: Transaction) -> Transaction:
        """The transaction with the numbers that versions and fragments of this transaction have now."""
        read = self._versions.get(transaction.read_version, transaction.read_version)
        operation = transaction.decoded()
        moved = {old: new for old, new in self._fragments.items() if old != new}
        self._check_carried(operation)
        if operation.name == "Restore" and operation.fields()["version"] in self._versions:
            operation = Operation.restore(self._versions[operation.fields()["version"]])
        elif operation.name == "Rewrite":
            # What others deleted since is carried where the version that was read is behind: a later group of the same
            # transaction has read none of it, although the version before it has a new number.
            read, operation = self._common, self._rewritten(operation, moved)
        elif moved and operation.name not in (*_KEEP_IDS, "Restore"):
            operation = self._with_ids(operation, moved)
        return Transaction(read, operation, properties=transaction.properties, uuid=transaction.uuid)

    def _check_carried(self, operation: Operation) -> None:
        """Refuses what names fragments of which others' deletes were carried into: it would bring their rows back."""
        if not self._carried or operation.name in (*_KEEP_IDS, "Restore", "CreateIndex"):
            return
        if self._carried.isdisjoint(named_fragments(operation)):
            return
        raise CommitConflictError(
            f"{operation.name} of {self._log.uri} changes fragments that a compaction of the same transaction has "
            "made, of which others have deleted rows meanwhile; nothing was committed: run the transaction again",
            operation=operation.name,
            retryable=True,
        )

    def _rewritten(self, operation: Operation, moved: Mapping[int, int]) -> Operation:
        """The Rewrite with new fragments of id 0, which get the next ids: others may have taken those that the same
        transaction had reserved."""
        fields = operation.fields()
        gone = {fragment.id for old, _ in fields["groups"] for fragment in old}
        if gone & moved.keys() and self._has_stable_row_ids:
            raise CommitConflictError(
                f"Rewrite of {self._log.uri} carries row ids of rows that the same transaction has made, and others "
                "have taken those ids meanwhile; nothing was committed: run the transaction again",
                operation=operation.name,
                retryable=True,
            )
        groups = [
            ([self._with_id(fragment, moved) for fragment in old], [fragment.with_id(0) for fragment in new])
            for old, new in fields["groups"]
        ]
        return Operation.rewrite(groups, fields["rewritten_indices"])

    def _with_ids(self, operation: Operation, moved: Mapping[int, int]) -> Operation:
        fields = operation.fields()
        # An index holds addresses of rows, with the ids of their fragments.
        if operation.name == "CreateIndex" and not any(
            index.fragment_ids is None or moved.keys() & set(index.fragment_ids) for index in fields["new_indices"]
        ):
            return operation
        if operation.name == "Delete":
            return Operation.delete(
                [self._with_id(fragment, moved) for fragment in fields["updated_fragments"]],
                [moved.get(id, id) for id in fields["deleted_fragment_ids"]],
                fields["predicate"],
            )
        if operation.name == "Update" and not fields.get("updated_fragment_offsets"):
            touched = {*fields["removed_fragment_ids"], *(fragment.id for fragment in fields["updated_fragments"])}
            if self._has_stable_row_ids and touched & moved.keys():
                raise CommitConflictError(
                    f"Update of {self._log.uri} carries row ids of rows that the same transaction has made, and others "
                    "have taken those ids meanwhile; nothing was committed: run the transaction again",
                    operation=operation.name,
                    retryable=True,
                )
            changed: dict[str, Any] = {
                **fields,
                "removed_fragment_ids": [moved.get(id, id) for id in fields["removed_fragment_ids"]],
                "updated_fragments": [self._with_id(fragment, moved) for fragment in fields["updated_fragments"]],
            }
            return Operation.update(**changed)
        raise CommitConflictError(
            f"{operation.name} of {self._log.uri} names fragments that the same transaction has made, whose ids others "
            "have taken meanwhile; nothing was committed: run the transaction again",
            operation=operation.name,
            retryable=True,
        )

    def _with_id(self, fragment: Fragment, moved: Mapping[int, int]) -> Fragment:
        if fragment.id not in moved:
            return fragment
        renamed = fragment.with_id(moved[fragment.id])
        # The name of a deletion file begins with the fragment's id.
        if fragment.deletion_file is not None and renamed.deletion_file is not None:
            self._log.store.put(renamed.deletion_file, self._log.store.get(fragment.deletion_file))
        return renamed


class _Replayed(LanceCommit):
    """A commit that was judged against all versions up to `common` and against those of its own transaction."""

    def __init__(self, log: LanceLog, transaction: Transaction, first: LanceCommit, common: int, own: set[str]) -> None:
        read = first.read_manifest
        reconcile = DeletionMerge(log, read) if first.reconciles and read is not None else None
        super().__init__(log, transaction, reconcile=reconcile, **first.terms)
        self.read_version = common
        self._read = read
        self._skipped = set(own)

    def judge(self, change: CommittedChange) -> Verdict:
        """What others' change means for ours; what the same transaction committed before was read by it."""
        return Verdict.KEEP if change.write_id in self._skipped else super().judge(change)


def named_fragments(operation: Operation) -> set[int]:
    """The ids of the fragments that an operation changes, removes or replaces.

    Example:
        `named_fragments(Operation.delete([], [3], "id = 1")) == {3}`
    """
    named: set[int] = set()
    for name, value in operation.fields().items():
        if name == "new_fragments":
            continue
        if name == "groups":
            named |= {fragment.id for old, _ in value for fragment in old}
        elif name in ("deleted_fragment_ids", "removed_fragment_ids"):
            named |= set(value)
        elif name in ("updated_fragments", "fragments"):
            named |= {fragment.id for fragment in value}
        elif name == "replacements":
            named |= {fragment for fragment, _ in value}
    return named


def _new_ids(before: Manifest | None, made: Manifest) -> list[int]:
    known = set() if before is None else {fragment.id for fragment in before.fragments()}
    return [fragment.id for fragment in made.fragments() if fragment.id not in known]
