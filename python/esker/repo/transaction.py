"""Transactions: many writes and one commit, or none."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..exceptions import (
    AlreadyExistsError,
    CommitStateUnknownError,
    InvalidArgumentError,
    IOFailedError,
    UnsupportedError,
)
from .committing.lost_ref import OnLost
from .committing.new_commit import NewCommit
from .committing.staged_commit import commit_staging
from .core.repository_core import RepositoryCore
from .objects.ref_view import BranchView
from .objects.staging import Staging
from .reference import Reference, ReferenceType
from .refs.clock import moment
from .refs.layout import check_name
from .sdk_names import LacksNames
from .stores import transactions
from .tag import Tag
from .text import check_text
from .writeable_reference import WriteableReference


class TransactionBranch(LacksNames, WriteableReference):
    """A branch as a transaction sees it: the commit that it began at, with its own writes.

    It has no methods that act on the branch itself: `create`, `delete`, `reset_to`, `revert` and the like raise
    UnsupportedError. Call them on `repository.branch(...)`, before or after the block.

    Attributes:
        commit_message: What the commit will say.
        commit_metadata: Keys and values that it will have.
        tag: A tag that will be created at it.
    """

    commit_message: str = ""
    commit_metadata: Mapping[str, str] | None = None
    tag: str | None = None
    _token: str | None = None

    def __init__(self, core: RepositoryCore, id: str, staging: Staging, on_lost: OnLost = OnLost.REPLAY) -> None:
        super().__init__(core, id)
        self._on_lost = on_lost
        self._view = BranchView(core, id, staging)
        self._has_ended = False
        self._tokens = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Its view says why not.
        return self._view.__reduce__()

    @property
    def versions(self) -> dict[str, tuple[int, ...]]:
        """The versions that tables got by the last commit, by their paths; those staged so far while none has landed.

        They are final once the block has ended: a transaction that lost the branch to others is committed on top of
        theirs, and its versions have later numbers then.

        Example:
            `tx.versions == {"tables/t": (4, 5), "tables/d": (7,)}`
        """
        found: dict[str, tuple[int, ...]] = {}
        self._staging.forget_dropped()
        staged = self._staging.entries
        for entry in sorted(staged, key=lambda entry: entry.number):
            found[entry.folder] = (*found.get(entry.folder, ()), entry.number)
        shown = found if staged else self._staging.versions
        return {folder.rstrip("/"): numbers for folder, numbers in shown.items()}

    def expect_unchanged(self, path: str) -> None:
        """Makes what was read a condition: the commit fails if others change it before.

        Args:
            path: Of an object, a folder or a table; empty for all of the branch.

        Example:
            `tx.expect_unchanged("tables/prices")`
        """
        self._staging.expected.add(check_text(path, "a path").strip("/"))

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
        # Threads get one token: stores of two would both put the same version of a table.
        with self._tokens:
            if self._token is None and self._has_ended:
                return transactions.uri_of("ended", path)
            if self._token is None:
                base = self._view.check_writeable(path or "/")
                self._staging.begin(base)
                self._token = transactions.begin(self._core, base.meta_range_id, self._staging)
            return transactions.uri_of(self._token, path)

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
        new = NewCommit(self.id, message, {} if metadata is None else metadata, committer, date)
        made = commit_staging(
            self._core, self._staging, new, allow_empty=allow_empty, on_lost=self._on_lost, seal=self._end_stores
        )
        return Reference(self._core, made.id)

    def merge_into(self, destination_branch: ReferenceType, *, dry_run: bool = False, **options: Any) -> str:
        """Looks for conflicts with another branch, without what the block has written.

        Raises:
            UnsupportedError: It is no dry run: a merge would go past the transaction.
        """
        if not dry_run:
            raise UnsupportedError(
                f"a transaction on {self.id!r} merges nothing, since what it has written is not committed yet; merge "
                "the branch when the block has ended"
            )
        return super().merge_into(destination_branch, dry_run=True, **options)

    def _end_stores(self) -> None:
        with self._tokens:
            token, self._token = self._token, None
        if token is not None:
            transactions.end(token)

    def _end(self) -> None:
        # No thread gets stores from here on.
        self._has_ended = True
        self._end_stores()
        self._staging.end()


class TransactionBlock:
    """The block of a `with`: begins a transaction, and commits or forgets it. See `Branch.transact`.

    Args:
        core: The repository.
        branch: The branch that is committed to.
        message: What the commit says.
        metadata: Keys and values of the commit.
        tag: A tag to create at the commit.
        committer: Who; the user of the machine by default.
        on_lost: What to do with tables to which others commit meanwhile.

    Raises:
        InvalidArgumentError: `on_lost` is neither of the two.
    """

    def __init__(
        self,
        core: RepositoryCore,
        branch: str,
        message: str,
        metadata: Mapping[str, str] | None,
        tag: str | None,
        committer: str | None,
        on_lost: str = "replay",
    ) -> None:
        if on_lost not in ("replay", "error"):
            raise InvalidArgumentError(f"expected on_lost as 'replay' or 'error', found {on_lost!r}")
        self._on_lost = OnLost(on_lost)
        self._core = core
        self._branch = branch
        self._message = message
        self._metadata = metadata
        self._tag = tag
        self._committer = committer
        self._inner: TransactionBranch | None = None

    def __enter__(self) -> TransactionBranch:
        staging = Staging()
        began = moment()
        staging.begin(self._core.head(self._branch), began)
        self._core.check_unprotected(self._branch)
        inner = TransactionBranch(self._core, self._branch, staging, self._on_lost)
        inner.commit_message, inner.commit_metadata, inner.tag = self._message, self._metadata, self._tag
        self._inner = inner
        return inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        inner, self._inner = self._inner, None
        if inner is None:
            return
        # What is still open on it, or hooks and threads that have kept it, write nothing more: nothing would commit it.
        inner._end()
        if kind is None:
            self._commit(inner)

    def _commit(self, inner: TransactionBranch) -> None:
        if len(inner._staging):
            if inner.tag and self._core.tag_commit(check_name(inner.tag, "tag")) is not None:
                raise AlreadyExistsError(f"tag {inner.tag!r} exists already; nothing was committed", path=inner.tag)
            message = inner.commit_message or f"Transaction on {self._branch}"
            made = inner.commit(message, inner.commit_metadata, committer=self._committer)
            if inner.tag:
                self._tag_made(inner.tag, made)

    def _tag_made(self, name: str, made: Reference) -> None:
        advice = f"committed as {made.id} to {self._branch!r}, but not tagged: create a tag of that commit"
        try:
            Tag(self._core, name).create(made)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"{advice}: {error}", path=name) from error
        except CommitStateUnknownError as error:
            may_be = f"committed as {made.id} to {self._branch!r}, but it is not known whether it was tagged"
            raise CommitStateUnknownError(f"{may_be}: {error}", path=name) from error
        except OSError as error:
            raise IOFailedError(f"{advice}: {error}", path=name) from error
