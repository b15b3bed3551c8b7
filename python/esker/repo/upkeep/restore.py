"""Restores refs out of a dump in lakeFS's format: how a repository moves out of a lakeFS server, or from elsewhere.

Everything is looked at before anything is put. Then what has expired is noted, and commits, tags and branches follow;
the default branch comes last, so that a restore that was broken off can be done again, as one that is done can.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..._native import graveler
from ...exceptions import AlreadyExistsError, CorruptFileError, InvalidArgumentError, NotFoundError
from ..committing.needs import Needs
from ..committing.ref_move import entry_to, move_branch
from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit
from ..refs.expired import ExpiredList, expired_ids, listed_ids
from ..refs.layout import COMMITS, LAKEFS_EXPIRED, TABLES, tag_path
from ..refs.numbered_log import LogEntry
from ..refs.refs_dump import RefsDump, read_manifest, records


@dataclass(frozen=True)
class _Dumped:
    """What a dump holds: commits by their ids, the ids that refs lead to by their names."""

    commits: dict[str, Commit]
    tags: dict[str, str]
    heads: dict[str, str]


def restore_refs(core: RepositoryCore, dump: RefsDump | None = None) -> None:
    """Takes over the commits, branches and tags of a dump whose files are in this repository's `_lakefs/`.

    The repository must be as it was created: its first commit goes, its default branch leads where the dump says.

    Args:
        core: The repository.
        dump: The metaranges; by default those that the manifest names.

    Raises:
        AlreadyExistsError: Something was committed already, or a branch or tag of the dump exists.
        InvalidArgumentError: The dump has other branches than the default branch of this repository.
        CorruptFileError: A commit's id is not that of what it says, or a ref leads to none.
        NotFoundError: The content of what a ref leads to is not there.
    """
    dumped = _read(core, dump or read_manifest(core.store))
    if dumped.heads and core.default_branch not in dumped.heads:
        raise InvalidArgumentError(
            f"expected the default branch {core.default_branch!r} among those of the dump, found "
            f"{sorted(dumped.heads)[:5]}; create the repository with one of these as its default_branch"
        )
    entry = _first_entry(core, dumped)
    first = _check_new(core, dumped, entry)
    expired = _expired(core, dumped)
    # Before any commit: a ref that somebody creates at one of these must be refused.
    ExpiredList(core.store).write(expired - expired_ids(core.store))
    # Into an existing one nothing is taken over that is not the same: a restore that was broken off goes on so.
    for commit in dumped.commits.values():
        core.commits.add(commit)
    for tag, id in dumped.tags.items():
        put = core.atomic.put_own(tag_path(tag), json.dumps({"commit_id": id}).encode())
        if not put and core.tag_commit(tag) != id:
            raise _exists("tag", tag)
    # The default branch comes last: as long as it is as it was created, all of it can be done again.
    for branch, id in sorted(dumped.heads.items(), key=lambda head: head[0] == core.default_branch):
        _point(core, branch, dumped.commits[id])
    if first is not None and entry is not None and entry.kind == "create":
        _forget_first(core, first, set(dumped.commits))


def _read(core: RepositoryCore, said: RefsDump) -> _Dumped:
    """What a dump holds, whose refs lead to commits of it."""
    commits = {}
    for key, data in records(core.storage, said.commits_meta_range_id):
        commits[key.decode()] = Commit.of_record(graveler.Commit.decode(data))
    tags, heads = (
        dict(graveler.decode_ref(data) for _, data in records(core.storage, metarange))
        for metarange in (said.tags_meta_range_id, said.branches_meta_range_id)
    )
    for kind, refs in (("tag", tags), ("branch", heads)):
        for name, id in refs.items():
            if id not in commits:
                raise CorruptFileError(f"the {kind} {name!r} of the dump leads to the commit {id}, which is not in it")
    return _Dumped(commits, tags, heads)


def _first_entry(core: RepositoryCore, dumped: _Dumped) -> LogEntry | None:
    """The entry that created the default branch, behind which there may be that of a restore of the same dump,
    which was broken off after it.

    Raises:
        AlreadyExistsError: There is more.
    """
    log = core.log(core.default_branch)
    entry = log.head()
    if entry is None or entry.number == 1:
        return entry
    is_restored = entry.kind == "reset" and entry.body.get("commit_id") == dumped.heads.get(core.default_branch)
    if entry.number > 2 or not is_restored:
        raise _has_commits(core)
    return log.entry(1)


def _check_new(core: RepositoryCore, dumped: _Dumped, entry: LogEntry | None) -> Commit | None:
    """Looks whether all that is here is the commit that the repository was created with, which it returns, or what a
    restore of the same dump has put.

    Raises:
        AlreadyExistsError: There is more.
    """
    first = None if entry is None or entry.kind == "delete" else core.commit_of(entry, core.default_branch)
    for branch, head in core.heads().items():
        if branch != core.default_branch and dumped.heads.get(branch, head.id) != head.id:
            raise _exists("branch", branch)
    for tag in core.tag_names():
        id = core.tag_commit(tag)
        if id is not None and dumped.tags.get(tag, id) != id:
            raise _exists("tag", tag)
    ids = {path.removeprefix(COMMITS) for path in core.store.list_paths(COMMITS)}
    if ids - dumped.commits.keys() - {first.id if first is not None else ""}:
        raise _has_commits(core)
    return first


def _has_commits(core: RepositoryCore) -> AlreadyExistsError:
    return AlreadyExistsError(f"{core.uri} has commits already; restore into a repository that was just created")


def _exists(kind: str, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"the {kind} {name!r} of the dump exists here, and leads elsewhere; restore into a repository that was just "
        "created",
        path=name,
    )


def _expired(core: RepositoryCore, dumped: _Dumped) -> set[str]:
    """The commits whose content is given up: by what the dump says, or since their metaranges are gone.

    Raises:
        NotFoundError: A ref leads to such content: not all was copied.
    """
    led_to = {**dumped.heads, **dumped.tags}
    there = {path.removeprefix(TABLES) for path in core.store.list_paths(TABLES)}
    gone = {id for id, commit in dumped.commits.items() if commit.meta_range_id and commit.meta_range_id not in there}
    for name, id in led_to.items():
        if id in gone:
            path = TABLES + dumped.commits[id].meta_range_id
            raise NotFoundError(
                f"{name!r} of the dump leads to the commit {id}, whose content {path} is not there; copy all of "
                "`_lakefs/` and `data/` before the restore",
                path=path,
            )
    return gone | (set(listed_ids(core.store, LAKEFS_EXPIRED)) & dumped.commits.keys()) - set(led_to.values())


def _forget_first(core: RepositoryCore, first: Commit, restored: set[str]) -> None:
    """Removes the commit that the repository was created with, once no ref leads to it."""

    def is_led_to() -> bool:
        heads = {commit.id for commit in core.heads().values()}
        tags = {core.tag_commit(name) for name in core.tag_names()}
        return bool((heads | tags) - restored - {None})

    if first.id in restored or is_led_to():
        return
    core.store.delete(COMMITS + first.id)
    if is_led_to():
        # Another writer created a ref to it meanwhile.
        core.commits.add(first)


def _point(core: RepositoryCore, branch: str, commit: Commit) -> None:
    kind = "create" if branch != core.default_branch else "reset"
    there = core.log(branch).head()
    if there is not None and there.kind != "delete" and there.body.get("commit_id") == commit.id:
        return

    def build(head: LogEntry | None) -> LogEntry:
        if head is not None and head.kind != "delete" and kind == "create":
            raise _exists("branch", branch)
        return entry_to(core, kind, commit, Needs(frozenset((commit.id,))))

    move_branch(core, branch, build, f"restore branch {branch}")
