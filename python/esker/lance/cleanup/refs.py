"""What tags and branches of a table keep from a clean-up: the versions that they point at, and the files that versions
of branches use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from ..._native.store import Store
from ..._native.table import Manifest
from ...exceptions import IOFailedError, NotFoundError
from ..refs.contents import BranchContents, TagContents
from ..refs.names import BRANCHES, REFS, TAGS, branch_folder, name_of
from .explanation import CleanupReferencedBranch


@dataclass(frozen=True)
class Refs:
    """The tags and branches that point at versions of one branch, or of the main line."""

    tags: dict[str, int]
    branches: list[CleanupReferencedBranch]
    others: list[str] = field(default_factory=list)
    """The names of all other branches."""

    @property
    def versions(self) -> set[int]:
        """The versions that tags and branches point at."""
        return set(self.tags.values()) | {branch.referenced_version for branch in self.branches}


def read_refs(store: Store, branch: str | None = None) -> Refs:
    """Reads tags and branches.

    Args:
        store: The store of the main line, where they are kept.
        branch: The branch whose versions they point at, None for the main line.

    Raises:
        CorruptFileError: One of them cannot be read, so that the version it keeps is unknown.
    """
    tags: dict[str, int] = {}
    branches: list[CleanupReferencedBranch] = []
    others: list[str] = []
    for path in store.list_paths(REFS):
        tag, name = name_of(path, TAGS), name_of(path, BRANCHES)
        # One that was deleted meanwhile keeps nothing.
        with suppress(NotFoundError):
            if tag is not None:
                found = TagContents.read(store.get(path), path)
                if found.branch == branch:
                    tags[tag] = found.version
            elif name is not None and name != branch:
                started = BranchContents.read(store.get(path), path, name)
                others.append(name)
                if started.parent_branch == branch:
                    branches.append(CleanupReferencedBranch(name, started.parent_version))
    return Refs(tags, branches, others)


def branch_manifests(store: Store, branch: str) -> Iterator[Manifest]:
    """The manifests of a branch. They may refer to files of the main line and of other branches.

    Args:
        store: The store of the main line.
        branch: The branch.

    Raises:
        IOFailedError: One of them is listed, and cannot be found.
    """
    folder = branch_folder(branch) + "_versions/"
    gone: list[str] = []
    for path in store.list_paths(folder):
        if path.endswith(".manifest"):
            try:
                yield Manifest.decode(store.get(path), path)
            except NotFoundError:
                gone.append(path)
    listed = store.list_paths(folder) if gone else []
    for path in gone:
        if path in listed:
            try:
                yield Manifest.decode(store.get(path), path)
            except NotFoundError as error:
                raise listed_but_not_found(store.uri, path) from error


def listed_but_not_found(uri: str, path: str) -> IOFailedError:
    """The error that says that a store lists a manifest twice and does not find it: what it refers to is not known."""
    return IOFailedError(
        f"{path} of {uri} is listed, but was not found: expected one or neither; the files of its version were not "
        "removed, clean up again when the store tells the same twice",
        uri=uri,
        path=path,
    )
