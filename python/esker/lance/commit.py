"""`LanceCommit`: the commit protocol of Lance tables, for one transaction (docs/commit-protocol.md)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from .._native.table import HeldColumns, Manifest, Transaction
from ..commit.certain import nothing_put_on_error
from ..commit.clock import seconds_since
from ..commit.locks import held
from ..commit.protocol import CommitLock, CommittedChange, Verdict
from ..exceptions import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    InvalidArgumentError,
    NotFoundError,
    OldTableError,
    UnsupportedError,
)
from ..storage_version import DEFAULT_STORAGE_VERSION
from ..store.staging import StagingStore, check_not_moved
from ..store.stores import is_behind_network
from .committed_change import LanceChange
from .conflicts import conflict_with, made_meanwhile, races_lost
from .deletion_merge import Reconcile
from .dropped import dropped_error, is_dropped
from .log import TRANSACTIONS, LanceLog, NamingScheme, files_of, transaction_file_name, transaction_uuid
from .stray import check_no_stray

APPLICATION_ID = "esker.application.id"
APPLICATION_VERSION = "esker.application.version"
"""The transaction properties that number an application's commits: each number is committed once."""
APPLICATION_PREFIX = "esker.application."
"""Prefix of the key in the table's config that holds the last number committed by an application; its id follows."""

DETACHED = "esker.detached"
"""The transaction property of a detached commit: a clean-up that finds it keeps the base version of that commit."""

STAGED_TIME_S = 20 * 60.0
"""Seconds after which a writer stages its transaction again: a third of `cleanup.policy.UNDER_WAY_AGE`, the age up to
which a clean-up takes a transaction for a commit under way."""

LOOK_AGAIN_S = 60.0
"""Seconds since a transaction was staged up to which `is_in_history` asks nothing of a store behind a network."""

MAX_FIELD_ID = "esker.max_field_id"
"""A config key that every operation which removes fields sets: it does not tell who committed."""

_NEW_SCHEMA = ("Merge", "Project", "Overwrite", "Restore")
"""Operations after which a field id may mean another column."""

_VERDICTS = {"compatible": Verdict.KEEP, "retry": Verdict.RERUN, "incompatible": Verdict.REFUSE}


