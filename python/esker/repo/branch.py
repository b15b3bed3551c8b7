"""A branch: a ref that moves, and what this process has staged on it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from typing import Any

from .._native.graveler import Applied
from ..exceptions import AlreadyExistsError, InvalidArgumentError, UnsupportedError
from . import branch_store
from .committing import merging
from .committing.needs import Needs
from .core.repository_core import HIDDEN, RepositoryCore, default_committer
from .errors import NoChangesError
from .hooks import HookEvent
from .import_data import ImportManager
from .objects.object_info import Change, CommonPrefix, ObjectInfo, infos
from .objects.staging import Staging
from .objects.stored_object import StoredObject, WriteableObject
from .reference import Reference, ReferenceType, folded, id_of
from .refs.clock import moment
from .refs.commits import Commit
from .refs.expired import explained
from .refs.layout import check_name
from .refs.numbered_log import LogEntry
from .text import check_pairs, check_text
from .transaction import Transaction


class Branch(Reference):
    """A branch of a repository.

    What is written to it is staged in this process until `commit`: this process reads it, others do not. All handles
    of one branch that come from one `Repository` share what they stage.

    Example:
        ```python
        branch = repository.branch("main")
        branch.object("a.csv").upload(b"1,2")
        branch.commit("first data")
        ```
    """

    def __init__(self, core: RepositoryCore, id: str, staging: Staging | None = None) -> None:
        super().__init__(core, id)
        self._own_staging = staging

    def __reduce__(self) -> tuple[Any, ...]:
        if self._own_staging is not None:
            raise UnsupportedError("a transaction stays in its process; pickle the branch that it began on")
        return super().__reduce__()

    @property
    def _staging(self) -> Staging:
        return self._own_staging if self._own_staging is not None else self._core.staging(self.id)

    @property
    def head(self) -> Reference:
        """The last commit, without what is staged."""
        return Reference(self._core, self.get_commit().id)

    def get_commit(self) -> Commit:
        """The last commit.

        Raises:
            NotFoundError: There is no such branch.
        """
        return self._core.head(self.id)

    def create(self, source_reference: ReferenceType, exist_ok: bool = False, *, hidden: bool = False) -> Branch:
        """Creates the branch where a ref is now.

        Args:
            source_reference: The ref.
            exist_ok: Takes one that is there already as it is.
            hidden: Leaves the branch out of `Repository.branches`, as long as it lives.

        Raises:
            AlreadyExistsError: It is there already, and `exist_ok` is not set.
        """
        check_name(self.id, "branch")
        commit = self._core.resolve(id_of(source_reference))

        def build(head: LogEntry | None) -> LogEntry:
            if head is not None and head.kind != "delete":
                raise AlreadyExistsError(f"branch {self.id!r} exists already", path=self.id)
            entry = self._core.entry("create", commit, Needs(frozenset((commit.id,))))
            if hidden:
                entry.body[HIDDEN] = True
            return entry

        try:
            self._core.move(self.id, build, f"create branch {self.id}")
        except AlreadyExistsError:
            if not exist_ok:
                raise
        return self

    def delete(self) -> None:
        """Deletes the branch, and what is staged on it here. Its commits stay where other refs lead to them."""
        if self.id == self._core.default_branch:
            raise InvalidArgumentError(f"branch {self.id!r} is the default branch, which cannot be deleted")
        self._core.check_unprotected(self.id)

        def build(head: LogEntry | None) -> LogEntry:
            return self._core.entry("delete", self._core.commit_of(head, self.id))

        self._core.move(self.id, build, f"delete branch {self.id}")
        self._staging.clear()

    def reset_to(self, reference: ReferenceType) -> Commit:
        """Lets the branch lead to another commit: lakeFS's hard reset. Nothing may be staged."""
        self._core.check_unprotected(self.id)
        merging.check_clean(self._core, self.id)
        commit = self._core.resolve(id_of(reference))

        def build(head: LogEntry | None) -> LogEntry:
            self._core.commit_of(head, self.id)
            return self._core.entry("reset", commit, Needs(frozenset((commit.id,))))

        self._core.move(self.id, build, f"reset branch {self.id}")
        return commit

    # What is staged.

    def _frozen(self) -> Reference:
        staging = Staging()
        staging.restore(self._staging.saved())
        staging.base = self._base()
        return TransactionBranch(self._core, self.id, staging)

    def object(self, path: str) -> WriteableObject:
        """The object at a path, which need not exist."""
        return WriteableObject(self, path)

    def objects(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """The objects whose paths start with `prefix`, with what is staged. See `Reference.objects`."""
        prefix, after, delimiter = prefix or "", after or "", delimiter or ""
        staging = self._staging
        if not len(staging):
            yield from super().objects(prefix=prefix, after=after, delimiter=delimiter, max_amount=max_amount)
            return
        committed = (entry for entry in super().objects(prefix=prefix, after=after))
        last, given = None, 0
        for entry in _overlaid(committed, staging.within(prefix, after + "\0" if after else "")):
            found: ObjectInfo | CommonPrefix = entry
            head, cut, _ = entry.path[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if cut:
                found = CommonPrefix(prefix + head + delimiter)
                if found == last:
                    continue
                last = found
            if max_amount is not None and given >= max_amount:
                return
            given += 1
            yield found

    def _check_writeable(self, path: str) -> Commit:
        """Refuses what cannot be staged before its bytes are written; returns the commit that it will go over."""
        if not check_text(path, "a path"):
            raise InvalidArgumentError("expected a path, found an empty one")
        if self._staging.base is not None:
            return self._staging.base
        self._core.check_unprotected(self.id)
        return self.get_commit()

    def _stage(self, path: str, change: ObjectInfo | None) -> None:
        self._staging.begin(self._check_writeable(path))
        self._staging.stage(path, change)

    def _copy(self, info: ObjectInfo, source: str | Staging, path: str) -> WriteableObject:
        """Stages an object of a commit, or one that is staged somewhere, at a path of this branch."""
        self._stage(path, replace(info, path=path))
        if isinstance(source, Staging):
            # Its bytes are no younger for being staged once more.
            self._staging.take_over(source)
        else:
            self._staging.sources.add(source)
        return self.object(path)

    def _found(self, path: str) -> tuple[ObjectInfo | None, str | Staging]:
        staging = self._staging
        return (staging.get(path), staging) if check_text(path, "a path") in staging else super()._found(path)

    def delete_objects(self, object_paths: str | StoredObject | Iterable[str | StoredObject]) -> None:
        """Stages that paths go. No error for those at which there is nothing."""
        paths = [object_paths] if isinstance(object_paths, str | StoredObject) else list(object_paths)
        for path in paths:
            self._stage(path.path if isinstance(path, StoredObject) else path, None)

    def uncommitted(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
    ) -> Iterator[Change]:
        """What this process has staged and not committed.

        Args:
            max_amount: At most so many.
            after: Only paths behind this one.
            prefix: What paths start with.
            delimiter: Paths that go on after it are one `prefix_changed` together.
        """
        changes = self._staged_changes(prefix or "", after + "\0" if after else "")
        yield from islice(folded(changes, prefix or "", delimiter) if delimiter else changes, max_amount)

    def _staged_changes(self, prefix: str, from_path: str) -> Iterator[Change]:
        content = self._base().meta_range_id if len(self._staging) else ""
        for batch in self._staging.batches(prefix, from_path):
            committed = dict(infos(self._core.storage.get(content, [path for path, _ in batch])))
            for path, staged in batch:
                left = committed.get(path)
                if staged is None and left is None:
                    continue
                kind = "removed" if staged is None else "changed" if left is not None else "added"
                yield Change(kind, path, "object", staged.size_bytes if staged else 0, left, staged)

    def reset_changes(self, path_type: str = "reset", path: str | None = None) -> None:
        """Takes back what is staged: all (`reset`), one path (`object`), or what starts with one (`common_prefix`)."""
        staging = self._staging
        if path_type == "reset":
            staging.check_not_shared()
            staging.clear()
            return
        if path_type not in ("object", "common_prefix") or path is None:
            raise InvalidArgumentError(
                f"expected 'reset', or 'object' or 'common_prefix' with a path, found {path_type!r} with {path!r}"
            )
        wanted = [p for p, _ in staging.within(path)] if path_type == "common_prefix" else [path]
        for found in wanted:
            staging.forget(found)
        if not len(staging):
            staging.clear()

    # Commits.

    def commit(
        self,
        message: str,
        metadata: Mapping[str, str] | None = None,
        *,
        committer: str | None = None,
        date: int | None = None,
        allow_empty: bool = False,
    ) -> Reference:
        """Commits what is staged, and nothing else.

        If others have committed meanwhile, it goes on top of theirs, unless both changed the same paths.

        Args:
            message: Why.
            metadata: Keys and values of your own.
            committer: Who; the user of the machine by default.
            date: When, in seconds since the Unix epoch; now by default.
            allow_empty: Commits even if nothing changes.

        Raises:
            NoChangesError: Nothing is staged, or what is staged changes nothing.
            MergeConflictError: Others have changed the same paths; it lists them. What is staged stays.
        """
        self._core.check_unprotected(self.id)
        check_text(message, "a message")
        metadata = check_pairs(metadata, "metadata")
        staging = self._staging
        base = staging.base or self.get_commit()
        self._check_age(staging)
        began = moment()
        applied = self._applied(base, staging, allow_empty)

        def content(dest: Commit) -> str:
            self._check_age(staging)
            ours = applied.metarange_id or base.meta_range_id
            if dest.meta_range_id == base.meta_range_id:
                return ours
            with explained(self._core, base.id):
                return self._core.merged(base.meta_range_id, ours, dest.meta_range_id, "none").metarange_id or ""

        needs = Needs(frozenset(staging.sources), began, staging)
        commit = self._append(content, message, metadata, committer, date, needs, landed=staging.clear)
        return Reference(self._core, commit.id)

    def _check_age(self, staging: Staging) -> None:
        grace = self._core.settings().grace_s
        # With none, collections say what they delete; nobody could commit anything in no time.
        if 0 < grace < staging.age_s:
            raise InvalidArgumentError(
                f"branch {self.id!r}: what is staged was begun more than {grace / 3600:.4g} hours ago; garbage "
                "collection may have taken it for left behind: reset the changes and write them again"
            )

    def _applied(self, base: Commit, staging: Staging, allow_empty: bool) -> Applied:
        rule = self._core.settings().rule()
        applied = self._core.storage.apply(base.meta_range_id, staging.changes(), rule=rule)
        if applied.metarange_id is None and not allow_empty:
            raise NoChangesError(f"branch {self.id!r}: nothing is staged that changes anything; allow_empty commits it")
        return applied

    def _append(
        self,
        content: Callable[[Commit], str],
        message: str,
        metadata: Mapping[str, str] | None,
        committer: str | None,
        date: int | None,
        needs: Needs,
        landed: Callable[[], None] | None = None,
    ) -> Commit:
        def build(head: LogEntry | None) -> LogEntry:
            dest = self._core.commit_of(head, self.id)
            commit = Commit.make(
                committer=check_text(committer or default_committer(), "a committer"),
                message=message,
                meta_range_id=content(dest),
                creation_date=int(time.time()) if date is None else date,
                parents=(dest,),
                metadata=metadata,
            )
            self._core.hooks.run(HookEvent("pre-commit", self.id, commit))
            return self._core.entry("commit", commit, needs)

        entry = self._core.move(self.id, build, f"commit to {self.id}")
        if landed is not None:
            landed()
        made = self._core.commit_of(entry, self.id)
        self._core.hooks.run_after(HookEvent("post-commit", self.id, made))
        return made

    def transact(
        self,
        commit_message: str = "",
        commit_metadata: Mapping[str, str] | None = None,
        delete_branch_on_error: bool = True,
        tag: str | None = None,
        *,
        committer: str | None = None,
    ) -> AbstractContextManager[TransactionBranch]:
        """Writes many objects and commits once when the block ends; an error leaves nothing.

        The block gets a branch of its own: it reads the commit that was the last when the block began, with what it
        writes itself. Its `commit_message`, `commit_metadata` and `tag` may be set until the block ends.

        Args:
            commit_message: What the commit says.
            commit_metadata: Keys and values of the commit.
            delete_branch_on_error: Of no effect here, where a transaction is no branch.
            tag: A tag to create at the commit.
            committer: Who; the user of the machine by default.

        Example:
            ```python
            with repository.branch("main").transact("daily load") as tx:
                tx.object("day=1/a.parquet").upload(data)
            ```
        """
        return Transaction(self, commit_message, commit_metadata, tag, committer)

    def repack(self, *, committer: str | None = None) -> Reference:
        """Joins the small ranges that a history of appends has left, with a commit whose content is the same.

        Raises:
            NoChangesError: There is nothing to join.
        """
        began = moment()
        before = self.get_commit().meta_range_id
        packed = self._core.storage.repack(before, rule=self._core.settings().rule())
        if packed.metarange_id is None:
            raise NoChangesError(f"branch {self.id!r} has no small ranges side by side")

        def content(dest: Commit) -> str:
            if dest.meta_range_id == before:
                return packed.metarange_id or ""
            rule = self._core.settings().rule()
            return self._core.storage.repack(dest.meta_range_id, rule=rule).metarange_id or dest.meta_range_id

        said = {"esker.operation": "repack"}
        commit = self._append(content, "Repack ranges", said, committer, None, Needs(began=began))
        return Reference(self._core, commit.id)

    def revert(
        self,
        reference: ReferenceType | None = None,
        parent_number: int = 0,
        *,
        reference_id: str | None = None,
        committer: str | None = None,
        allow_empty: bool = False,
    ) -> Commit:
        """Takes back what a commit did, with a new commit. For a merge, say which parent counts: 1 or 2."""
        if reference_id is not None:
            warnings.warn("reference_id is deprecated: give the reference itself", DeprecationWarning, stacklevel=2)
        given = [one for one in (reference, reference_id) if one is not None]
        if len(given) != 1:
            raise InvalidArgumentError(f"expected one reference to revert, found {len(given)}")
        return merging.revert(self._core, self.id, id_of(given[0]), parent_number, committer, allow_empty)

    def cherry_pick(
        self,
        reference: ReferenceType,
        parent_number: int | None = None,
        *,
        committer: str | None = None,
        allow_empty: bool = False,
    ) -> Commit:
        """Does again what a commit did, with a new commit. For a merge, say which parent counts: 1 or 2."""
        return merging.cherry_pick(self._core, self.id, id_of(reference), parent_number or 0, committer, allow_empty)

    def import_data(self, commit_message: str = "", metadata: Mapping[str, str] | None = None) -> ImportManager:
        """Commits references to objects that exist elsewhere. No bytes are copied, and esker never deletes them.

        Example:
            `branch.import_data("logs").prefix("s3://bucket/logs/", "logs/").run()`
        """
        return ImportManager(self, commit_message, metadata)


class TransactionBranch(Branch):
    """A branch as a transaction sees it: the commit that it began at, with its own writes.

    Attributes:
        commit_message: What the commit will say.
        commit_metadata: Keys and values that it will have.
        tag: A tag that will be created at it.
    """

    commit_message: str = ""
    commit_metadata: Mapping[str, str] | None = None
    tag: str | None = None
    _token: str | None = None
    _has_ended = False

    @property
    def source_id(self) -> str:
        """The branch that the transaction commits to."""
        return self.id

    def store_uri(self, path: str = "") -> str:
        """The URI of a folder of the transaction as a store: for readers and writers of tables, in this process.

        What they write is staged, and committed with the rest. An imported object is not read through it.

        Example:
            `esker.write_dataset(table, tx.store_uri("tables/t"))`
        """
        if self._token is None and self._has_ended:
            return branch_store.transaction_uri("ended", path)
        if self._token is None:
            base = self._check_writeable(path or "/")
            self._staging.begin(base)
            self._token = branch_store.begin(self._core, base.meta_range_id, self._staging.share())
        return branch_store.transaction_uri(self._token, path)

    def commit(
        self,
        message: str,
        metadata: Mapping[str, str] | None = None,
        *,
        committer: str | None = None,
        date: int | None = None,
        allow_empty: bool = False,
    ) -> Reference:
        """Commits what the block has written so far; what it writes from then on is committed at its end.

        Stores that were opened over it have ended then: ask for `store_uri` again. See `Branch.commit`.
        """
        made = super().commit(message, metadata, committer=committer, date=date, allow_empty=allow_empty)
        self._end_stores()
        return made

    def _end_stores(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            branch_store.end(token)

    def _end(self) -> None:
        self._end_stores()
        self._has_ended = True

    def _check_writeable(self, path: str) -> Commit:
        if self._has_ended:
            raise UnsupportedError("expected a transaction at work, found one that has ended; begin another")
        return super()._check_writeable(path)

    def _base(self) -> Commit:
        return self._staging.base or super()._base()


def _overlaid(
    committed: Iterator[ObjectInfo | CommonPrefix], staged: Iterator[tuple[str, ObjectInfo | None]]
) -> Iterator[ObjectInfo]:
    change = next(staged, None)
    for entry in committed:
        assert isinstance(entry, ObjectInfo)
        while change is not None and change[0] < entry.path:
            if change[1] is not None:
                yield change[1]
            change = next(staged, None)
        if change is not None and change[0] == entry.path:
            continue
        yield entry
    while change is not None:
        if change[1] is not None:
            yield change[1]
        change = next(staged, None)
