"""Checks the tables of all refs: that each opens, and that every file which a version refers to is on the same ref.

Garbage collection knows nothing of tables: it keeps what is an entry of a ref. So a table is whole if all of its files
are entries of the ref that its log is on.

```
ref -> content, each once -> tables -> their logs, each once -> what their versions refer to
                                    -> listing of the folder -> what is there
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote

from ...exceptions import EskerError
from ...progress import Done, Progress
from ..core.repository_core import RepositoryCore
from ..objects.batches import BATCH_ROWS, table
from ..refs.layout import TAGS
from ..stores.ref_folder import RefFolder
from ..tables.roots import all_tables
from ..tables.table_log import FOLDERS, TableLog
from .table_versions import VersionFiles, delta_versions, index_folders, lance_version, opens

_Identities: TypeAlias = dict[str, bytes]
"""Paths in a table's folder, and what identifies the object at each."""


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
    for path in core.store.list_paths(TAGS):
        name = unquote(path.removeprefix(TAGS))
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
    lance: dict[bytes, VersionFiles] = field(default_factory=dict)
    delta: dict[tuple[tuple[str, bytes], ...], list[VersionFiles]] = field(default_factory=dict)

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
        folders = index_folders(there)
        try:
            opens(store, log)
        except (EskerError, OSError, ValueError) as error:
            yield f"version {log.newest.number}: it does not open: {error}"
            if log.format == "delta":
                return
        missing: dict[str, list[int]] = {}
        for version in self._versions(store, log, there):
            if version.error is not None:
                yield f"version {version.number}: {version.error}"
            for outside in version.elsewhere:
                yield (
                    f"version {version.number}: it refers to {outside}, outside of its folder; a branch keeps what "
                    "lies on it alone"
                )
            for path in version.missing(there, folders):
                missing.setdefault(path, []).append(version.number)
        for path, numbers in sorted(missing.items()):
            yield f"{_versions_of(numbers)}: expected the file {path!r} on the same ref, found none"

    def _versions(self, store: RefFolder, log: TableLog, there: _Identities) -> list[VersionFiles]:
        if log.format == "delta":
            key = tuple((path, id) for path, id in sorted(there.items()) if path.startswith(FOLDERS["delta"]))
            if key not in self.delta:
                self.delta[key] = delta_versions(store, log)
            return self.delta[key]
        found = []
        for entry in log.entries.values():
            if entry.identity not in self.lance:
                self.lance[entry.identity] = lance_version(store, entry, entry.path.removeprefix(log.folder))
            found.append(self.lance[entry.identity])
        return found

    def _listed(self, content: str, folder: str) -> _Identities:
        listing, found = self.core.storage.list(content, prefix=folder), _Identities()
        while (batch := listing.next_batch(BATCH_ROWS)) is not None:
            rows = table(batch)
            identities = rows.column("entry").field("identity").to_pylist()
            paths = (path.removeprefix(folder) for path in rows.column("path").to_pylist())
            found.update(zip(paths, identities, strict=True))
        return found


def _versions_of(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"version {numbers[0]}"
    return f"version {max(numbers)} and {len(numbers) - 1} before it"
