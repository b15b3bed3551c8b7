"""The one rule for files that may be orphans: files of a commit that failed.

```
PENDING ──put──> UNKNOWN ──ours is there──────────────────────> LANDED    kept: a version is made of them
   │                │ └───never will be: another's is there───> REFUSED   deleted
   └─ deleted       └─ an error, Ctrl-C, a lost reply: kept, and clean-up's work
```

A commit may name a file from the first put on. From then on the file is deleted only when the commit is known not to be
there, and known to never be. Whatever ends the work in between (an error, Ctrl-C, `SystemExit`) leaves the file where
it is; a clean-up removes it if no version refers to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from types import TracebackType

from .._native.store import Store


class Outcome(Enum):
    """What is known of a commit."""

    PENDING = "pending"
    """Nothing was put that could name the files."""
    UNKNOWN = "unknown"
    """A put was begun, and it is not known whether it had its effect, or will have."""
    REFUSED = "refused"
    """The commit is not there, and never will be."""
    LANDED = "landed"
    """The commit is there."""


class StagedFiles:
    """The files that one commit will name, and what is known of that commit.

    As a context manager it deletes them when its block fails and no commit can name them.

    Args:
        files: Stores and paths within them.

    Example:
        >>> from esker.commit import resolve
        >>> from esker.commit.orphans import StagedFiles
        >>> store = resolve("memory://doc-staged-files")
        >>> store.put("data/0.lance", b"rows")
        >>> try:
        ...     with StagedFiles([(store, "data/0.lance")]):
        ...         raise ValueError("no commit was tried")
        ... except ValueError:
        ...     store.list_paths("data/")
        []
    """

    def __init__(self, files: Iterable[tuple[Store, str]] = ()) -> None:
        self.outcome = Outcome.PENDING
        self._files = list(files)

    def add(self, store: Store, path: str) -> None:
        """Takes in a file that was written."""
        self._files.append((store, path))

    def discard(self) -> None:
        """Deletes the files where no commit can name them; otherwise leaves them to a clean-up.

        To be called when a change is computed again, too: the files of the computation before are of no use then.
        """
        files, self._files = self._files, []
        if self.outcome not in (Outcome.PENDING, Outcome.REFUSED):
            return
        for store, path in files:
            # What cannot be removed is left to a clean-up: what went wrong before matters more.
            with suppress(OSError):
                store.delete(path)

    def __enter__(self) -> StagedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()


_ACKNOWLEDGED: OrderedDict[str, None] = OrderedDict()
_ACKNOWLEDGED_AT_MOST = 100_000


def acknowledge(write_id: str) -> None:
    """Notes that this process knows a commit to have landed: nobody has to be told of it any more."""
    # Without a lock, which a fork would take along: each of these is one step of the interpreter.
    _ACKNOWLEDGED[write_id] = None
    if len(_ACKNOWLEDGED) > _ACKNOWLEDGED_AT_MOST:
        _ACKNOWLEDGED.popitem(last=False)


def is_acknowledged(write_id: str) -> bool:
    """Whether this process knows a commit to have landed.

    Example:
        >>> from esker.commit.orphans import is_acknowledged
        >>> is_acknowledged("nobody's")
        False
    """
    return write_id in _ACKNOWLEDGED
