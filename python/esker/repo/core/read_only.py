"""A storage namespace that a lakeFS server owns, read only, as of its last dump of refs.

The server's garbage collection does not know commits that others make there, so none are made.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from ..._native import graveler
from ..._native.graveler import BranchStaging, Merged, StagedPaths, Storage
from ..._native.store import IoStats, ListedObjects, ObjectMeta, Store
from ...exceptions import CorruptFileError, NotFoundError, UnsupportedError
from ...store import kinds
from ..refs.atomic_objects import AtomicObjects
from ..refs.commit_entry import commit_entry
from ..refs.commits import Commit, CommitStore
from ..refs.layout import FORMAT_VERSION, REPOSITORY, head_folder, tag_path
from ..refs.numbered_log import NumberedLog
from ..refs.ref_commit import append
from ..refs.refs_dump import read_manifest, records
from ..settings import SettingsLog
from .lakefs_namespace import lakefs_marker
from .repository_core import RepositoryCore

_OURS = "_esker/"


class ReadOnlyStore:
    """A server's namespace, with refs beside it that are in memory. It answers as a store does, and refuses to change.

    Args:
        namespace: The server's.
        refs: What stands for `_esker/`.
    """

    def __init__(self, namespace: Store, refs: Store) -> None:
        self._namespace = namespace
        self._refs = refs
        self.uri = namespace.uri

    def _of(self, path: str) -> Store:
        return self._refs if path.startswith(_OURS) else self._namespace

    def get(self, path: str) -> bytes:
        """See `Store`."""
        return self._of(path).get(path)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `Store`."""
        return self._of(path).get_ranges(path, ranges)

    def head(self, path: str) -> ObjectMeta:
        """See `Store`."""
        return self._of(path).head(path)

    def list(self, prefix: str = "") -> list[ObjectMeta]:
        """See `Store`."""
        return self._of(prefix).list(prefix)

    def list_batches(self, prefix: str = "") -> ListedObjects:
        """See `Store`."""
        return self._of(prefix).list_batches(prefix)

    def list_paths(self, prefix: str = "") -> list[str]:  # type: ignore[valid-type]
        """See `Store`."""
        return self._of(prefix).list_paths(prefix)

    def list_folders(self, prefix: str = "") -> list[str]:  # type: ignore[valid-type]
        """See `Store`."""
        return self._of(prefix).list_folders(prefix)

    def list_starting(self, prefix: str, start: str) -> list[str]:  # type: ignore[valid-type]
        """See `Store`."""
        return self._of(prefix).list_starting(prefix, start)

    def list_first(self, prefix: str, count: int) -> tuple[list[str], bool]:  # type: ignore[valid-type]
        """See `Store`."""
        return self._of(prefix).list_first(prefix, count)

    def list_unfinished(self, prefix: str = "") -> list[ObjectMeta]:  # type: ignore[valid-type]
        """See `Store`."""
        return self._of(prefix).list_unfinished(prefix)

    def copy(self, path: str, to: Store, target: str) -> int:
        """See `Store`."""
        return self._of(path).copy(path, to, target)

    def io_stats(self) -> IoStats:
        """See `Store`."""
        return self._namespace.io_stats()

    def io_stats_snapshot(self) -> IoStats:
        """See `Store`."""
        return self._namespace.io_stats_snapshot()

    def _refuse(self, path: str, *_: Any) -> NoReturn:
        refuse(self.uri)

    writer = put = put_if_absent = mount = delete = delete_all = delete_unfinished = _refuse


class ReadOnlyStorage:
    """The ranges and metaranges of a server's namespace. It reads as a storage does, and refuses to write.

    Args:
        storage: What reads.
        uri: The namespace.
    """

    def __init__(self, storage: Storage, uri: str) -> None:
        self._storage = storage
        self._uri = uri

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        refuse(self._uri)

    apply = write = repack = _refuse

    def merge(self, *contents: str | None, dry_run: bool = False, **options: Any) -> Merged:
        """Tells what a merge would come to."""
        if not dry_run:
            refuse(self._uri)
        return self._storage.merge(*contents, dry_run=True, **options)


