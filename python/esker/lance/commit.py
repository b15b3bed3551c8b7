"""Lance's side of the commit loop: one transaction on its way into one table."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

from .._native.table import Fragment, HeldColumns, Manifest, Transaction
from ..commit.clock import seconds_since
from ..commit.protocol import Change, CommitLock, NothingPut, Verdict
from ..exceptions import AlreadyExistsError, CommitConflictError, CommitStateUnknownError, NotFoundError
from ..storage_version import DEFAULT_STORAGE_VERSION
from ..store.stores import is_behind_network
from .log import TRANSACTIONS, LanceLog, NamingScheme

APPLICATION_ID = "esker.application.id"
APPLICATION_VERSION = "esker.application.version"
"""The transaction properties that number an application's commits: each number is committed once."""
APPLICATION_PREFIX = "esker.application."
"""The last number of an application stands in the table's config under this and the application's id."""

DETACHED = "esker.detached"
"""The transaction property of a detached commit: a clean-up that meets it keeps the version that it starts from."""

STAGED_TIME_S = 20 * 60.0
"""For how long a staged transaction holds off clean-ups, in seconds: a third of what a clean-up takes for it."""

LOOK_AGAIN_S = 60.0
"""On a store behind a network it is looked whether a version is part of the history only this long after its
transaction was staged, in seconds."""

Reconcile: TypeAlias = Callable[[Transaction, Manifest, Transaction], Transaction | None]
"""Given ours, the version that theirs made, and theirs, of which both touch a fragment: ours as it is right on top of
that version (rows deleted from one fragment by both, say), or None if it must be computed again."""

_MAX_FIELD_ID = "esker.max_field_id"
"""Noted by whatever removes fields: it is nobody's alone."""

_NEW_SCHEMA = ("Merge", "Project", "Overwrite", "Restore")
"""Operations after which a field id may mean another column."""

_VERDICTS = {"compatible": Verdict.KEEP, "retry": Verdict.RERUN, "incompatible": Verdict.REFUSE}


class DeletionMerge:
    """A `Reconcile` that merges deletion vectors, where both changes deleted different rows of a fragment.

    Args:
        log: The table, for the deletion files.
        base: The version that ours was computed from.

    Example:
        `LanceCommit(log, delete, reconcile=DeletionMerge(log, manifest))`
    """

    def __init__(self, log: LanceLog, base: Manifest) -> None:
        self._log = log
        self._base = base

    def __call__(self, ours: Transaction, manifest: Manifest, theirs: Transaction) -> Transaction | None:
        """Ours on top of the version that `manifest` is."""
        if ours.may_insert_same_keys(theirs):
            # Other rows of a fragment they may be, and the same new ones.
            return None
        self._log.mount(manifest)
        adapted = ours.reconcile(self._log.store, self._base, manifest)
        if adapted is not None:
            # The next change of others is judged against this one.
            self._base = manifest
        return adapted


@dataclass(frozen=True)
class LanceChange:
    """A version that somebody committed, with the transaction behind it where that can be found."""

    version: int
    transaction: Transaction | None
    manifest: Manifest | None = None

    @property
    def write_id(self) -> str | None:
        """The transaction's uuid; that in its file's name, where the file is gone."""
        if self.transaction is not None:
            return self.transaction.uuid
        name = self.manifest.transaction_file if self.manifest is not None else None
        return transaction_uuid(name) if name else None

    @property
    def operation(self) -> str:
        """The transaction's operation."""
        return self.transaction.operation if self.transaction else "unknown"


