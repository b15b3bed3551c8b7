"""What can be read of a ref: a branch, a tag, a commit, or an expression over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ..exceptions import InvalidArgumentError
from ..store.stores import absolute, resolve
from . import branch_store
from .address import uri_of
from .commits import Commit
from .core import RepositoryCore
from .errors import MergeConflictError
from .expired import explained
from .export import check_exportable
from .history import touching
from .object_io import is_elsewhere
from .objects import BATCH_ROWS, Change, CommonPrefix, ObjectInfo, info, listed, rows, table
from .stored_object import StoredObject
from .text import check_text

if TYPE_CHECKING:
    from .staging import Staging

_COPIES = 8
"""Objects that are exported side by side."""


class Reference:
    """A ref of a repository.

    Args:
        core: The repository.
        id: A ref expression: `main`, `v1.0`, `main~2`, a commit's id or the start of it.

    Example:
        `[o.path for o in repository.ref("main~1").objects(prefix="data/")]`
    """

    def __init__(self, core: RepositoryCore, id: str) -> None:
        self._core = core
        self.id = id

    @property
    def repo_id(self) -> str:
        """The repository's id."""
        return self._core.id

    def get_commit(self) -> Commit:
        """The commit that the ref means now.

        Raises:
            NotFoundError: It means nothing.
        """
        return self._core.resolve(self.id)

    def _base(self) -> Commit:
        """The commit that is read."""
        return self.get_commit()

    def _content(self) -> str:
        return self._base().meta_range_id

    def _frozen(self) -> Reference:
        """The same as it is now, whatever is committed or staged later."""
        return Reference(self._core, self._base().id)

    def _found(self, path: str) -> tuple[ObjectInfo | None, str | Staging]:
        """What is at a path, and the id of the commit that it is part of, or where it is staged."""
        commit = self._base()
        check_text(path, "a path")
        with explained(self._core, commit.id):
            found = table(self._core.storage.get(commit.meta_range_id, [path])).to_pylist(maps_as_pydicts="strict")
        return info(path, found[0]["entry"]) if found else None, commit.id

    def object(self, path: str) -> StoredObject:
        """The object at a path, which need not exist."""
        return StoredObject(self, path)

    def objects(
        self,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
    ) -> Iterator[ObjectInfo | CommonPrefix]:
        """The objects whose paths start with `prefix`, in the order of their paths.

        Args:
            max_amount: At most so many.
            after: Only paths behind this one.
            prefix: What paths start with.
            delimiter: Paths that go on after it are one `CommonPrefix` together.
        """
        commit = self._base()
        # No more is decoded than was asked for.
        count = BATCH_ROWS if max_amount is None else max(1, min(max_amount, BATCH_ROWS))
        with explained(self._core, commit.id):
            listing = self._core.storage.list(
                commit.meta_range_id,
                prefix=check_text(prefix or "", "a prefix"),
                from_path=_next(check_text(after or "", "a path")),
                delimiter=check_text(delimiter or "", "a delimiter"),
            )
            yield from islice(listed(listing, count), max_amount)

    def physical_paths(self, prefix: str = "") -> list[str]:
        """URIs of the objects' bytes, as `spark.read.parquet` takes them."""
        root = self._core.uri.rstrip("/")
        found = (entry for entry in self.objects(prefix=prefix) if isinstance(entry, ObjectInfo))
        return [
            uri_of(entry.physical_address)
            if entry.address_type == "full" or "://" in entry.physical_address
            else f"{root}/{entry.physical_address}"
            for entry in found
        ]

    def store_uri(self, path: str = "") -> str:
        """The URI of a folder of the ref's commit as a store, read only: for readers of tables, in any process.

        Example:
            `esker.dataset(repository.ref("v1").store_uri("tables/t")).to_table()`
        """
        # The commit, not the ref: what is read under one URI never changes, and may be kept.
        return branch_store.ref_uri(self._core, self.get_commit().id, path)

    def log(
        self,
        max_amount: int | None = None,
        *,
        after: str | None = None,
        objects: Sequence[str] | None = None,
        prefixes: Sequence[str] | None = None,
        first_parent: bool = False,
        since: datetime | None = None,
        stop_at: str | None = None,
        amount: int | None = None,
        limit: bool = False,
    ) -> Iterator[Commit]:
        """The commits that led here, the youngest first.

        Args:
            max_amount: At most so many.
            after: A commit's id: only those that come after it in this order.
            objects: Only commits that changed one of these paths, against their first parent.
            prefixes: The same for what paths start with.
            first_parent: Only the first parent of each commit.
            since: A time at which to stop: the first commit that was made then or before is not given any more.
            stop_at: A ref at which to stop; its commit is the last.
            amount: With `limit`, at most so many commits; without it of no effect here, where there are no pages.
            limit: Whether `amount` is meant so.
        """
        if limit and amount is not None:
            max_amount = amount if max_amount is None else min(amount, max_amount)
        commits = self._core.commits.log(self.get_commit().id, first_parent=first_parent)
        if after is not None:
            commits = islice(dropwhile(lambda commit: commit.id != after, commits), 1, None)
        if stop_at or since:
            last = self._core.resolve(stop_at).id if stop_at else None
            commits = _until(commits, last, since)
        if objects or prefixes:
            commits = touching(self._core, commits, objects or [], prefixes or [])
        yield from islice(commits, max_amount)

    def diff(
        self,
        other_ref: ReferenceType,
        max_amount: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
        *,
        type: str = "three_dot",
    ) -> Iterator[Change]:
        """What `other_ref` has that this ref has not.

        Args:
            other_ref: A ref.
            max_amount: At most so many.
            after: Only paths behind this one.
            prefix: What paths start with.
            delimiter: Paths that go on after it are one `prefix_changed` together.
            type: `three_dot` is what a merge of `other_ref` into this one would bring, conflicts among it; `two_dot` is
                the plain difference.
        """
        if type not in ("three_dot", "two_dot"):
            raise InvalidArgumentError(f"expected the type 'three_dot' or 'two_dot', found {type!r}")
        prefix, after = prefix or "", after or ""
        other = other_ref if isinstance(other_ref, Reference) else Reference(self._core, id_of(other_ref))
        left, right = self.get_commit(), other.get_commit()
        left_content, mine, base = left.meta_range_id, None, None
        if type == "three_dot":
            base = self._core.commits.merge_base(left.id, right.id)
            left_content = base.meta_range_id if base else ""
            mine = (left_content, left.meta_range_id)
        changes = self._changes(left_content, right, mine, prefix)
        shown = folded(changes, prefix, delimiter) if delimiter else changes
        given = 0
        with explained(self._core, left.id, right.id, *([base.id] if base else [])):
            for change in shown:
                if max_amount is not None and given >= max_amount:
                    return
                if change.path > after:
                    given += 1
                    yield change

    def _changes(self, left_content: str, right: Commit, mine: tuple[str, str] | None, prefix: str) -> Iterator[Change]:
        differences = self._core.storage.diff(left_content, right.meta_range_id, prefix=prefix)
        changes: Iterator[Change] = (_change(row) for row in rows(differences))
        if mine is not None and mine[0] != mine[1]:
            changes = self._against(changes, *mine, prefix)
        yield from changes

    def _against(self, theirs: Iterator[Change], base: str, mine: str, prefix: str) -> Iterator[Change]:
        """Leaves out what this side has done as well, and marks what it has done otherwise as conflicts."""
        ours = (_change(row) for row in rows(self._core.storage.diff(base, mine, prefix=prefix)))
        own = next(ours, None)
        for change in theirs:
            while own is not None and own.path < change.path:
                own = next(ours, None)
            if own is None or own.path != change.path:
                yield change
            elif not _same(own.right, change.right):
                yield Change("conflict", change.path, "object", change.size_bytes, own.right, change.right)

    def merge_base(self, other: ReferenceType) -> Commit | None:
        """The commit that a merge of this ref and another would compare with; None if they share none."""
        other_id = other.get_commit().id if isinstance(other, Reference) else self._core.resolve(id_of(other)).id
        return self._core.commits.merge_base(self.get_commit().id, other_id)

    def merge_into(
        self,
        destination_branch: ReferenceType,
        *,
        message: str | None = None,
        metadata: dict[str, str] | None = None,
        strategy: str | None = None,
        squash_merge: bool = False,
        allow_empty: bool = False,
        force: bool = False,
        dry_run: bool = False,
        committer: str | None = None,
    ) -> str:
        """Merges this ref into a branch, path by path, against what both come from.

        Args:
            destination_branch: The branch that changes.
            message: What the commit says.
            metadata: Keys and values of the commit.
            strategy: What becomes of paths that both changed: None fails, `source-wins`, `dest-wins`.
            squash_merge: The commit has the branch as its only parent.
            allow_empty: Commits even if nothing changes.
            force: Also into a read-only repository, in lakeFS; of no effect here.
            dry_run: Only looks for conflicts.
            committer: Who; the user of the machine by default.

        Returns:
            The id of the merge commit; of the branch's last commit in a dry run.

        Raises:
            MergeConflictError: There are conflicts and no strategy; it lists them with all three sides.
            NoChangesError: The branch has all of it already.

        Example:
            `repository.branch("feature").merge_into("main")`
        """
        from .merging import merge_into

        branch = id_of(destination_branch)
        options: dict[str, Any] = {
            "message": message,
            "metadata": metadata,
            "strategy": strategy,
            "squash_merge": squash_merge,
            "allow_empty": allow_empty,
            "dry_run": dry_run,
            "committer": committer,
        }
        return merge_into(self._core, self.id, self.get_commit(), branch, **options)

    def export(self, destination: str, *, prefix: str = "", storage_options: Mapping[str, str] | None = None) -> int:
        """Copies the objects whose paths start with `prefix` below a URI, at their paths; how many there were.

        What is there already at these paths is replaced, what is at others stays.

        Args:
            destination: The URI.
            prefix: What paths start with.
            storage_options: Options of the store there; those of the repository by default.

        Raises:
            InvalidArgumentError: A path can be no file's below a folder (`../x`, `a//b`, `a/`, both `a` and `a/b`...),
                or no object's. Nothing is written then.
        """
        place = absolute(destination)
        target = (
            self._core.elsewhere(place) if storage_options is None else resolve(place, storage_options=storage_options)
        )
        # Gone through twice: whatever is committed or staged meanwhile.
        frozen = self._frozen()

        def found() -> Iterator[ObjectInfo]:
            return (entry for entry in frozen.objects(prefix=prefix) if isinstance(entry, ObjectInfo))

        def copy(entry: ObjectInfo) -> None:
            if is_elsewhere(entry):
                folder, _, name = uri_of(entry.physical_address).rpartition("/")
                self._core.elsewhere(folder).copy(name, target, entry.path)
            else:
                self._core.store.copy(entry.physical_address, target, entry.path)

        check_exportable((entry.path for entry in found()), place)
        count, entries = 0, found()
        with explained(self._core, frozen._base().id), ThreadPoolExecutor(_COPIES) as threads:
            while batch := list(islice(entries, 64 * _COPIES)):
                count += len(list(threads.map(copy, batch)))
        return count

    def conflicts_with(self, destination_branch: str) -> MergeConflictError | None:
        """The error that merging into a branch would raise, with its conflicts; None if there are none."""
        try:
            self.merge_into(destination_branch, dry_run=True, allow_empty=True)
        except MergeConflictError as error:
            return error
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the name, and how the repository is opened; nothing of what is staged."""
        return type(self), (self._core, self.id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


ReferenceType: TypeAlias = str | Reference | Commit
"""A ref by its expression, as a `Reference`, or as a commit."""


def id_of(reference: ReferenceType) -> str:
    """The ref expression."""
    return reference if isinstance(reference, str) else reference.id


def _until(commits: Iterator[Commit], last: str | None, since: datetime | None) -> Iterator[Commit]:
    oldest = since.timestamp() if since else None
    for commit in commits:
        if oldest is not None and commit.creation_date <= oldest:
            return
        yield commit
        if commit.id == last:
            return


def _next(after: str) -> str:
    # The first string behind another one.
    return after + "\0" if after else ""


def _same(left: ObjectInfo | None, right: ObjectInfo | None) -> bool:
    def identity(side: ObjectInfo | None) -> object:
        return side and (side.size_bytes, side.checksum, dict(side.metadata), side.content_type)

    return identity(left) == identity(right)


def _change(row: dict[str, Any]) -> Change:
    left, right = info(row["path"], row["left"]), info(row["path"], row["right"])
    there = right or left
    return Change(row["type"], row["path"], "object", there.size_bytes if there else None, left, right)


def folded(changes: Iterator[Change], prefix: str, delimiter: str) -> Iterator[Change]:
    """Changes, of which those that go on after a delimiter are one `prefix_changed` together."""
    last = None
    for change in changes:
        head, found, _ = change.path[len(prefix) :].partition(delimiter)
        if not found:
            yield change
        elif (common := prefix + head + delimiter) != last:
            last = common
            yield Change("prefix_changed", common, "common_prefix")
