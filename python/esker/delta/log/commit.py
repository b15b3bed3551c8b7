"""Delta's `CommitProtocol`: puts one log entry into the log of one table.

A log entry is JSON, one action a line, put if absent as `_delta_log/{version:020}.json`. `commitInfo` stands first and
has the `txnId` by which a writer finds its own entry again after a lost reply.

Spec: "Delta Log Entries", "Commit Provenance Information", "In-Commit Timestamps".
"""

from __future__ import annotations

import copy
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from ..._native import __version__
from ..._native.delta import Snapshot
from ..._native.store import Store
from ...commit.certain import nothing_put_on_error
from ...commit.clock import seconds_since
from ...commit.loop import CommitLimits
from ...commit.loop import commit as run
from ...commit.orphans import StagedFiles
from ...commit.protocol import CommittedChange, Verdict
from ...exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidArgumentError,
    NotFoundError,
)
from ...store.staging import StagingStore, check_not_moved, put_entry, refresh
from ...store.stores import is_behind_network
from ..definition.durations import LOG_FILES, retention
from ..definition.protocol import check_writable
from ..properties import CommitProperties, PostCommitHookProperties
from .changes import change_of, read_change
from .conflict import CommitActions, ConflictReason, Isolation, ReadSet, conflict_of, effective_isolation
from .entries import NO_TABLE, commit_path, named_versions, newest_version, vector_id
from .external import ExternalLog
from .post_commit import PostCommit
from .snapshots import load_snapshot
from .target import WriteTarget

DEFAULT_RETRIES = 15
"""As in deltalake."""
_ICT = "delta.enableInCommitTimestamps"
_SINCE = "delta.inCommitTimestampEnablement"
_HELD_UP_S = 3600.0
"""A writer that was away for so long asks whether its number came free meanwhile."""


def engine_info() -> str:
    """Who writes: the `engineInfo` of log entries."""
    return f"esker/{__version__}"


@dataclass(frozen=True)
class LogEntry:
    """What one log entry says: an operation, its actions, and what they were computed from.

    Args:
        operation: `operation` of `commitInfo`.
        parameters: `operationParameters` of `commitInfo`.
        actions: `(name, fields)` in the order in which they are written.
        read: What the actions were computed from.
        metrics: `operationMetrics` of `commitInfo`.
        keeps_numbers: Whether metrics are numbers there, as deltalake has them, rather than texts, as Spark has them.

    Example:
        `LogEntry("WRITE", {"mode": "Append"}, [("add", {"path": "part-0.parquet", ...})])`
    """

    operation: str
    parameters: Mapping[str, Any]
    actions: Sequence[tuple[str, dict[str, Any]]]
    read: ReadSet = field(default_factory=ReadSet)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    keeps_numbers: bool = False


@dataclass(frozen=True)
class CommitRequest:
    """What a caller wants of a commit, whatever it changes.

    Args:
        properties: Keys of `commitInfo`, transactions of applications, how often a lost race is tried again.
        hooks: What is done after the commit.
        application: `(appId, version)`: nothing is committed if the application has committed this or a later one.
        write_id: The `txnId`, for a caller that looks for it later; drawn if not given.
    """

    properties: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None
    application: tuple[str, int] | None = None
    write_id: str | None = None


