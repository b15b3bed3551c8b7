"""fsspec's transactions over what a repository's handle has staged: all of the block stays staged, or none of it."""

from __future__ import annotations

from typing import Any

from fsspec.transaction import Transaction

from .core.repository_core import RepositoryCore
from .objects.staging import SavedStaging


class FsspecTransaction(Transaction):  # type: ignore[misc]
    """What `with fs.transaction:` begins and ends.

    Example:
        `with fs.transaction: fs.pipe("main/a", b"1")`
    """

    def __init__(self, fs: Any, **options: Any) -> None:
        super().__init__(fs, **options)
        self._core: RepositoryCore = fs.repository._core
        self._before: dict[str, SavedStaging] = {}

    def start(self) -> None:
        """Remembers what is staged."""
        super().start()
        self._before = {branch: staging.saved() for branch, staging in self._core.staged().items()}

    def complete(self, commit: bool = True) -> None:
        """Leaves what was staged since as it is, or takes it back."""
        # Each file was staged when it was closed.
        self.files.clear()
        if not commit:
            for branch, staging in self._core.staged().items():
                staging.restore(self._before.get(branch, SavedStaging()))
        self.fs._intrans = False
        self.fs._transaction = None