class LanceCommit:
    """One transaction on its way into one table: a `CommitProtocol`.

    Args:
        log: The table.
        transaction: The change.
        data_storage_version: The file version of a table that this transaction creates, or that an overwrite changes
            to; None keeps the table's.
        enable_stable_row_ids: Whether rows of a table that this creates keep their ids when they move.
        create: Whether it is an error that the table exists.
        scheme: How a new table names its manifests.
        lock: Held around the put, for stores without put-if-absent.
        base: The version that the transaction was computed from, if it is at hand: it is not read again.
        reconcile: Adapts the transaction to one that touched the same fragments, where that is possible.
    """

    def __init__(
        self,
        log: LanceLog,
        transaction: Transaction,
        *,
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        create: bool = False,
        scheme: NamingScheme = "V2",
        lock: CommitLock | None = None,
        base: Manifest | None = None,
        reconcile: Reconcile | None = None,
    ) -> None:
        self.log = log
        self.transaction = transaction
        self.read_version = transaction.read_version
        self.write_id = transaction.uuid
        self._data_storage_version = data_storage_version
        self._enable_stable_row_ids = enable_stable_row_ids
        self._create = create
        self._scheme = scheme
        self._lock = lock
        self._reconcile = reconcile
        self._restored: Manifest | None = None
        self._base = base
        self._put_on: Manifest | None = None
        self._read = base if base is not None and base.version == transaction.read_version else None
        self._made: Manifest | None = None
        self._held: HeldColumns | None = None
        self._follows = False
        self._known = 0
        self._landed: int | None = None
        self._staged = False
        self._staged_at = self._staged_at_wall = 0.0

    @property
    def uri(self) -> str:
        """The table."""
        return self.log.uri

    @property
    def advice(self) -> str:
        """How to find out whether it has landed."""
        return f'ask the newest version for find_transaction("uuid", "{self.write_id}")'

    def latest(self) -> int:
        """The newest version, 0 if there is none.

        The transaction is staged before: a clean-up that meets it leaves the versions after its read version alone. So
        the number of the next version cannot have been another's, and be free again, when ours is put under it.
        """
        if self.read_version or self.transaction.operation == "Overwrite":
            self._stage()
        listing = self.log.newest()
        if listing.versions:
            self._scheme = listing.scheme
        # A listing may lag behind what a put has met, and behind what was read.
        return max(listing.latest, self._known, self.read_version)

    def changes_since(self, version: int, latest: int) -> Iterator[LanceChange]:
        """The transactions behind the versions after `version` up to `latest`."""
        for number in range(version + 1, latest + 1):
            try:
                manifest = self.log.manifest(number, self._scheme)
            except NotFoundError:
                # Cleaned up already: what it changed cannot be known any more.
                yield LanceChange(number, None)
                continue
            if number == latest:
                self._base = manifest
            yield LanceChange(number, self.log.transaction(manifest), manifest)

    def judge(self, change: Change) -> Verdict:
        """The format's rule for our operation after theirs; a change that nobody can name is a conflict."""
        if not isinstance(change, LanceChange) or change.transaction is None or self._create:
            return Verdict.REFUSE
        verdict = _VERDICTS[self.transaction.conflict_with(change.transaction)]
        if verdict is Verdict.RERUN and self._reconcile is not None and change.manifest is not None:
            adapted = self._reconcile(self.transaction, change.manifest, change.transaction)
            if adapted is not None:
                self.transaction, self._staged = adapted, False
                return Verdict.KEEP
        if verdict is Verdict.KEEP and not self._names_same_columns(change):
            return Verdict.RERUN
        return verdict

    def _names_same_columns(self, change: LanceChange) -> bool:
        """Whether the field ids in ours mean the columns that they meant: others may give a dropped one's id anew."""
        theirs, made = change.transaction, change.manifest
        if theirs is None or made is None or theirs.operation not in _NEW_SCHEMA:
            return True
        if not self._follows:
            try:
                read = self._read or self.log.manifest(self.read_version, self._scheme)
            except NotFoundError:
                # Cleaned up. Nothing but a Project leaves what stays as it was.
                if theirs.operation != "Project":
                    return self.transaction.held_columns(made) is None
                read = made
            self._held, self._follows = self.transaction.held_columns(read), True
        if self._held is None:
            return True
        self._held = self._held.after(theirs, made)
        return self._held is not None

    def rebase(self, change: Change) -> None:
        """Nothing to adapt: `Transaction.apply` works on any compatible base."""

    def applied(self, latest: int) -> bool:
        """Whether the application that commits has committed this number, or a later one, by version `latest`."""
        properties = self.transaction.properties
        name, number = properties.get(APPLICATION_ID), properties.get(APPLICATION_VERSION)
        if name is None or number is None or latest == 0:
            return False
        base = self._base_of(latest + 1)
        return base is not None and is_applied(base, name, int(number))

    def landed(self, version: int) -> None:
        """Brings up to date what follows the manifest: its place, `_latest.manifest`."""
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
        # An append leaves the table's version as it is, whatever that of its files.
        kept = base.data_storage_version if base is not None else DEFAULT_STORAGE_VERSION
        replaces = base is None or self.transaction.operation != "Append"
        storage = self._data_storage_version if replaces and self._data_storage_version else kept
        self._put_on = base
        self._made = self.transaction.apply(
            base,
            version=version,
            data_storage_version=storage,
            timestamp_ns=time.time_ns(),
            restored=self._version_to_restore(),
            store=self.log.store,
            enable_stable_row_ids=self._enable_stable_row_ids,
        )
        self._stage()
        return self._made.encode()

    def put(self, version: int, data: bytes) -> bool:
        """Puts the manifest of `version` if there is none."""
        if self._held_up():
            # Too long ago for a clean-up to take it for a commit under way: staged again, and looked again.
            self._staged = False
            self._stage()
            return False
        with ExitStack() as held:
            if self._lock is not None:
                try:
                    held.enter_context(self._lock(version))
                except Exception as error:
                    raise NothingPut(error) from error
            landed = self.log.put(version, self._scheme, data, locked=self._lock is not None)
        if not landed:
            self._known = max(self._known, version)
        return landed

    def is_in_history(self, version: int) -> bool:
        """Whether `version`, just put, is the newest, or one that others' newer ones were built on."""
        if self.log.manifest_store is not None:
            # It gives out no number twice.
            return True
        if is_behind_network(self.uri) and self._staged_for_s() < LOOK_AGAIN_S:
            # A look is a request there, and nobody cleans up what came after a transaction that is so young.
            return True
        try:
            latest = self.log.newest().latest
            if latest <= version or self._came_before(version):
                return True
        except CommitStateUnknownError:
            raise
        except OSError as error:
            if not self._held_up():
                # No clean-up takes a transaction as young as this for abandoned, so that no number came free.
                return True
            raise self._lost_sight(version, error) from error
        try:
            self._take_back(version)
        except OSError as error:
            raise self._lost_sight(version, error) from error
        self._known = max(self._known, latest)
        return False

    def is_part_of(self, version: int) -> bool:
        """Whether `version` is made of files that only this transaction can have brought: their names are random."""
        return bool(self._new_files() & _files_of(self.log.manifest(version, self._scheme).fragments()))

    def _new_files(self) -> set[str]:
        if self._made is None or self.transaction.operation == "Restore":
            # What a restore brings back may be brought back by others too.
            return set()
        before = self._put_on.fragments() if self._put_on is not None else []
        return _files_of(self._made.fragments()) - _files_of(before)

    def _came_before(self, version: int) -> bool:
        """Whether `version` was put before the one that follows it in the listing, by the store's clock."""
        following = min((number for number in self.log.listing().versions if number > version), default=None)
        if following is None:
            return True
        ours, theirs = (self.log.store.head(self.log.path_of(it, self._scheme)) for it in (version, following))
        if ours.last_modified_us is None or theirs.last_modified_us is None:
            return not self._held_up() or self._shows_in(following)
        if ours.last_modified_us < theirs.last_modified_us:
            return True
        # Clocks of stores may count in seconds, may be set back, and may be several.
        is_same = ours.last_modified_us == theirs.last_modified_us
        return (is_same and not self._held_up()) or self._shows_in(following)

    def _shows_in(self, version: int) -> bool:
        """Whether `version` has files or settings that this transaction brought, so that it was built on ours.

        Raises:
            CommitStateUnknownError: It brought none.
        """
        before = self._put_on.config if self._put_on is not None else {}
        made = self._made.config if self._made is not None and self.transaction.operation != "Restore" else {}
        new = {key: made[key] for key in made if key != _MAX_FIELD_ID and before.get(key) != made[key]}
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
        """Removes our manifest from a number that came free: the versions above it were not built on ours."""
        path = self.log.path_of(version, self._scheme)
        if self.write_id_at(version) == self.write_id:
            self.log.store.delete(path)

    def _lost_sight(self, version: int, error: OSError) -> Exception:
        return CommitStateUnknownError(
            f"{error}; version {version} of {self.uri} was put after a long pause, and it could not be looked up "
            f"whether later versions were built on it: {self.advice}",
            uri=self.uri,
            version=version,
            transaction=self.write_id,
        )

    def _held_up(self) -> bool:
        """Whether its transaction was staged so long ago that a clean-up might soon pass over it."""
        return self._staged_for_s() > STAGED_TIME_S

    def _staged_for_s(self) -> float:
        return seconds_since(self._staged_at, self._staged_at_wall)

    def committed(self, version: int) -> Manifest:
        """The manifest of the version that this became: what was put, without reading it again.

        Raises:
            CommitStateUnknownError: It must be read, and cannot be. It is committed all the same.
        """
        if self._made is not None and self._made.version == version == self._landed:
            return self._made
        try:
            try:
                return self.log.manifest(version, self._scheme)
            except NotFoundError:
                # Cleaned up already: the table is at a later version, which has the change.
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
        """The uuid of the transaction that made `version`, from the name that its manifest gives."""
        try:
            manifest = self.log.manifest(version, self._scheme)
        except NotFoundError:
            return None
        name = manifest.transaction_file
        if name == transaction_file_name(self.transaction):
            return self.write_id
        inline = manifest.inline_transaction()
        return inline.uuid if inline else (transaction_uuid(name) if name else None) or name

    def conflict(self, change: Change, *, retryable: bool) -> Exception:
        """Says who was first and what to do."""
        if self._create:
            return AlreadyExistsError(
                f"a table at {self.log.uri} exists already (created by another writer meanwhile); "
                'use mode="append" or mode="overwrite"',
                uri=self.log.uri,
                version=change.version,
            )
        ours = self.transaction.operation
        theirs = change.operation if isinstance(change, LanceChange) else "unknown"
        if isinstance(change, LanceChange) and change.manifest is None:
            return CommitConflictError(
                f"Commit conflict for version {change.version}: it was cleaned up before our {ours} of version "
                f"{self.read_version} of {self.log.uri} could be compared with it; nothing of ours is visible, run it "
                "again on the newest version",
                uri=self.log.uri,
                operation=ours,
                version=self.read_version,
                other_operation=theirs,
                other_version=change.version,
                retryable=True,
            )
        advice = "run it again on the newest version" if retryable else "look at that version before you write again"
        return CommitConflictError(
            f"Commit conflict for version {change.version}: our {ours} of version {self.read_version} of "
            f"{self.log.uri} conflicts with the {theirs} that another writer committed; "
            f"nothing of ours is visible, {advice}",
            uri=self.log.uri,
            operation=ours,
            version=self.read_version,
            other_operation=theirs,
            other_version=change.version,
            retryable=retryable,
        )

    def exhausted(self, attempts: int, seconds: float) -> Exception:
        """Says how often we tried."""
        return CommitConflictError(
            f"our {self.transaction.operation} to {self.log.uri} lost the race {attempts} times in {seconds:.1f} s; "
            "nothing of ours is visible, try again or raise max_retries",
            uri=self.log.uri,
            operation=self.transaction.operation,
            version=self.read_version,
            retryable=True,
        )

    def detached(self) -> Manifest:
        """Commits beside the history: a version that only its number leads to. Nothing can be in its way."""
        ours = self.transaction
        marked = {**ours.properties, DETACHED: "true"}
        self.transaction = Transaction(ours.read_version, ours.decoded(), properties=marked, uuid=ours.uuid)
        # Staged before the version is read: a clean-up that removes it later finds this, and leaves its files.
        self._stage()
        self._scheme = self.log.newest().scheme
        base = self.log.manifest(self.read_version, self._scheme)
        base.check_writable()
        storage = base.data_storage_version
        while True:
            version = secrets.randbits(63) | 1 << 63
            made = self.transaction.apply(
                base, version=version, data_storage_version=storage, timestamp_ns=time.time_ns()
            )
            try:
                landed = self.log.put(version, self._scheme, made.encode())
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
            # The transaction is staged by now: a clean-up that removes that version finds it, and leaves the files.
            self._restored = self.log.open(version)[0]
        return self._restored

    def _base_of(self, version: int) -> Manifest | None:
        if version == 1:
            return None
        if self._base is None or self._base.version != version - 1:
            self._base = self.log.manifest(version - 1, self._scheme)
        return self._base

    def _stage(self) -> None:
        """Writes the transaction file, once: it must be there before a manifest names it."""
        if not self._staged:
            self._staged_at, self._staged_at_wall = time.monotonic(), time.time()
            self.log.store.put(TRANSACTIONS + transaction_file_name(self.transaction), self.transaction.encode())
            self._staged = True


def is_applied(manifest: Manifest, application: str, number: int) -> bool:
    """Whether an application has committed this number, or a later one, by the version that `manifest` is.

    Example:
        `is_applied(manifest, "nightly", 12)`
    """
    last = manifest.config.get(APPLICATION_PREFIX + application)
    return last is not None and last.isascii() and last.isdigit() and int(last) >= number


def transaction_file_name(transaction: Transaction) -> str:
    """The name of a transaction's file within `_transactions/`."""
    return f"{transaction.read_version}-{transaction.uuid}.txn"


def transaction_uuid(name: str) -> str | None:
    """The uuid in the name of a transaction's file; None if it is named otherwise.

    Example:
        >>> from esker.lance.commit import transaction_uuid
        >>> transaction_uuid("3-5e3c-aa.txn")
        '5e3c-aa'
    """
    version, dash, rest = name.partition("-")
    return rest.removesuffix(".txn") if dash and version.isdigit() and rest.endswith(".txn") else None


def _files_of(fragments: list[Fragment]) -> set[str]:
    """The data and deletion files of fragments."""
    found = {file.path for fragment in fragments for file in fragment.files}
    return found | {fragment.deletion_file for fragment in fragments if fragment.deletion_file is not None}
