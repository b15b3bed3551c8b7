"""Log entries in a store without put-if-absent: an external manifest store decides which entry a version has.

```
commit  1 put the entry as a staged file: _delta_log/_staged_commits/{version:020}.{uuid}.json
        2 put that path into the external store, if the version has none   <- this is the commit
        3 copy the staged entry to _delta_log/{version:020}.json
        4 put the final path into the external store; then the staged one goes
read    a reader that opens the table with the external store finishes steps 3 and 4 of the newest version
```

Other writers of Delta tables do not ask such a store, and would overwrite entries: it is used only where the user says
that esker alone writes to the table. A reader without the external store may miss the newest version.

Spec: "Delta Log Entries" (an entry is never overwritten), the Lance format's "External Manifest Store".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from ..._native.store import Store
from ...commit.external import ExternalManifestStore, base_uri_of, open_manifest_store
from ...exceptions import CorruptFileError, IOFailedError, NotFoundError, UnsupportedError
from ...store.secrets import MANIFEST_STORE
from ...store.staging import StagingStore
from .entries import LOG, commit_path

ONLY_ESKER = "delta_only_esker_writes"
"""The storage option by which the user says so: `true`."""
STAGED = f"{LOG}_staged_commits/"


class ExternalLog:
    """The log entries of one table in its store and in an external one.

    Args:
        store: The table's.
        external: The external store.
        uri: The table's.

    Example:
        `landed = ExternalLog(store, SqliteManifestStore("/data/manifests.db"), uri).put(3, data)`
    """

    def __init__(self, store: Store, external: ExternalManifestStore, uri: str) -> None:
        self._store = store
        self._external = external
        self._base = base_uri_of(external, uri).rstrip("/")
        self._uri = uri

    @staticmethod
    def of(store: Store, uri: str, options: Mapping[str, str] | None) -> ExternalLog | None:
        """The external log of a table; None without a store, or without `delta_only_esker_writes`.

        Raises:
            UnsupportedError: The table is on a branch.
        """
        given = {key.lower(): value for key, value in (options or {}).items()}
        if given.get(ONLY_ESKER, "").lower() != "true" or MANIFEST_STORE not in given:
            return None
        if isinstance(store, StagingStore):
            raise UnsupportedError(
                f"{uri}: expected no {MANIFEST_STORE} for a table on a branch, found one: the repository's own commits "
                "decide there; leave it out",
                uri=uri,
            )
        external = open_manifest_store(uri, given)
        return ExternalLog(store, external, uri) if external is not None else None

    def latest(self) -> int:
        """The newest version, after its entry was copied to its final path; -1 if the external store knows none.

        Raises:
            IOFailedError: The entry could not be copied. Nothing is lost: it can be tried again.
            CorruptFileError: Another entry is in its place.
        """
        entry = self._external.get_latest(self._base)
        if entry is None:
            return -1
        self._finish(entry.version, entry.path)
        return entry.version

    def check_there(self, version: int) -> None:
        """Checks that the entry of a version is there, which the external store knows and no listing has shown.

        Raises:
            CorruptFileError: It is not.
        """
        if not self._is_there(version):
            raise CorruptFileError(
                f"the external manifest store has version {version} of {self._uri}, whose entry {commit_path(version)} "
                "is not there: the table was deleted, and the entries of that store were left; restore the log, or "
                f"delete them by the store's delete({self._base!r}) to make another table there",
                uri=self._uri,
                path=commit_path(version),
                version=version,
            )

    def put(self, version: int, data: bytes) -> bool:
        """Puts the entry of a version if there is none.

        Raises:
            OSError: A store failed, and it is unknown whether the entry is there.
            CorruptFileError: Another writer has put one by another name of the table in the external store.
        """
        if self._is_there(version):
            # The entry was written before the table had an external store.
            return False
        staged = f"{STAGED}{version:020}.{uuid.uuid4()}.json"
        self._store.put(staged, data)
        path = f"{self._base}/{staged}"
        failure: OSError | None = None
        try:
            landed = self._external.put_if_not_exists(self._base, version, path, len(data))
        except OSError as error:
            landed, failure = False, error
        if not landed:
            entry = self._external.get(self._base, version)
            if entry is None:
                raise failure or IOFailedError(
                    f"the external manifest store refused version {version} of {self._uri}, but has no entry of it; "
                    "expected one that another writer put, look at the store",
                    uri=self._uri,
                    version=version,
                )
            # A lost reply is not a conflict: our own entry may be there.
            landed = entry.path == path
            if not landed:
                self._forget(staged)
                return False
        try:
            self._finish(version, path)
        except OSError:
            # It is committed. The next reader or writer with the external store finishes the copy.
            return True
        return True

    def _finish(self, version: int, path: str) -> None:
        final = f"{self._base}/{commit_path(version)}"
        if path == final:
            return
        staged = path.removeprefix(f"{self._base}/")
        try:
            data = self._store.get(staged)
        except NotFoundError:
            if self._is_there(version):
                # Another process has finished the copy, and deleted the staged file.
                return
            raise IOFailedError(
                f"the external manifest store names {staged} as version {version} of {self._uri}, which is not there; "
                "look at the store",
                uri=self._uri,
                version=version,
            ) from None
        self._copy(version, data)
        self._external.put_if_exists(self._base, version, final, len(data))
        self._forget(staged)

    def _copy(self, version: int, data: bytes) -> None:
        try:
            copied = self._store.put_if_absent(commit_path(version), data)
        except UnsupportedError:
            self._store.put(commit_path(version), data)
            return
        if not copied and self._store.get(commit_path(version)) != data:
            raise CorruptFileError(
                f"{commit_path(version)} of {self._uri} is not the entry that the external manifest store has for "
                f"version {version} of {self._base!r}; some writer does not use that store, or uses another name of "
                "the table: stop it, and move that file away to go on with the version of the external store",
                uri=self._uri,
                path=commit_path(version),
                version=version,
            )

    def _is_there(self, version: int) -> bool:
        try:
            self._store.head(commit_path(version))
        except NotFoundError:
            return False
        return True

    def _forget(self, staged: str) -> None:
        try:
            self._store.delete(staged)
        except (OSError, NotFoundError):
            # An orphan: nothing names the staged file any more.
            return
