"""A repository: branches, tags, commits, settings and upkeep of one lake, without a server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..commit.external import ExternalManifestStore
from ..exceptions import AlreadyExistsError, CommitStateUnknownError, IOFailedError
from ..progress import StepWatcher, as_progress_of_steps
from ..store.stores import absolute, resolve
from .branch import Branch
from .committing.hook_event import Hook
from .committing.new_commit import default_committer
from .core.creation import create, is_created
from .core.opening import CACHE_BYTES, origin_of
from .core.repository_core import RepositoryCore
from .hooks import EventType
from .reference import Reference, ReferenceType, id_of
from .refs.commit_entry import is_hidden
from .refs.layout import OWN, REPOSITORY
from .refs.refs_dump import RefsDump
from .sdk_names import LacksNames
from .settings import Settings
from .tag import Tag

if TYPE_CHECKING:
    # What keeps a repository well is imported when it is called for.
    from .upkeep.garbage_collection import Collected


@dataclass(frozen=True)
class RepositoryProperties(LacksNames):
    """What a repository is called and where it is; `creation_date` in seconds since the Unix epoch."""

    id: str
    creation_date: int | None
    default_branch: str
    storage_namespace: str


class Repository:
    """A repository in a folder of any store. It pickles, without what is staged and without hooks.

    Args:
        uri: A path, or a URI of a registered scheme.
        storage_options: Options of the store.
        cache_bytes: What is kept in memory of ranges and metaranges.
        cache_dir: A folder of this machine in which up to 1 GiB of them is kept for the next process.
        manifest_store: What lends put-if-absent, where the store lacks it: all writers must name the same.

    Raises:
        NotFoundError: There is no repository.

    Example:
        >>> from esker.repo import Repository
        >>> repository = Repository.create("memory://doc-repository")
        >>> main = repository.branch("main")
        >>> _ = main.object("a.txt").upload("hello")
        >>> _ = main.commit("first")
        >>> [o.path for o in repository.ref("main").objects()]
        ['a.txt']
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        cache_bytes: int = CACHE_BYTES,
        cache_dir: str | os.PathLike[str] | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
    ) -> None:
        self._core = origin_of(uri, storage_options, cache_bytes, cache_dir, manifest_store).open()

    @classmethod
    def create(
        cls,
        uri: str | os.PathLike[str],
        *,
        default_branch: str = "main",
        exist_ok: bool = False,
        storage_options: Mapping[str, str] | None = None,
        committer: str | None = None,
        metadata: Mapping[str, str] | None = None,
        manifest_store: ExternalManifestStore | str | None = None,
    ) -> Repository:
        """Creates a repository with one empty branch.

        Raises:
            AlreadyExistsError: There is one, and `exist_ok` is not set.
            CommitStateUnknownError: It was created, and could not be opened, which the message tells.
            UnsupportedError: The place belongs to a lakeFS server.
        """
        origin = origin_of(uri, storage_options, manifest_store=manifest_store)
        store, found = origin.store, True
        if not is_created(store):
            found = not create(
                store, origin.uri, origin.atomic(store), default_branch, committer or default_committer(), metadata
            )
        if found and not exist_ok:
            raise AlreadyExistsError(f"a repository exists already at {origin.uri}", uri=origin.uri)
        try:
            return cls._of(origin.open())
        except IOFailedError as error:
            if found:
                raise
            raise CommitStateUnknownError(
                f"{error}; the repository at {origin.uri} was created, but could not be opened: open it, and do not "
                "create it again",
                uri=origin.uri,
            ) from error

    @classmethod
    def _of(cls, core: RepositoryCore) -> Repository:
        repository = cls.__new__(cls)
        repository._core = core
        return repository

    def __reduce__(self) -> tuple[Any, ...]:
        return Repository._of, (self._core,)

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._core.uri

    @property
    def id(self) -> str:
        """Drawn when it was created."""
        return self._core.id

    @property
    def default_branch(self) -> str:
        """The branch that it was created with."""
        return self._core.default_branch

    @property
    def metadata(self) -> dict[str, str]:
        """Keys and values that it was created with."""
        return dict(self._core.metadata)

    @property
    def properties(self) -> RepositoryProperties:
        """Its id, default branch and place, and when it was created."""
        created_us = self._core.store.head(REPOSITORY).last_modified_us
        created = None if created_us is None else created_us // 1_000_000
        return RepositoryProperties(self.id, created, self.default_branch, self.uri)

    def delete(self) -> None:
        """Deletes the repository: its branches, tags, commits and settings. Tables and objects stay where they are."""
        self._core.atomic.delete(REPOSITORY, free=True)
        for path in self._core.store.list_paths(OWN):
            self._core.atomic.delete(path, free=True)

    @property
    def settings(self) -> Settings:
        """What its users have agreed on."""
        return self._core.settings()

    def change_settings(self, **changes: Any) -> Settings:
        """Changes some settings (see `Settings`), for all who open it."""
        return self._core.change_settings(**changes)

    def branch(self, branch_id: str) -> Branch:
        """A branch, which need not exist."""
        return Branch(self._core, branch_id)

    def ref(self, ref_id: ReferenceType) -> Reference:
        """A ref: a branch, a tag, a commit's id or the start of it, with steps back: `main~2`, `v1^`.

        `main@` is the branch without what is staged, `main$` with it: what `branch("main")` is.
        """
        expression = id_of(ref_id)
        if expression.endswith("$"):
            return Branch(self._core, expression.removesuffix("$"))
        return Reference(self._core, expression)

    def commit(self, commit_id: ReferenceType) -> Reference:
        """A commit by its id, or the start of it."""
        return Reference(self._core, id_of(commit_id))

    def tag(self, tag_id: str) -> Tag:
        """A tag, which need not exist."""
        return Tag(self._core, tag_id)

    def branches(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        *,
        show_hidden: bool = False,
    ) -> Iterator[Branch]:
        """The branches, in the order of their names; with `show_hidden` those as well that were created hidden."""
        last = self._core.last_entries()
        names = (name for name, entry in last.items() if show_hidden or not is_hidden(entry))
        found = [name for name in names if name.startswith(prefix or "") and name > (after or "")]
        yield from (Branch(self._core, name) for name in found[:max_amount])

    def tags(self, max_amount: int | None = None, after: str | None = None, prefix: str | None = None) -> Iterator[Tag]:
        """The tags, in the order of their names."""
        names = self._core.tag_names()
        found = [name for name in names if name.startswith(prefix or "") and name > (after or "")]
        yield from (Tag(self._core, name) for name in found[:max_amount])

    def add_hook(self, type: EventType, hook: Hook) -> None:
        """Calls `hook` with a `HookEvent` before or after commits and merges that are made through this handle.

        Args:
            type: `pre-commit`, `post-commit`, `pre-merge` or `post-merge`.
            hook: What is called. If one that is called before raises, nothing is committed, and what it raises
                reaches the caller: `HookRefusedError("why")`; if one that is called after does, that is a warning.
                `event.ref` reads what is to be committed, tables among it.

        Example:
            ```python
            def audit(event: HookEvent) -> None:
                if esker.dataset(event.ref.store_uri("sales")).count_rows("amount < 0"):
                    raise HookRefusedError("sales: negative amounts")

            repository.add_hook("pre-merge", audit)
            ```
        """
        self._core.hooks.add(type, hook)

    def dump_refs(self) -> RefsDump:
        """Writes commits, branches and tags as lakeFS's `refs-restore` takes them, and says where."""
        from .upkeep.dump import dump_refs

        return dump_refs(self._core)

    def restore_refs(self, refs: RefsDump | None = None) -> None:
        """Takes over the refs of a dump, by default the newest one that lies in this repository's `_lakefs/`.

        Raises:
            AlreadyExistsError: Something was committed here already, or a branch or tag of the dump exists.
            NotFoundError: What a ref of the dump leads to was not copied.
        """
        from .upkeep.restore import restore_refs

        restore_refs(self._core, refs)

    def gc(
        self,
        *,
        dry_run: bool = True,
        grace_s: float | None = None,
        now: float | None = None,
        progress: StepWatcher | None = None,
    ) -> Collected:
        """Deletes objects and ranges that no commit within the retention leads to. See `collect_garbage`.

        Args:
            dry_run: Only counts what would go.
            grace_s: Seconds for which nothing is deleted, whatever leads to it; those of the settings by default.
                With less than those, what others have staged may go, and their commits are then refused.
            now: The time by which commits are older than their retention, in seconds since the Unix epoch. How old
                objects are, the store alone says.
            progress: Called with what is done, how much of it, and of how much if that is known, or an
                `esker.progress.Progress`.

        Raises:
            IOFailedError: The clocks of this machine and of the store differ by more than an hour, or the collection
                was held up for as long. What was deleted before was garbage.
        """
        from .upkeep.garbage_collection import collect_garbage

        watching = as_progress_of_steps(progress)
        return collect_garbage(self._core, dry_run=dry_run, grace_s=grace_s, now=now, progress=watching)

    def pack_refs(self) -> int:
        """Writes all commits into one object and the branches' last entries into another, and removes old entries.

        The newest 100 entries of a log, and all that are younger than 7 days, stay. A history is then one read. Commits
        do some of it now and then, so that it is never required.

        Returns:
            How many commits there are.
        """
        from .upkeep.packing import pack_refs

        return pack_refs(self._core)

    def fsck(
        self, *, imports: bool = False, tables: bool = False, progress: StepWatcher | None = None
    ) -> Iterator[str]:
        """What is wrong with the repository, one sentence a finding. Reads all ranges that count.

        Args:
            imports: Looks for imported objects too, with a request each.
            tables: Looks on all branches and tags whether each table opens, and whether every file that its versions
                refer to is on the same ref.
            progress: Called with what is done, how much of it, and of how much, or an `esker.progress.Progress`.
        """
        from .upkeep.fsck import check

        return check(self._core, imports=imports, tables=tables, progress=as_progress_of_steps(progress))

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"Repository({self.uri!r})"


def repository(uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Repository:
    """Opens a repository: `Repository(uri)`, under the name that lakeFS's SDK has."""
    return Repository(uri, storage_options=storage_options)


def repositories(
    uri: str | os.PathLike[str],
    prefix: str | None = None,
    after: str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Repository]:
    """The repositories directly below a folder, in the order of their folders' names.

    Args:
        uri: The folder. There is no server to ask for all repositories that there are.
        prefix: What their names start with.
        after: Only names behind this one.
        storage_options: Options of the store.

    Example:
        `[repository.uri for repository in repositories("s3://bucket/lakes")]`
    """
    root = absolute(uri).rstrip("/")
    names = (path.strip("/") for path in resolve(root, storage_options=storage_options).list_folders())
    for name in sorted(names):
        place = f"{root}/{name}"
        wanted = name.startswith(prefix or "") and name > (after or "")
        if wanted and is_created(resolve(place, storage_options=storage_options)):
            yield Repository(place, storage_options=storage_options)
