"""Lance's side of the commit loop: versions, manifests and transactions in a store.

```
_versions/{u64 max - version:020}.manifest   V2 names; {version}.manifest in V1 tables, which stay V1
_transactions/{read version}-{uuid}.txn      what a version changed; named by its manifest
data/*.lance                                 staged before, seen only through a manifest
```
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .._native.store import Store
from .._native.table import Manifest, Transaction, manifest_name, parse_manifest_name
from ..exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    NotFoundError,
)
from ..storage_version import DEFAULT_STORAGE_VERSION
from .protocol import Change, CommitLock, Verdict

NamingScheme: TypeAlias = Literal["V1", "V2"]

VERSIONS = "_versions/"
TRANSACTIONS = "_transactions/"

_VERDICTS = {"compatible": Verdict.KEEP, "retry": Verdict.RERUN, "incompatible": Verdict.REFUSE}


@dataclass(frozen=True)
class VersionListing:
    """What `_versions/` holds: the versions in rising order, and how their files are named."""

    versions: tuple[int, ...]
    scheme: NamingScheme

    @property
    def latest(self) -> int:
        """The newest version, 0 if there is none."""
        return self.versions[-1] if self.versions else 0


class LanceLog:
    """The versions of one table, as its store holds them.

    Args:
        store: The store whose root is the table's.
        uri: The table, for error messages.

    Example:
        `LanceLog(store, uri).listing().latest`
    """

    def __init__(self, store: Store, uri: str) -> None:
        self.store = store
        self.uri = uri

    def listing(self) -> VersionListing:
        """Lists the versions.

        Raises:
            CorruptFileError: V1 and V2 names are mixed: neither order of names would tell the latest version.
        """
        versions: list[int] = []
        schemes: dict[NamingScheme, str] = {}
        for meta in self.store.list(VERSIONS):
            parsed = parse_manifest_name(meta.path.removeprefix(VERSIONS))
            if parsed is not None:
                versions.append(parsed[0])
                schemes.setdefault(parsed[1], meta.path)
        if len(schemes) > 1:
            raise CorruptFileError(
                f"the table at {self.uri} mixes V1 and V2 manifest names ({schemes['V1']}, {schemes['V2']}), "
                "expected one scheme; rename the files of one of them",
                uri=self.uri,
                path=schemes["V1"],
            )
        return VersionListing(tuple(sorted(versions)), next(iter(schemes), "V2"))

    def open(self, version: int | None = None) -> tuple[Manifest, VersionListing]:
        """The manifest of a version, the latest by default.

        Raises:
            NotFoundError: There is no table here, or no such version.
            CorruptFileError: Its manifest is damaged.
            UnsupportedError: It needs a newer reader.
        """
        listing = self.listing()
        if not listing.versions:
            raise NotFoundError(
                f"no table at {self.uri}: expected manifests in its folder _versions, found none; check the path",
                uri=self.uri,
            )
        chosen = listing.latest if version is None else version
        if chosen not in listing.versions:
            raise NotFoundError(
                f"the table at {self.uri} has no version {chosen}, expected one of {_ranges(listing.versions)}",
                uri=self.uri,
                version=chosen,
            )
        manifest = self.manifest(chosen, listing.scheme)
        manifest.check_readable()
        return manifest, listing

    def manifest(self, version: int, scheme: NamingScheme) -> Manifest:
        """Reads one manifest, without a look at its feature flags."""
        path = VERSIONS + manifest_name(version, scheme)
        manifest = Manifest.decode(self.store.get(path), path)
        if manifest.version != version:
            raise CorruptFileError(
                f"{path} of {self.uri} holds version {manifest.version}, expected {version}",
                uri=self.uri,
                path=path,
                version=version,
            )
        return manifest

    def transaction(self, manifest: Manifest) -> Transaction | None:
        """The transaction that made a version: its file, else the one within the manifest, else None."""
        name = manifest.transaction_file
        if name:
            try:
                return Transaction.decode(self.store.get(TRANSACTIONS + name))
            except NotFoundError:
                pass
        return manifest.inline_transaction()


@dataclass(frozen=True)
class LanceChange:
    """A version that somebody committed, with the transaction behind it where that can be found."""

    version: int
    transaction: Transaction | None

    @property
    def write_id(self) -> str | None:
        """The transaction's uuid."""
        return self.transaction.uuid if self.transaction else None

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
        create: Whether it is an error that the table exists.
        scheme: How a new table names its manifests.
        lock: Held around the put, for stores without put-if-absent.
    """

    def __init__(
        self,
        log: LanceLog,
        transaction: Transaction,
        *,
        data_storage_version: str | None = None,
        create: bool = False,
        scheme: NamingScheme = "V2",
        lock: CommitLock | None = None,
    ) -> None:
        self.log = log
        self.transaction = transaction
        self.read_version = transaction.read_version
        self.write_id = transaction.uuid
        self._data_storage_version = data_storage_version
        self._create = create
        self._scheme = scheme
        self._lock = lock
        self._base: Manifest | None = None
        self._made: Manifest | None = None
        self._known = 0
        self._staged = False

    def latest(self) -> int:
        """The newest version, 0 if there is none."""
        listing = self.log.listing()
        if listing.versions:
            self._scheme = listing.scheme
        # A listing may lag behind what a put has met.
        return max(listing.latest, self._known)

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
            yield LanceChange(number, self.log.transaction(manifest))

    def judge(self, change: Change) -> Verdict:
        """The format's rule for our operation after theirs; a change that nobody can name is a conflict."""
        theirs = change.transaction if isinstance(change, LanceChange) else None
        if self._create or theirs is None:
            return Verdict.REFUSE
        return _VERDICTS[self.transaction.conflict_with(theirs)]

    def rebase(self, change: Change) -> None:
        """Nothing to adapt: `Transaction.apply` works on any compatible base."""

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
        self._made = self.transaction.apply(
            base, version=version, data_storage_version=storage, timestamp_ns=time.time_ns()
        )
        self._stage()
        return self._made.encode()

    def put(self, version: int, data: bytes) -> bool:
        """Puts the manifest of `version` if there is none."""
        with self._lock(version) if self._lock else nullcontext():
            landed = self.log.store.put_if_absent(VERSIONS + manifest_name(version, self._scheme), data)
        if not landed:
            self._known = max(self._known, version)
        return landed

    def committed(self, version: int) -> Manifest:
        """The manifest of the version that this became: what was put, without reading it again."""
        if self._made is not None and self._made.version == version:
            return self._made
        return self.log.manifest(version, self._scheme)

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
        return inline.uuid if inline else name

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

    def _base_of(self, version: int) -> Manifest | None:
        if version == 1:
            return None
        if self._base is None or self._base.version != version - 1:
            self._base = self.log.manifest(version - 1, self._scheme)
        return self._base

    def _stage(self) -> None:
        """Writes the transaction file, once: it must be there before a manifest names it."""
        if not self._staged:
            self.log.store.put(TRANSACTIONS + transaction_file_name(self.transaction), self.transaction.encode())
            self._staged = True


def transaction_file_name(transaction: Transaction) -> str:
    """The name of a transaction's file within `_transactions/`."""
    return f"{transaction.read_version}-{transaction.uuid}.txn"


def _ranges(versions: tuple[int, ...]) -> str:
    """Versions as a short text: "1-12", "1, 3-7"."""
    parts: list[str] = []
    start = previous = versions[0]
    for version in (*versions[1:], None):
        if version is not None and version == previous + 1:
            previous = version
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if version is not None:
            start = previous = version
    return ", ".join(parts if len(parts) <= 6 else [*parts[:3], "...", *parts[-2:]])