class LanceCommit:
    """The commit of one transaction to one table: a `CommitProtocol`.

    Args:
        log: The table's log.
        transaction: The change.
        data_storage_version: The file version of a table that this transaction creates, or that an overwrite changes
            to; None keeps the table's.
        enable_stable_row_ids: Whether a table that this transaction creates has stable row ids.
        create: Whether it is an error if the table exists.
        strict: Whether nobody else may have committed anything since the read version.
        scheme: How a new table names its manifests.
        lock: Held around the put, for stores without put-if-absent.
        base: The manifest of the base version, if it is at hand: it saves reading it.
        reconcile: Adapts the transaction to another one that touched the same fragments, where that is possible.
        restored: The manifest that a Restore brings back, if it is none of this log: that of another branch of a
            repository, whose files lie in this table's folder already. Its version is the one that the Restore names.
    """

    def __init__(
        self,
        log: LanceLog,
        transaction: Transaction,
        *,
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        create: bool = False,
        strict: bool = False,
        scheme: NamingScheme = "V2",
        lock: CommitLock | None = None,
        base: Manifest | None = None,
        reconcile: Reconcile | None = None,
        restored: Manifest | None = None,
    ) -> None:
        if lock is not None and isinstance(log.store, StagingStore):
            raise UnsupportedError(
                f"{log.uri}: expected no commit_lock for a table on a branch, found one: the repository's own commits "
                "decide there; leave it out",
                uri=log.uri,
            )
        self.log = log
        self.transaction = transaction
        self.read_version = transaction.read_version
        self.write_id = transaction.uuid
        self._data_storage_version = data_storage_version
        self._enable_stable_row_ids = enable_stable_row_ids
        self._create = create
        self._strict = strict
        self._scheme = scheme
        self._lock = lock
        self._reconcile = reconcile
        self._restored = restored
        self._base = base
        self._put_on: Manifest | None = None
        self._read = base if base is not None and base.version == transaction.read_version else None
        self._given = self._read
        self._made: Manifest | None = None
        self._held: HeldColumns | None = None
        self._follows = False
        self._may_move_columns = False
        self._known = 0
        self._landed: int | None = None
        self._lost: Exception | None = None
        self.unreleased: dict[int, Exception] = {}
        self._staged = False
        self._staged_at = self._staged_at_wall = 0.0

    @property
    def uri(self) -> str:
        """The table's URI."""
        return self.log.uri

    @property
    def operation(self) -> str:
        """What it does: the transaction's operation."""
        return self.transaction.operation

    @property
    def made(self) -> Manifest | None:
        """The manifest that was put last."""
        return self._made

    @property
    def put_on(self) -> Manifest | None:
        """The manifest that it was put on top of."""
        return self._put_on

    @property
    def read_manifest(self) -> Manifest | None:
        """The manifest of the version that the change was computed from, if it is at hand."""
        if self._read is None and self.read_version:
            self._read = self.log.manifest(self.read_version, self._scheme)
        return self._read

    @property
    def reconciles(self) -> bool:
        """Whether it is adapted to others that changed the same fragments."""
        return self._reconcile is not None

    @property
    def terms(self) -> dict[str, Any]:
        """What it was made with beside the transaction: for the same commit to another log."""
        return {
            "data_storage_version": self._data_storage_version,
            "enable_stable_row_ids": self._enable_stable_row_ids,
            "create": self._create,
            "strict": self._strict,
            "scheme": self._scheme,
        }

    @property
    def advice(self) -> str:
        """How to find out whether the commit has landed; part of an error message."""
        return f'ask the newest version for find_transaction("uuid", "{self.write_id}")'

    def latest(self) -> int:
        """The newest version, 0 if there is none.

        Raises:
            CommitConflictError: The table was dropped, or the branch deleted; another one may be in its place.

        The transaction is staged before: a clean-up that finds it keeps all versions after its read version. So the
        number that our put takes cannot be one that another writer's version had before a clean-up freed it.
        """
        if self._lost is not None:
            raise self._lost
        if self.read_version or self.transaction.operation == "Overwrite":
            self._stage()
        listing = self.log.newest()
        check_not_moved(self.log.store)
        if listing.versions:
            self._scheme = listing.scheme
        # A listing may be older than what a put has found, and than the version that was read.
        latest = max(listing.latest, self._known, self.read_version)
        # Where the version that was read is newer than all that are listed, the listing is old, or the table is gone.
        is_short = listing.latest < self.read_version
        # Over a network these are requests: a table that stands as it did is taken for the same one.
        is_asked = latest > self.read_version or not is_behind_network(self.uri)
        # Once: after a put in doubt nothing is read that need not be.
        given, self._given = self._given, None
        if is_short and self._base is not None:
            given, is_asked = self._base, True
        if is_asked and given is not None and self.log.is_replaced(given, self._scheme, or_gone=is_short):
            is_gone = not listing.versions
            raise dropped_error(self.log, self.operation, self.read_version, given.branch, is_gone=is_gone)
        return latest

    def changes_since(self, version: int, latest: int) -> Iterator[LanceChange]:
        """The transactions behind the versions after `version` up to `latest`."""
        for number in range(version + 1, latest + 1):
            try:
                manifest = self.log.manifest(number, self._scheme)
            except NotFoundError:
                # Cleaned up already: its transaction cannot be known any more.
                yield LanceChange(number, None)
                continue
            if number == latest:
                self._base = manifest
            yield LanceChange(number, self.log.transaction(manifest), manifest)

    def judge(self, change: CommittedChange) -> Verdict:
        """The format's conflict rule for our operation after theirs; a change without a transaction is a conflict."""
        if not isinstance(change, LanceChange) or change.transaction is None or self._create:
            # Settings become what the caller said, whatever versions that are gone had made of them.
            sets = self.transaction.operation == "UpdateConfig" and not self._create
            return Verdict.RERUN if sets else Verdict.REFUSE
        if self._strict:
            return Verdict.REFUSE
        self._may_move_columns |= change.transaction.operation in ("Update", "Merge")
        verdict = _VERDICTS[self.transaction.conflict_with(change.transaction)]
        # New rows have the columns of the version that they were computed from, which deletion vectors do not mend.
        is_about_rows = self.transaction.operation != "Update" or change.transaction.operation not in _NEW_SCHEMA
        if verdict is Verdict.RERUN and is_about_rows and self._reconcile is not None and change.manifest is not None:
            adapted = self._reconcile(self.transaction, change.manifest, change.transaction)
            if adapted is not None:
                self.transaction, self._staged = adapted, False
                return Verdict.KEEP
        if verdict is Verdict.KEEP and not self._names_same_columns(change):
            return Verdict.RERUN
        return verdict

    def _names_same_columns(self, change: LanceChange) -> bool:
        """Whether the field ids in ours still mean the same columns: others may reuse the id of a dropped column."""
        theirs, made = change.transaction, change.manifest
        if theirs is None or made is None or theirs.operation not in _NEW_SCHEMA:
            return True
        if not self._follows:
            try:
                read = self._read or self.log.manifest(self.read_version, self._scheme)
            except NotFoundError:
                # Cleaned up. Only a Project is known to leave the ids of the remaining columns unchanged.
                if theirs.operation != "Project":
                    return self.transaction.held_columns(made) is None
                read = made
            self._held, self._follows = self.transaction.held_columns(read), True
        if self._held is None:
            return True
        self._held = self._held.after(theirs, made)
        return self._held is not None

    def rebase(self, change: CommittedChange) -> None:
        """Does nothing: `Transaction.apply` works on any compatible base version."""

    def applied(self, latest: int) -> bool:
        """Whether the transaction's application has committed its number, or a later one, by version `latest`."""
        properties = self.transaction.properties
        name, number = properties.get(APPLICATION_ID), properties.get(APPLICATION_VERSION)
        if name is None or number is None or latest == 0:
            return False
        base = self._base_of(latest + 1)
        return base is not None and is_applied(base, name, int(number))

    def landed(self, version: int) -> None:
        """Moves a staged manifest to its final path and updates `_latest.manifest`, where the table has them."""
        self._landed = version
        self.log.landed(version, self._scheme)

    def next_bytes(self, version: int) -> bytes:
        """The manifest file of `version`."""
        base = self._base_of(version)
        if base is not None:
            base.check_readable()
            base.check_writable()
        elif self.transaction.operation != "Overwrite":
            raise NotFoundError(
                f"no table at {self.log.uri} to {self.transaction.operation.lower()} to; create it first",
                uri=self.log.uri,
            )
        # An append keeps the table's file version, whatever the version of its own files.
        kept = base.data_storage_version if base is not None else DEFAULT_STORAGE_VERSION
        if base is not None and self.transaction.operation not in ("Overwrite", "Restore"):
            kept = base.storage_version_to_write
        replaces = base is None or self.transaction.operation != "Append"
        storage = self._data_storage_version if replaces and self._data_storage_version else kept
        self._put_on = base
        try:
            self._made = self.transaction.apply(
                base,
                version=version,
                data_storage_version=storage,
                timestamp_ns=time.time_ns(),
                restored=self._version_to_restore(),
                read=self._version_indexed(base),
                store=self.log.store,
                enable_stable_row_ids=self._enable_stable_row_ids,
            )
        except InvalidArgumentError as error:
            if self.operation != "CreateIndex" or base is None or base.version <= self.read_version:
                raise
            # Its columns were there when it was made.
            raise CommitConflictError(
                f"CreateIndex of {self.uri} was made of version {self.read_version}: {error}",
                uri=self.uri,
                version=version,
                operation=self.operation,
                retryable=True,
            ) from error
        self._stage()
        return self._made.encode()

    def put(self, version: int, data: bytes) -> bool:
        """Puts the manifest of `version` if there is none."""
        if self._held_up():
            # A clean-up may soon take the transaction for abandoned: stage it again, then list the versions again.
            self._staged = False
            self._stage()
            return False
        with nothing_put_on_error(self.log.store), held(self._lock, version, self.unreleased):
            landed = self.log.put(version, self._scheme, data, locked=self._lock is not None, change=self)
        if not landed:
            self._known = max(self._known, version)
            if not is_behind_network(self.uri):
                # Who was first may have made another table: the next look compares again.
                self._given = self._put_on
        return landed

    def is_in_history(self, version: int) -> bool:
        """Whether `version`, just put, is the newest, or one that other writers' newer versions were built on."""
        if self.log.manifest_store is not None or isinstance(self.log.store, StagingStore):
            # An external manifest store keeps its entries, and a branch takes an entry only after the one before it.
            return True
        if is_behind_network(self.uri) and self._staged_for_s() < LOOK_AGAIN_S:
            # Saves a request: no clean-up removes versions after the read version of a transaction this young.
            return True
        try:
            latest, is_lost = self._look(version)
            if not is_lost and (latest <= version or self._came_before(version)):
                return True
        except CommitStateUnknownError:
            raise
        except OSError as error:
            if not self._held_up():
                # No clean-up takes a transaction this young for abandoned: no number has become free.
                return True
            raise self._lost_sight(version, error) from error
        try:
            self._take_back(version)
        except OSError as error:
            raise self._lost_sight(version, error) from error
        self._known = max(self._known, latest)
        return False

    def _look(self, version: int) -> tuple[int, bool]:
        """The newest version after the put of `version`, and whether the table was dropped right before it."""
        try:
            versions = self.log.newest().versions
        except CorruptFileError:
            # Names of both kinds: the table that was made anew may have those that ours had not.
            if not self._was_dropped(is_gone=False):
                raise
            return version, True
        latest = max(versions, default=0)
        # Below newer versions a clean-up had made the number free, which may have taken our transaction, too.
        is_cut_off = latest == version and 0 < version - 1 not in versions
        return latest, is_cut_off and self._was_dropped(is_gone=versions == (version,))

    def _was_dropped(self, *, is_gone: bool) -> bool:
        """Whether what was put last lacks what it needs. The next look ends in a conflict then."""
        if self._made is None or not is_dropped(self.log, self._made):
            return False
        branch = self._made.branch
        self._lost = dropped_error(self.log, self.operation, self.read_version, branch, is_gone=is_gone)
        return True

    def is_part_of(self, version: int) -> bool:
        """Whether `version` refers to files that only this transaction can have added: their names are random."""
        return bool(self._new_files() & files_of(self.log.manifest(version, self._scheme).fragments()))

    def _new_files(self) -> set[str]:
        if self._made is None or self.transaction.operation == "Restore":
            # The files of a restored version are not new: another writer may restore them, too.
            return set()
        before = self._put_on.fragments() if self._put_on is not None else []
        return files_of(self._made.fragments()) - files_of(before)

    def _came_before(self, version: int) -> bool:
        """Whether `version` was put before the next version in the listing, by the store's clock."""
        following = min((number for number in self.log.listing().versions if number > version), default=None)
        if following is None:
            return True
        ours, theirs = (self.log.store.head(self.log.path_of(it, self._scheme)) for it in (version, following))
        if ours.last_modified_us is None or theirs.last_modified_us is None:
            return not self._held_up() or self._shows_in(following)
        if ours.last_modified_us < theirs.last_modified_us:
            return True
        # A store's clock may count in seconds and may be set back, and a store may have several clocks.
        is_same = ours.last_modified_us == theirs.last_modified_us
        return (is_same and not self._held_up()) or self._shows_in(following)

    def _shows_in(self, version: int) -> bool:
        """Whether `version` was built on ours: whether it has files or settings that this transaction added.

        Raises:
            CommitStateUnknownError: The transaction added none.
        """
        before = self._put_on.config if self._put_on is not None else {}
        made = self._made.config if self._made is not None and self.transaction.operation != "Restore" else {}
        new = {key: made[key] for key in made if key != MAX_FIELD_ID and before.get(key) != made[key]}
        if not new and not self._new_files():
            raise CommitStateUnknownError(
                f"the version before {version} of {self.uri} is ours, and seems younger than that one: a clock was set "
                f"back, or a clean-up had made its number free; {self.advice}, and whether later versions show it",
                uri=self.uri,
                version=version,
                transaction=self.write_id,
            )
        there = self.log.manifest(version, self._scheme).config
        return self.is_part_of(version) or (bool(new) and all(there.get(key) == new[key] for key in new))

    def _take_back(self, version: int) -> None:
        """Removes our manifest from a number that had become free: the versions above were not built on ours."""
        if self.write_id_at(version) == self.write_id:
            self.log.store.delete(self.log.path_of(version, self._scheme))

    def _lost_sight(self, version: int, error: OSError) -> Exception:
        return CommitStateUnknownError(
            f"{error}; version {version} of {self.uri} was put after a long pause, and it could not be looked up "
            f"whether later versions were built on it: {self.advice}",
            uri=self.uri,
            version=version,
            transaction=self.write_id,
        )

    def _held_up(self) -> bool:
        """Whether the transaction was staged so long ago that a clean-up may soon take it for abandoned."""
        return self._staged_for_s() > STAGED_TIME_S

    def _staged_for_s(self) -> float:
        return seconds_since(self._staged_at, self._staged_at_wall)

    def committed(self, version: int) -> Manifest:
        """The manifest of the committed version. The one that was put is returned without reading it again.

        Raises:
            CommitStateUnknownError: It had to be read, and could not be. The commit has landed all the same.
        """
        if self._made is not None and self._made.version == version == self._landed:
            return self._made
        try:
            try:
                return self.log.manifest(version, self._scheme)
            except NotFoundError:
                # Cleaned up already: the newest version contains the change.
                return self.log.open()[0]
        except OSError as error:
            raise CommitStateUnknownError(
                f"{error}; version {version} of {self.uri} is committed, but it could not be read: open the table "
                "again, and do not write to it again",
                uri=self.uri,
                version=version,
                transaction=self.write_id,
            ) from error

    def write_id_at(self, version: int) -> str | None:
        """The uuid of the transaction that made `version`, from its manifest: inline, or in its file's name."""
        try:
            manifest = self.log.manifest(version, self._scheme)
        except NotFoundError:
            return None
        name = manifest.transaction_file
        if name == transaction_file_name(self.transaction):
            return self.write_id
        inline = manifest.inline_transaction()
        return inline.uuid if inline else (transaction_uuid(name) if name else None) or name

    def conflict(self, change: CommittedChange, *, retryable: bool) -> Exception:
        """The error that says which operation was committed first and what to do."""
        if self._create:
            return made_meanwhile(self.log, change.version)
        return conflict_with(self.log, self.operation, self.read_version, change, retryable=retryable)

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """The error that says how often the commit was tried."""
        return races_lost(self.log, self.operation, self.read_version, attempts, seconds)

    def detached(self) -> Manifest:
        """Commits a detached version: not in the history, opened only by its number. It cannot conflict.

        Raises:
            OldTableError: The table has manifest names of V1, which have no place for it.
        """
        ours = self.transaction
        marked = {**ours.properties, DETACHED: "true"}
        self.transaction = Transaction(ours.read_version, ours.decoded(), properties=marked, uuid=ours.uuid)
        # Staged before the base version is read: a clean-up that removes it later finds this and keeps its files.
        self._stage()
        self._scheme = self.log.newest().scheme
        if self._scheme == "V1":
            raise OldTableError(
                f"expected a table with V2 manifest names, found {self.uri}: detached commits cannot be used with v1 "
                "manifest paths; call migrate_manifest_paths_v2() first",
                uri=self.uri,
            )
        base = self.log.manifest(self.read_version, self._scheme)
        base.check_writable()
        restored, store = self._version_to_restore(), self.log.store
        storage = base.storage_version_to_write if restored is None else base.data_storage_version
        while True:
            version, now = secrets.randbits(63) | 1 << 63, time.time_ns()
            params: dict[str, Any] = {"version": version, "data_storage_version": storage, "timestamp_ns": now}
            made = self.transaction.apply(base, **params, restored=restored, store=store)
            try:
                landed = self.log.put(version, self._scheme, made.encode(), change=self)
            except OSError as error:
                raise CommitStateUnknownError(
                    f"{error}; whether the detached version {version} of {self.uri} was committed is not known: open "
                    "it by its number before you commit again",
                    uri=self.uri,
                    version=version,
                    transaction=self.write_id,
                ) from error
            if landed:
                return made

    def _version_to_restore(self) -> Manifest | None:
        """The manifest that a Restore brings back; None for all other operations."""
        if self.transaction.operation == "Restore" and self._restored is None:
            version = self.transaction.decoded().fields()["version"]
            # The transaction is staged already: a clean-up that removes that version finds it and keeps the files.
            self._restored = self.log.open(version)[0]
            check_no_stray(self.log, self._restored, self._scheme)
        return self._restored

    def _version_indexed(self, base: Manifest | None) -> Manifest | None:
        """The version that a CreateIndex was made of, if others have committed since."""
        if self.operation != "CreateIndex" or base is None or base.version <= self.read_version:
            return None
        try:
            return self.read_manifest
        except NotFoundError:
            if not self._may_move_columns:
                return None
            raise CommitConflictError(
                f"CreateIndex of {self.uri} was made of version {self.read_version}, which a clean-up has removed: "
                "nobody knows what lay in which files; nothing was committed: make the index of the newest version",
                uri=self.uri,
                version=self.read_version,
                operation=self.operation,
            ) from None

    def _base_of(self, version: int) -> Manifest | None:
        if version == 1:
            return None
        if self._base is None or self._base.version != version - 1:
            self._base = self.log.manifest(version - 1, self._scheme)
        return self._base

    def _stage(self) -> None:
        """Writes the transaction file, once: it must exist before a manifest refers to it."""
        if not self._staged:
            self._staged_at, self._staged_at_wall = time.monotonic(), time.time()
            path = TRANSACTIONS + transaction_file_name(self.transaction)
            # Where the manifest holds it, nobody needs the file after a power cut: its writer is gone, too.
            self.log.store.put(path, self.transaction.encode(), synced=not self.transaction.is_inline)
            self._staged = True


def is_applied(manifest: Manifest, application: str, number: int) -> bool:
    """Whether an application has committed this number, or a later one, by the version of `manifest`.

    Example:
        `is_applied(manifest, "nightly", 12)`
    """
    last = manifest.config.get(APPLICATION_PREFIX + application)
    return last is not None and last.isascii() and last.isdigit() and int(last) >= number
