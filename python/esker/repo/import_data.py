"""Imports: commits of references to objects that exist elsewhere. No bytes are copied."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from .._native.graveler import ChangeStream, ImportedObjects
from ..exceptions import CommitConflictError, CommitStateUnknownError, InvalidArgumentError, UnsupportedError
from ..store.stores import is_in_repository
from .committing.imported_logs import check_logs_go_on
from .committing.new_commit import NewCommit
from .committing.staged_commit import commit_staging
from .core.repository_core import RepositoryCore
from .errors import NoChangesError
from .objects.address import address_of, folder_uri, object_address, place_of, roots_of, spelled
from .objects.staging import Staging
from .refs.commits import Commit
from .refs.layout import DATA
from .sdk_names import LacksNames
from .text import check_text

MEMORY_BYTES = 32 << 20
"""Of what was listed, so much is held; the rest is sorted in files."""
_LOOK_S = 1.0
_SHOWN = 3


@dataclass(frozen=True)
class ImportStatus(LacksNames):
    """How far an import is.

    Attributes:
        completed: Whether it has ended well.
        ingested_objects: How many objects were listed so far; once it has ended well, how many paths they have.
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

    def __init__(self, core: RepositoryCore, branch: str, message: str, metadata: Mapping[str, str] | None) -> None:
        self.commit_message = message
        self.commit_metadata = metadata
        self.sources: list[tuple[str, str, bool]] = []
        self._core = core
        self._branch = branch
        self._id: str | None = None
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()
        self._ended = threading.Event()
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
        if is_in_repository(check_text(uri, "a URI")):
            # Such an entry would change with its ref, and go with what garbage collection takes there.
            raise UnsupportedError(
                f"expected where objects lie, found {uri}, which names a ref of a repository: an entry that leads "
                "there changes with the ref, and no table reads it; `export` what the ref holds and import that, or, "
                "within one repository, merge the ref or copy its objects"
            )
        self.sources.append((uri, check_text(destination, "a path"), is_prefix))
        return self

    def start(self, *, committer: str | None = None) -> str:
        """Lists what was added and commits references to it, in a thread of its own. Returns the import's id.

        Where two sources give the same path, the one that was added later counts. Memory does not grow with the number
        of objects: what is listed is sorted in files of this machine's temporary folder, about 100 bytes an object.

        The bytes are not read. Checksums are made of address, size and time: what is replaced there is another object
        here.
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
            NoChangesError: All of it is there already, or there is nothing to import.
            MergeConflictError: Others have changed the same paths.
        """
        if self._thread is None:
            raise InvalidArgumentError("the import has not started; start() it before you wait()")
        self._join(self._thread)
        if self._status.error is not None:
            raise self._status.error
        return self._status

    def run(self, poll_interval: timedelta | None = None, *, committer: str | None = None) -> ImportStatus:
        """Starts the import and waits until it has ended. See `start` and `wait`. Ctrl-C cancels it."""
        self.start(committer=committer)
        try:
            return self.wait()
        except BaseException:
            # Whoever is not waiting any more would find it committed later.
            self._cancelled.set()
            raise

    def status(self) -> ImportStatus:
        """How far it is."""
        if self._id is None:
            raise InvalidArgumentError("the import has not started; start() or run() it")
        return self._status

    def cancel(self) -> None:
        """Ends it before it commits.

        Raises:
            CommitConflictError: It has committed already.
            CommitStateUnknownError: It may have.
        """
        if self._thread is None:
            raise InvalidArgumentError("the import has not started; there is nothing to cancel")
        self._cancelled.set()
        self._join(self._thread)
        if self._status.completed:
            raise CommitConflictError("the import has committed already; revert its commit", retryable=False)
        if isinstance(self._status.error, CommitStateUnknownError):
            raise self._status.error

    def _join(self, thread: threading.Thread) -> None:
        # A thread whose `join` Ctrl-C has ended is taken for ended by some releases of Python.
        while not self._ended.wait(_LOOK_S):
            if not thread.is_alive():
                raise UnsupportedError("the import is at work in the process that has started it; wait for it there")

    def _work(self, committer: str | None) -> None:
        try:
            self._import(committer)
        except BaseException as error:
            self._status = replace(self._status, error=error, update_time=datetime.now(UTC))
        finally:
            self._ended.set()

    def _import(self, committer: str | None) -> None:
        # It takes milliseconds, which who imports nothing need not wait for.
        import tempfile

        core, branch = self._core, self._branch
        core.check_unprotected(branch)
        with tempfile.TemporaryDirectory(prefix="esker-import-") as folder:
            staging = _Imports(folder, core.uri)
            staging.begin(core.head(branch))
            for uri, destination, is_prefix in self.sources:
                place, is_own = spelled((address_of if is_prefix else object_address)(uri), core.uri)
                staging.own_imports |= is_own
                for _ in (_listed if is_prefix else _one)(core, staging.objects, place, destination):
                    self._check_not_cancelled()
                    self._status = ImportStatus(False, len(staging.objects), None, datetime.now(UTC))
            if not len(staging.objects):
                looked = ", ".join(repr(uri) for uri, _, _ in self.sources[:_SHOWN])
                raise NoChangesError(
                    f"import to {branch!r}: found no objects at {looked}, and committed nothing; look whether the "
                    "URIs are those of folders that hold some"
                )
            stream = staging.changes()
            self._check_not_cancelled()
            metadata = {} if self.commit_metadata is None else self.commit_metadata
            new = NewCommit(branch, self.commit_message or "Import objects", metadata, committer)
            try:
                made = commit_staging(core, staging, new, check=partial(check_logs_go_on, core, branch))
            except NoChangesError as error:
                raise NoChangesError(
                    f"import to {branch!r}: the branch has all {stream.count} objects already; nothing was committed"
                ) from error
            self._status = ImportStatus(True, stream.count, made, datetime.now(UTC))

    def _check_not_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise CommitConflictError("the import was cancelled", retryable=True)


class _Imports(Staging):
    """What is committed of an import: sorted in files, where it is more than memory should hold."""

    def __init__(self, folder: str, repository: str) -> None:
        super().__init__()
        # A repository that is moved takes its own objects with it.
        own = roots_of(repository)
        self.objects = ImportedObjects(folder, own_roots=own, own_below=DATA, memory_bytes=MEMORY_BYTES)
        self._stream: ChangeStream | None = None

    @contextmanager
    def taken(self) -> Iterator[Staging]:
        """Itself: nobody else adds to it."""
        yield self

    def changes(self) -> ChangeStream:
        """All of it, once."""
        if self._stream is None:
            self._stream = self.objects.changes()
        return self._stream


def _one(core: RepositoryCore, found: ImportedObjects, address: str, destination: str) -> Iterator[None]:
    folder, name = place_of(address)
    meta = core.elsewhere(folder).head(name)
    found.add(destination, address, meta.size, meta.last_modified_us)
    yield


def _listed(core: RepositoryCore, found: ImportedObjects, address: str, destination: str) -> Iterator[None]:
    below = destination if not destination or destination.endswith("/") else destination + "/"
    root = address if address.endswith(":///") else address.rstrip("/") + "/"
    listed = core.elsewhere(folder_uri(root)).list_batches()
    while found.add_batch(listed, root, below):
        yield
