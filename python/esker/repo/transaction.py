"""Many writes and one commit, or none."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from ..exceptions import AlreadyExistsError, IOFailedError
from .objects.staging import Staging

if TYPE_CHECKING:
    from .branch import Branch, TransactionBranch
    from .reference import Reference


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
        # What is still open on it writes nothing more.
        inner._end_stores()
        try:
            if kind is None:
                self._commit(inner)
        finally:
            inner._end()

    def _commit(self, inner: TransactionBranch) -> None:
        if len(inner._staging):
            if inner.tag and inner._core.tag_commit(inner.tag) is not None:
                raise AlreadyExistsError(f"tag {inner.tag!r} exists already; nothing was committed", path=inner.tag)
            message = inner.commit_message or f"Transaction on {self._branch.id}"
            made = inner.commit(message, inner.commit_metadata, committer=self._committer)
            if inner.tag:
                self._tag_made(inner.tag, made)

    def _tag_made(self, name: str, made: Reference) -> None:
        from .tag import Tag

        advice = f"committed as {made.id} to {self._branch.id!r}, but not tagged: create a tag of that commit"
        try:
            Tag(self._branch._core, name).create(made)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"{advice}: {error}", path=name) from error
        except OSError as error:
            raise IOFailedError(f"{advice}: {error}", path=name) from error
