"""`Tags` and `Branches`: names of versions, and lines of versions of their own (docs/tags-and-branches.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Self, TypeAlias, TypedDict

from ..lance.handle import DatasetHandle
from ..lance.refs.branches import read_branches, replace_branch_metadata
from ..lance.refs.contents import BranchContents, TagContents
from ..lance.refs.creation import create_branch
from ..lance.refs.deletion import delete_branch
from ..lance.refs.places import Reference, main_log, read_tag
from ..lance.refs.tags import create_tag, delete_tag, ordering, read_tags, replace_tag_metadata, update_tag


class Tag(TypedDict):
    """A tag, as `Tags.list` describes it."""

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


NamedTags: TypeAlias = list[tuple[str, Tag]]
"""Tags with their names, in an order."""


class Tags:
    """The tags of a table: `LanceDataset.tags`.

    A tag names a version, on any branch. A clean-up keeps the versions that have tags. A reference to a version is its
    number on the branch of the dataset, the name of another tag, or a tuple (branch, number), where no branch and
    "main" are the main line and no number is the newest version; None is the version that the dataset shows.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-tags")
        >>> dataset.tags.create("first", 1)
        >>> dataset.tags.list()["first"]["version"], esker.dataset("memory://doc-tags", version="first").version
        (1, 1)
    """

    def __init__(self, dataset: DatasetHandle) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Tag]:
        """All tags by their names.

        Raises:
            CorruptFileError: One of them cannot be read.
        """
        return {name: _described(tag) for name, tag in read_tags(main_log(self._dataset._table)).items()}

    def list_ordered(self, order: str | None = None) -> NamedTags:
        """All tags by their versions, those of one version by name.

        Args:
            order: "asc" or "desc", which is the default.

        Raises:
            InvalidArgumentError: The order is another.
        """
        sign = -1 if ordering(order) else 1
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["version"], item[0]))

    def get_version(self, tag: str) -> int:
        """The number of the version that a tag names.

        Raises:
            NotFoundError: There is no such tag.
        """
        return read_tag(main_log(self._dataset._table), tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Creates a tag.

        Args:
            tag: Its name: ASCII letters, digits, `.`, `-` and `_`.
            reference: The version; see the class.

        Raises:
            InvalidRefError: No tag can have this name.
            RefConflictError: There is a tag of this name.
            NotFoundError: There is no such version, or a clean-up has removed it meanwhile.
            CommitStateUnknownError: The store failed before it was known whether the tag exists.

        Example:
            `dataset.tags.create("release", ("main", None))`
        """
        create_tag(self._dataset._table, tag, reference)

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Moves a tag to another version. Its metadata stay. Of two writers at once one wins, as in pylance.

        Args:
            tag: Its name.
            reference: The version; see the class.

        Raises:
            NotFoundError: There is no such tag, or no such version.

        Example:
            `dataset.tags.update("release", 12)`
        """
        update_tag(self._dataset._table, tag, reference)

    def delete(self, tag: str) -> None:
        """Deletes a tag. Its version stays until a clean-up.

        Raises:
            NotFoundError: There is no such tag.
        """
        delete_tag(self._dataset._table, tag)

    def replace_metadata(self, tag: str, metadata: dict[str, str]) -> None:
        """Replaces the metadata of a tag. Its version and `updated_at` stay.

        Args:
            tag: Its name.
            metadata: All key-values.

        Raises:
            NotFoundError: There is no such tag.

        Example:
            `dataset.tags.replace_metadata("release", {"by": "me"})`
        """
        replace_tag_metadata(self._dataset._table, tag, metadata)


class Branch(TypedDict):
    """A branch, as `Branches.list` describes it."""

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


NamedBranches: TypeAlias = list[tuple[str, Branch]]
"""Branches with their names, in an order."""


class Branches:
    """The branches of a table: `LanceDataset.branches`. `LanceDataset.create_branch` makes one.

    A branch is a line of versions of its own, which starts from a version of the table and shares its files. Whatever
    is written to a dataset on a branch is committed to that branch.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-branches")
        >>> _ = dataset.create_branch("experiment").insert(pa.table({"id": [2]}))
        >>> dataset.branches.list()["experiment"]["parent_version"]
        1
        >>> esker.dataset("memory://doc-branches", version=("experiment", None)).count_rows(), dataset.count_rows()
        (2, 1)
    """

    def __init__(self, dataset: DatasetHandle) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Branch]:
        """All branches by their names.

        Raises:
            CorruptFileError: One of them cannot be read.
        """
        found = read_branches(main_log(self._dataset._table))
        return {name: _described_branch(branch) for name, branch in found.items()}

    def list_ordered(self, order: str | None = None) -> NamedBranches:
        """All branches by the versions that they start from, those of one version by name.

        Args:
            order: "asc" or "desc", which is the default.

        Raises:
            InvalidArgumentError: The order is another.
        """
        sign = -1 if ordering(order) else 1
        return sorted(self.list().items(), key=lambda item: (sign * item[1]["parent_version"], item[0]))

    def delete(self, branch: str) -> None:
        """Deletes a branch with its versions and files.

        Args:
            branch: Its name.

        Raises:
            NotFoundError: There is no such branch.
            RefConflictError: Tags name versions of it, or branches start from it.

        Example:
            `dataset.branches.delete("experiment")`
        """
        delete_branch(self._dataset._table, branch)

    def replace_metadata(self, branch: str, metadata: dict[str, str]) -> None:
        """Replaces the metadata of a branch.

        Args:
            branch: Its name.
            metadata: All key-values.

        Raises:
            NotFoundError: There is no such branch.
        """
        replace_branch_metadata(self._dataset._table, branch, metadata)


class RefsApi(DatasetHandle):
    """The properties and methods of `LanceDataset` for tags and branches."""

    @property
    def tags(self) -> Tags:
        """The tags of the table: names of versions, which a clean-up keeps."""
        return Tags(self)

    @property
    def branches(self) -> Branches:
        """The branches of the table: lines of versions of their own."""
        return Branches(self)

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: dict[str, str] | None = None
    ) -> Self:
        """Creates a branch: a line of versions of its own, which starts from a version of this table.

        No file is copied. The branch lies in the folder `tree/{branch}` of the table, which can be opened as a table.

        Args:
            branch: Its name: ASCII letters, digits, `.`, `-`, `_`, and `/` between parts. "main" is the main line's.
            reference: The version that it starts from: a number on the branch of this dataset, a tag, or (branch,
                number), where no branch and "main" are the main line and no number is the newest version; None is the
                version that this dataset shows.
            storage_options: Options of the branch's store; those of this table by default.

        Returns:
            The branch at its first version, which has the number of the version that it starts from.

        Raises:
            InvalidRefError: No branch can have this name.
            RefConflictError: There is a branch of this name.
            NotFoundError: There is no such version, or a clean-up has removed it meanwhile.
            CommitStateUnknownError: The store failed before it was known whether the branch exists.
            UnsupportedError: The table lies on a branch of a repository, which has branches over all its tables.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-create-branch")
            >>> branch = dataset.create_branch("team/experiment", 1)
            >>> _ = branch.delete("id = 1")
            >>> branch.count_rows(), dataset.count_rows()
            (1, 2)
        """
        return self._at(create_branch(self._table, branch, reference, storage_options))


def _described_branch(branch: BranchContents) -> Branch:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": branch.identifier,
        "parent_version": branch.parent_version,
        "create_at": branch.created_s,
        "manifest_size": branch.manifest_size,
        "metadata": branch.metadata,
    }


def _described(tag: TagContents) -> Tag:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.time("createdAt"),
        "updated_at": tag.time("updatedAt"),
        "manifest_size": tag.manifest_size,
        "metadata": tag.metadata,
    }
