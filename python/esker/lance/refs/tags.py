"""Tags: names of versions, which a clean-up keeps.

A clean-up may remove the very version that is being tagged. The tag is put first, and then the version is looked up
again; a clean-up removes the manifest first, and then reads the tags again. So one of the two notices the other: this
side takes its tag back, or the clean-up puts the manifest back.
"""

from __future__ import annotations

from contextlib import suppress

from ...exceptions import InvalidArgumentError, NotFoundError, RefConflictError
from ...store.staging import flush, refresh
from ..log import LanceLog
from ..version import TableVersion
from .contents import TagContents
from .named_version import NamedVersion
from .names import TAGS, check_tag_name, name_of, tag_path
from .places import Reference, log_of, no_tag, place_of, read_tag
from .putting import delete_ref, looking_after_put, put_new, put_over


def read_tags(log: LanceLog) -> dict[str, TagContents]:
    """All tags by their names.

    Args:
        log: The log of the main line.

    Raises:
        CorruptFileError: One of them cannot be read.
    """
    refresh(log.store)
    found: dict[str, TagContents] = {}
    for path in log.store.list_paths(TAGS):
        name = name_of(path, TAGS)
        # One that was deleted meanwhile is none.
        with suppress(NotFoundError):
            if name is not None:
                found[name] = TagContents.read(log.store.get(path), path)
    return found


def create_tag(table: TableVersion, name: str, reference: Reference | None) -> None:
    """Creates a tag.

    Raises:
        InvalidRefError: No tag can have this name.
        RefConflictError: There is a tag of this name.
        NotFoundError: There is no such version.
        CommitStateUnknownError: The store failed, and the tag may be there, or is, which the message tells.
    """
    path = tag_path(check_tag_name(name))
    place, log = place_of(table, reference), writable_main(table)
    named = NamedVersion.find(table, place)
    if not put_new(log, path, _tag_of(named).encode(), lock=table.commit_lock, version=named.version):
        raise RefConflictError(
            f"Ref conflict error: tag {name} already exists in {log.uri}; move it by tags.update, or choose another "
            "name",
            uri=log.uri,
            path=path,
        )
    with looking_after_put(log, path):
        is_there = named.is_there()
        if not is_there:
            log.store.delete(path)
    if not is_there:
        flush(log.store, f"no tag {name}")
        raise named.gone("tagged")
    flush(log.store, f"tag {name}")


def update_tag(table: TableVersion, name: str, reference: Reference | None) -> None:
    """Moves a tag to another version. Its metadata stay.

    Raises:
        NotFoundError: There is no such tag, or no such version.
        CommitStateUnknownError: The store failed, and the tag may have moved, or has, which the message tells.
    """
    log = writable_main(table)
    before = read_tag(log, name)
    named = NamedVersion.find(table, place_of(table, reference))
    path = tag_path(name)
    put_over(log, path, before.moved(_tag_of(named)).encode())
    with looking_after_put(log, path):
        is_there = named.is_there()
        if not is_there:
            log.store.put(path, before.encode())
    if not is_there:
        flush(log.store, f"tag {name} as before")
        raise named.gone("tagged")
    flush(log.store, f"tag {name}")


def replace_tag_metadata(table: TableVersion, name: str, metadata: dict[str, str]) -> None:
    """Replaces the metadata of a tag.

    Raises:
        NotFoundError: There is no such tag.
    """
    log = writable_main(table)
    found = read_tag(log, name).with_metadata(check_metadata(metadata))
    put_over(log, tag_path(name), found.encode())
    flush(log.store, f"metadata of tag {name}")


def delete_tag(table: TableVersion, name: str) -> None:
    """Deletes a tag.

    Raises:
        NotFoundError: There is no such tag.
    """
    log = writable_main(table)
    path = tag_path(check_tag_name(name))
    refresh(log.store)
    try:
        # Not read: a tag that cannot be read can be deleted.
        log.store.head(path)
    except NotFoundError:
        raise no_tag(log, name) from None
    delete_ref(log, path)
    flush(log.store, f"no tag {name}")


def writable_main(table: TableVersion) -> LanceLog:
    """The log of the main line over a store whose puts are on stable storage on return."""
    return log_of(table, None, durable=True)


def check_metadata(metadata: dict[str, str]) -> dict[str, str]:
    """The metadata of a tag or branch, checked to be text."""
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"expected metadata as str, found {key!r}: {value!r}")
    return metadata


def ordering(order: str | None) -> bool:
    """Whether an order is that of falling versions.

    Raises:
        InvalidArgumentError: It is none.
    """
    if order not in (None, "asc", "desc"):
        raise InvalidArgumentError(f"Invalid sort order {order!r}. Valid values are: asc, desc")
    return order != "asc"


def _tag_of(named: NamedVersion) -> TagContents:
    return TagContents.of(named.place.branch, named.version, named.manifest_size)
