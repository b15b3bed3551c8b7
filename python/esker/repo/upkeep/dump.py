"""Dumps refs in lakeFS's own format: how a repository moves into a lakeFS server, or elsewhere.

A dump is three metaranges below `_lakefs/` (commits, branches, tags), and `_lakefs/refs_manifest.json` with their ids.
`_lakefs/esker_expired.json` beside them has the commits whose content garbage collection has given up: `restore`.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pyarrow as pa

from ..._native import graveler
from ..._native.graveler import Changes
from ...exceptions import CommitConflictError
from ..committing.collection_check import goes, is_there
from ..core.repository_core import RepositoryCore
from ..objects.batches import table
from ..refs.commits import Commit
from ..refs.expired import expired_ids, listed_ids
from ..refs.layout import COMMITS, LAKEFS_EXPIRED, LAKEFS_REFS
from ..refs.refs_dump import RefsDump
from .dump_schema import PACKAGE, definition

_SCHEMAS = {"commit": "CommitData", "branch": "BranchData", "tag": "TagData"}
_RECORDS = pa.schema([("key", pa.binary()), ("identity", pa.binary()), ("data", pa.binary())])
_THREADS = 32
_ATTEMPTS = 3


def dump_refs(core: RepositoryCore) -> RefsDump:
    """Writes all commits, branches and tags, and the manifest that lakeFS looks for.

    What is staged is not in it. Beside writers, each ref is in it as it was at some moment meanwhile, with all commits
    that it comes from.

    Raises:
        CommitConflictError: A garbage collection without a grace period deletes what was just written.
    """
    # Refs first: a commit's object is put before a ref leads to it.
    heads = {branch: commit.id for branch, commit in core.heads().items()}
    tags = {name: id for name in core.tag_names() if (id := core.tag_commit(name)) is not None}
    led_to = {*heads.values(), *tags.values()}
    commits = _commits(core, led_to)
    # A collection may have announced a commit and spared it, since a ref leads to it.
    expired = sorted((expired_ids(core.store) & commits.keys()) - led_to)
    for _ in range(_ATTEMPTS):
        dump = RefsDump(
            _write(core, "commit", {id: (id, commit.record().encode()) for id, commit in commits.items()}),
            _write(core, "tag", {tag: (id, graveler.encode_ref(tag, id)) for tag, id in tags.items()}),
            _write(core, "branch", {branch: (id, graveler.encode_ref(branch, id)) for branch, id in heads.items()}),
        )
        # Looked at before, so that no manifest of an older dump is lost to it, and behind: from then on collections
        # read the manifest, and spare what it names.
        if not _stays(core, dump):
            continue
        if expired or listed_ids(core.store, LAKEFS_EXPIRED):
            core.store.put(LAKEFS_EXPIRED, json.dumps(expired).encode())
        core.store.put(LAKEFS_REFS, json.dumps(asdict(dump), indent=2).encode())
        if _stays(core, dump):
            return dump
    raise CommitConflictError(
        f"{core.uri}: garbage collections have deleted the dump of refs {_ATTEMPTS} times while it was written; try "
        "again when they are done",
        retryable=True,
    )


def _commits(core: RepositoryCore, led_to: set[str]) -> dict[str, Commit]:
    """All commits, in their order, with those that refs lead to and all that these come from among them.

    Raises:
        NotFoundError: One of these is not there.
    """
    ids = {path.removeprefix(COMMITS) for path in core.store.list_paths(COMMITS)}
    found: dict[str, Commit] = {}
    waiting = sorted(ids | led_to)
    while waiting:
        for id in waiting:
            found[id] = core.commits.get(id)
        waiting = sorted({parent for id in waiting for parent in found[id].parents} - found.keys())
    return found


def _stays(core: RepositoryCore, dump: RefsDump) -> bool:
    """Whether all tables of a dump are there.

    Raises:
        CommitConflictError: A garbage collection at work is about to delete some.
    """
    metaranges = [id for id in asdict(dump).values() if id]
    with ThreadPoolExecutor(_THREADS) as threads:
        if not all(threads.map(lambda id: is_there(core.store, id), metaranges)):
            return False
        ids = [id for metarange in metaranges for id in table(core.storage.ranges(metarange)).column("id").to_pylist()]
        if goes(core, {*metaranges, *ids}):
            raise CommitConflictError(
                f"{core.uri}: a garbage collection is about to delete what the dump of refs is made of; try again "
                "when it is done",
                retryable=True,
            )
        return all(threads.map(lambda id: is_there(core.store, id), ids))


def _write(core: RepositoryCore, entity: str, records: dict[str, tuple[str, bytes]]) -> str:
    ordered = sorted((key.encode(), id.encode(), data) for key, (id, data) in records.items())
    columns = [pa.array([record[n] for record in ordered], pa.binary()) for n in range(3)]
    changes = Changes.of_records(pa.table(columns, schema=_RECORDS))
    message = _SCHEMAS[entity]
    properties = {"entity": entity, "schema_name": f"{PACKAGE}.{message}", "schema_definition": definition(message)}
    written = core.storage.write(changes, rule=core.settings().rule(), properties=properties)
    return written.metarange_id or ""
