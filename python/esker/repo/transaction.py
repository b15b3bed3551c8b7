"""Many writes and one commit, or none."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from ..exceptions import AlreadyExistsError
from .staging import Staging

if TYPE_CHECKING:
    from .branch import Branch, TransactionBranch


class Transaction:
    """See `Branch.transact`."""

    def __init__(
        self,
        branch: Branch,
        message: str,
        metadata: Mapping[str, str] | None,
        tag: str | None,
        committer: str | None,
    ) -> None:
        self._branch = branch
        self._message = message
        self._metadata = metadata
        self._tag = tag
        self._committer = committer
        self._inner: TransactionBranch | None = None

    def __enter__(self) -> TransactionBranch:
        from .branch import TransactionBranch

        staging = Staging()
        staging.begin(self._branch.get_commit())
        self._branch._core.check_unprotected(self._branch.id)
        inner = TransactionBranch(self._branch._core, self._branch.id, staging)
        inner.commit_message, inner.commit_metadata, inner.tag = self._message, self._metadata, self._tag
        self._inner = inner
        return inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        inner, self._inner = self._inner, None
        if inner is None:
            return
        inner._end()
        if kind is None and len(inner._staging):
            if inner.tag and inner._core.tag_commit(inner.tag) is not None:
                raise AlreadyExistsError(f"tag {inner.tag!r} exists already; nothing was committed", path=inner.tag)
            message = inner.commit_message or f"Transaction on {self._branch.id}"
            made = inner.commit(message, inner.commit_metadata, committer=self._committer)
            if inner.tag:
                from .tag import Tag

                Tag(self._branch._core, inner.tag).create(made)
