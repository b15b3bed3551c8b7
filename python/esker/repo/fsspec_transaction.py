"""fsspec's transactions over what a repository's handle has staged: all of the block stays staged, or none of it."""

from __future__ import annotations

from contextlib import ExitStack
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
        self._own: dict[tuple[str, str], list[ObjectInfo | None]] = {}

    def view(self, branch: str) -> BranchView:
        """A branch whose changes the transaction may take back."""
        return _NotedView(self._core, branch, self)

    def note(self, branch: str, path: str, before: Staged, change: ObjectInfo | None) -> None:
        """Notes what is staged at a path before the file system stages a change there, which may fail."""
        own = self._own.setdefault((branch, path), [])
        if not before[0] or before[1] not in own:
            self._before[branch, path] = before
            own.clear()
        own.append(change)

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
        with ExitStack() as all_done:
            all_done.callback(self._end)
            if not commit:
                all_done.callback(self._take_back)
            while self.files:
                file = self.files.popleft()
                if not commit:
                    all_done.callback(file.discard)

    def _take_back(self) -> None:
        for (branch, path), own in self._own.items():
            for change in reversed(own):
                self._core.staging(branch).take_back(path, change, self._before[branch, path])

    def _end(self) -> None:
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
        # Before it is staged: Ctrl-C may come right after that.
        self._transaction.note(self.id, path, self.staging.lookup(path), change)
        super().stage(path, change, began, source, is_new)

    def __reduce__(self) -> tuple[Any, ...]:
        return BranchView, (self.core, self.id)
