"""What hooks are told: which branch changes, to which commit, and what that holds.

Before a commit no ref leads to it and its object is not stored yet. Its content is: a hook reads it as any ref's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..._native.store import Store
from ...exceptions import NotFoundError, UnsupportedError
from ...store import stores
from ..core.repository_core import RepositoryCore
from ..hooks import EventType
from ..objects.object_info import CommonPrefix, ObjectInfo
from ..objects.ref_view import RefView
from ..objects.stored_object import StoredObject
from ..refs.commits import Commit
from ..stores.ref_folder import RefFolder
from ..table_address import address
from ..tables.roots import TableRoots

PROVISIONAL = "esker-hook"
"""The scheme of contents that hooks look at: `esker-hook://<token>/<path>`, in one process, while the hooks run."""

_open: dict[str, EventRef] = {}


class EventRef:
    """The content of a commit as hooks read it. It has the readers of a `Reference`; nothing is written through it.

    Args:
        core: The repository.
        commit: The commit, which need not be stored yet.
        token: Names it to stores while the hooks run; None for a commit that is made.

    Example:
        `esker.dataset(event.ref.store_uri("tables/t")).count_rows("amount < 0")`
    """

    def __init__(self, core: RepositoryCore, commit: Commit, token: str | None) -> None:
        self._core = core
        self._commit = commit
        self._token = token
        self._view = _CommitView(core, commit)

    @property
    def id(self) -> str:
        """The commit's id."""
        return self._commit.id

    @property
    def repo_id(self) -> str:
        """The repository's id."""
        return self._core.id

    def get_commit(self) -> Commit:
        """The commit."""
        return self._commit

    def object(self, path: str) -> StoredObject:
        """The object at a path, which need not exist."""
        return StoredObject(self._view, path)

    def objects(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """The objects whose paths start with `prefix`, in the order of their paths. See `Reference.objects`."""
        yield from self._view.objects(prefix or "", after or "", delimiter or "", max_amount)

    def store_uri(self, path: str = "") -> str:
        """The URI of a folder of the content as a store, read only.

        Before a commit it opens in this process alone, and while the hook runs; what is open then can still be read.
        """
        if self._token is None:
            return address(self._core.uri, self._commit.id, path)
        return f"{PROVISIONAL}://{self._token}/{path.strip('/')}".rstrip("/")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class _CommitView(RefView):
    """What a commit reads that need not be stored."""

    def __init__(self, core: RepositoryCore, commit: Commit) -> None:
        super().__init__(core, commit.id)
        self._commit = commit

    def commit(self) -> Commit:
        return self._commit

    def frozen(self) -> RefView:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError("what a hook looks at stays in its process; read it there")


@dataclass(frozen=True)
class HookEvent:
    """What happens.

    Attributes:
        type: When the hook is called.
        branch: The branch that changes.
        commit: The commit: about to be made, or made.
        source: The ref that is merged; None for commits.
        ref: What the commit holds, to be read.
    """

    type: EventType
    branch: str
    commit: Commit
    source: str | None
    ref: EventRef

    @property
    def before(self) -> Commit:
        """The commit that the branch led to before."""
        return self.ref._core.commits.get(self.commit.parents[0])

    @property
    def tables(self) -> list[str]:
        """The folders of the tables that the branch gets, loses or has otherwise then, in their order.

        Reads what differs between the two contents, each time that it is asked for.
        """
        contents = [self.before.meta_range_id, self.commit.meta_range_id]
        core = self.ref._core
        return [root.rstrip("/") for root in TableRoots(core.storage, contents).touched(*contents)]


Hook: TypeAlias = Callable[[HookEvent], None]


def run_before(core: RepositoryCore, type: EventType, branch: str, source: str | None, commit: Commit) -> None:
    """Calls the hooks that may refuse a commit, which is not stored yet."""
    with _readable(core, commit) as ref:
        core.hooks.run(HookEvent(type, branch, commit, source, ref))


def run_after(core: RepositoryCore, type: EventType, branch: str, source: str | None, commit: Commit) -> None:
    """Calls the hooks that are told of a commit."""
    ref = EventRef(core, commit, None)
    core.hooks.run_after(HookEvent(type, branch, commit, source, ref))


@contextmanager
def _readable(core: RepositoryCore, commit: Commit) -> Iterator[EventRef]:
    token = uuid.uuid4().hex
    _open[token] = EventRef(core, commit, token)
    try:
        yield _open[token]
    finally:
        del _open[token]


def _open_provisional(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    token, _, path = uri.partition("://")[2].partition("/")
    found = _open.get(token)
    if found is None:
        raise NotFoundError(
            f"{uri}: expected a hook of this process that is at work, found none: what it looks at opens while it "
            "runs; afterwards open the commit",
            uri=uri,
        )
    return RefFolder.of(found._core, found._commit.meta_range_id, path, uri)


stores.register(PROVISIONAL, _open_provisional)