class ReadOnlyCore(RepositoryCore):
    """The repository of a namespace that a server owns.

    Raises:
        NotFoundError: The server has not dumped its refs there.
    """

    def __init__(
        self, namespace: Store, uri: str, *, cache_bytes: int, options: Mapping[str, str] | None = None
    ) -> None:
        refs = Store(f"memory://{uuid.uuid4().hex}")
        storage = Storage(namespace, cache_bytes=cache_bytes)
        _fill(refs, namespace, storage, uri)
        super().__init__(refs, uri, AtomicObjects(refs), cache_bytes=0, options=options)
        self._tables = storage
        self.storage = cast(Storage, ReadOnlyStorage(storage, uri))
        self.store = cast(Store, ReadOnlyStore(namespace, refs))
        self.commits = CommitStore(self.store)
        self.atomic = AtomicObjects(self.store)
        self.settings_log = SettingsLog(self.atomic)

    @property
    def is_read_only(self) -> bool:
        """True: the server alone commits."""
        return True

    def staging_over(self, content: str, token: str, paths: StagedPaths) -> BranchStaging:
        """What stores read; they write nothing."""
        return BranchStaging(self._tables, content, token, paths, storage_options=self.options)

    def check_unprotected(self, branch: str) -> NoReturn:
        """Refuses everything."""
        refuse(self.uri)

    def upload(self) -> NoReturn:
        """Refuses."""
        refuse(self.uri)


def refuse(uri: str) -> NoReturn:
    """Says that the server alone writes there."""
    raise UnsupportedError(
        f"{uri} belongs to a lakeFS server and is read only here; ask the server, or restore its dump elsewhere",
        uri=uri,
    )


def open_core(
    store: Store,
    uri: str,
    atomic: AtomicObjects,
    *,
    cache_bytes: int,
    cache_dir: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> RepositoryCore:
    """The repository at a place: one of its own, or that of a server at its last dump.

    Raises:
        NotFoundError: There is neither.
    """
    try:
        return RepositoryCore(store, uri, atomic, cache_bytes=cache_bytes, cache_dir=cache_dir, options=options)
    except NotFoundError as error:
        if lakefs_marker(store) is None:
            raise kinds.found_instead(error, store, uri, kinds.REPOSITORY) from None
        return ReadOnlyCore(store, uri, cache_bytes=cache_bytes, options=options)


def _fill(refs: Store, namespace: Store, storage: Storage, uri: str) -> None:
    """Writes the refs of the newest dump as a repository has them."""
    try:
        dump = read_manifest(namespace)
    except NotFoundError as error:
        message = f"{uri} belongs to a lakeFS server that has not dumped its refs there; let it: lakectl refs-dump"
        raise NotFoundError(message, uri=uri) from error
    commits: dict[str, Commit] = {}
    known, atomic = CommitStore(refs), AtomicObjects(refs)
    for _, data in records(storage, dump.commits_meta_range_id):
        commit = Commit.of_record(graveler.Commit.decode(data))
        commits[commit.id] = commit
        known.add(commit)
    names = []
    for _, data in records(storage, dump.branches_meta_range_id):
        name, id = graveler.decode_ref(data)
        if id not in commits:
            raise CorruptFileError(f"{uri}: the branch {name!r} of the dump leads to {id}, which is no commit of it")
        append(NumberedLog(atomic, head_folder(name)), lambda _, id=id: commit_entry("create", commits[id]), name)  # type: ignore[misc]
        names.append(name)
    for _, data in records(storage, dump.tags_meta_range_id):
        name, id = graveler.decode_ref(data)
        refs.put(tag_path(name), json.dumps({"commit_id": id}).encode())
    default = "main" if "main" in names else names[0] if names else "main"
    said = {"format_version": FORMAT_VERSION, "id": uuid.uuid5(uuid.NAMESPACE_URL, uri).hex, "default_branch": default}
    refs.put(REPOSITORY, json.dumps(said).encode())
