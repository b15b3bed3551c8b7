"""Put-if-absent for a repository's refs: by the store itself, or by an external manifest store where it cannot.

```
put   1 put the bytes under a name of their own: {path}-{uuid}
      2 put that name into the external store, if the path has none     <- this decides who wins
      3 copy the bytes to the path, update the external store, delete the first copy
get   the object at the path; if there is none, the one that the external store names, after finishing step 3
```

For the external store each path is a table with one version. After step 3 the object store alone is enough to read.
Whoever comes to step 3 late, a writer that was held up or a reader, looks first whether the entry is as it was: another
one may have finished it, and the object have been deleted since, or made anew.
"""

from __future__ import annotations

import re
import uuid

from ..._native.store import ObjectMeta, Store
from ...commit.certain import is_denied
from ...commit.external import ExternalManifestStore, ManifestEntry
from ...exceptions import CommitStateUnknownError, CorruptFileError, NotFoundError, UnsupportedError
from .clock import collecting_time, elapsed_s, moment

_ONLY = 1
_LATE_S = 1.0
"""A writer that was away for longer asks whether another one has finished its put."""
_STAGED = re.compile(r"(?P<path>.+)-[0-9a-f]{32}")


class AtomicObjects:
    """The objects of a repository by which its refs move.

    Args:
        store: The repository's root.
        external: What lends put-if-absent, if the store lacks it.
        base_uri: The repository's name in it.
    """

    def __init__(self, store: Store, external: ExternalManifestStore | None = None, base_uri: str = "") -> None:
        self._store = store
        self._external = external
        self._base = base_uri.rstrip("/") + "/"
        self._lacks: str | None = None

    @property
    def is_lent(self) -> bool:
        """Whether an external manifest store lends put-if-absent."""
        return self._external is not None

    def has_denied(self, error: Exception) -> bool:
        """Whether the error of a put says that the store denied it, which so has no effect. Where an external store
        lends it, the put is several steps, and the error does not say which."""
        return self._external is None and is_denied(self._store.uri, error)

    def refuse(self, uri: str) -> None:
        """Refuses all puts to names that may be taken, since the external store that decides is not at hand."""
        self._lacks = uri

    def get(self, path: str) -> bytes:
        """An object.

        Raises:
            NotFoundError: There is none.
        """
        try:
            return self._store.get(path)
        except NotFoundError:
            if self._external is None:
                raise
            entry = self._external.get(self._base + path, _ONLY)
            if entry is None:
                raise
        if entry.path == path:
            return self._store.get(path)
        try:
            data = self._store.get(entry.path)
        except NotFoundError:
            # Another one has finished it meanwhile.
            return self._store.get(path)
        self._finish(self._external, path, entry.path, data, is_late=True)
        return data

    def put(self, path: str, data: bytes) -> None:
        """Puts an object, replacing what was there."""
        self._store.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Puts an object if there is none; False says that there is one.

        Raises:
            UnsupportedError: An external manifest store decides who was first, and it is not at hand.
            CorruptFileError: Another writer has put it by another name of the repository in the external store.
        """
        if self._lacks is not None:
            raise UnsupportedError(
                f"expected the manifest_store by which the refs of {self._lacks} move, found none: commits that do not "
                "ask it would be lost; open Repository(uri, manifest_store=...), and use the URIs that it gives out "
                "in the same process",
                uri=self._lacks,
            )
        if self._external is None:
            return self._store.put_if_absent(path, data)
        if self._is_there(path):
            # The external store may know it by another name of the repository.
            return False
        staged = f"{path}-{uuid.uuid4().hex}"
        self._store.put(staged, data)
        asked = moment()
        won = self._external.put_if_not_exists(self._base + path, _ONLY, staged, len(data))
        if not won:
            # A lost reply is no refusal: the entry may be ours.
            entry = self._external.get(self._base + path, _ONLY)
            won = entry is not None and entry.path == staged
        if won:
            self._finish(self._external, path, staged, data, is_late=elapsed_s(asked) > _LATE_S)
        elif entry is not None:
            # Another writer's: ours is an orphan.
            self._store.delete(staged)
        return won

    def put_own(self, path: str, data: bytes) -> bool:
        """Puts an object if there is none; True if it holds these bytes then, which no other writer would write.

        Raises:
            IOFailedError: The store failed, and the object is not there.
            CommitStateUnknownError: The look at what is there failed.
        """
        try:
            if self.put_if_absent(path, data):
                return True
            failure = None
        except OSError as error:
            failure = error
        # No reply is not a refusal, and "exists" may be our own first try.
        try:
            return self.get(path) == data
        except NotFoundError:
            if failure is not None:
                raise failure from None
            return False
        except OSError as error:
            why = failure or "something is there, which may be the first try of the same request"
            raise CommitStateUnknownError(
                f"{path}: it is not known whether it was put: {why}; reading it back failed as well: {error}; look for "
                "it later",
                path=path,
            ) from error

    def collecting_time(self) -> float:
        """The time for one who deletes what is old. See `clock.collecting_time`."""
        return collecting_time(self._store)

    def _finish(self, external: ExternalManifestStore, path: str, staged: str, data: bytes, *, is_late: bool) -> None:
        entry = self._entry_of(path) if is_late else None
        if not is_late or (entry is not None and entry.path == staged):
            self._copy(path, data)
            is_kept = external.put_if_exists(self._base + path, _ONLY, path, len(data))
            if not is_kept and self._entry_of(path) is None:
                # Its deletion has freed the name meanwhile.
                self._store.delete(path)
        self._store.delete(staged)

    def _copy(self, path: str, data: bytes) -> None:
        try:
            copied = self._store.put_if_absent(path, data)
        except UnsupportedError:
            self._store.put(path, data)
            return
        if not copied and self._store.get(path) != data:
            raise CorruptFileError(
                f"{path} is not what the external manifest store has for it below {self._base!r}: some writer opens "
                "the repository by another name, as through a link; open it by the same name everywhere, and do it "
                "again",
                path=path,
            )

    def _is_there(self, path: str) -> bool:
        try:
            self._store.head(path)
        except NotFoundError:
            return False
        return True

    def list_paths(self, prefix: str) -> list[str]:
        """The paths that start with a prefix; those that are not finished have longer names."""
        return self._store.list_paths(prefix)

    def list_finished(self, prefix: str) -> list[str]:
        """The paths that start with a prefix, where names may be anything: without what a put has left that was lost or
        broken off. One that had won is among them, under its own path."""
        found = set(self._store.list_paths(prefix))
        if self._external is None and self._lacks is None:
            return sorted(found)
        for path, matched in [(path, _STAGED.fullmatch(path)) for path in sorted(found)]:
            if matched is None or self._entry_of(path) is not None:
                continue
            found.discard(path)
            entry = self._entry_of(matched["path"])
            if entry is not None and entry.path == path:
                found.add(matched["path"])
        return sorted(found)

    def is_taken(self, path: str) -> bool:
        """Whether the external store has a path at which nothing is: its deletion was broken off."""
        entry = self._entry_of(path)
        return entry is not None and entry.path == path

    def _entry_of(self, path: str) -> ManifestEntry | None:
        return None if self._external is None else self._external.get(self._base + path, _ONLY)

    def list(self, prefix: str) -> list[ObjectMeta]:
        """The same with sizes and times."""
        return self._store.list(prefix)

    def delete(self, path: str, *, free: bool = False) -> None:
        """Removes an object. With an external store its name stays taken, unless it is freed."""
        entry = self._entry_of(path)
        self._store.delete(path)
        if entry is not None and entry.path != path:
            # Its writer did not come to this, and readers would bring the object back by its first copy.
            self._store.delete(entry.path)
        if free and self._external is not None:
            self._external.delete(self._base + path)
