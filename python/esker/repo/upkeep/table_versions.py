"""What the versions of one table refer to, as far as they are kept: for a check that all of it is there."""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..._native.delta import Snapshot
from ..._native.store import Store
from ..._native.table import Manifest
from ...delta.definition.durations import TOMBSTONES, retention
from ...delta.log.changes import read_change
from ...exceptions import EskerError
from ...lance.log import LanceLog
from ..tables.references import References, delta_references, lance_references
from ..tables.table_log import LogEntry, TableLog

_INDICES = "_indices/"
_SYSTEM_INDEX = "__lance"
"""How the names of indices begin that may have no files of their own."""


@dataclass
class VersionFiles:
    """What one version refers to, or as much of it as the version before does not.

    Attributes:
        number: The version.
        references: Its files, and what lies elsewhere.
        indices: Folders that cannot be empty.
        error: Why it cannot be read, if it cannot.
    """

    number: int
    references: References = field(default_factory=References)
    indices: set[str] = field(default_factory=set)
    error: str | None = None

    @property
    def elsewhere(self) -> list[str]:
        """What it refers to that lies outside of the table's folder."""
        return self.references.elsewhere

    def missing(self, there: Container[str], folders: Container[str]) -> Iterator[str]:
        """What it refers to that is not there, given the paths that are, and the folders of indices."""
        yield from (path for path in self.references.files if path not in there)
        yield from (folder for folder in self.indices if folder not in folders)

    def beyond(self, before: VersionFiles) -> VersionFiles:
        """What it refers to and another version does not."""
        files = self.references.files - before.references.files
        elsewhere = [one for one in self.elsewhere if one not in before.elsewhere]
        return VersionFiles(
            self.number, References(files, elsewhere=elsewhere), self.indices - before.indices, self.error
        )


def index_folders(paths: Iterable[str]) -> set[str]:
    """The folders of indices in which there is something.

    Example:
        >>> from esker.repo.upkeep.table_versions import index_folders
        >>> index_folders(["_indices/0a/index.idx", "data/1.lance"])
        {'_indices/0a/'}
    """
    parts = (path.split("/", 2) for path in paths if path.startswith(_INDICES))
    return {f"{folder}/{name}/" for folder, name, *_ in parts}


def opens(store: Store, log: TableLog) -> None:
    """Opens a table as its readers do.

    Raises:
        EskerError: It does not open.
    """
    if log.format == "lance":
        LanceLog(store, store.uri).open()
    else:
        Snapshot.load(store).select(store)


class LanceVersions:
    """What versions of Lance tables refer to. Each manifest is read once, whatever logs it is part of.

    Two versions have most of their files in common: of all but the newest one of a log only that is kept which the one
    before has not.
    """

    def __init__(self) -> None:
        self._newest: dict[bytes, VersionFiles] = {}
        self._beyond: dict[tuple[bytes, bytes], VersionFiles] = {}

    def of(self, store: Store, log: TableLog) -> list[VersionFiles]:
        """What the versions of a log refer to: of each what those before it have not, and all of the newest one."""
        found = []
        before: LogEntry | None = None
        held: VersionFiles | None = VersionFiles(0)
        for entry in log.entries.values():
            key = (before.identity if before is not None else b"", entry.identity)
            known = self._beyond.get(key)
            if known is None:
                if held is None and before is not None:
                    held = lance_version(store, log, before)
                read = lance_version(store, log, entry)
                known = self._beyond[key] = read.beyond(held or VersionFiles(0))
                held = read
            else:
                held = None
            found.append(known)
            before = entry
        newest = log.newest
        if newest.identity not in self._newest:
            self._newest[newest.identity] = held if held is not None else lance_version(store, log, newest)
        return [*found[:-1], replace(found[-1], error=None), self._newest[newest.identity]]


def lance_version(store: Store, log: TableLog, entry: LogEntry) -> VersionFiles:
    """What a version of a Lance table refers to."""
    found = VersionFiles(entry.number)
    path = entry.path.removeprefix(log.folder)
    try:
        manifest = Manifest.decode(store.get(path), path)
        if manifest.version != entry.number:
            found.error = f"{path} holds version {manifest.version}"
        found.references = lance_references(manifest)
        found.indices = {index.folder for index in manifest.indices if not index.name.startswith(_SYSTEM_INDEX)}
    except (EskerError, OSError, ValueError) as error:
        found.error = f"it cannot be read: {error}"
    return found


def delta_versions(store: Store, log: TableLog) -> list[VersionFiles]:
    """What the newest version of a Delta table refers to, and what those before it do and no `vacuum` may have taken.

    A version before is told by the entry that added a file. The file counts for as long as the table keeps what was
    removed: its property `delta.deletedFileRetentionDuration`.
    """
    newest = Snapshot.load(store)
    found = [VersionFiles(newest.version, delta_references(store, newest))]
    kept_from = time.time() * 1000 - retention(json.loads(newest.metadata_json)["configuration"] or {}, TOMBSTONES)
    removed: dict[str, float] = {}
    for number in sorted(log.entries, reverse=True):
        version = VersionFiles(number)
        try:
            change = read_change(store, newest.root, number)
            for path, fields in change.adds.items():
                if removed.get(path, -1.0) >= kept_from:
                    version.references.add_file(path, fields.get("deletionVector"))
            for path, fields in change.removes.items():
                removed[path] = max(removed.get(path, 0.0), float(fields.get("deletionTimestamp") or 0))
        except (EskerError, OSError, ValueError, TypeError, KeyError) as error:
            version.error = f"it cannot be read: {error}"
        found.append(version)
    return found
