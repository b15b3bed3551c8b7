"""Creates a repository: its first commit, its default branch, and last `repository.json`, which makes it one.

The branch's first entry and `repository.json` are put if absent. A writer that finds the entry does not put another
one after it. A writer that finds `repository.json` has lost the race: it deletes its own default branch, if the winner
has another one.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping

from ..._native.store import Store
from ...exceptions import AlreadyExistsError, NotFoundError, UnsupportedError
from ..refs.atomic_objects import AtomicObjects
from ..refs.commit_entry import Taken, begin_branch, commit_entry
from ..refs.commits import Commit, CommitStore
from ..refs.layout import COMMITS, DIGITS, FORMAT_VERSION, HEADS, OWN, REPOSITORY, check_name, head_folder
from ..refs.numbered_log import LogEntry, NumberedLog
from ..refs.ref_commit import append
from ..text import check_pairs, check_text
from .lakefs_namespace import lakefs_marker

_FIRST = re.compile(rf"{HEADS}[^/]+/0{{{DIGITS - 1}}}1(-[0-9a-f]{{32}})?")


def is_created(store: Store) -> bool:
    """Whether a store holds a repository."""
    try:
        store.head(REPOSITORY)
    except NotFoundError:
        return False
    return True


def create(
    store: Store,
    uri: str,
    atomic: AtomicObjects,
    default_branch: str,
    committer: str,
    metadata: Mapping[str, str] | None = None,
) -> bool:
    """Creates a repository; False means that another creation won, and its repository is there.

    Args:
        store: The place.
        uri: What the user wrote, for messages.
        atomic: Puts if absent.
        default_branch: Its name.
        committer: Who.
        metadata: Keys and values.

    Raises:
        AlreadyExistsError: Something of another repository is left there.
        UnsupportedError: A lakeFS server owns the place: its garbage collection knows nothing of our commits.
    """
    marker = lakefs_marker(store)
    if marker is not None:
        raise UnsupportedError(f"{uri} belongs to a lakeFS server: {marker} is there; choose another place")
    check_name(default_branch, "branch")
    said: dict[str, object] = {
        "format_version": FORMAT_VERSION,
        "id": uuid.uuid4().hex,
        "default_branch": default_branch,
    }
    if atomic.is_lent:
        # Who opens it without the external store must not write.
        said["manifest_store"] = True
    data = json.dumps({**said, "metadata": check_pairs(metadata, "metadata")}, indent=1).encode()
    first = Commit.make(
        committer=check_text(committer, "a committer"),
        message="Repository created",
        meta_range_id="",
        creation_date=int(time.time()),
    )
    left = next((path for path in store.list_paths(OWN) if not _is_of_creation(path)), None)
    if left is not None:
        return _lost(atomic, uri, left)
    CommitStore(store).add(first)
    log = NumberedLog(atomic, head_folder(default_branch))
    ours = begin_branch(log, first, default_branch)
    if ours is None:
        head = log.head()
        if head is None or head.number > 1 or head.kind != "create":
            return _lost(atomic, uri, log.path(head.number if head else 1))
        # Of one who is about to end, or never will.
        CommitStore(store).add(Commit.from_json(head.body.get("commit"), log.path(1)))
    if atomic.put_own(REPOSITORY, data):
        return True
    if ours is not None and json.loads(atomic.get(REPOSITORY)).get("default_branch") != default_branch:
        _take_back(log, ours, first, default_branch)
    return False


def _is_of_creation(path: str) -> bool:
    """Whether an object may be there while a repository is created, or when that was broken off."""
    of_itself = path.startswith((COMMITS, REPOSITORY + "-"))
    return of_itself or _FIRST.fullmatch(path) is not None


def _lost(atomic: AtomicObjects, uri: str, path: str) -> bool:
    try:
        atomic.get(REPOSITORY)
    except NotFoundError:
        raise AlreadyExistsError(
            f"expected an empty place or a repository at {uri}, found {path} without {REPOSITORY}: what is left of a "
            f"deletion that was broken off; remove {uri.rstrip('/')}/{OWN} first, or choose another place",
            uri=uri,
            path=path,
        ) from None
    return False


def _take_back(log: NumberedLog, ours: LogEntry, first: Commit, branch: str) -> None:
    """Deletes the default branch of a creation that lost the race, unless it has moved since."""

    def build(head: LogEntry | None) -> LogEntry:
        if head is None or head.write_id != ours.write_id:
            raise Taken
        return commit_entry("delete", first)

    try:
        append(log, build, f"delete branch {branch}")
    except Taken:
        return
