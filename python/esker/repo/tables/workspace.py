"""Changes of tables over a content: the tables' own commits, and files that another content has.

```
content + staged paths   stores of folders read both; a table's commit puts its entry there
finish                   -> the metarange of a content that holds all of it
```
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from ..._native.store import Store
from ..core.repository_core import RepositoryCore
from ..objects.batches import infos
from ..objects.object_info import ObjectInfo
from ..objects.staging import Staging


class TableWorkspace:
    """A content with changes staged over it, which are visible to nobody else.

    Args:
        core: The repository.
        content: The content's metarange.
        uri: What stores are called in messages: the URI of the branch's root.

    Example:
        `LanceLog(workspace.store("lake/t/"), "lake/t").open()`
    """

    def __init__(self, core: RepositoryCore, content: str, uri: str) -> None:
        self.core = core
        self.content = content
        self.uri = uri.rstrip("/")
        self._staging = Staging()
        self._taken: dict[str, str] = {}
        self._over = core.staging_over(content, uuid.uuid4().hex, self._staging.share())

    def store(self, folder: str) -> Store:
        """A folder, with a `/` at its end or empty, as a store over both."""
        return self._over.store(self.uri_of(folder), folder)

    def uri_of(self, folder: str) -> str:
        """What a folder is called in messages."""
        return f"{self.uri}/{folder}".rstrip("/")

    def take(self, path: str, found: ObjectInfo | None) -> None:
        """Stages an object that another content has, or with None that the path goes. No bytes are copied."""
        self._staging.stage(path, found)
        self._taken[path] = "" if found is None else found.physical_address

    def take_from(self, content: str, paths: Iterable[str]) -> None:
        """Stages what another content has at some paths; those that it has not go."""
        wanted = list(paths)
        found = dict(infos(self.core.storage.get(content, wanted)))
        for path in wanted:
            self.take(path, found.get(path))

    def finish(self) -> str:
        """Stores the content with all of it, and returns its metarange."""
        if not len(self._staging):
            return self.content
        applied = self.core.storage.apply(self.content, self._staging.changes(), rule=self.core.settings().rule())
        return applied.metarange_id or self.content

    def written(self) -> Staging:
        """What was written here, without what was taken: a commit has to see to it that no collection takes it."""
        found = Staging()
        for path, change in self._staging.within(""):
            # A path that was taken may have been written then.
            if change is not None and change.physical_address != self._taken.get(path):
                found.stage(path, change)
        found.age_like(self._over.age_s)
        return found
