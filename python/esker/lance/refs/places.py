"""`Place`: a version of a table by its number and its branch, and what a user's reference means.

The main line's versions are in the table's own folder, those of a branch in `tree/{branch}/`, as a table of their own
whose manifests name the branch. Tags and branches are kept in the table's own folder.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..._native.store import Store
from ...exceptions import InvalidArgumentError, NotFoundError
from ...store.s3_ddb import S3_AND_DYNAMODB
from ...store.staging import refresh
from ..log import LanceLog
from ..version import TableVersion
from .contents import TagContents
from .names import BRANCHES, MAIN, branch_path, check_tag_name, name_of, tag_path

Reference: TypeAlias = int | str | tuple[str | None, int | None]
"""A version: its number on the branch at hand, the name of a tag, or (branch, number). No branch and "main" are the
main line, no number the newest version."""


@dataclass(frozen=True)
class Place:
    """A version by its branch and its number.

    Args:
        branch: The branch, None for the main line.
        version: The number, None for the newest.
    """

    branch: str | None
    version: int | None

    def __str__(self) -> str:
        return f"{self.branch or MAIN}:{'latest' if self.version is None else self.version}"


def place_of(table: TableVersion, reference: Reference | None) -> Place:
    """The version that a reference means. Reads the tag, if it is one.

    Args:
        table: The table at hand; a number means a version on its branch, and None its own version.
        reference: The reference.

    Raises:
        NotFoundError: There is no such tag.
        InvalidArgumentError: It is no reference.
    """
    here = table.manifest.branch
    if reference is None:
        return Place(here, table.number)
    if isinstance(reference, str):
        tag = read_tag(main_log(table), reference)
        return Place(tag.branch, tag.version)
    if isinstance(reference, tuple):
        return place_of_tuple(reference)
    return Place(here, check_number(reference))


def check_number(version: object) -> int:
    """The number of a version, checked to be one.

    Raises:
        InvalidArgumentError: It is not.
    """
    if not hasattr(version, "__index__") or isinstance(version, bool):
        raise InvalidArgumentError(
            f"expected a version as int, a tag as str or a tuple (branch, version), found {version!r}"
        )
    number = operator.index(version)
    if not 0 <= number < 1 << 64:
        raise InvalidArgumentError(f"expected a version from 0 to 2^64 - 1, found {number}")
    return number


def place_of_tuple(reference: tuple[object, ...]) -> Place:
    """The version that a tuple (branch, number) means.

    Raises:
        InvalidArgumentError: It is no such tuple.
    """
    if len(reference) != 2:
        raise InvalidArgumentError(f"expected a tuple (branch, version), found {reference!r}")
    branch, version = reference
    if branch is not None and not isinstance(branch, str):
        raise TypeError(f"expected the name of a branch as str, found {type(branch).__name__}")
    return Place(None if branch == MAIN else branch, None if version is None else check_number(version))


def table_at(table: TableVersion, place: Place) -> TableVersion:
    """The table at a place.

    Raises:
        NotFoundError: There is no such version, or no such branch.
    """
    if place.branch == table.manifest.branch:
        if place.version == table.number:
            return table
        return table.at(table.log.open(place.version)[0])
    log = log_of(table, place.branch)
    try:
        manifest = log.open(place.version)[0]
    except NotFoundError:
        check_branch(main_log(table), place.branch)
        raise
    moved = replace(table, uri=uri_of(table.uri, table.manifest.branch, place.branch), log=log)
    return moved.at(manifest)


def check_branch(main: LanceLog, name: str | None) -> None:
    """Checks that there is a branch: a deletion that was broken off leaves a tree that could be read.

    Args:
        main: The log of the main line.
        name: The branch; None is the main line.

    Raises:
        NotFoundError: There is no such branch.
    """
    if name is None:
        return
    try:
        main.store.head(branch_path(name))
    except NotFoundError:
        known = branch_names(main.store)
        raise NotFoundError(
            f"Ref not found error: branch {name} of {main.uri} does not exist, expected one of "
            f"{', '.join(sorted(known)) or 'none: the table has no branches'}",
            uri=main.uri,
        ) from None


def main_log(table: TableVersion) -> LanceLog:
    """The log of the main line, in whose folder tags and branches are kept."""
    return log_of(table, None)


def log_of(table: TableVersion, branch: str | None, *, durable: bool | None = None) -> LanceLog:
    """The log of a branch of the table, whether there is one or not; None is the main line.

    Args:
        table: The table.
        branch: The branch.
        durable: Whether a put returns only when its bytes are on stable storage; as the table's log by default.
    """
    log = table.log
    durable = log.bases.durable if durable is None else durable
    if branch == table.manifest.branch:
        return table.writable_log(durable=durable)
    return log_beside(log, table.manifest.branch, branch, table.storage_options, durable=durable)


def log_beside(
    log: LanceLog, here: str | None, there: str | None, storage_options: Mapping[str, str] | None, *, durable: bool
) -> LanceLog:
    """The log of another branch of the same table.

    Args:
        log: The log of the branch `here`.
        here: A branch, None for the main line.
        there: Likewise.
        storage_options: Options of the store.
        durable: Whether a put returns only when its bytes are on stable storage.
    """
    other = LanceLog.at(
        uri_of(log.uri, here, there),
        storage_options=storage_options,
        manifest_store=log.manifest_store,
        durable=durable,
        base_store_params=log.bases.params,
    )
    other.store.join(log.store.session)
    return other


def uri_of(uri: str, here: str | None, there: str | None) -> str:
    """The URI of another branch of the same table.

    Args:
        uri: The URI of the table on the branch `here`.
        here: A branch, None for the main line.
        there: Likewise.

    Raises:
        InvalidArgumentError: The table is not where its branch belongs: in a folder `tree/{branch}`.

    Example:
        >>> from esker.lance.refs.places import uri_of
        >>> uri_of("s3://lake/t/tree/a", "a", "b/c"), uri_of("/data/t/", None, "a")
        ('s3://lake/t/tree/b/c', '/data/t/tree/a')
    """
    if here == there:
        return uri
    # Elsewhere a `?` is part of a path.
    plain, mark, query = uri.partition("?") if uri.lower().startswith(S3_AND_DYNAMODB) else (uri, "", "")
    plain = plain.rstrip("/") or plain
    if here is not None:
        root = plain.removesuffix(f"/tree/{here}")
        if root == plain:
            raise InvalidArgumentError(
                f"expected the branch {here} in a folder tree/{here} of its table, found it at {uri}: Can not find the "
                "root location of the branch; open it where the table is",
                uri=uri,
            )
        plain = root
    if there is not None:
        plain = f"{plain.rstrip('/')}/tree/{there}"
    return f"{plain}{mark}{query}"


def read_tag(log: LanceLog, name: str) -> TagContents:
    """A tag.

    Args:
        log: The log of the main line.
        name: Its name.

    Raises:
        NotFoundError: There is none of this name.
        CorruptFileError: It cannot be read.
    """
    path = tag_path(check_tag_name(name))
    refresh(log.store)
    try:
        return TagContents.read(log.store.get(path), path)
    except NotFoundError:
        raise no_tag(log, name) from None


def no_tag(log: LanceLog, name: str) -> NotFoundError:
    """The error that says that there is no such tag."""
    return NotFoundError(
        f"Ref not found error: tag {name} does not exist in {log.uri}; tags.list() names those that do",
        uri=log.uri,
    )


def branch_names(store: Store) -> list[str]:
    """The names of all branches.

    Args:
        store: The store of the main line.
    """
    return [name for path in store.list_paths(BRANCHES) if (name := name_of(path, BRANCHES)) is not None]
