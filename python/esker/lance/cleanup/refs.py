"""Tags and branches in pylance's layout: a clean-up keeps the versions that they point at.

```
_refs/tags/{name}.json       {"branch": null, "version": 3, ...}          names are percent-encoded
_refs/branches/{name}.json   {"parentBranch": null, "parentVersion": 2, ...}
tree/{name}/_versions/       a branch's own versions, which use files of the table
```
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..._native.store import Store
from ..._native.table import Manifest
from ...exceptions import CorruptFileError, NotFoundError
from .explanation import CleanupReferencedBranch

REFS = "_refs/"
_TAGS = "_refs/tags/"
_BRANCHES = "_refs/branches/"


@dataclass(frozen=True)
class Refs:
    """The tags and branches that point at versions of the main branch."""

    tags: dict[str, int]
    branches: list[CleanupReferencedBranch]
    branch_names: list[str]

    @property
    def versions(self) -> set[int]:
        """The versions that tags and branches point at."""
        return set(self.tags.values()) | {branch.referenced_version for branch in self.branches}


def read_refs(store: Store) -> Refs:
    """Reads tags and branches.

    Raises:
        CorruptFileError: One of them cannot be read, so that the version it keeps is unknown.
    """
    tags: dict[str, int] = {}
    branches: list[CleanupReferencedBranch] = []
    names: list[str] = []
    for path in store.list_paths(REFS):
        if not path.endswith(".json"):
            continue
        if path.startswith(_TAGS):
            found = _read(store, path, version="version", branch="branch")
            if found is not None and found[1] is None:
                tags[_name(path, _TAGS)] = found[0]
        elif path.startswith(_BRANCHES):
            found = _read(store, path, version="parentVersion", branch="parentBranch")
            if found is not None:
                names.append(_name(path, _BRANCHES))
                if found[1] is None:
                    branches.append(CleanupReferencedBranch(names[-1], found[0]))
    return Refs(tags, branches, names)


def branch_manifests(store: Store, branch: str) -> list[Manifest]:
    """The manifests of a branch. They may refer to files of the main branch."""
    folder = f"tree/{branch}/_versions/"
    paths = [path for path in store.list_paths(folder) if path.endswith(".manifest")]
    return [Manifest.decode(store.get(path), path) for path in paths]


def _name(path: str, folder: str) -> str:
    return unquote(path.removeprefix(folder).removesuffix(".json"))


def _read(store: Store, path: str, *, version: str, branch: str) -> tuple[int, str | None] | None:
    """The version and the branch of a tag or branch file; None if the file was deleted meanwhile."""
    try:
        data = store.get(path)
    except NotFoundError:
        return None
    try:
        found: Any = json.loads(data)
        number, name = found[version], found.get(branch)
    except (ValueError, KeyError, TypeError, AttributeError):
        number = name = None
    if not isinstance(number, int) or not (name is None or isinstance(name, str)):
        raise CorruptFileError(
            f"{path}: expected JSON with a {version}, found something else; nothing is cleaned up as long as it is "
            "unknown what it protects, remove it if it is nobody's",
            path=path,
        )
    return number, name
