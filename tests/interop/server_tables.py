"""Tables that esker commits and merges, as a real lakeFS server lists and reads them. Part of `make interop`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import esker
from esker.repo import MergeConflictError, Repository
from tests.table_histories import Format, find_content, peers_rows, read_rows, write

from .lakefs_server import LakeFS
from .told import move_in, move_out, our_commits, our_diff, ours, their_commits, their_diff, theirs

TABLES: dict[str, Format] = {"lake/l": "lance", "lake/d": "delta", "l": "lance"}


def add(repository: Repository, branch: str, id: int, *, live: bool = False) -> None:
    """A row more in each table: by one transaction, or by a commit each."""
    handle = repository.branch(branch)
    if live:
        for path, format in TABLES.items():
            write(handle.store_uri(path), format, [id], "append")
        return
    with handle.transact(f"add {id}") as tx:
        for path, format in TABLES.items():
            write(tx.store_uri(path), format, [id], "append")
        tx.object(f"plain/{id}").upload(str(id))


def history(folder: Path) -> Repository:
    """Tables on three branches: taken whole, restored, reverted, picked, replayed, cleaned up."""
    repository = Repository.create(str(folder), committer="me")
    repository.change_settings(raggedness=5)
    add(repository, "main", 1)
    for name in ("dev", "side/one"):
        repository.branch(name).create("main")
    add(repository, "dev", 2)
    add(repository, "dev", 3, live=True)
    repository.branch("dev").merge_into("main")
    add(repository, "side/one", 4)
    try:
        repository.branch("side/one").merge_into("main")
    except MergeConflictError:
        repository.branch("side/one").merge_into("main", strategy="source-wins")
    with repository.branch("main").transact("replayed") as tx:
        write(tx.store_uri("l"), "lance", [5], "append")
        add(Repository(repository.uri), "main", 6)
    repository.tag("v1").create("main")
    add(repository, "main", 7)
    repository.branch("main").revert("main")
    repository.branch("dev").cherry_pick("main~1")
    with repository.branch("dev").transact("clean up") as tx:
        esker.dataset(tx.store_uri("l")).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    return repository


def test_the_server_lists_and_reads_tables_as_they_are(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = history(tmp_path / "lake")
    assert list(repository.fsck(tables=True)) == []
    move_in(lakefs, repository, "tables")
    refs = ["main", "dev", "side/one", "v1", *(commit.id for commit in repository.ref("main").log())]
    for ref in refs:
        assert theirs(lakefs, "tables", ref) == ours(repository.ref(ref)), ref
        assert their_commits(lakefs, "tables", ref) == our_commits(repository.ref(ref)), ref
    for left in refs[:5]:
        for right in refs[:5]:
            assert their_diff(lakefs, "tables", left, right) == our_diff(repository, left, right), (left, right)
    for ref in refs[:4]:
        # What the server hands out, object by object, is what the peers open.
        place = tmp_path / "read" / ref.replace("/", "-")
        for path, *_ in theirs(lakefs, "tables", ref):
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lakefs.call("GET", "repositories", "tables", "refs", ref, "objects", path=path))
        for path, log in find_content(repository.ref(ref))[0].items():
            assert peers_rows(place / path, log.format) == read_rows(repository.ref(ref).store_uri(path), log.format)


def test_tables_go_on_in_what_comes_back_from_the_server(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = history(tmp_path / "lake")
    move_in(lakefs, repository, "tables-again")
    body = {"message": "by the server"}
    lakefs.call("POST", "repositories", "tables-again", "branches", "main", "objects", path="plain/s", raw=b"s")
    lakefs.call("POST", "repositories", "tables-again", "branches", "main", "commits", body=body)
    back = move_out(lakefs, "tables-again", tmp_path / "back")
    add(back, "main", 20)
    for path, format in TABLES.items():
        before = read_rows(repository.ref("main").store_uri(path), format)
        assert read_rows(back.ref("main").store_uri(path), format) == (*before, 20)
    assert list(back.fsck(tables=True)) == []
