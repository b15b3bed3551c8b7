"""Many writes and one commit, or none."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from .staging import Staging

if TYPE_CHECKING:
    from .branch import Branch


class Transaction:
    """See `Branch.transact`."""

    def __init__(self, branch: Branch, message: str, metadata: Mapping[str, str] | None, committer: str | None) -> None:
        self._branch = branch
        self._message = message
        self._metadata = metadata
        self._committer = committer
        self._inner: Branch | None = None

    def __enter__(self) -> Branch:
        from .branch import Branch, TransactionBranch

        staging = Staging()
        staging.begin(self._branch.get_commit())
        self._branch._core.check_unprotected(self._branch.id)
        self._inner = TransactionBranch(self._branch._core, self._branch.id, staging)
        assert isinstance(self._inner, Branch)
        return self._inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        inner, self._inner = self._inner, None
        if kind is None and inner is not None and len(inner._staging):
            message = self._message or f"Transaction on {self._branch.id}"
            inner.commit(message, self._metadata, committer=self._committer)
