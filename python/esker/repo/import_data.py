"""References to objects that exist elsewhere."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ..commit.stores import absolute, resolve
from ..exceptions import CommitConflictError, InvalidArgumentError
from .address import address_of
from .commits import Commit
from .objects import ObjectInfo
from .staging import Staging

if TYPE_CHECKING:
    from .branch import Branch


@dataclass(frozen=True)
class ImportStatus:
    """How far an import is.

    Attributes:
        completed: Whether it has ended well.
        ingested_objects: How many objects were listed.
        commit: The commit that holds them, once there is one.
        update_time: When this was so.
        error: What ended it, if it did not end well.
    """

    completed: bool
    ingested_objects: int
    commit: Commit | None
    update_time: datetime
    error: BaseException | None = None

    @property
    def commit_id(self) -> str | None:
        """The commit's id."""
        return self.commit.id if self.commit else None

    @property
    def metarange_id(self) -> str | None:
        """The commit's content."""
        return self.commit.meta_range_id if self.commit else None


class ImportManager:
    """Collects what to import; `run` commits it, or `start` in the background.

    Example:
        `branch.import_data("logs").prefix("s3://bucket/logs/", "logs/").object("s3://bucket/a.csv", "a.csv").run()`
    """

    def __init__(self, branch: Branch, message: str, metadata: Mapping[str, str] | None) -> None:
        self.commit_message = message
        self.commit_metadata = metadata
        self.sources: list[tuple[str, str, bool]] = []
        self._branch = branch
        self._id: str | None = None
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()
        self._status = ImportStatus(False, 0, None, datetime.now(UTC))

    @property
    def import_id(self) -> str | None:
        """What `start` has returned."""
        return self._id

    def prefix(self, object_store_uri: str, destination: str) -> ImportManager:
        """Adds all objects below a URI, at the same paths below `destination`."""
        return self._add(object_store_uri, destination, True)

    def object(self, object_store_uri: str, destination: str) -> ImportManager:
        """Adds one object, at the path `destination`."""
        return self._add(object_store_uri, destination, False)

    def _add(self, uri: str, destination: str, is_prefix: bool) -> ImportManager:
        if self._id is not None:
            raise InvalidArgumentError("the import has started already; make another for other sources")
        self.sources.append((uri, destination, is_prefix))
        return self

    def start(self, *, committer: str | None = None) -> str:
        """Lists what was added and commits references to it, in a thread of its own. Returns the import's id.

        The checksums are not of the bytes, which nobody reads: they are made of address, size and time, so that what is
        replaced there is another object here.
        """
        if not self.sources:
            raise InvalidArgumentError("expected something to import; add it with prefix() or object()")
        if self._id is not None:
            raise InvalidArgumentError("the import has started already; make another to import again")
        self._id = uuid.uuid4().hex
        self._thread = threading.Thread(target=self._work, args=(committer,), name="esker-import", daemon=True)
        self._thread.start()
        return self._id

    def wait(self, poll_interval: timedelta | None = None) -> ImportStatus:
        """Waits until it has ended.

        Raises:
            NoChangesError: All of it is there already.
            MergeConflictError: Others have changed the same paths.
        """
        if self._thread is None:
            raise InvalidArgumentError("the import has not started; start() or run() it")
        self._thread.join()
        if self._status.error is not None:
            raise self._status.error
        return self._status

    def run(self, poll_interval: timedelta | None = None, *, committer: str | None = None) -> ImportStatus:
        """Starts the import and waits until it has ended. See `start` and `wait`."""
        self.start(committer=committer)
        return self.wait()

    def status(self) -> ImportStatus:
        """How far it is."""
        if self._id is None:
            raise InvalidArgumentError("the import has not started; start() or run() it")
        return self._status

    def cancel(self) -> None:
        """Ends it before it commits.

        Raises:
            CommitConflictError: It has committed already.
        """
        if self._thread is None:
            raise InvalidArgumentError("the import has not started; there is nothing to cancel")
        self._cancelled.set()
        self._thread.join()
        if self._status.completed:
            raise CommitConflictError("the import has committed already; revert its commit", retryable=False)

    def _work(self, committer: str | None) -> None:
        try:
            self._import(committer)
        except BaseException as error:
            self._status = replace(self._status, error=error, update_time=datetime.now(UTC))

    def _import(self, committer: str | None) -> None:
        from .branch import Branch

        staging = Staging()
        staging.begin(self._branch.get_commit())
        target = Branch(self._branch._core, self._branch.id, staging)
        for uri, destination, is_prefix in self.sources:
            for found in _listed(uri, destination) if is_prefix else [_one(uri, destination)]:
                if self._cancelled.is_set():
                    raise CommitConflictError("the import was cancelled", retryable=True)
                target._stage(found.path, found)
            self._status = ImportStatus(False, len(staging), None, datetime.now(UTC))
        count = len(staging)
        made = target.commit(self.commit_message or "Import objects", self.commit_metadata, committer=committer)
        self._status = ImportStatus(True, count, made.get_commit(), datetime.now(UTC))


def _info(path: str, uri: str, size: int, modified_us: int | None) -> ObjectInfo:
    when = None if modified_us is None else datetime.fromtimestamp(modified_us / 1e6, UTC)
    return ObjectInfo(
        path=path,
        physical_address=address_of(uri),
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