class DeltaCommit:
    """Commits one log entry to one table: a `CommitProtocol`.

    Args:
        target: The table, in the version that the entry was computed from.
        entry: What it says.
        request: What the caller wants of the commit.

    Example:
        `version = DeltaCommit(target, LogEntry("WRITE", {"mode": "Append"}, actions)).run()`
    """

    def __init__(self, target: WriteTarget, entry: LogEntry, request: CommitRequest | None = None) -> None:
        request = request or CommitRequest()
        snapshot = target.snapshot
        self.write_id = request.write_id or str(uuid.uuid4())
        self.read_version = target.read_version
        self._store = target.store
        self._external = ExternalLog.of(target.store, target.uri, target.storage_options)
        self._uri = target.uri
        self._base = self._given = snapshot
        self._lost: CommitConflictError | None = None
        self._root = snapshot.root if snapshot is not None else ""
        self._operation = entry.operation
        self._parameters = dict(entry.parameters)
        self._actions = list(entry.actions)
        self._properties = request.properties or CommitProperties()
        self._metrics = {name: value if entry.keeps_numbers else str(value) for name, value in entry.metrics.items()}
        self._application = request.application
        self._protocol: Mapping[str, Any] = json.loads(snapshot.protocol_json) if snapshot is not None else {}
        self._configuration = _configuration(snapshot, self._actions)
        self._hooks = PostCommit(target.store, self._configuration, request.hooks, snapshot)
        self._transactions = {name: found[0] for name, found in (snapshot.transactions if snapshot else {}).items()}
        self._turns_times_on = self.read_version >= 0 and self._has_commit_times and not _is_on(_before(snapshot))
        self._newest_time = snapshot.in_commit_timestamp if snapshot is not None else None
        self._changes: dict[int, CommitActions] = {}
        self._known = NO_TABLE
        self._own: frozenset[str] = frozenset()
        self._staged: StagedFiles | None = None
        self._listed = self._looked = time.monotonic(), time.time()
        self._why = ConflictReason.UNKNOWN
        self._numbered = {transaction.app_id for transaction in self._properties.app_transactions or []}
        for transaction in self._properties.app_transactions or []:
            fields = {"appId": transaction.app_id, "version": transaction.version}
            updated = transaction.last_updated
            self._actions.insert(0, ("txn", fields if updated is None else {**fields, "lastUpdated": updated}))
        if request.application is not None:
            name, number = request.application
            self._actions.insert(0, ("txn", {"appId": name, "version": number, "lastUpdated": _now()}))
        self._ours = change_of(self._root, self._actions, self._uri)
        if self._protocol:
            check_writable(self._protocol)
        self._read = entry.read
        level = self._configuration.get("delta.isolationLevel", Isolation.SERIALIZABLE.value)
        self._level = next((known for known in Isolation if known.value == level), Isolation.SERIALIZABLE)

    @property
    def _has_commit_times(self) -> bool:
        return _is_on(self._configuration)

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._uri

    @property
    def advice(self) -> str:
        """How a caller finds out whether it landed."""
        return f"look for the txnId {self.write_id} in DeltaTable.history()"

    def run(
        self,
        staged: StagedFiles | None = None,
        *,
        rerun: Callable[[int], DeltaCommit] | None = None,
        runs_again: bool = False,
    ) -> int:
        """Commits; the version that it became, or the newest if it was applied already.

        Args:
            staged: The files that were written for it, under unique names.
            rerun: Where there was no table, and another writer has made one meanwhile: computes the change again on top
                of the version that it is given. Without it that is a conflict.
            runs_again: Whether it does so for every change that leaves no room, as often as a lost race is tried again.
        """
        retries = self._properties.max_commit_retries
        retries = DEFAULT_RETRIES if retries is None else retries
        limits = CommitLimits(max_retries=retries, max_reruns=retries if runs_again else 1)
        self._staged = staged
        if rerun is None or not (runs_again or self.read_version == NO_TABLE):
            return run(self, limits=limits, staged=staged)

        def again(version: int) -> DeltaCommit:
            made = rerun(version)
            made._staged = staged
            return made

        return run(self, limits=limits, staged=staged, rerun=again)

    def replayed(self, store: Store, common: int, own: frozenset[str]) -> DeltaCommit:
        """The same change, once more, for a log that has others' commits after a version that both have.

        Args:
            store: The table's, over a content that has the others' commits.
            common: The newest version that both have: what came before it was judged when it was first committed.
            own: The write ids of commits of the same transaction, which this one has read.
        """
        again = copy.copy(self)
        again._store, again._external, again._uri = store, None, store.uri
        again.read_version, again._base, again._given = common, None, None
        again._own, again._changes, again._known = own, {}, NO_TABLE
        # What the hooks would write, a later commit writes.
        again._hooks = PostCommit(store, {}, PostCommitHookProperties(create_checkpoint=False))
        return again

    @property
    def operation(self) -> str:
        """What it does, as `commitInfo` says it."""
        return self._operation

    @property
    def adds(self) -> Mapping[str, Mapping[str, Any]]:
        """The files that it adds, by their canonical paths."""
        return self._ours.adds

    @property
    def removes(self) -> Mapping[str, Mapping[str, Any]]:
        """The files that it removes, by their canonical paths."""
        return self._ours.removes

    def latest(self) -> int:
        """The newest version, -1 if there is none. A listing may lag behind what a put has met.

        Raises:
            CommitConflictError: The table was deleted or replaced.
            CorruptFileError: An external store knows a version that is not there.
        """
        if self._lost is not None:
            raise self._lost
        if self._external is not None:
            self._known = max(self._known, self._external.latest())
        self._listed = time.monotonic(), time.time()
        refresh(self._store)
        check_not_moved(self._store)
        listed = newest_version(self._store)
        newest = max(listed, self._known)
        if self._external is not None and newest > listed:
            self._external.check_there(newest)
        if newest < self.read_version:
            try:
                self._store.head(commit_path(self.read_version))
            except NotFoundError:
                raise self._replaced("is there no more, nor a later one") from None
            return self.read_version
        # Over a network this is a request: a table that stands as it did is taken for the same one.
        is_asked = newest > self.read_version or not is_behind_network(self._uri)
        # Once, and after a lost race: after a put in doubt nothing is read that need not be.
        base, self._base = self._base, None
        if is_asked and base is not None and base.is_replaced(self._store):
            raise self._replaced("has another entry by now")
        return newest

    def _replaced(self, how: str) -> CommitConflictError:
        return CommitConflictError(
            f"our {self._operation} was computed from version {self.read_version} of {self._uri}, which {how}: the "
            "table was deleted or replaced; nothing of ours is visible, open it again",
            uri=self._uri,
            operation=self._operation,
            version=self.read_version,
            retryable=False,
        )

    def changes_since(self, version: int, latest: int) -> Iterator[CommitActions]:
        """The commits after `version` up to `latest`."""
        for number in range(version + 1, latest + 1):
            yield self._change(number)

    def _change(self, version: int) -> CommitActions:
        if version not in self._changes:
            self._changes[version] = read_change(self._store, self._root, version)
        return self._changes[version]

    def applied(self, latest: int) -> bool:
        """Whether the application has committed this number, or a later one, by version `latest`."""
        if self._application is None:
            return False
        name, number = self._application
        found = self._transactions.get(name)
        for change in self.changes_since(self.read_version, latest):
            if change.write_id == self.write_id:
                return False
            found = change.transactions.get(name, found)
        if found is None or found < number:
            return False
        if self._staged is not None:
            # Unless ours may be there as well, its files are nobody's.
            self._staged.discard()
        return True

    def judge(self, change: CommittedChange) -> Verdict:
        """By the reference's rules; a change that leaves no room can be computed again by the caller."""
        if self.read_version == NO_TABLE:
            # There was no table: another writer has created it.
            return Verdict.RERUN
        if not isinstance(change, CommitActions):
            return Verdict.REFUSE
        if change.write_id in self._own:
            return Verdict.REBASE
        found = conflict_of(self._ours, self._read, change, self._level, self._protocol)
        if found is None:
            return Verdict.REBASE
        self._why = found
        # That an application has committed its number says that this one may be there already, from another run of it.
        is_numbered = not self._numbered.isdisjoint(change.transactions)
        if found is ConflictReason.UNKNOWN or (found is ConflictReason.CONCURRENT_TRANSACTION and is_numbered):
            return Verdict.REFUSE
        return Verdict.RERUN

    def rebase(self, change: CommittedChange) -> None:
        """The next entry must be later than theirs, and has their protocol."""
        if isinstance(change, CommitActions):
            self._newest_time = _commit_time(change) or self._newest_time
            self._protocol = change.protocol or self._protocol

    def next_bytes(self, version: int) -> bytes:
        """The entry that makes `version`."""
        level = effective_isolation(self._level, self._ours)
        info: dict[str, Any] = {}
        now = _now()
        if self._has_commit_times:
            now = max(now, (self._newest_time if self._newest_time is not None else -1) + 1)
            info["inCommitTimestamp"] = now
        info |= {"timestamp": now, "operation": self._operation, "operationParameters": self._parameters}
        if self.read_version >= 0:
            info["readVersion"] = self.read_version
        info |= {
            "isolationLevel": level.value,
            "isBlindAppend": self.is_blind_append,
            "operationMetrics": self._metrics,
            "engineInfo": engine_info(),
            "txnId": self.write_id,
        }
        given = dict(self._properties.custom_metadata or {})
        parameters = {
            name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            for name, value in given.pop("operationParameters", {}).items()
        }
        info |= given
        info["operationParameters"] = {**parameters, **self._parameters}
        actions = self._actions
        if self._turns_times_on:
            # Readers must know the version from which on entries have in-commit timestamps.
            since = {f"{_SINCE}Version": str(version), f"{_SINCE}Timestamp": str(now)}
            actions = [
                (name, _with_properties(fields, since) if name == "metaData" else fields) for name, fields in actions
            ]
        lines = [{"commitInfo": info}, *({name: fields} for name, fields in actions)]
        text = "\n".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False, allow_nan=False) for line in lines)
        try:
            return f"{text}\n".encode()
        except UnicodeEncodeError as error:
            around = text[max(0, error.start - 40) : error.end + 40]
            raise InvalidArgumentError(
                f"expected text that has a form in UTF-8, found a lone surrogate in {around!a}; nothing was committed",
                uri=self._uri,
            ) from error

    @property
    def is_blind_append(self) -> bool:
        """Whether it only adds, and nothing was read for it."""
        return self._read.is_empty and not self._ours.removes and bool(self._ours.adds) and self._ours.metadata is None

    def put(self, version: int, data: bytes) -> bool:
        """Puts the entry of `version` if there is none."""
        self._looked = self._listed
        if self._external is not None:
            landed = self._external.put(version, data)
        else:
            with nothing_put_on_error(self._store):
                landed = put_entry(self._store, commit_path(version), data, self, partial(self._hooks, version))
        if not landed:
            self._known = max(self._known, version)
            if not is_behind_network(self._uri):
                # Who was first may have made another table: the next look compares again.
                self._base = self._given
        return landed

    def write_id_at(self, version: int) -> str | None:
        """The `txnId` in the entry of `version`."""
        if self._external is not None:
            # An earlier attempt may have put the entry without copying it to its final path.
            self._external.latest()
        self._changes.pop(version, None)
        return self._change(version).write_id

    def was_put(self, version: int) -> bool | None:
        """Whether the entry of `version` is there and ours; None of stores whose puts may take effect later."""
        if self._external is not None or type(self._store) is not Store or is_behind_network(self._store.uri):
            return None
        there = self.write_id_at(version)
        if there is None and newest_version(self._store) > version and not self._is_there(version):
            # Of an entry that a clean-up took nobody can tell whose it was.
            return None
        return there == self.write_id

    def _is_there(self, version: int) -> bool:
        try:
            self._store.head(commit_path(version))
        except NotFoundError:
            return False
        return True

    def is_in_history(self, version: int) -> bool:
        """Whether `version`, just put, is the newest, or one that others' newer ones follow.

        A number comes free when a clean-up takes its entry away. Only a writer that was held up can put one there then.
        On a local disk it is looked as well whether the table was deleted right before the put.
        """
        if self._external is not None or isinstance(self._store, StagingStore):
            # A branch takes an entry only after the one before it.
            return True
        is_cut_off = False
        try:
            is_cut_off = self._is_cut_off(version)
            if not is_cut_off and not self._was_held_up():
                return True
            # A clean-up may have deleted it by now, or the entry after it; and clocks may be set back.
            if not is_cut_off and (self._is_followed_well(version) or self.is_part_of(newest_version(self._store))):
                return True
            if is_cut_off:
                self._lost = self._replaced("is there no more, nor a later one")
            there = self.write_id_at(version)
            if there == self.write_id:
                self._store.delete(commit_path(version))
                self._changes.pop(version, None)
        except (OSError, ValueError) as error:
            if not is_cut_off and not self._was_held_up():
                return True
            raise self._lost_sight(version, str(error)) from error
        if there is None:
            raise self._lost_sight(version, "its entry is there no more")
        return False

    def _is_cut_off(self, version: int) -> bool:
        """Whether nothing is left of the version before, nor a later one: the table was deleted before the put."""
        if version == 0 or is_behind_network(self._uri) or self._is_there(version - 1):
            return False
        # A clean-up takes the entry before only where there are later ones, or a checkpoint in its place.
        return not any(number >= version - 1 and number != version for number in named_versions(self._store))

    def _lost_sight(self, version: int, why: str) -> Exception:
        return CommitStateUnknownError(
            f"{why}; version {version} of {self._uri} was put after a long pause, and it is not known whether the "
            f"table had gone on without it: {self.advice}",
            uri=self._uri,
            version=version,
            transaction=self.write_id,
        )

    def _was_held_up(self) -> bool:
        kept_s = retention(self._configuration, LOG_FILES) / 1000
        return seconds_since(*self._looked) >= min(_HELD_UP_S, kept_s / 2)

    def _is_followed_well(self, version: int) -> bool:
        """Whether no later version is there, or the next one is and was put after ours.

        A clean-up takes entries away from the oldest on: if ours is there and the next one is not, ours came later.
        """
        newest = newest_version(self._store)
        if newest <= version:
            return True
        try:
            following = self._store.head(commit_path(version + 1)).last_modified_us
        except NotFoundError:
            return False
        try:
            ours = self._store.head(commit_path(version)).last_modified_us
        except NotFoundError:
            return False
        # Stores may keep times in whole seconds.
        return ours is None or following is None or ours <= following

    def is_part_of(self, version: int) -> bool:
        """Whether `version` has a file that only this commit can have brought: their names are random."""
        if self._staged is None:
            return False
        # A file that gets a vector was there before; but the file that its vector is in was not.
        paths = self._ours.adds.keys() - self._ours.removes.keys()
        vectors = {_stored_vector(add.get("deletionVector")) for add in self._ours.adds.values()} - {None}
        if not paths and not vectors:
            return False
        selection = load_snapshot(self._store, version=version).select(self._store)
        batch = pa.record_batch(selection.describe())
        if not paths.isdisjoint(batch.column("path").to_pylist()):
            return True
        return not vectors.isdisjoint(map(_stored_vector, batch.column("deletion_vector").to_pylist()))

    def landed(self, version: int) -> None:
        """Runs the post-commit hooks, whose failure does not undo the commit."""
        # On a branch, what they write went with the commit itself.
        if not isinstance(self._store, StagingStore):
            self._hooks(version)

    def conflict(self, change: CommittedChange, *, retryable: bool) -> Exception:
        """Says who was first and what to do."""
        if self.read_version == NO_TABLE:
            return AlreadyExistsError(
                f"a Delta table at {self._uri} exists already (created by another writer meanwhile); "
                'use mode="append" or mode="overwrite"',
                uri=self._uri,
                version=change.version,
            )
        theirs = change.operation if isinstance(change, CommitActions) else "unknown"
        advice = "run it again on the newest version" if retryable else "look at that version before you write again"
        if isinstance(change, CommitActions) and self._read.has_read(change.removes):
            advice += " (a concurrent transaction deleted data this operation read)"
        which = f"by the {theirs} that"
        if self._why is ConflictReason.UNKNOWN:
            which, advice = "that", "open the table again and run it on what it is by now"
        return CommitConflictError(
            f"commit conflict for version {change.version} of {self._uri}: {self._why.value} {which} another writer "
            f"committed after version {self.read_version}, which our {self._operation} was computed from; nothing of "
            f"ours is visible, {advice}",
            uri=self._uri,
            operation=self._operation,
            version=self.read_version,
            other_operation=theirs,
            other_version=change.version,
            retryable=retryable,
        )

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """Says how often we tried."""
        return CommitConflictError(
            f"our {self._operation} to {self._uri} lost the race {attempts} times in {seconds:.1f} s; nothing of ours "
            "is visible, try again or raise max_commit_retries",
            uri=self._uri,
            operation=self._operation,
            version=self.read_version,
            retryable=True,
        )


def _stored_vector(vector: Mapping[str, Any] | None) -> str | None:
    """The id of a vector in a file, which has a random name; None of an inline one."""
    return None if vector is None or vector["storageType"] == "i" else vector_id(vector)


def _is_on(configuration: Mapping[str, str]) -> bool:
    return configuration.get(_ICT, "").lower() == "true"


def _with_properties(metadata: dict[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    return {**metadata, "configuration": {**metadata["configuration"], **properties}}


def _before(snapshot: Snapshot | None) -> dict[str, str]:
    return dict(json.loads(snapshot.metadata_json)["configuration"] or {}) if snapshot is not None else {}


def _configuration(snapshot: Snapshot | None, actions: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    for name, fields in actions:
        if name == "metaData":
            return dict(fields["configuration"])
    return _before(snapshot)


def _commit_time(change: CommitActions) -> int | None:
    found = change.info.get("inCommitTimestamp")
    return found if isinstance(found, int) else None


def _now() -> int:
    return time.time_ns() // 1_000_000
