"""The store of a folder of a branch: each commit of a table is a commit of the branch.

```
put of a file          staged in this store, seen by it alone
put of a log entry     one commit of the branch: the entry, the files staged so far, checkpoint and hint
flush                  one commit of the branch: what is staged beside log entries, as a clean-up's deletions
hand_over, adopt       what other processes have staged is staged here: the tasks of a job write, its driver commits
refresh                goes to the branch's last commit; a table that is another one by then is not gone on with
```

What is read stays as it was at the commit that the store stands at: files are found by their addresses there.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from ..._native.graveler import StagedPaths
from ..._native.store import Store
from ...commit.loop import follow
from ...exceptions import NotFoundError
from ...store.staging import Handover
from ..committing.lost_ref import EntryTaken, OnLost
from ..committing.new_commit import NewCommit
from ..committing.staged_commit import commit_staging
from ..core.opening import Origin
from ..core.repository_core import RepositoryCore
from ..errors import NoChangesError, table_conflict
from ..objects.object_info import ObjectInfo, TableConflict
from ..objects.staging import Staging
from ..refs.clock import Moment, elapsed_s, moment
from ..refs.commits import Commit
from ..refs.expired import explained
from ..table_address import address
from ..tables.table_log import FOLDERS, LogEntry, Relation, TableFormat, entry_at, newest_entry, read_log
from .folder_store import FolderStore

TABLE_KEY, OPERATION_KEY, VERSION_KEY = "esker.table", "esker.operation", "esker.version"
"""Metadata of a commit that is one of a table."""


class BranchStore(FolderStore):
    """A folder of a branch, at one of its commits, with what is staged over it.

    Args:
        core: The repository.
        branch: The branch.
        commit: Where it stands: the branch's last one, or for a pickle that was sent elsewhere its own.
        folder: With a `/` at its end, or empty.
        uri: What it is called.
    """

    branch: str
    _commit: Commit
    _paths: StagedPaths
    _lock: threading.RLock
    _is_fresh: bool
    _moved: TableConflict | None
    _newest: dict[TableFormat, LogEntry]
    _adopted: Moment | None

    def __new__(cls, core: RepositoryCore, branch: str, commit: Commit, folder: str, uri: str) -> Self:
        """Opens it; the class's Args say what with."""
        paths = StagedPaths()
        over = core.staging_over(commit.meta_range_id, uuid.uuid4().hex, paths)
        made = super().__new__(cls, core, over, Staging.over(paths, commit, 0.0), folder, uri)
        made.branch, made._commit, made._paths = branch, commit, paths
        made._lock = threading.RLock()
        made._is_fresh = True
        made._moved = None
        made._newest = {}
        made._adopted = None
        return made

    def base_content(self) -> str:
        """The content of the commit that it stands at."""
        return self._commit.meta_range_id

    @property
    def commit_id(self) -> str:
        """The commit that it stands at."""
        return self._commit.id

    # What others commit.

    def refresh(self) -> None:
        """Goes to the branch's last commit."""
        if self._is_fresh:
            # It was opened for this look.
            self._is_fresh = False
            return
        with self._lock:
            self._go_to(self.core.head(self.branch))

    def _go_to(self, commit: Commit) -> None:
        if commit.id == self._commit.id or self._moved is not None:
            return
        pair = (self._commit.meta_range_id, commit.meta_range_id)
        if self.core.storage.touched([pair], prefixes=[self.folder])[0]:
            self._moved = self._looked_at(commit)
            if self._moved is not None:
                return
        self._over.rebase(self.core.storage, commit.meta_range_id)
        self._commit = commit

    def _looked_at(self, commit: Commit) -> TableConflict | None:
        """Whether the folder's table is not the one any more that is known: what its log says then."""
        storage, before, after = self.core.storage, self._commit.meta_range_id, commit.meta_range_id
        for format in FOLDERS:
            known = self._newest.get(format) or newest_entry(storage, before, self.folder, format)
            if known is None:
                continue
            if entry_at(storage, after, known) != known:
                return self._moved_from(format, known, after)
            newest = newest_entry(storage, after, self.folder, format, known)
            if newest is not None:
                self._newest[format] = newest
        return None

    def _moved_from(self, format: TableFormat, known: LogEntry, content: str) -> TableConflict:
        there = read_log(self.core.storage, content, self.folder, format)
        if there is None:
            return self._conflict_of(format, known, (None, known.number))
        before = read_log(self.core.storage, self._commit.meta_range_id, self.folder, format)
        relation = there.relation(before) if before is not None else (Relation.PARTED, known.number)
        return self._conflict_of(format, known, relation)

    def _conflict_of(
        self, format: TableFormat, newest: LogEntry, relation: tuple[Relation | None, int]
    ) -> TableConflict:
        path = self.folder.rstrip("/")
        kind, version = relation
        if kind is None:
            why, what = f"the table {path!r} is not on {self.branch!r} any more", "dropped"
        elif kind is Relation.UNKNOWN:
            why, what = f"a clean-up has removed version {newest.number} of {path!r}, which was open", "cleaned-up"
        elif kind is Relation.BEHIND:
            why, what = (
                f"{path!r} was open at version {newest.number}, and {self.branch!r} was reset to version {version} of "
                "it",
                "reset",
            )
        else:
            why, what = (
                f"{path!r} was open at version {newest.number}, and version {version} is another one by now: "
                f"{self.branch!r} was reset, or the table replaced",
                "reset",
            )
        return TableConflict(path, format, what, version, why, "open the table again")  # type: ignore[arg-type]

    @property
    def has_moved(self) -> bool:
        """Whether the table that was open is another one by now, or gone."""
        return self._moved is not None

    @property
    def pinned_uri(self) -> str:
        """The URI of the folder at the commit that it stands at."""
        return address(self.core.uri, self._commit.id, self.folder)

    def check_not_moved(self) -> None:
        """Refuses to go on with a table that is another one by now.

        Raises:
            TableConflictError: It is.
        """
        if self._moved is not None:
            raise table_conflict(self._moved, what=f"commit to {self.branch}")

    # What is committed.

    def put_entry(self, path: str, data: bytes, change: object, accompany: Callable[[Store], None]) -> bool:
        """Puts a log entry if absent, as one commit of the branch, with all that is staged."""
        with self._lock:
            self.check_not_moved()
            format, number = self.check(path, data, change)
            # The entry is staged apart: other threads of this handle must not read a version that may be refused.
            paths = self._paths.copy()
            over = self.core.staging_over(self.base_content(), uuid.uuid4().hex, paths)
            store = over.store(self.uri, self.folder)
            if not store.put_if_absent(path, data):
                return False
            try:
                follow(partial(accompany, store), f"version {number}")
                operation = _operation_of(change)
                table = self.folder.rstrip("/")
                said = {TABLE_KEY: table, OPERATION_KEY: operation, VERSION_KEY: str(number)}
                self._commit_staged(
                    paths, max(over.age_s, self._age_s()), f"{operation} {table or '/'}: version {number}", said
                )
            except EntryTaken:
                self._go_to(self.core.head(self.branch))
                return False
            except BaseException as error:
                self._drop_what_is_old(error)
                raise
            landed = entry_at(self.core.storage, self.base_content(), LogEntry(number, self.folder + path, b""))
            if landed is not None:
                self._newest[format] = landed
            return True

    def flush(self, what: str) -> None:
        """Commits what is staged beside log entries, if anything is."""
        with self._lock:
            if not len(self._paths):
                return
            self.check_not_moved()
            staged = list(self.staging.within(""))
            table = self.folder.rstrip("/")
            try:
                said = {TABLE_KEY: table, OPERATION_KEY: what}
                self._commit_staged(self._paths.copy(), self._age_s(), f"{what} {table or '/'}", said)
            except NoChangesError:
                self._forget(staged)
            except BaseException:
                # Deletions that were not committed must not go with a later commit.
                self._forget([one for one in staged if one[1] is None])
                raise

    def hand_over(self) -> Handover:
        """The files that are staged here, for a store of the same folder in the process that commits them."""
        with self._lock:
            return tuple((path, change) for path, change in self.staging.within("") if change is not None)

    def adopt(self, files: Handover, age_s: float) -> None:
        """Stages files that stores of other processes have handed over."""
        now = moment()
        began = (now[0] - age_s, now[1] - age_s)
        with self._lock:
            for path, change in files:
                self.staging.stage(path, change)
            self._adopted = began if self._adopted is None else min(self._adopted, began)

    def _age_s(self) -> float:
        """Seconds since the first of what is staged was begun."""
        return max(self._over.age_s, elapsed_s(self._adopted) if self._adopted is not None else 0.0)

    def _drop_what_is_old(self, error: BaseException) -> None:
        """Forgets what no commit takes any more, since garbage collection has or may have deleted it, so that later
        commits of this handle do not end in the same error."""
        grace = self.core.settings().grace_s
        if 0 < grace < self._age_s():
            self._forget(list(self.staging.within("")))
        elif isinstance(error, NotFoundError):
            # A collection with a shorter grace period was here.
            self._forget([one for one in self.staging.within("") if one[1] is not None and self._is_gone(one[1])])

    def _is_gone(self, staged: ObjectInfo) -> bool:
        if staged.address_type == "full":
            return False
        try:
            self.core.store.head(staged.physical_address)
        except NotFoundError:
            return True
        return False

    def _commit_staged(self, staged: StagedPaths, age_s: float, message: str, metadata: dict[str, str]) -> None:
        staging = Staging.over(staged, self._commit, age_s)
        new = NewCommit(self.branch, message, metadata)
        listed = list(staging.within(""))
        made = commit_staging(self.core, staging, new, on_lost=OnLost.TAKEN)
        self._over.rebase(self.core.storage, made.meta_range_id)
        self._commit = made
        self._forget(listed)

    def _forget(self, listed: list[tuple[str, ObjectInfo | None]]) -> None:
        """Takes from what is staged what has been committed; another thread may have staged more meanwhile."""
        for path, change in listed:
            if self.staging.get(path) == change:
                self._paths.forget(path)
        if not len(self._paths):
            self._over.reset_age()
            self._adopted = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles where it stands: the copy reads the same, whatever becomes of the branch."""
        if self.core.reopen is None:
            return super().__reduce__()
        return reopened, (self.core.reopen[1], self.branch, self._commit.id, self.folder, self.uri)


def reopened(origin: Origin, branch: str, commit: str, folder: str, uri: str) -> BranchStore:
    """The store of a folder of a branch, at one of its commits.

    Raises:
        ExpiredError: Garbage collection has given the commit up.
    """
    core = origin.open()
    with explained(core.store, commit):
        made = BranchStore(core, branch, core.commits.get(commit), folder, uri)
    made._is_fresh = False
    return made


def _operation_of(change: object) -> str:
    named = getattr(change, "operation", None)
    return named if isinstance(named, str) else "Commit"
