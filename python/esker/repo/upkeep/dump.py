"""Dumps and restores refs in lakeFS's own format: how a repository moves into a lakeFS server and out of one.

A dump is three metaranges below `_lakefs/` (commits, branches, tags), and `_lakefs/refs_manifest.json` with their ids.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from urllib.parse import unquote

import pyarrow as pa

from ..._native import graveler
from ..._native.graveler import Changes
from ...exceptions import AlreadyExistsError, CorruptFileError, InvalidArgumentError
from ..committing.needs import Needs
from ..committing.ref_move import entry_to, move_branch
from ..core.repository_core import RepositoryCore
from ..refs.commits import Commit
from ..refs.layout import COMMITS, LAKEFS_REFS, TAGS, tag_path
from ..refs.numbered_log import LogEntry
from ..refs.refs_dump import RefsDump, read_manifest, records
from .dump_schema import PACKAGE, definition

_SCHEMAS = {"commit": "CommitData", "branch": "BranchData", "tag": "TagData"}
_RECORDS = pa.schema([("key", pa.binary()), ("identity", pa.binary()), ("data", pa.binary())])


def dump_refs(core: RepositoryCore) -> RefsDump:
    """Writes all commits, branches and tags, and the manifest that lakeFS looks for.

    What is staged is not in it.
    """
    heads = {branch: commit.id for branch, commit in core.heads().items()}
    commits = [core.commits.get(path.removeprefix(COMMITS)) for path in core.store.list_paths(COMMITS)]
    names = (_name(path) for path in core.store.list_paths(TAGS))
    tags = {name: core.tag_commit(name) or "" for name in names}
    dump = RefsDump(
        _write(core, "commit", {commit.id: (commit.id, commit.record().encode()) for commit in commits}),
        _write(core, "tag", {tag: (id, graveler.encode_ref(tag, id)) for tag, id in tags.items()}),
        _write(core, "branch", {branch: (id, graveler.encode_ref(branch, id)) for branch, id in heads.items()}),
    )
    core.store.put(LAKEFS_REFS, json.dumps(asdict(dump), indent=2).encode())
    return dump


def restore_refs(core: RepositoryCore, dump: RefsDump | None = None) -> None:
    """Takes over the commits, branches and tags of a dump whose files are in this repository's `_lakefs/`.

    The repository must be as it was created: its first commit goes, its default branch leads where the dump says.

    Args:
        core: The repository.
        dump: The metaranges; by default those that the manifest names.

    Raises:
        AlreadyExistsError: Something was committed already.
        InvalidArgumentError: The dump has other branches than the default branch of this repository.
        CorruptFileError: A commit's id is not that of what it says.
    """
    said = dump or read_manifest(core.store)
    entry = core.log(core.default_branch).head()
    if entry is not None and entry.number > 1:
        raise AlreadyExistsError(f"{core.uri} has commits already; restore into a repository that was just created")
    branches = {graveler.decode_ref(data)[0] for _, data in records(core.storage, said.branches_meta_range_id)}
    if branches and core.default_branch not in branches:
        raise InvalidArgumentError(
            f"expected the default branch {core.default_branch!r} among those of the dump, found "
            f"{sorted(branches)[:5]}; create the repository with one of these as its default_branch"
        )
    commits = {}
    # Into an existing one nothing is taken over that is not the same: a restore that was broken off goes on so.
    for key, data in records(core.storage, said.commits_meta_range_id):
        commit = Commit.of_record(graveler.Commit.decode(data))
        commits[key.decode()] = commit
        core.commits.add(commit)
    known = set(commits)
    for _, data in records(core.storage, said.tags_meta_range_id):
        tag, id = graveler.decode_ref(data)
        if id not in known:
            raise CorruptFileError(f"the tag {tag!r} of the dump leads to the commit {id}, which is not in it")
        if (
            not core.atomic.put_own(tag_path(tag), json.dumps({"commit_id": id}).encode())
            and core.tag_commit(tag) != id
        ):
            raise AlreadyExistsError(
                f"tag {tag!r} of the dump exists here, at {core.tag_commit(tag)}; delete it first", path=tag
            )
    heads = dict(graveler.decode_ref(data) for _, data in records(core.storage, said.branches_meta_range_id))
    # The default branch comes last: as long as it is as it was created, all of it can be done again.
    for branch, id in sorted(heads.items(), key=lambda head: head[0] == core.default_branch):
        if id not in commits:
            raise CorruptFileError(f"the branch {branch!r} of the dump leads to the commit {id}, which is not in it")
        _point(core, branch, commits[id])
    if entry is not None and entry.kind == "create":
        _forget_first(core, core.commit_of(entry, core.default_branch), known)


def _forget_first(core: RepositoryCore, first: Commit, restored: set[str]) -> None:
    """Removes the commit that the repository was created with, once no ref leads to it."""

    def is_led_to() -> bool:
        heads = {commit.id for commit in core.heads().values()}
        tags = {core.tag_commit(_name(path)) for path in core.store.list_paths(TAGS)}
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
            raise AlreadyExistsError(
                f"branch {branch!r} of the dump exists here; restore into a repository that was just created",
                path=branch,
            )
        return entry_to(core, kind, commit, Needs(frozenset((commit.id,))))

    move_branch(core, branch, build, f"restore branch {branch}")


def _name(path: str) -> str:
    return unquote(path.removeprefix(TAGS))


def _write(core: RepositoryCore, entity: str, records: dict[str, tuple[str, bytes]]) -> str:
    ordered = sorted((key.encode(), id.encode(), data) for key, (id, data) in records.items())
    columns = [pa.array([record[n] for record in ordered], pa.binary()) for n in range(3)]
    changes = Changes.of_records(pa.table(columns, schema=_RECORDS))
    message = _SCHEMAS[entity]
    properties = {"entity": entity, "schema_name": f"{PACKAGE}.{message}", "schema_definition": definition(message)}
    written = core.storage.write(changes, rule=core.settings().rule(), properties=properties)
    return written.metarange_id or ""
