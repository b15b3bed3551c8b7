"""The four steps of a commit and of a read of a table with an external manifest store.

Spec: "External Manifest Store" of the Lance format; docs/commit-protocol.md says how they are used.

```
commit  1 stage the manifest under a name of its own: _versions/{name}-{uuid}
        2 put that path into the external store if the version has no entry   <- this is the commit
        3 copy the staged manifest to its final name
        4 put the final path into the external store; then delete the staged manifest
read    1 get the version's path from the external store; if it is a final path, done
        2-4 else finish the commit for its writer: its steps 3 and 4; a read that cannot do so fails
```

After step 4 the version can be read without the external store: a copy of all the table's files is a complete table.
The steps are idempotent: any number of readers and writers may finish the same version at once, since all of them copy
the same bytes to the same path. Whoever comes to step 3 late, a reader or a writer that was held up, looks first
whether the entry is as it was: a clean-up may have removed the version since, or another table be there by now.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..._native.store import Store
from ..._native.table import parse_manifest_name
from ...exceptions import CorruptFileError, EskerError, IOFailedError, NotFoundError, UnsupportedError
from ..clock import seconds_since
from .naming import NamingScheme, parse_staged_manifest, staged_manifest_name
from .store import ExternalManifestStore, ManifestEntry

T = TypeVar("T")

_VERSIONS = "_versions/"
_LATE_S = 1.0
"""A writer that was away for longer looks whether another one has finished its commit."""


@dataclass(frozen=True)
class ManifestLocation:
    """Where a version's manifest is now and where it is to be copied to, relative to the table's root."""

    version: int
    scheme: NamingScheme
    path: str
    final: str

    @property
    def staged(self) -> bool:
        """Whether the external store's entry still names the staged manifest: steps 3 and 4 may not be done."""
        return self.path != self.final


