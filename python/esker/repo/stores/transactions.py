"""Stores of transactions: what is written through them is staged, and the commits of tables are noted.

```
esker-tx://<token>/<path>   a folder of a transaction, in its own process, until it ends
```
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ..._native.graveler import BranchStaging
from ..._native.store import Store
from ...commit.loop import follow
from ...exceptions import NotFoundError
from ...store import stores
from ..core.repository_core import RepositoryCore
from ..objects.staging import StagedEntry, Staging
from .folder_store import FolderStore, plain

SCHEME = "esker-tx"


@dataclass(frozen=True)
class _Open:
    core: RepositoryCore
    content: str
    over: BranchStaging
    staging: Staging


_open: dict[str, _Open] = {}


class TransactionStore(FolderStore):
    """A folder of a transaction."""

    content: str

    def base_content(self) -> str:
        """The content that the transaction began at."""
        return self.content

    def put_entry(self, path: str, data: bytes, change: object, accompany: Callable[[Store], None]) -> bool:
        """Stages a log entry, and notes the commit behind it."""
        format, number = self.check(path, data, change)
        self.staging.forget_dropped(self.folder)
        if not plain(self, path, data):
            return False
        self.staging.note(StagedEntry(self.folder, format, number, self.folder + path, change))
        follow(partial(accompany, self), f"version {number}")
        return True


def begin(core: RepositoryCore, content: str, staging: Staging) -> str:
    """Opens what is staged over a content to stores; the token by which URIs find it until it is ended."""
    token = uuid.uuid4().hex
    over = core.staging_over(content, token, staging.share())
    _open[token] = _Open(core, content, over, staging)
    return token


def end(token: str) -> None:
    """Ends what `begin` has begun: stores that are still open on it refuse to write."""
    found = _open.pop(token, None)
    if found is not None:
        found.over.end()


def uri_of(token: str, path: str) -> str:
    """The URI of a folder."""
    return f"{SCHEME}://{token}/{path.strip('/')}".rstrip("/")


def is_behind_network(uri: str) -> bool:
    """Whether the repository of a transaction is behind a network; of one that has ended nobody asks any more."""
    found = _open.get(uri.removeprefix(f"{SCHEME}://").partition("/")[0])
    return found is not None and stores.is_behind_network(found.core.uri)


def open_store(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    """The store at a URI.

    Raises:
        NotFoundError: It has ended, or is another process's.
    """
    token, _, path = uri.removeprefix(f"{SCHEME}://").partition("/")
    found = _open.get(token)
    if found is None:
        raise NotFoundError(f"{uri}: expected a transaction of this process, found none; it may have ended", uri=uri)
    folder = path.strip("/") + "/" if path.strip("/") else ""
    made = TransactionStore(found.core, found.over, found.staging, folder, uri)
    made.content = found.content
    return made
