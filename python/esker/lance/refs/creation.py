"""Creates a branch: the first version in its tree, and then the ref.

```
no ref? -> leftovers in the tree? take them over -> put the manifest -> put the ref -> is all still there?
   ^                                                     │ another writer was first
   └─────────────────────────────────────────────────────┘
```

The ref decides: of two writers the one whose ref is there has created the branch. Without its ref a tree is no branch.
It is what a crash left, or pylance where it deleted `feat` beside `feat/x`; or another writer is creating the same
branch right now. A tree that holds just the version that was asked for is used as it is, any other one is emptied. If a
ref appears meanwhile, whoever finds it puts the first version that it names into its tree, should that be gone, and
takes its own away.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from ..._native.table import Manifest, Transaction, parse_manifest_name
from ...commit.orphans import acknowledge
from ...exceptions import InvalidArgumentError, NotFoundError, RefConflictError, UnsupportedError
from ...store.staging import StagingStore
from ...store.stores import is_in_repository
from ..log import LATEST_COPY, TRANSACTIONS, VERSIONS, LanceLog, is_detached, transaction_file_name
from ..version import TableVersion
from .branches import read_branch
from .contents import BranchContents
from .marking import clone_transaction, with_branch
from .named_version import NamedVersion
from .names import branch_path, check_branch_name
from .places import Place, Reference, log_of, place_of, uri_of
from .putting import looking_after_put, put_new
from .tags import writable_main

ATTEMPTS = 8
"""How often a creation starts again because another writer puts something else into the same tree."""


def create_branch(
    table: TableVersion, name: str, reference: Reference | None, storage_options: dict[str, str] | None = None
) -> TableVersion:
    """Creates a branch and returns its first version.

    Args:
        table: The table.
        name: The branch.
        reference: The version that it starts from; None is that of `table`.
        storage_options: Options of the branch's store, by default those of the table.

    Raises:
        InvalidRefError: No branch can have this name.
        RefConflictError: There is a branch of this name.
        NotFoundError: There is no such version, or it was cleaned up meanwhile.
        UnsupportedError: The table lies on a branch of a repository.
        CommitStateUnknownError: The store failed, and the branch may be there, or is, which the message tells.
    """
    check_branch_name(name)
    if isinstance(table.log.store, StagingStore) or is_in_repository(table.log.uri):
        raise UnsupportedError(
            f"{table.uri}: expected a table outside of a repository, found one on a branch of a repository, which has "
            "branches of its own: make one there (Repository.branch(name).create(source)), and open the table on it",
            uri=table.uri,
        )
    main = writable_main(table)
    place = place_of(table, reference)
    named = NamedVersion.find(table, place, read=place != Place(table.manifest.branch, table.number))
    if is_detached(named.version):
        raise InvalidArgumentError(
            f"expected a version of the history to start a branch from, found the detached version {named.version}",
            version=named.version,
        )
    source = _source(table, named)
    parent = read_branch(main, named.place.branch) if named.place.branch is not None else None
    contents = BranchContents.of(parent, named.place.branch, named.version, named.manifest_size)
    options = storage_options if storage_options is not None else table.storage_options
    log = log_of(replace(table, storage_options=options), name, durable=True)
    made = _Creation(main, source, named, name, contents, log).run()
    uri = uri_of(table.uri, table.manifest.branch, name)
    return TableVersion.of(uri, log, made, options, table.commit_lock)


def _source(table: TableVersion, named: NamedVersion) -> TableVersion:
    """The version that a branch starts from."""
    if named.place == Place(table.manifest.branch, table.number):
        return table
    manifest = named.manifest or named.log.manifest(named.version, named.scheme)
    manifest.check_readable()
    uri = uri_of(table.uri, table.manifest.branch, named.place.branch)
    return replace(table, uri=uri, log=named.log).at(manifest)


def put_first_version(table: TableVersion, main: LanceLog, name: str, log: LanceLog) -> None:
    """Puts the first version of a branch whose ref is there, and whose versions another writer has removed.

    Args:
        table: A version of the table.
        main: The log of the main line.
        name: The branch.
        log: Its log.

    Example:
        `put_first_version(table, main, "experiment", log_of(table, "experiment"))`
    """
    with suppress(NotFoundError):
        # If it was deleted meanwhile, nobody needs it.
        contents = read_branch(main, name)
        if not log.listing().versions:
            named = NamedVersion.find(table, Place(contents.parent_branch, contents.parent_version))
            _Creation(main, _source(table, named), named, name, contents, log)._put()


@dataclass
class _Creation:
    """The creation of one branch."""

    main: LanceLog
    source: TableVersion
    named: NamedVersion
    name: str
    contents: BranchContents
    log: LanceLog

    def __post_init__(self) -> None:
        place = self.named.place
        self._path = branch_path(self.name)
        self._transaction = clone_transaction(place.branch, self.named.version, self.source.log.uri, self.name)
        cloned = self._transaction.apply_clone(self.source.manifest, timestamp_ns=time.time_ns())
        self._made = with_branch(cloned, self.name)

    def run(self) -> Manifest:
        """Creates it, and returns the manifest of its first version."""
        manifest = self._begin()
        lock, version = self.source.commit_lock, self.named.version
        if not put_new(self.main, self._path, self.contents.encode(), lock=lock, version=version):
            self._give_way()
            raise self._exists()
        # A clean-up need not wait for us to learn that it landed.
        acknowledge(self._transaction.uuid)
        with looking_after_put(self.main, self._path):
            return self._check(manifest)

    def _begin(self) -> Manifest:
        """Puts the first version into the tree, or finds it there."""
        for _ in range(ATTEMPTS):
            there = self._tree()
            if there:
                manifests = [Manifest.decode(data, path) for path, data in there.items() if _is_manifest(path)]
                # Of later versions an external manifest store may have the entries still.
                is_alone = len(manifests) == 1 and self.log.listing().latest == self.named.version
                if is_alone and _is_same(manifests[0], self._made):
                    return manifests[0]
                self._take_over(there, manifests)
            elif self.log.has_entries() and self._winner() is None:
                # A deletion was broken off between the manifests and their entries.
                self.log.forget_entries()
            if self._put():
                return self._made
        raise RefConflictError(
            f"Ref conflict error: other writers keep creating branch {self.name} of {self.main.uri} from other "
            "versions; nothing of ours is visible, agree on one of them",
            uri=self.main.uri,
            path=self._path,
        )

    def _tree(self) -> dict[str, bytes]:
        """The files in the tree's folder of versions."""
        found: dict[str, bytes] = {}
        for path in self.log.store.list_paths(VERSIONS):
            # A branch may be called `name/_versions`: what is in deeper folders is not ours.
            if "/" not in path.removeprefix(VERSIONS):
                with suppress(NotFoundError):
                    found[path] = self.log.store.get(path)
        return found

    def _take_over(self, there: dict[str, bytes], manifests: list[Manifest]) -> None:
        """Removes what a tree without a ref holds, unless a ref appears meanwhile."""
        if any(manifest.branch != self.name for manifest in manifests):
            raise RefConflictError(
                f"Ref conflict error: a table that is no branch lies at {self.log.uri}, where branch {self.name} would "
                "go; move it, or choose another name",
                uri=self.log.uri,
            )
        # All that was read is nobody's, if there is no ref now either.
        if self._winner() is None:
            self.log.store.delete_all([*there])
            self.log.forget_entries()
            self.log.store.delete(LATEST_COPY)
        if self._winner() is not None:
            self._give_way()
            raise self._exists()

    def _put(self) -> bool:
        """Puts the first version; False if another one has its number."""
        name = transaction_file_name(self._transaction)
        self.log.store.put(TRANSACTIONS + name, self._transaction.encode())
        version, lock = self.named.version, self.source.commit_lock
        try:
            with ExitStack() as held:
                if lock is not None:
                    held.enter_context(lock(version))
                if self.log.put_first(version, self._made.encode(), locked=lock is not None):
                    return True
        except OSError:
            # The reply may be lost: what is there then is ours.
            if self._is_ours(version):
                return True
            raise
        return self._is_ours(version)

    def _check(self, manifest: Manifest) -> Manifest:
        """Looks, once the ref is there, whether the branch and what it starts from are."""
        if not self.named.is_there():
            self.main.store.delete(self._path)
            self._remove_ours()
            raise self.named.gone("branched from")
        numbers = self.log.listing().versions
        strangers = [number for number in numbers if self._is_other_beginning(number)]
        for number in strangers:
            self._remove(number)
        # Another writer may have taken ours for a leftover before our ref was there. If there are later versions of
        # ours, a clean-up has removed it.
        if len(strangers) == len(numbers) and self._put():
            manifest = self._made
        return manifest

    def _give_way(self) -> None:
        """Leaves the tree to the writer whose ref is there: with the first version of its branch, and without ours."""
        winner = self._winner()
        if winner is None:
            return
        place = Place(winner.parent_branch, winner.parent_version)
        if place != self.named.place:
            self._remove_ours()
        # Ours may have had the number of theirs, and their manifest may have looked like a leftover. If there are later
        # versions of theirs, a clean-up has removed it.
        put_first_version(self.source, self.main, self.name, self.log)

    def _winner(self) -> BranchContents | None:
        try:
            return read_branch(self.main, self.name)
        except NotFoundError:
            return None

    def _is_ours(self, version: int) -> bool:
        try:
            return self.log.manifest(version, "V2").transaction_file == transaction_file_name(self._transaction)
        except NotFoundError:
            return False

    def _is_other_beginning(self, version: int) -> bool:
        """Whether another creation put this version, which lost. A commit on our branch is none, nor is a version that
        is the same as ours."""
        try:
            there = self.log.manifest(version, "V2")
            if _is_same(there, self._made):
                return False
            transaction = self.log.transaction(there)
        except NotFoundError:
            return False
        return isinstance(transaction, Transaction) and transaction.operation == "Clone"

    def _remove_ours(self) -> None:
        if self._is_ours(self.named.version):
            self._remove(self.named.version)

    def _remove(self, version: int) -> None:
        self.log.store.delete(self.log.path_of(version, "V2"))

    def _exists(self) -> RefConflictError:
        return RefConflictError(
            f"Ref conflict error: branch {self.name} already exists in {self.main.uri}; choose another name, or open "
            f"it with checkout_version(({self.name!r}, None))",
            uri=self.main.uri,
            path=self._path,
        )


def _is_manifest(path: str) -> bool:
    return parse_manifest_name(path.removeprefix(VERSIONS)) is not None


def _is_same(there: Manifest, made: Manifest) -> bool:
    """Whether two manifests are the same version, but for when and by whom they were written."""
    return all(
        getattr(there, name) == getattr(made, name)
        for name in ("version", "branch", "base_paths", "config", "table_metadata", "schema", "indices")
    ) and (there.fragments() == made.fragments())