class ExternalManifests:
    """The manifests of one table in its object store and in an external one.

    Args:
        store: The object store, rooted at the table.
        external: The external manifest store.
        base_uri: The table's name in the external store.
        uri: The table's URI, for error messages.

    Example:
        `ExternalManifests(store, SqliteManifestStore("/data/manifests.db"), base_uri, uri).latest()`
    """

    def __init__(self, store: Store, external: ExternalManifestStore, base_uri: str, uri: str) -> None:
        self.external = external
        self.base_uri = base_uri
        self._store = store
        self._uri = uri
        self._ours: dict[int, tuple[ManifestEntry, bytes, tuple[float, float]]] = {}
        self._final: tuple[int, str] | None = None

    def latest(self) -> ManifestLocation | None:
        """The newest version in the external store, None if it has no entry of the table.

        Call it after listing the object store: every version listed there was in the external store before.
        """
        entry = self._ask("get_latest", lambda: self.external.get_latest(self.base_uri))
        if entry is None:
            return None
        found = self._parse(entry, entry.version)
        if not found.staged:
            self._final = (found.version, found.path)
        return found

    def locate(self, version: int) -> str | None:
        """The four steps of a read: the final path of a version's manifest, None if the external store has no entry.

        Raises:
            IOFailedError: The manifest is staged only, and could not be copied. Nothing is lost: it can be retried.
            CorruptFileError: The entry is not the path of a manifest of this version, or another manifest is at the
                final path.
        """
        if self._final is not None and self._final[0] == version:
            return self._final[1]
        entry = self._get(version)
        if entry is None:
            return None
        found = self._parse(entry, version)
        path = self._finish(found, None) if found.staged else found.path
        self._final = (version, path)
        return path

    def forget(self) -> None:
        """Deletes all entries of the table."""
        self._ask("delete", lambda: self.external.delete(self.base_uri))
        self._final = None

    def names(self, version: int, path: str) -> bool:
        """Whether `path`, relative to the table's root, is the external store's entry of the version."""
        entry = self._get(version)
        return entry is not None and entry.path == self._entry_path(path)

    def put(self, version: int, name: str, data: bytes) -> bool:
        """Steps 1 and 2 of a commit. If it returns True the version is ours, and `finish` does the other steps.

        False means that the version has another entry than the one just staged. That may still be ours, from an earlier
        attempt: the write id in its manifest tells.

        Raises:
            OSError: A store failed, and the entry is not there or cannot be read. The commit may still land later.
        """
        staged = staged_manifest_name(name)
        self._store.put(_VERSIONS + staged, data)
        path = self._entry_path(_VERSIONS + staged)
        failure: OSError | None = None
        asked = time.monotonic(), time.time()
        try:
            landed = self._ask(
                "put_if_not_exists",
                lambda: self.external.put_if_not_exists(self.base_uri, version, path, len(data)),
            )
        except OSError as error:
            landed, failure = False, error
        if not landed:
            # Read back: after a lost reply, or a retry inside the client, the entry may be ours.
            try:
                entry = self._get(version)
            except OSError as error:
                # That it could not be read, or might not be, tells nothing of the put: a refused one may be ours, too.
                raise failure or IOFailedError(
                    f"the external manifest store has an entry of manifest {version} of {self._uri}, which could not "
                    f"be read: {error}; look whether it is ours",
                    uri=self._uri,
                    version=version,
                ) from error
            if entry is None:
                raise failure or IOFailedError(
                    f"the external manifest store refused manifest {version} of {self._uri}, but has no entry of it; "
                    "expected one that another writer put, look at the store",
                    uri=self._uri,
                    version=version,
                )
            landed = entry.path == path
        if landed:
            self._ours[version] = (ManifestEntry(version, path), data, asked)
        else:
            self._forget(_VERSIONS + staged)
        return landed

    def finish(self, version: int) -> None:
        """Steps 3 and 4 of a commit, for a version that `put` has won. A failure in here does not undo the commit."""
        ours = self._ours.pop(version, None)
        if ours is None:
            self.locate(version)
            return
        entry, data, asked = ours
        is_late = seconds_since(*asked) > _LATE_S
        self._final = (version, self._finish(self._parse(entry, version), data, is_late=is_late))

    def _finish(self, found: ManifestLocation, data: bytes | None, *, is_late: bool = True) -> str:
        """Copies a staged manifest to its final path, updates the external store, and deletes the staged manifest."""
        try:
            if data is None:
                try:
                    data = self._store.get(found.path)
                except NotFoundError:
                    return self._finished_by_another(found)
            if is_late and (final := self._final_by_now(found)) is not None:
                # A clean-up may have removed it since, and a copy would bring it back without its files.
                return final
            self._copy(found, data)
            self._point_to(found, len(data))
        except OSError as error:
            raise IOFailedError(
                f"version {found.version} of {self._uri} is committed, but its manifest could not be copied from "
                f"{found.path} to its place: {error}; nothing is lost, open the table again when its stores can be "
                "written",
                uri=self._uri,
                path=found.path,
                version=found.version,
            ) from error
        self._forget(found.path)
        return found.final

    def _copy(self, found: ManifestLocation, data: bytes) -> None:
        try:
            copied = self._store.put_if_absent(found.final, data)
        except UnsupportedError:
            self._store.put(found.final, data)
            return
        if not copied and self._store.get(found.final) != data:
            raise CorruptFileError(
                f"{found.final} of {self._uri} is not the manifest that the external store has for version "
                f"{found.version}; some writer does not use the external store, or uses another name of the table: "
                "stop it, and move that file away to go on with the version of the external store",
                uri=self._uri,
                path=found.final,
                version=found.version,
            )

    def _point_to(self, found: ManifestLocation, size: int) -> None:
        version, path = found.version, self._entry_path(found.final)
        failure: OSError | None = None
        try:
            if self._ask("put_if_exists", lambda: self.external.put_if_exists(self.base_uri, version, path, size)):
                return
        except OSError as error:
            failure = error
        entry = self._get(version)
        if entry is None or entry.path != path:
            raise failure or IOFailedError(
                f"the external manifest store lost its entry of version {version}", uri=self._uri, version=version
            )

    def _final_by_now(self, found: ManifestLocation) -> str | None:
        """The final path of a version that another process has finished, or the table of which was dropped, or made
        anew; None if its entry still names the staged manifest."""
        entry = self._get(found.version)
        if entry is None:
            return found.final
        now = self._parse(entry, found.version)
        if now.path == found.path:
            return None
        return self._finish(now, None) if now.staged else now.final

    def _finished_by_another(self, found: ManifestLocation) -> str:
        """The final path of a version whose staged manifest is gone, since another process finished the commit."""
        if (final := self._final_by_now(found)) is not None:
            return final
        try:
            size = self._store.head(found.final).size
        except NotFoundError as error:
            raise CorruptFileError(
                f"version {found.version} of {self._uri} is committed, but neither {found.path} nor {found.final} "
                "is there; expected one of them, restore it",
                uri=self._uri,
                path=found.final,
                version=found.version,
            ) from error
        self._point_to(found, size)
        return found.final

    def _forget(self, path: str) -> None:
        try:
            self._store.delete(path)
        except OSError:
            # A clean-up removes it.
            return

    def _get(self, version: int) -> ManifestEntry | None:
        return self._ask("get", lambda: self.external.get(self.base_uri, version))

    def _entry_path(self, path: str) -> str:
        return f"{self.base_uri}/{path}" if self.base_uri else path

    def _parse(self, entry: ManifestEntry, version: int) -> ManifestLocation:
        """Where an entry points to. It must be a manifest of this version, in the table's own `_versions/`."""
        path = entry.path
        if self.base_uri:
            path = path.removeprefix(self.base_uri + "/")
        name = path.removeprefix(_VERSIONS)
        staged = parse_staged_manifest(name)
        parsed = (staged.version, staged.scheme) if staged else parse_manifest_name(name)
        if path != _VERSIONS + name or parsed is None or parsed[0] != version:
            raise CorruptFileError(
                f"the external manifest store has {entry.path!r} for version {version} of {self._uri}, expected the "
                f"path of its manifest in {self._entry_path(_VERSIONS)}; correct the entry",
                uri=self._uri,
                path=entry.path,
                version=version,
            )
        return ManifestLocation(version, parsed[1], path, _VERSIONS + (staged.final if staged else name))

    def _ask(self, verb: str, call: Callable[[], T]) -> T:
        """Calls the external store, which may be a user's class: any other exception becomes an `IOFailedError`."""
        try:
            return call()
        except (EskerError, OSError):
            raise
        except Exception as error:
            raise IOFailedError(
                f"the external manifest store of {self._uri} failed in {verb}: {error}", uri=self._uri, operation=verb
            ) from error
