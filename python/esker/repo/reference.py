"""A ref that is read: a branch, a tag, a commit, or an expression over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import dropwhile, islice
from typing import Any, TypeAlias

from ..exceptions import InvalidArgumentError
from ..store.stores import absolute, resolve
from . import branch_store
from .committing.merge_planning import plan_merge
from .committing.merging import MergeRequest, merge_into
from .core.repository_core import RepositoryCore
from .differences import differences, folded, merge_preview
from .errors import MergeConflictError
from .objects.address import place_of, plain_root, uri_of
from .objects.export import check_exportable
from .objects.merge_plan import MergePlan
from .objects.object_info import Change, CommonPrefix, ObjectInfo
from .objects.object_io import is_elsewhere
from .objects.ref_view import RefView
from .objects.stored_object import StoredObject
from .path_history import touching
from .refs.commits import Commit
from .refs.expired import explained

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
        self._view = self._make_view()

    def _make_view(self) -> RefView:
        return RefView(self._core, self.id)

    @property
    def repo_id(self) -> str:
        """The repository's id."""
        return self._core.id

    def get_commit(self) -> Commit:
        """The commit that the ref means now.

        Raises:
            NotFoundError: It means nothing.
        """
        return self._view.commit()

    def object(self, path: str) -> StoredObject:
        """The object at a path, which need not exist."""
        return StoredObject(self._view, path)

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
        yield from self._view.objects(prefix or "", after or "", delimiter or "", max_amount)

    def physical_paths(self, prefix: str = "") -> list[str]:
        """Where the objects' bytes are, as `spark.read.parquet` takes it: URIs in which nothing is escaped."""
        root = plain_root(self._core.uri)
        found = (entry for entry in self.objects(prefix=prefix) if isinstance(entry, ObjectInfo))
        return [
            uri_of(entry.physical_address)
            if entry.address_type == "full" or "://" in entry.physical_address
            else root + entry.physical_address
            for entry in found
        ]

    def store_uri(self, path: str = "") -> str:
        """The URI of a folder of the ref's commit as a store, read only: for readers of tables, in any process.

        Example:
            `esker.dataset(repository.ref("v1").store_uri("tables/t")).to_table()`
        """
        # The commit, not the ref: what is read under one URI never changes, and may be kept.
        return branch_store.uri_of(self._core, self.get_commit().id, path)

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
        """The commits that led here, each before those that it comes from: the youngest generation first.

        Args:
            max_amount: At most so many.
            after: A ref: only commits that come after its commit in this order.
            objects: Only commits that changed one of these paths, against their first parent.
            prefixes: The same for what paths start with.
            first_parent: Only the first parent of each commit.
            since: A time: no commits that were made then or before, nor what only these come from.
            stop_at: A ref at which to stop; its commit is the last.
            amount: With `limit`, at most so many commits; without it of no effect here, where there are no pages.
            limit: Whether `amount` is meant so.
        """
        if limit and amount is not None:
            max_amount = amount if max_amount is None else min(amount, max_amount)
        oldest = since.timestamp() if since else None
        commits = self._core.commits.log(self.get_commit().id, first_parent=first_parent, since=oldest)
        if after:
            first = self._core.resolve(after).id
            commits = islice(dropwhile(lambda commit: commit.id != first, commits), 1, None)
        if stop_at:
            commits = _until(commits, self._core.resolve(stop_at).id)
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
        base = self._core.commits.merge_base(left.id, right.id) if type == "three_dot" else None
        if type == "three_dot":
            common = base.meta_range_id if base else ""
            changes = merge_preview(self._core, common, left.meta_range_id, right.meta_range_id, prefix)
        else:
            changes = differences(self._core, left.meta_range_id, right.meta_range_id, prefix)
        shown = folded(changes, prefix, delimiter) if delimiter else changes
        given = 0
        with explained(self._core.store, left.id, right.id, *([base.id] if base else [])):
            for change in shown:
                if max_amount is not None and given >= max_amount:
                    return
                if change.path > after:
                    given += 1
                    yield change

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
        """Merges this ref into a branch against what both come from: tables as a whole, all else path by path.

        A table's log is never mixed: the branch takes this ref's versions if they go on from its own, and keeps its own
        if this ref's end before. Everything else is a conflict, which names the table.

        Args:
            destination_branch: The branch that changes.
            message: What the commit says.
            metadata: Keys and values of the commit.
            strategy: What becomes of paths and tables that both changed: None fails, `source-wins`, `dest-wins`. It
                decides a whole table: `source-wins` restores this ref's content of it as a new version.
            squash_merge: The commit has the branch as its only parent.
            allow_empty: Commits even if nothing changes.
            force: Also into a read-only repository, in lakeFS; of no effect here.
            dry_run: Only looks for conflicts.
            committer: Who; the user of the machine by default.

        Returns:
            The id of the merge commit; of the branch's last commit in a dry run.

        Raises:
            MergeConflictError: There are conflicts and no strategy; it lists them with all three sides.
            TableConflictError: Tables are among them.
            NoChangesError: The branch has all of it already.

        Example:
            `repository.branch("feature").merge_into("main")`
        """
        asked = MergeRequest(
            id_of(destination_branch), message, metadata, strategy, squash_merge, allow_empty, dry_run, committer
        )
        return merge_into(self._core, self.id, self.get_commit(), asked)

    def merge_plan(
        self, destination_branch: ReferenceType, *, strategy: str | None = None, max_amount: int = 100
    ) -> MergePlan:
        """What merging this ref into a branch would do now: which tables and paths change, and what is in the way.

        Writes nothing, and reads no data file.

        Args:
            destination_branch: The branch.
            strategy: As for `merge_into`.
            max_amount: How many changes of paths outside of tables are listed; all are counted.

        Example:
            `[(table.path, table.outcome) for table in repository.branch("feature").merge_plan("main").tables]`
        """
        source = (self.id, self.get_commit())
        return plan_merge(self._core, source, id_of(destination_branch), strategy, max_amount)

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
        frozen = self._view.frozen()

        def found() -> Iterator[ObjectInfo]:
            return (entry for entry in frozen.objects(prefix) if isinstance(entry, ObjectInfo))

        def copy(entry: ObjectInfo) -> None:
            if is_elsewhere(entry):
                folder, name = place_of(entry.physical_address)
                self._core.elsewhere(folder).copy(name, target, entry.path)
            else:
                self._core.store.copy(entry.physical_address, target, entry.path)

        check_exportable((entry.path for entry in found()), place)
        count, entries = 0, found()
        with explained(self._core.store, frozen.base().id), ThreadPoolExecutor(_COPIES) as threads:
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


def _until(commits: Iterator[Commit], last: str) -> Iterator[Commit]:
    for commit in commits:
        yield commit
        if commit.id == last:
            return
