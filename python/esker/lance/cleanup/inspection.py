"""What a clean-up finds: versions to remove, versions to keep, and the files that no kept version refers to.

The order matters, since other writers commit meanwhile. Files are listed first, then versions: a file that was staged
before the listing and committed after it has a version that refers to it by then. Files that are staged and not
committed yet are recognised by their age, and by their transaction, which every writer puts before its manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from ..._native.cleanup import FileListing, FileReferences
from ..._native.store import ObjectMeta, Store
from ..._native.table import Manifest, Transaction
from ...commit.orphans import is_acknowledged
from ...exceptions import CorruptFileError, IOFailedError, NotFoundError
from ..commit import DETACHED
from ..log import TRANSACTIONS, VERSIONS, LanceLog, VersionListing, transaction_uuid
from .explanation import CleanupCandidateFile
from .policy import UNDER_WAY_AGE, UNVERIFIED_AGE, CleanupPolicy
from .refs import Refs, branch_manifests, listed_but_not_found, read_refs

_DETACHED_NAME = re.compile(r"^d(\d+)\.manifest$")
_FOLDER_KINDS = {
    "data": "data",
    "_deletions": "deletion",
    "_transactions": "transaction",
    "_indices": "index",
    "_versions": "temporary_manifest",
}
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class GoingVersion:
    """A version that is to be removed."""

    version: int
    timestamp_ns: int
    path: str
    size: int
    transaction: str | None
    """The path of its transaction, if its writer may still wait for the reply to its put and read back: set only for
    versions that esker wrote and that this process has not acknowledged."""

    def candidate(self) -> CleanupCandidateFile:
        """Its manifest as a file to remove."""
        committed = datetime.fromtimestamp(self.timestamp_ns / 1e9)
        reason = f"version {self.version}, committed {committed:%Y-%m-%d %H:%M:%S}, is among those to remove"
        return CleanupCandidateFile(self.path, "manifest", self.size, False, reason)


@dataclass
class Waiting:
    """The versions that commits under way need."""

    brought_back: set[int] = field(default_factory=set)
    """Versions whose contents they bring back: by a restore or a detached commit."""
    read_versions: list[int] = field(default_factory=list)
    """Their base versions. A writer puts the number after the latest version that it has listed, which is its base
    version or a later one. If versions after the base were removed, their numbers could be committed a second time."""
    unread: set[int] = field(default_factory=set)
    """Versions whose writers may not know yet that their commit has landed, since the reply may be lost."""

    def needs(self, version: int) -> bool:
        """Whether a version must be kept for commits under way."""
        return (
            version in self.brought_back
            or version in self.unread
            or any(version > start for start in self.read_versions)
        )


@dataclass
class Inspection:
    """What a clean-up finds before it removes anything."""

    log: LanceLog
    policy: CleanupPolicy
    version: int
    branch: str | None
    now_ns: int
    main: Store
    refs: Refs
    listing: FileListing
    history: VersionListing
    references: FileReferences = field(default_factory=FileReferences)
    going: list[GoingVersion] = field(default_factory=list)
    tagged: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    staged: list[ObjectMeta] = field(default_factory=list)
    overtaken: bool = False
    """Whether another clean-up has removed a version that is being brought back: its files are not known any more."""
    unread: int = 0
    """How many versions are kept since their writers may not know yet that their commit has landed."""

    def look(self) -> None:
        """Reads all versions, tags, branches and transactions, and decides which versions are to be removed."""
        manifests = self.log.store.list(VERSIONS)
        sizes = {meta.path: meta.size for meta in manifests}
        self.staged = [meta for meta in manifests if self.log.is_staged(meta.path)]
        gone: list[int] = []
        for number, manifest in self._manifests(self.history.versions):
            if manifest is None:
                gone.append(number)
                continue
            selected = self._is_selected(manifest)
            if selected and number in self.refs.versions:
                self.tagged.append(number)
            elif selected:
                path = self.log.path_of(number, self.history.scheme)
                self.going.append(_going(manifest, path, sizes.get(path, 0)))
                self.references.discard(manifest)
                continue
            self.references.keep(manifest)
        self._keep_returned(gone)
        for path in sizes:
            self._keep_detached(path)
        self._keep_branches(self.refs.others)
        # Transactions after versions: a writer that stages a transaction later lists the versions later, too.
        waiting = self.keep_waiting()
        # Read the tags again: one may have been created while the versions were read.
        named = self.read_refs().versions
        needed = [gone for gone in self.going if waiting.needs(gone.version) or gone.version in named]
        self.unread = len(waiting.unread)
        for _, manifest in self._manifests(gone.version for gone in needed):
            if manifest is not None:
                self.references.keep(manifest)
            else:
                self.overtaken = True
        self.going = [gone for gone in self.going if gone not in needed]

    def read_refs(self) -> Refs:
        """The tags and branches that there are now."""
        return read_refs(self.main, self.branch)

    def keep_newcomers(self) -> Waiting:
        """Keeps the files of versions and branches that came since the listing, and of commits under way."""
        self._keep_branches([name for name in self.read_refs().others if name not in self.refs.others])
        fresh = self.log.listing()
        for _, manifest in self._manifests(number for number in fresh.versions if number not in self.known):
            if manifest is not None:
                self.references.keep(manifest)
        for path in self.log.store.list_paths(VERSIONS):
            self._keep_detached(path)
        return self.keep_waiting()

    def keep_waiting(self) -> Waiting:
        """Keeps the files of transactions that may still be committed, and returns the versions that they need."""
        waiting = Waiting()
        if self.policy.delete_unverified:
            return waiting
        listing = FileListing.read(self.log.store, TRANSACTIONS)
        transactions = [
            (path, changed, is_dropped)
            for kind, path, _, changed, is_dropped in listing.leftovers(self.references)
            if kind == "transaction" and not self._is_abandoned(changed)
        ]
        staged = [(path, changed) for path, changed, is_dropped in transactions if not is_dropped]
        young = {path for path, changed, _ in transactions if not self._is_older(changed, UNDER_WAY_AGE)}
        waiting.unread = {gone.version for gone in self.going if gone.transaction in young}
        found = self._each([path for path, _ in staged], self._transaction)
        for transaction, (_, changed) in zip(found, staged, strict=True):
            if transaction is None:
                continue
            self.references.keep_transaction(transaction)
            if transaction.operation == "Restore":
                waiting.brought_back.add(transaction.decoded().fields()["version"])
            if transaction.properties.get(DETACHED):
                waiting.brought_back.add(transaction.read_version)
            if not self._is_older(changed, UNDER_WAY_AGE):
                waiting.read_versions.append(transaction.read_version)
        return waiting

    def candidates(self) -> Iterator[CleanupCandidateFile]:
        """The files to remove: those of removed versions, and orphans of failed commits. Without the manifests."""
        for kind, path, size, changed, is_dropped in self.listing.leftovers(self.references):
            if not is_dropped and not self._is_abandoned(changed):
                continue
            kind = _FOLDER_KINDS[path.partition("/")[0]] if kind == "unfinished" else kind
            yield CleanupCandidateFile(path, kind, size, not is_dropped, self._reason(is_dropped, changed))
        for meta in self.staged:
            changed = meta.last_modified_us
            # A staged manifest that is a commit is kept: a reader or writer copies it to its final path.
            if self._is_abandoned(changed) and not self.log.is_staged_commit(meta.path):
                kind = _FOLDER_KINDS["_versions"]
                yield CleanupCandidateFile(meta.path, kind, meta.size, True, self._reason(False, changed))

    def _keep_returned(self, gone: list[int]) -> None:
        """Keeps the files of versions that were not found and are listed all the same: another clean-up has put one
        back that was tagged, or the store does not tell what it has.

        Raises:
            IOFailedError: A version is listed, and cannot be found: what it refers to is not known.
        """
        # Those that are gone are newcomers if they come back later.
        self.known.difference_update(gone)
        listed = self.log.listing().versions if gone else ()
        for number, manifest in self._manifests(number for number in gone if number in listed):
            if manifest is None:
                raise listed_but_not_found(self.log.uri, self.log.path_of(number, self.history.scheme))
            self.references.keep(manifest)

    def _keep_branches(self, names: Iterable[str]) -> None:
        for name in names:
            for manifest in branch_manifests(self.main, name):
                self.references.keep(manifest)

    def _is_selected(self, manifest: Manifest) -> bool:
        number = manifest.version
        if number >= self.version or number == self.history.latest:
            return False
        return self.policy.selects(number, manifest.timestamp_ns, now_ns=self.now_ns, history=self.history.versions)

    def _is_abandoned(self, changed_us: int | None) -> bool:
        """Whether a file that no version refers to is an orphan, and not part of a commit under way."""
        return self.policy.delete_unverified or self._is_older(changed_us, UNVERIFIED_AGE)

    def _is_older(self, changed_us: int | None, age: timedelta) -> bool:
        return changed_us is not None and changed_us < self.now_ns // 1000 - age // timedelta(microseconds=1)

    def _reason(self, is_dropped: bool, changed_us: int | None) -> str:
        if is_dropped:
            return "only versions to remove refer to it"
        if changed_us is None:
            return "no version refers to it"
        days = (self.now_ns - changed_us * 1000) / 86_400e9
        return f"no version refers to it, and it is {days:.1f} days old"

    def _keep_detached(self, path: str) -> None:
        match = _DETACHED_NAME.match(path.removeprefix(VERSIONS))
        number = int(match.group(1)) if match else None
        if number is None or number in self.known:
            return
        for _, manifest in self._manifests([number]):
            if manifest is not None:
                self.references.keep(manifest)

    def _manifests(self, numbers: Iterable[int]) -> Iterator[tuple[int, Manifest | None]]:
        """The manifests of versions; None for one that another clean-up has removed meanwhile."""
        wanted = list(numbers)
        self.known.update(wanted)
        return zip(wanted, self._each(wanted, self._manifest), strict=True)

    def _manifest(self, number: int) -> Manifest | None:
        try:
            return self.log.manifest(number, self.history.scheme)
        except NotFoundError:
            return None

    def _transaction(self, path: str) -> Transaction | None:
        try:
            return Transaction.decode(self.log.store.get(path))
        except (NotFoundError, CorruptFileError):
            # A file gets its name only when it is complete: a corrupt one is not about to become a transaction.
            return None

    def _each(self, items: list[T], work: Callable[[T], R]) -> Iterator[R]:
        return each(items, work, concurrency_of(self.log, self.policy))


def _going(manifest: Manifest, path: str, size: int) -> GoingVersion:
    name = manifest.transaction_file
    known = name is None or is_acknowledged(transaction_uuid(name) or "")
    reads_back = manifest.writer_version is not None and manifest.writer_version[0] == "esker"
    transaction = None if known or not reads_back else f"{TRANSACTIONS}{name}"
    return GoingVersion(manifest.version, manifest.timestamp_ns, path, size, transaction)


def inspect(
    log: LanceLog,
    main: LanceLog,
    manifest: Manifest,
    policy: CleanupPolicy,
    *,
    now_ns: int,
    keep_from: int | None = None,
) -> Inspection:
    """Looks at a table without changing anything.

    Args:
        log: The log of the table, or of one of its branches.
        main: The log of the main line, where tags and branches are kept; the same for the main line itself.
        manifest: The version that the clean-up starts from: it and later versions are kept.
        policy: Which versions are removed.
        now_ns: The current time, for ages.
        keep_from: This version and later ones are kept; by default that of `manifest`.

    Raises:
        CorruptFileError: A manifest, a tag or a branch cannot be read.

    Example:
        `inspect(log, log, manifest, CleanupPolicy(), now_ns=time.time_ns()).going`
    """
    found = Inspection(
        log,
        policy,
        manifest.version if keep_from is None else keep_from,
        manifest.branch,
        now_ns,
        main.store,
        read_refs(main.store, manifest.branch),
        FileListing.read(log.store),
        log.listing(),
    )
    found.look()
    return found


def store_time_ns(log: LanceLog, token: str) -> int:
    """The current time by the store's clock, which dates its files: that of an object written and deleted again.

    Raises:
        IOFailedError: The store does not report modification times.
    """
    path = f"{TRANSACTIONS}.tmp-clock-{token}"
    log.store.put(path, b"")
    try:
        changed = log.store.head(path).last_modified_us
    finally:
        log.store.delete(path)
    if changed is None:
        raise IOFailedError(
            f"the store at {log.uri} tells no times, so that a clean-up cannot judge the age of files", uri=log.uri
        )
    return changed * 1000


def concurrency_of(log: LanceLog, policy: CleanupPolicy) -> int:
    """How many requests are made concurrently."""
    if policy.concurrency is not None:
        return policy.concurrency
    is_near = "://" not in log.uri or log.uri.startswith(("file://", "memory://"))
    return 1 if is_near else 16


def each(items: list[T], work: Callable[[T], R], concurrency: int) -> Iterator[R]:
    """Calls `work` with each item, several concurrently, and yields the results in the order of the items."""
    if concurrency == 1 or len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(concurrency, thread_name_prefix="esker-cleanup") as pool:
        # In chunks, so that not all manifests are in memory at once.
        for start in range(0, len(items), 4 * concurrency):
            yield from pool.map(work, items[start : start + 4 * concurrency])
