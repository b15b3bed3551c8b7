"""References to objects that exist elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..commit.stores import absolute, resolve
from ..exceptions import InvalidArgumentError
from .objects import ObjectInfo
from .staging import Staging

if TYPE_CHECKING:
    from .branch import Branch


@dataclass(frozen=True)
class ImportStatus:
    """What an import did: how many objects, and the commit that holds them."""

    completed: bool
    ingested_objects: int
    commit_id: str | None


class ImportManager:
    """Collects what to import; `run` commits it.

    Example:
        `branch.import_data("logs").prefix("s3://bucket/logs/", "logs/").object("s3://bucket/a.csv", "a.csv").run()`
    """

    def __init__(self, branch: Branch, message: str, metadata: Mapping[str, str] | None) -> None:
        self._branch = branch
        self._message = message
        self._metadata = metadata
        self._sources: list[tuple[str, str, bool]] = []

    def prefix(self, object_store_uri: str, destination: str) -> ImportManager:
        """Adds all objects below a URI, at the same paths below `destination`."""
        self._sources.append((object_store_uri, destination, True))
        return self

    def object(self, object_store_uri: str, destination: str) -> ImportManager:
        """Adds one object, at the path `destination`."""
        self._sources.append((object_store_uri, destination, False))
        return self

    def run(self, *, committer: str | None = None) -> ImportStatus:
        """Lists what was added and commits references to it. The checksums are not of the bytes, which nobody reads:
        they are made of address, size and time, so that what is replaced there is another object here.

        Raises:
            NoChangesError: All of it is there already.
        """
        from .branch import Branch

        if not self._sources:
            raise InvalidArgumentError("expected something to import; add it with prefix() or object()")
        staging = Staging()
        staging.begin(self._branch.get_commit())
        target = Branch(self._branch._core, self._branch.id, staging)
        for uri, destination, is_prefix in self._sources:
            for found in _listed(uri, destination) if is_prefix else [_one(uri, destination)]:
                target._stage(found.path, found)
        count = len(staging)
        reference = target.commit(self._message or "Import objects", self._metadata, committer=committer)
        return ImportStatus(True, count, reference.id)


def _info(path: str, uri: str, size: int, modified_us: int | None) -> ObjectInfo:
    when = None if modified_us is None else datetime.fromtimestamp(modified_us / 1e6, UTC)
    return ObjectInfo(
        path=path,
        physical_address=uri,
        address_type="full",
        size_bytes=size,
        checksum=f"{size:x}-{modified_us or 0:x}-{uri}",
        mtime=when,
    )


def _one(uri: str, destination: str) -> ObjectInfo:
    folder, _, name = absolute(uri).rpartition("/")
    meta = resolve(folder).head(name)
    return _info(destination, f"{folder}/{name}", meta.size, meta.last_modified_us)


def _listed(uri: str, destination: str) -> list[ObjectInfo]:
    root = absolute(uri).rstrip("/")
    below = destination if not destination or destination.endswith("/") else destination + "/"
    found = resolve(root).list()
    return [_info(below + meta.path, f"{root}/{meta.path}", meta.size, meta.last_modified_us) for meta in found]
