"""What stores over a branch's folder have in common: their staging, and what they make of a table's log entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from ..._native.graveler import BranchStaging
from ..._native.store import Store
from ...exceptions import UnsupportedError
from ...store.staging import StagingStore
from ..core.repository_core import RepositoryCore
from ..objects.batches import infos
from ..objects.staging import Staging
from .entry_checks import check_entry, format_and_number


class FolderStore(StagingStore):
    """A folder of a content with changes staged over it.

    Args:
        core: The repository.
        over: The staging of its stores.
        staging: What they stage.
        folder: With a `/` at its end, or empty.
        uri: What it is called.
    """

    core: RepositoryCore
    staging: Staging
    folder: str
    _over: BranchStaging

    def __new__(cls, core: RepositoryCore, over: BranchStaging, staging: Staging, folder: str, uri: str) -> Self:
        """Opens it; the class's Args say what with."""
        made = super().__new__(cls, uri, over=over.store(uri, folder))
        made.core, made.staging, made.folder, made._over = core, staging, folder, over
        return made

    def base_content(self) -> str:
        """The metarange that it is staged over."""
        raise NotImplementedError

    def check(self, path: str, data: bytes, change: object) -> tuple[Any, int]:
        """Looks whether the branch can keep the version that an entry makes; its format and number."""
        found = format_and_number(path)
        if found is None:
            raise UnsupportedError(
                f"{self.uri}: expected a version of the table's history, found {path}: a branch has no detached "
                "versions; commit it to a branch of the repository instead",
                uri=self.uri,
                path=path,
            )
        check_entry(self.uri, found[0], path, data, change, self._missing)
        return found

    def _missing(self, paths: Iterable[str]) -> list[str]:
        """Those at which nothing is staged, and which the content does not have either."""
        unknown = [path for path in paths if self.staging.get(self.folder + path) is None]
        if not unknown:
            return []
        batch = self.core.storage.get(self.base_content(), [self.folder + path for path in unknown])
        there = {path for path, _ in infos(batch)}
        return sorted(path for path in unknown if self.folder + path not in there or self.folder + path in self.staging)

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError(f"{self.uri}: a store with staged changes stays in its process; pickle a branch's table")


def plain(store: Store, path: str, data: bytes) -> bool:
    """Stages an object if there is none."""
    return Store.put_if_absent(store, path, data)
