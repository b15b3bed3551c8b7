"""A branch: a ref that moves, and what this process has staged on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager

from ..exceptions import AlreadyExistsError, InvalidArgumentError
from . import branch_store
from .committing import transplant
from .committing.merging import check_clean
from .committing.needs import Needs
from .committing.new_commit import NewCommit
from .committing.ref_move import entry_to, move_branch
from .committing.repack import repack
from .committing.staged_commit import commit_staging
from .import_data import ImportManager
from .objects.ref_view import BranchView
from .reference import Reference, ReferenceType, id_of
from .refs.commit_entry import HIDDEN
from .refs.commits import Commit
from .refs.layout import check_name
from .refs.numbered_log import LogEntry
from .transaction import TransactionBlock, TransactionBranch
from .writeable_reference import WriteableReference


class Branch(WriteableReference):
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

    def _make_view(self) -> BranchView:
        return BranchView(self._core, self.id)

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
            entry = entry_to(self._core, "create", commit, Needs(frozenset((commit.id,))))
            if hidden:
                entry.body[HIDDEN] = True
            return entry

        try:
            move_branch(self._core, self.id, build, f"create branch {self.id}")
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
            return entry_to(self._core, "delete", self._core.commit_of(head, self.id))

        move_branch(self._core, self.id, build, f"delete branch {self.id}")
        self._staging.clear()

    def reset_to(self, reference: ReferenceType) -> Commit:
        """Lets the branch lead to another commit: lakeFS's hard reset. Nothing may be staged."""
        self._core.check_unprotected(self.id)
        check_clean(self._core, self.id)
        commit = self._core.resolve(id_of(reference))

        def build(head: LogEntry | None) -> LogEntry:
            self._core.commit_of(head, self.id)
            return entry_to(self._core, "reset", commit, Needs(frozenset((commit.id,))))

        move_branch(self._core, self.id, build, f"reset branch {self.id}")
        return commit

    def store_uri(self, path: str = "") -> str:
        """The URI of a folder of the branch as a store, for readers and writers of tables in any process.

        What opens it reads the branch's last commit. Each commit of a table through it is a commit of the branch; what
        this process has staged on the branch is not seen there. To commit several tables at once, use `transact`.

        Example:
            `esker.write_dataset(rows, branch.store_uri("tables/t"), mode="append")`
        """
        return branch_store.uri_of(self._core, self.id, path)

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
            NoChangesError: Nothing is staged, or what is staged changes nothing. What the branch got by others, or by a
                commit of which it was not known whether it had landed, is not staged any more.
            MergeConflictError: Others have changed the same paths; it lists them. What is staged stays.
        """
        new = NewCommit(self.id, message, {} if metadata is None else metadata, committer, date)
        made = commit_staging(self._core, self._staging, new, allow_empty=allow_empty)
        return Reference(self._core, made.id)

    def transact(
        self,
        commit_message: str = "",
        commit_metadata: Mapping[str, str] | None = None,
        delete_branch_on_error: bool = True,
        tag: str | None = None,
        *,
        committer: str | None = None,
        on_lost: str = "replay",
    ) -> AbstractContextManager[TransactionBranch]:
        """Writes many objects and commits once when the block ends; an error leaves nothing.

        Commits of tables, however many, appear together. If others have committed to the same tables meanwhile, each
        commit is made again on top of theirs by the table's own rules, and `TransactionBranch.versions` tells the
        numbers; where the rules leave no room, nothing is committed.

        The block gets a branch of its own: it reads the commit that was the last when the block began, with what it
        writes itself. Its `commit_message`, `commit_metadata` and `tag` may be set until the block ends.

        Args:
            commit_message: What the commit says.
            commit_metadata: Keys and values of the commit.
            delete_branch_on_error: Of no effect here, where a transaction is no branch.
            tag: A tag to create at the commit.
            committer: Who; the user of the machine by default.
            on_lost: `error` refuses tables to which others have committed meanwhile: for who has stored row ids or
                versions of one table in another.

        Raises:
            TableConflictError: At the block's end: others have changed a table in a way that leaves no room.
            NoChangesError: At the block's end: what was written changes nothing, or the branch has got it by others. No
                tag is created then.

        Example:
            ```python
            with repository.branch("main").transact("daily load") as tx:
                tx.object("day=1/a.parquet").upload(data)
            ```
        """
        return TransactionBlock(self._core, self.id, commit_message, commit_metadata, tag, committer, on_lost)

    def repack(self, *, committer: str | None = None) -> Reference:
        """Joins the small ranges that a history of appends has left, with a commit whose content is the same.

        Also of a protected branch: nothing that the branch holds changes.

        Raises:
            NoChangesError: There is nothing to join.
        """
        return Reference(self._core, repack(self._core, self.id, committer).id)

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
        return transplant.revert(self._core, self.id, id_of(given[0]), parent_number, committer, allow_empty)

    def cherry_pick(
        self,
        reference: ReferenceType,
        parent_number: int | None = None,
        *,
        committer: str | None = None,
        allow_empty: bool = False,
    ) -> Commit:
        """Does again what a commit did, with a new commit. For a merge, say which parent counts: 1 or 2."""
        return transplant.cherry_pick(self._core, self.id, id_of(reference), parent_number or 0, committer, allow_empty)

    def import_data(self, commit_message: str = "", metadata: Mapping[str, str] | None = None) -> ImportManager:
        """Commits references to objects that exist elsewhere. No bytes are copied, and esker never deletes them.

        Example:
            `branch.import_data("logs").prefix("s3://bucket/logs/", "logs/").run()`
        """
        return ImportManager(self._core, self.id, commit_message, metadata)
