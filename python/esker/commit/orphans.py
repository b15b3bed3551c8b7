"""When staged files are deleted, and when they are kept as possible orphans: files that no version refers to.

```
PENDING ──put──> UNKNOWN ──our object is there──────────────────> LANDED    kept: a version refers to them
   │                │ └───another writer's object is there──────> REFUSED   deleted
   └─ deleted       └─ an error, Ctrl-C, a lost reply: kept, left to a clean-up
```

From the first put on a commit may refer to the staged files. From then on they are deleted only when it is known that
the commit is not there and never will be. Whatever ends the work in between (an error, Ctrl-C, `SystemExit`) leaves
them where they are; a clean-up removes them as orphans if no version refers to them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import suppress
from enum import Enum
from types import TracebackType

from .._native.store import Store


class Outcome(Enum):
    """What is known of a commit."""

    PENDING = "pending"
    """No put has begun: no commit can refer to the files."""
    UNKNOWN = "unknown"
    """A put has begun, and its outcome is not known; it may still take effect."""
    REFUSED = "refused"
    """The commit is not there, and never will be."""
    LANDED = "landed"
    """The commit is there."""


class StagedFiles:
    """The staged files of one commit, and the outcome of that commit as far as it is known.

    As a context manager it deletes the files when its block fails and no commit can refer to them.

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
        self.was_shown = False
        """Whether a commit was visible for a while under a number that had come free, and was taken away again. Another
        writer may have restored it, or named it: its files are left to a clean-up, which looks."""
        self._files = list(files)

    def add(self, store: Store, path: str) -> None:
        """Adds a staged file, or a folder of them, whose path ends in `/`."""
        self._files.append((store, path))

    def discard(self, *, keep: Collection[str] = ()) -> None:
        """Deletes the files if no commit can refer to them; otherwise leaves them to a clean-up.

        Call it also when a change is computed again: the files of the earlier computation are of no use then.

        Args:
            keep: Paths of files that the change names again, which stay staged.
        """
        kept = [file for file in self._files if file[1] in keep]
        if self.was_shown or self.outcome not in (Outcome.PENDING, Outcome.REFUSED):
            self._files = kept
            return
        # One by one: where Ctrl-C breaks it off, the next call goes on with the others.
        for file in [file for file in self._files if file[1] not in keep]:
            # A file that cannot be deleted is left to a clean-up, so that the first error is the one raised.
            with suppress(OSError):
                _delete(*file)
            self._files.remove(file)

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
    """Notes that the commit with this write id is known to have landed: its writer, this process, has the reply."""
    # No lock, since a fork would copy a held one: each of these calls is atomic in the interpreter.
    _ACKNOWLEDGED[write_id] = None
    if len(_ACKNOWLEDGED) > _ACKNOWLEDGED_AT_MOST:
        _ACKNOWLEDGED.popitem(last=False)


def is_acknowledged(write_id: str) -> bool:
    """Whether this process has noted that the commit with this write id landed.

    Example:
        >>> from esker.commit.orphans import is_acknowledged
        >>> is_acknowledged("nobody's")
        False
    """
    return write_id in _ACKNOWLEDGED


def _delete(store: Store, path: str) -> None:
    for file in store.list_paths(path) if path.endswith("/") else [path]:
        store.delete(file)
