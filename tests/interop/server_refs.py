"""All that refs, commits and entries can be, beside a real lakeFS server and in both directions: `make interop`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from esker.exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from esker.repo import Reference, Repository

from .lakefs_server import LakeFS, ServerError
from .told import (
    Told,
    move_in,
    move_out,
    our_commits,
    our_diff,
    our_merge,
    ours,
    their_commits,
    their_diff,
    their_merge,
    theirs,
    write,
)

ODD_PATHS = [
    "a b/c d.csv",
    "ünïcode/\N{SNOWMAN}.txt",
    "per%20cent/%",
    "plus+and&and=?#",
    "trailing/",
    "double//slash",
    "./dot",
    "a/../b",
    "quote\"'",
    "back\\slash",
    "tab\there",
    "x" * 1000,
]


def same(lakefs: LakeFS, repository: Repository, name: str, refs: list[str]) -> None:
    """Both list, tell the history of, diff and read each ref alike."""
    for ref in refs:
        assert theirs(lakefs, name, ref) == ours(repository.ref(ref)), ref
        assert their_commits(lakefs, name, ref) == our_commits(repository.ref(ref)), ref
    for left in refs:
        for right in refs:
            for kind in ("two_dot", "three_dot"):
                told = their_diff(lakefs, name, left, right, kind)
                assert told == our_diff(repository, left, right, kind), (left, right, kind)


def read(lakefs: LakeFS, name: str, ref: str) -> dict[str, bytes]:
    """The bytes of all objects, by the server."""
    words = ("GET", "repositories", name, "refs", ref, "objects")
    return {path: lakefs.call(*words, path=path) for path, *_ in theirs(lakefs, name, ref)}


def our_read(ref: Reference) -> dict[str, bytes]:
    """The same by esker."""
    return {path: ref.object(path).reader().read() for path, *_ in ours(ref)}


def refs_of(repository: Repository) -> list[str]:
    """Branches, tags and all commits that lead to the default branch."""
    names = [one.id for one in [*repository.branches(), *repository.tags()]]
    return names + [commit.id for commit in repository.ref(repository.default_branch).log()]


def test_commits_of_every_kind_are_the_servers_commits(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"), default_branch="trunk", committer="Jürgen <j@example.com>")
    repository.change_settings(raggedness=10)
    numbers = random.Random(11)
    trunk = repository.branch("trunk")
    write(trunk, numbers, 60, "first\n\nwith a body, 'quotes' and \N{SNOWMAN}")
    trunk.object("one").upload(b"1")
    said = {"empty": "", "ünï": "\N{SNOWMAN}", "a": "b" * 5000, **{f"k{n}": str(n) for n in range(50)}}
    trunk.commit("", said, committer="")
    side = repository.branch("side").create("trunk")
    for n in range(4):
        side.object(f"side/{n}").upload(str(n))
        # The same second for all of them, and one from before 1970.
        side.commit(f"side {n}", date=1_700_000_000 if n else -5)
    trunk.cherry_pick("side~1")
    trunk.revert("trunk~1")
    repository.ref("side~2").merge_into("trunk", squash_merge=True, metadata={"squashed": "yes"}, strategy="dest-wins")
    side.merge_into("trunk", strategy="source-wins", message="merge of side")
    trunk.revert("trunk", parent_number=1)
    trunk.cherry_pick("trunk~1", parent_number=1)
    trunk.commit("nothing in it", allow_empty=True)
    repository.branch("gone").create("trunk~3").delete()
    repository.branch("gone").create("side~1")
    repository.branch("moved").create("trunk").reset_to("trunk~4")
    move_in(lakefs, repository, "commits")
    same(lakefs, repository, "commits", refs_of(repository))
    assert read(lakefs, "commits", "trunk") == our_read(repository.ref("trunk"))
    # And out again, with the same ids.
    with pytest.raises(InvalidArgumentError, match="expected the default branch 'main'"):
        move_out(lakefs, "commits", tmp_path / "other")
    back = move_out(lakefs, "commits", tmp_path / "back", default_branch="trunk")
    assert {one.id: one.get_commit() for one in back.branches()} == {
        one.id: one.get_commit() for one in repository.branches()
    }
    assert list(back.fsck()) == []


def test_objects_of_every_kind_are_the_servers_objects(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    main = repository.branch("main")
    for n, path in enumerate(ODD_PATHS):
        metadata = {"k": "v", "ünï": "\N{SNOWMAN}", "empty": ""} if n % 2 else {}
        main.object(path).upload(path.encode(), metadata=metadata, content_type="text/odd; x=1" if n % 3 else None)
    main.object("empty").upload(b"")
    main.object("large").upload(random.Random(1).randbytes(20 << 20))
    main.commit("odd objects")
    move_in(lakefs, repository, "objects")
    same(lakefs, repository, "objects", ["main"])
    assert read(lakefs, "objects", "main") == our_read(repository.ref("main"))
    for path in ODD_PATHS:
        stat = lakefs.call("GET", "repositories", "objects", "refs", "main", "objects", "stat", path=path)
        own = repository.ref("main").object(path).stat()
        assert (stat["metadata"], stat["size_bytes"], stat["checksum"]) == (own.metadata, own.size_bytes, own.checksum)
        # Where we say nothing, the server says what it takes for the default.
        assert stat["content_type"] == (own.content_type or "application/octet-stream")
        assert own.mtime is not None
        assert stat["mtime"] == int(own.mtime.timestamp())
    for prefix, delimiter in (("a", "/"), ("", "/"), ("double/", "/"), ("per%", ""), ("x" * 999, "/")):
        words = ("repositories", "objects", "refs", "main", "objects", "ls")
        told = [one["path"] for one in lakefs.pages(*words, prefix=prefix, delimiter=delimiter)]
        assert told == [one.path for one in repository.ref("main").objects(prefix=prefix, delimiter=delimiter)]


def test_names_that_lakefs_refuses_are_there_after_a_restore_all_the_same(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    main = repository.branch("main")
    main.object("a").upload(b"1")
    main.commit("first")
    branches = ["main", "feature/x-1", "v1.2", "9_-", "a" * 200]
    tags = ["v1/2", "v1.0", "_", "T" * 200]
    for name in branches[1:]:
        repository.branch(name).create("main")
        repository.branch(name).object(name).upload(name)
        repository.branch(name).commit(name)
    for name in tags:
        repository.tag(name).create("main")
    move_in(lakefs, repository, "names")
    for kind, names in (("branches", branches), ("tags", tags)):
        found = {one["id"]: one["commit_id"] for one in lakefs.pages("repositories", "names", kind)}
        assert found == {name: repository.ref(name).get_commit().id for name in names}
    same(lakefs, repository, "names", [*branches, *tags])
    # The server reads these branches and merges them into others; into names that it would refuse, nothing.
    for name in branches[1:]:
        assert their_merge(lakefs, "names", name, "main") == our_merge(repository, name, "main") == "merged"
    assert theirs(lakefs, "names", "main") == ours(repository.ref("main"))
    assert their_merge(lakefs, "names", "main", "9_-") == "merged"
    for name in ("feature/x-1", "v1.2"):
        with pytest.raises(ServerError) as caught:
            their_merge(lakefs, "names", "main", name)
        assert caught.value.status == 400


def test_ranges_of_any_settings_and_repacked_ones_are_read_and_merged_by_the_server(
    lakefs: LakeFS, tmp_path: Path
) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    numbers = random.Random(5)
    main = repository.branch("main")
    side = repository.branch("side").create("main")
    for n, rule in enumerate(
        [
            {"min_range_size": 0, "max_range_size": 20 << 20, "raggedness": 1},
            {"min_range_size": 3000, "max_range_size": 9000, "raggedness": 5},
            {"min_range_size": 5000, "max_range_size": 5000, "raggedness": 1 << 40},
            {"min_range_size": 0, "max_range_size": 1, "raggedness": 50_000},
        ]
    ):
        repository.change_settings(**rule)
        write(main, numbers, 60, f"main {n}")
        write(side, numbers, 20, f"side {n}")
    repository.tag("before").create("main")
    repository.change_settings(min_range_size=2000, max_range_size=20_000, raggedness=100)
    main.repack()
    assert ours(repository.ref("before")) == ours(repository.ref("main"))
    move_in(lakefs, repository, "ranges")
    same(lakefs, repository, "ranges", ["main", "side", "before", "main~2"])
    assert read(lakefs, "ranges", "main") == our_read(repository.ref("main"))
    lakefs.call("POST", "repositories", "ranges", "branches", body={"name": "other", "source": "side"})
    repository.branch("other").create("side")
    for source, dest in (("side", "main"), ("main", "other")):
        their = their_merge(lakefs, "ranges", source, dest, strategy="source-wins")
        assert their == our_merge(repository, source, dest, strategy="source-wins") == "merged"
        assert theirs(lakefs, "ranges", dest) == ours(repository.ref(dest))
    # What the server makes of our ranges is ours to read, and sound.
    back = move_out(lakefs, "ranges", tmp_path / "back")
    assert ours(back.ref("main")) == ours(repository.ref("main"))
    assert list(back.fsck()) == []
    back.branch("main").repack()
    assert ours(back.ref("main")) == ours(repository.ref("main"))


def test_what_garbage_collection_leaves_is_all_that_the_server_needs(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    repository.change_settings(raggedness=20, retention_days=30)
    numbers = random.Random(6)
    main = repository.branch("main")
    for n in range(6):
        write(main, numbers, 60, f"main {n}")
    gone = repository.branch("gone").create("main~2")
    write(gone, numbers, 60, "soon gone")
    lost = gone.get_commit().id
    gone.delete()
    repository.tag("kept").create("main~4")
    # Long after all of it: heads and tags alone count.
    collected = repository.gc(dry_run=False, grace_s=-3600, now=4e9)
    assert collected.objects > 50
    assert collected.tables > 10
    move_in(lakefs, repository, "collected")
    for ref in ("main", "kept"):
        assert read(lakefs, "collected", ref) == our_read(repository.ref(ref))
        assert their_commits(lakefs, "collected", ref) == our_commits(repository.ref(ref))
    # What the dump has of the rest are commits whose content is gone: nothing leads to it.
    with pytest.raises(NotFoundError):
        list(Repository(repository.uri).ref(lost).objects())
    with pytest.raises(ServerError):
        theirs(lakefs, "collected", lost)
    lakefs.call("POST", "repositories", "collected", "branches", body={"name": "new", "source": "kept"})
    assert their_merge(lakefs, "collected", "main", "new") == "merged"
    assert theirs(lakefs, "collected", "new") == ours(repository.ref("main"))


def test_imported_objects_are_the_servers_imports(lakefs: LakeFS, tmp_path: Path) -> None:
    outside = lakefs.root / "outside"
    for n in range(5):
        (outside / f"{n}").mkdir(parents=True, exist_ok=True)
        (outside / f"{n}/ä b.csv").write_text(str(n))
    repository = Repository.create(str(tmp_path / "lake"))
    main = repository.branch("main")
    main.import_data("in").prefix(str(outside), "in/").object(str(outside / "1/ä b.csv"), "one").run()
    move_in(lakefs, repository, "imports")
    # The server shows their addresses below its own folder, and reads them where they are.
    told = [(path, size, checksum) for path, _, size, checksum in theirs(lakefs, "imports", "main")]
    assert told == [(path, size, checksum) for path, _, size, checksum in ours(main)]
    assert their_commits(lakefs, "imports", "main") == our_commits(repository.ref("main"))
    assert read(lakefs, "imports", "main") == our_read(repository.ref("main"))
    # And those of the server.
    lakefs.create("imported", bare=False)
    paths = [{"type": "common_prefix", "path": f"local://{outside}", "destination": "their/"}]
    body = {"paths": paths, "commit": {"message": "import"}}
    words = ("repositories", "imported", "branches", "main", "import")
    id = lakefs.call("POST", *words, body=body)["id"]
    for _ in range(600):
        if lakefs.call("GET", *words, id=id)["completed"]:
            break
    back = move_out(lakefs, "imported", tmp_path / "back")
    assert [path for path, *_ in ours(back.ref("main"))] == [f"their/{n}/ä b.csv" for n in range(5)]
    assert our_read(back.ref("main")) == read(lakefs, "imported", "main")
    assert list(back.fsck(imports=True)) == []


def server_history(lakefs: LakeFS, name: str) -> None:
    """A history of every kind of commit that the server makes."""
    numbers = random.Random(9)
    words = ("repositories", name, "branches")

    def commit(branch: str, message: str, **metadata: str) -> None:
        for _ in range(10):
            path = f"{branch}/{numbers.randrange(30):03}"
            lakefs.call("POST", *words, branch, "objects", path=path, raw=numbers.randbytes(30))
        lakefs.call("POST", *words, branch, "commits", body={"message": message, "metadata": metadata})

    commit("main", "first", ünï="\N{SNOWMAN}", empty="")
    lakefs.call("POST", *words, body={"name": "side-1", "source": "main"})
    commit("side-1", "on side")
    commit("side-1", "again on side")
    commit("main", "on main")
    lakefs.call("POST", *words, "main", "cherry-pick", body={"ref": "side-1~1"})
    lakefs.call("POST", *words, "main", "revert", body={"ref": "main~1", "parent_number": 0})
    body: dict[str, Any] = {"strategy": "dest-wins", "squash_merge": True, "message": "squashed"}
    lakefs.call("POST", "repositories", name, "refs", "side-1~1", "merge", "main", body=body)
    lakefs.call("POST", "repositories", name, "refs", "side-1", "merge", "main", body={"strategy": "source-wins"})
    lakefs.call("POST", *words, "main", "revert", body={"ref": "main", "parent_number": 1})
    for path in ODD_PATHS:
        lakefs.call("POST", *words, "main", "objects", path=path, raw=path.encode())
    lakefs.call("POST", *words, "main", "commits", body={"message": "odd paths"})


def test_a_servers_history_is_ours_with_all_its_names(lakefs: LakeFS, tmp_path: Path) -> None:
    lakefs.create("server-history", bare=False)
    server_history(lakefs, "server-history")
    tags = ["v1.0+build", "ünï\N{SNOWMAN}", "-", "#1", "&?".replace("?", "!"), "a,b;c=d", "(x)"]
    for tag in tags:
        lakefs.call("POST", "repositories", "server-history", "tags", body={"id": tag, "ref": "main"})
    # Of these the server itself reads nothing but the list: in an expression they are steps, or decoded twice.
    steps = ["a~b", "x@y", "dol$lar", "per%20cent"]
    for tag in steps:
        lakefs.call("POST", "repositories", "server-history", "tags", body={"id": tag, "ref": "main"})
    back = move_out(lakefs, "server-history", tmp_path / "back")
    same(lakefs, back, "server-history", ["main", "side-1", *tags])
    found = {one["id"]: one["commit_id"] for one in lakefs.pages("repositories", "server-history", "tags")}
    assert {tag.id: tag.get_commit().id for tag in back.tags()} == found
    assert set(found) == {*tags, *steps}
    assert read(lakefs, "server-history", "main") == our_read(back.ref("main"))
    assert list(back.fsck()) == []
    for one in back.tags():
        one.delete()
    assert list(back.tags()) == []
    # What we have taken over goes on here, and back.
    write(back.branch("main"), random.Random(1), 20, "by esker")
    back.ref("main").merge_into("side-1", strategy="source-wins")
    move_in(lakefs, back, "server-again")
    same(lakefs, back, "server-again", refs_of(back))


def test_a_namespace_of_a_live_server_is_read_only_and_stays_at_the_last_dump(lakefs: LakeFS) -> None:
    folder = lakefs.create("live", bare=False)
    with pytest.raises(NotFoundError, match="has not dumped its refs"):
        Repository(str(folder))
    server_history(lakefs, "live")
    lakefs.call("PUT", "repositories", "live", "refs", "dump")
    dumped = theirs(lakefs, "live", "main")
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    watched = Repository(str(folder))
    same(lakefs, watched, "live", ["main", "side-1"])
    changed: Told = []
    lakefs.call("POST", "repositories", "live", "branches", "main", "objects", path="new", raw=b"new")
    lakefs.call("POST", "repositories", "live", "branches", "main", "commits", body={"message": "after the dump"})
    for repository in (watched, Repository(str(folder))):
        changed = ours(repository.ref("main"))
        assert changed == dumped
        for attempt in (
            lambda repository=repository: repository.branch("main").object("x").upload(b"x"),
            lambda repository=repository: repository.branch("main").commit("x", allow_empty=True),
            lambda repository=repository: repository.branch("new").create("main"),
            lambda repository=repository: repository.tag("new").create("main"),
            lambda repository=repository: repository.ref("side-1").merge_into("main", allow_empty=True),
            lambda repository=repository: repository.branch("main").revert("main"),
            lambda repository=repository: repository.branch("main").repack(),
            lambda repository=repository: repository.gc(dry_run=False, grace_s=0),
            lambda repository=repository: repository.dump_refs(),
            lambda repository=repository: repository.pack_refs(),
        ):
            with pytest.raises(UnsupportedError):
                attempt()
    with pytest.raises(UnsupportedError):
        Repository.create(str(folder))
    after = {path for path in folder.rglob("*") if path.is_file()}
    # What came are the server's objects and tables: nothing of ours.
    assert not any("_esker" in path.parts for path in after)
    assert set(before) <= after
    lakefs.call("PUT", "repositories", "live", "refs", "dump")
    assert ours(Repository(str(folder)).ref("main")) == theirs(lakefs, "live", "main") != dumped
