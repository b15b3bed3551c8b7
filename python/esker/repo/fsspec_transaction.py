"""fsspec's transactions over what a repository's handle has staged: all of the block stays staged, or none of it."""

from __future__ import annotations

from typing import Any

from fsspec.transaction import Transaction

from ..exceptions import UnsupportedError
from .core.repository_core import RepositoryCore
from .objects.object_info import ObjectInfo
from .objects.ref_view import BranchView
from .objects.staging import Staging
from .refs.clock import Moment

Staged = tuple[bool, ObjectInfo | None]
"""Whether something is staged at a path, and what; None for a path that goes."""


class FsspecTransaction(Transaction):  # type: ignore[misc]
    """What `with fs.transaction:` begins and ends. What others stage on the handle meanwhile is none of its business.

    Example:
        `with fs.transaction: fs.pipe("main/a", b"1")`
    """

    def __init__(self, fs: Any, **options: Any) -> None:
        super().__init__(fs, **options)
        self._core: RepositoryCore = fs.repository._core
        self._before: dict[tuple[str, str], Staged] = {}
        self._now: dict[tuple[str, str], Staged] = {}

    def view(self, branch: str) -> BranchView:
        """A branch whose changes the transaction may take back."""
        return _NotedView(self._core, branch, self)

    def note(self, branch: str, path: str, before: Staged, change: ObjectInfo | None) -> None:
        """Notes what was staged at a path before the file system staged a change there."""
        if self._now.get((branch, path)) != before:
            self._before[branch, path] = before
        self._now[branch, path] = (True, change)

    def __enter__(self) -> FsspecTransaction:
        """Begins it.

        Raises:
            UnsupportedError: The file system has one at work, whose end this one's would be.
        """
        if self.fs is None or self.fs._intrans:
            raise UnsupportedError(
                "expected a file system without a transaction at work, found one; end it first, or write within it"
            )
        super().__enter__()
        return self

    def complete(self, commit: bool = True) -> None:
        """Leaves what was staged since as it is, or takes it back."""
        # Each file was staged when it was closed. One that is open yet is no part of what failed once it is closed.
        while self.files:
            file = self.files.popleft()
            if not commit:
                file.discard()
        if not commit:
            for (branch, path), (_, change) in self._now.items():
                self._core.staging(branch).take_back(path, change, self._before[branch, path])
        self.fs._intrans = False
        self.fs._transaction = None


class _NotedView(BranchView):
    """A branch whose changes a transaction notes."""

    def __init__(self, core: RepositoryCore, id: str, transaction: FsspecTransaction) -> None:
        super().__init__(core, id)
        self._transaction = transaction

    def stage(
        self,
        path: str,
        change: ObjectInfo | None,
        began: Moment | None = None,
        source: str | Staging | None = None,
        is_new: bool = False,
    ) -> None:
        before = self.staging.lookup(path)
        super().stage(path, change, began, source, is_new)
        self._transaction.note(self.id, path, before, change)

    def __reduce__(self) -> tuple[Any, ...]:
        return BranchView, (self.core, self.id)
