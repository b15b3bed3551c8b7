"""`Tags` and `Branches`: names of versions, and lines of versions of their own (docs/tags-and-branches.md)."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias, TypedDict

from ..lance.handle import DatasetHandle
from ..lance.refs.contents import TagContents
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


class RefsApi(DatasetHandle):
    """The properties and methods of `LanceDataset` for tags and branches."""

    @property
    def tags(self) -> Tags:
        """The tags of the table: names of versions, which a clean-up keeps."""
        return Tags(self)


def _described(tag: TagContents) -> Tag:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.time("createdAt"),
        "updated_at": tag.time("updatedAt"),
        "manifest_size": tag.manifest_size,
        "metadata": tag.metadata,
    }
