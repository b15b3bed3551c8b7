"""Conflict detection: whether a concurrent commit conflicts with ours, by the reference's rules.

The rules are checked in this order, and the first that applies is the reason of the conflict:

| rule | a conflict when theirs |
|---|---|
| protocol | changes the protocol, and ours does too, or this release could no longer write, or a feature is gone |
| metadata | changes the metadata |
| domain metadata | sets a domain that ours sets |
| transaction | commits for an application that ours commits for or looked at |
| concurrent append | adds files that ours would have read |
| delete-read | removes a file that ours read |
| delete-delete | removes a file that ours removes |

The isolation level says which of their files count for "concurrent append":

| level | appends that read nothing (blind) | others |
|---|---|---|
| Serializable | count | count |
| WriteSerializable | do not, unless ours changes the metadata | count |
| SnapshotIsolation | do not | do not |

Spec: the reference's `ConflictChecker`; the protocol itself only asks for a serial history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...exceptions import UnsupportedError
from ..definition.protocol import check_writable, features_of


class Isolation(Enum):
    """Isolation levels of the reference: which concurrent appends conflict."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


class ConflictReason(Enum):
    """Why a commit of others leaves no room for ours."""

    PROTOCOL_CHANGED = "the protocol was changed"
    METADATA_CHANGED = "the metadata was changed"
    DOMAIN_METADATA = "the same domain metadata was set"
    CONCURRENT_TRANSACTION = "the same application committed"
    CONCURRENT_APPEND = "files were added that ours would have read"
    CONCURRENT_DELETE_READ = "files were removed that ours had read"
    CONCURRENT_DELETE_DELETE = "files were removed that ours removes"
    UNKNOWN = "the entry is there no more"


@dataclass(frozen=True)
class ReadSet:
    """The files and rows that a change was computed from.

    `matches` says whether an added file (its `add` action) would have been read; None says that no file would have.
    """

    whole_table: bool = False
    files: frozenset[str] = frozenset()
    matches: Callable[[Mapping[str, Any]], bool] | None = None
    applications: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether no data was read."""
        return not self.whole_table and not self.files and self.matches is None

    def has_read(self, paths: Mapping[str, Any]) -> bool:
        """Whether one of some files was read."""
        return bool(paths) and (self.whole_table or not self.files.isdisjoint(paths))


@dataclass(frozen=True)
class CommitActions:
    """The actions of one commit, sorted by kind. Paths are in their canonical form."""

    version: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    transactions: Mapping[str, int] = field(default_factory=dict)
    domains: frozenset[str] = frozenset()
    adds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    known: bool = True

    @property
    def write_id(self) -> str | None:
        """The id that its writer drew: an empty text if it drew none, None if its entry does not exist any more."""
        if not self.known:
            return None
        found = self.info.get("txnId")
        return found if isinstance(found, str) else ""

    @property
    def operation(self) -> str:
        """The operation that its writer noted."""
        return str(self.info.get("operation", "unknown"))

    @property
    def is_blind_append(self) -> bool:
        """Whether its writer says that it read nothing. One that says nothing may have."""
        return self.info.get("isBlindAppend") is True

    @property
    def changes_data(self) -> bool:
        """Whether rows are other ones after it, rather than only in other places."""
        return any(action.get("dataChange", True) for part in (self.adds, self.removes) for action in part.values())


def effective_isolation(level: Isolation, ours: CommitActions) -> Isolation:
    """The level that a change is judged by: one that changes neither rows nor metadata misses nothing.

    Example:
        >>> from esker.delta.log.conflict import CommitActions, Isolation, effective_isolation
        >>> effective_isolation(Isolation.SERIALIZABLE, CommitActions()).value
        'SnapshotIsolation'
    """
    return level if ours.changes_data or ours.metadata is not None else Isolation.SNAPSHOT


def conflict_of(
    ours: CommitActions,
    read: ReadSet,
    theirs: CommitActions,
    level: Isolation,
    protocol: Mapping[str, Any],
) -> ConflictReason | None:
    """Why `theirs`, committed after what ours was computed from, leaves no room for ours; None if it does.

    Args:
        ours: What we want to commit.
        read: What it was computed from.
        theirs: What was committed.
        level: How strictly "concurrent append" is meant.
        protocol: The protocol of the version that ours was computed from.

    Example:
        >>> from esker.delta.log.conflict import CommitActions, Isolation, ReadSet, conflict_of
        >>> theirs = CommitActions(metadata={})
        >>> conflict_of(CommitActions(), ReadSet(), theirs, Isolation.SERIALIZABLE, {}).name
        'METADATA_CHANGED'
    """
    if not theirs.known:
        return ConflictReason.UNKNOWN
    if theirs.protocol is not None and _protocol_conflicts(ours, theirs.protocol, protocol):
        return ConflictReason.PROTOCOL_CHANGED
    if theirs.metadata is not None:
        return ConflictReason.METADATA_CHANGED
    if ours.domains & theirs.domains:
        return ConflictReason.DOMAIN_METADATA
    if (set(ours.transactions) | read.applications) & set(theirs.transactions):
        return ConflictReason.CONCURRENT_TRANSACTION
    if _append_conflicts(ours, read, theirs, effective_isolation(level, ours)):
        return ConflictReason.CONCURRENT_APPEND
    if read.has_read(theirs.removes):
        return ConflictReason.CONCURRENT_DELETE_READ
    if not ours.removes.keys().isdisjoint(theirs.removes):
        return ConflictReason.CONCURRENT_DELETE_DELETE
    return None


def _protocol_conflicts(ours: CommitActions, theirs: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    if ours.protocol is not None:
        return True
    try:
        check_writable(theirs)
    except UnsupportedError:
        return True
    return not features_of(before) <= features_of(theirs)


def _append_conflicts(ours: CommitActions, read: ReadSet, theirs: CommitActions, level: Isolation) -> bool:
    if read.is_empty or level is Isolation.SNAPSHOT:
        return False
    if level is Isolation.WRITE_SERIALIZABLE and theirs.is_blind_append and ours.metadata is None:
        return False
    # Files that only move rows (`dataChange` is false) are covered by the files that were removed for them.
    added = [add for add in theirs.adds.values() if add.get("dataChange", True)]
    if read.whole_table:
        return bool(added)
    matches = read.matches
    return matches is not None and any(matches(add) for add in added)
