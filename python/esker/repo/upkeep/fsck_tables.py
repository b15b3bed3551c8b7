"""Checks the tables of all refs: that each opens, and that what a version refers to or a tag names is on the same ref.

Garbage collection knows nothing of tables: it keeps what is an entry of a ref. So a table is whole if all of its files
are entries of the ref that its log is on.

```
ref -> content, each once -> tables -> their logs, each once -> what their versions refer to
                                    -> listing of the folder -> what is there
```
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ...exceptions import EskerError
from ...progress import Done, Progress
from ..core.repository_core import RepositoryCore
from ..objects.batches import BATCH_ROWS, table
from ..stores.ref_folder import RefFolder
from ..tables.own_files import TAGS
from ..tables.roots import all_tables
from ..tables.table_log import FOLDERS, TableLog
from .table_versions import LanceVersions, VersionFiles, delta_versions, index_folders, opens

_Identities: TypeAlias = dict[str, bytes]
"""Paths in a table's folder, and what identifies the object at each."""
_LogKey: TypeAlias = bytes
"""What identifies all that lies in a table's log."""


def check_tables(core: RepositoryCore, progress: Progress | None = None) -> Iterator[str]:
    """What is wrong with the tables of branches and tags, one sentence a finding: ref, table, version and file.

    Of a Lance table all versions count that its log has. Of a Delta table the newest one counts, and of those before
    what no `vacuum` may have taken yet.

    Args:
        core: The repository.
        progress: Told how many refs are done, and of how many.
    """
    checks = _Checks(core)
    refs = [(f"branch {name!r}", head.meta_range_id) for name, head in sorted(core.heads().items())]
    refs += list(_tags(core))
    for at, (ref, content) in enumerate(refs):
        if progress is not None:
            progress.report(Done(step="checking tables", parts=at, unit="parts", total=len(refs)))
        for finding in checks.of(content):
            yield f"{ref}, {finding}"
    if progress is not None:
        progress.report(Done(step="checking tables", parts=len(refs), unit="parts", total=len(refs)))


def _tags(core: RepositoryCore) -> Iterator[tuple[str, str]]:
    for name in core.tag_names():
        id = core.tag_commit(name)
        if id is not None:
            yield f"tag {name!r}", core.commits.get(id).meta_range_id


@dataclass
class _Checks:
    """What was found so far, so that nothing is read twice.

    Args:
        core: The repository.
    """

    core: RepositoryCore
    contents: dict[str, list[str]] = field(default_factory=dict)
    # A folder may be another one's copy: what identifies a version is its entry, wherever it lies.
    lance: LanceVersions = field(default_factory=LanceVersions)
    delta: dict[_LogKey, list[VersionFiles]] = field(default_factory=dict)
    closed: dict[_LogKey, str | None] = field(default_factory=dict)

    def of(self, content: str) -> list[str]:
        """The findings in a content."""
        if content not in self.contents:
            self.contents[content] = list(self._tables(content)) if content else []
        return self.contents[content]

    def _tables(self, content: str) -> Iterator[str]:
        tables = all_tables(self.core.storage, content)
        while True:
            try:
                log = next(tables, None)
            except (ValueError, OSError) as error:
                yield f"its tables cannot be listed: {error}"
                return
            if log is None:
                return
            what = f"table {log.folder.rstrip('/') or '/'!r} ({log.format})"
            try:
                for finding in self._table(content, log):
                    yield f"{what}, {finding}"
            except (EskerError, OSError, ValueError) as error:
                yield f"{what}: {error}"

    def _table(self, content: str, log: TableLog) -> Iterator[str]:
        store = RefFolder.of(self.core, content, log.folder, f"{self.core.uri.rstrip('/')}/{log.folder}".rstrip("/"))
        there = self._listed(content, log.folder)
        folders, key = index_folders(there), _key(log, there)
        if key not in self.closed:
            self.closed[key] = _why_closed(store, log)
        if self.closed[key] is not None:
            yield f"version {log.newest.number}: it does not open: {self.closed[key]}"
            if log.format == "delta":
                return
        missing: dict[str, set[int]] = {}
        outside: dict[str, set[int]] = {}
        for version in self._versions(store, log, key):
            if version.error is not None:
                yield f"version {version.number}: {version.error}"
            for place in version.elsewhere:
                outside.setdefault(place, set()).add(version.number)
            for path in version.missing(there, folders):
                missing.setdefault(path, set()).add(version.number)
        for place, numbers in sorted(outside.items()):
            yield (
                f"{_told(numbers)}: it refers to {place}, outside of its folder; a branch keeps what lies on it alone"
            )
        for path, numbers in sorted(missing.items()):
            yield f"{_told(numbers)}: expected the file {path!r} on the same ref, found none"
        if log.format == "lance":
            yield from _tags_of_nothing(store, log, sorted(path for path in there if path.startswith(TAGS)))

    def _versions(self, store: RefFolder, log: TableLog, key: _LogKey) -> list[VersionFiles]:
        if log.format == "delta":
            if key not in self.delta:
                self.delta[key] = delta_versions(store, log)
            return self.delta[key]
        return self.lance.of(store, log)

    def _listed(self, content: str, folder: str) -> _Identities:
        listing, found = self.core.storage.list(content, prefix=folder), _Identities()
        while (batch := listing.next_batch(BATCH_ROWS)) is not None:
            rows = table(batch)
            identities = rows.column("entry").field("identity").to_pylist()
            paths = (path.removeprefix(folder) for path in rows.column("path").to_pylist())
            found.update(zip(paths, identities, strict=True))
        return found


def _tags_of_nothing(store: RefFolder, log: TableLog, tags: list[str]) -> Iterator[str]:
    for path in tags:
        name = path.removeprefix(TAGS).removesuffix(".json")
        try:
            said = json.loads(store.get(path))
            version, branch = said["version"], said.get("branch")
        except (ValueError, KeyError, TypeError, AttributeError):
            yield f"tag {name!r}: expected JSON with the number of a version, found something else"
            continue
        if branch is None and version not in log.entries:
            yield f"tag {name!r}: expected version {version} on the same ref, found none"


def _key(log: TableLog, there: _Identities) -> _LogKey:
    known = hashlib.sha256(log.format.encode())
    for path in sorted(path for path in there if path.startswith(FOLDERS[log.format])):
        known.update(f"{path}\0".encode() + there[path])
    return known.digest()


def _why_closed(store: RefFolder, log: TableLog) -> str | None:
    try:
        opens(store, log)
    except (EskerError, OSError, ValueError) as error:
        return str(error)
    return None


def _told(numbers: set[int]) -> str:
    since = f", since version {min(numbers)}" if len(numbers) > 1 else ""
    return f"version {max(numbers)}{since}"
