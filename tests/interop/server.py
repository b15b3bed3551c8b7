"""Repositories beside a real lakeFS server: it takes our dump of refs and we take its. Part of `make interop`."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from esker.repo import Repository

from .lakefs_server import LakeFS, ServerError
from .told import move_in, our_diff, ours, their_diff, theirs, write


def history(folder: Path) -> Repository:
    """A repository with branches, merges, tags, reverts and small ranges."""
    repository = Repository.create(str(folder))
    repository.change_settings(raggedness=40)
    numbers = random.Random(3)
    main = repository.branch("main")
    write(main, numbers, 300, "first")
    for name in ("one", "two/three"):
        branch = repository.branch(name).create("main")
        write(branch, numbers, 60, f"on {name}")
        write(branch, numbers, 10, f"again on {name}")
        write(main, numbers, 20, "on main")
        branch.merge_into("main", strategy="source-wins")
    repository.tag("v1").create("main~1")
    main.revert("main", parent_number=1)
    return repository


def test_the_server_takes_our_refs_and_lists_diffs_and_reads_the_same(lakefs: LakeFS, tmp_path: Path) -> None:
    repository = history(tmp_path / "lake")
    move_in(lakefs, repository, "moved-in")
    for kind, names in (("branches", repository.branches()), ("tags", repository.tags())):
        found = {one["id"]: one["commit_id"] for one in lakefs.pages("repositories", "moved-in", kind)}
        assert found == {one.id: one.get_commit().id for one in names}
    refs = ["main", "one", "two/three", "v1", *(commit.id for commit in repository.ref("main").log())]
    for ref in refs:
        assert theirs(lakefs, "moved-in", ref) == ours(repository.ref(ref)), ref
        log = [one["id"] for one in lakefs.pages("repositories", "moved-in", "refs", ref, "commits")]
        assert sorted(log) == sorted(commit.id for commit in repository.ref(ref).log())
    for left in refs[:6]:
        for right in refs[:6]:
            assert their_diff(lakefs, "moved-in", left, right) == our_diff(repository, left, right), (left, right)
    for path, *_ in ours(repository.ref("main"))[::20]:
        read = lakefs.call("GET", "repositories", "moved-in", "refs", "main", "objects", path=path)
        assert read == repository.ref("main").object(path).reader().read()


@pytest.mark.parametrize("seed", range(6))
def test_the_server_merges_the_same(lakefs: LakeFS, tmp_path: Path, seed: int) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    repository.change_settings(raggedness=30)
    numbers = random.Random(seed)
    main = repository.branch("main")
    write(main, numbers, 200, "first")
    side = repository.branch("side").create("main")
    # Few changes, so that some merges have conflicts and some have none.
    write(side, numbers, 4 + 10 * (seed % 3), "on side")
    write(main, numbers, 4 + 10 * (seed % 3), "on main")
    name = f"merge-{seed}"
    move_in(lakefs, repository, name)
    words = ("POST", "repositories", name, "refs", "side", "merge", "main")
    strategy = None
    if side.conflicts_with("main") is not None:
        with pytest.raises(ServerError, match="409"):
            lakefs.call(*words, body={})
        strategy = "dest-wins"
    lakefs.call(*words, body={"strategy": strategy} if strategy else {})
    side.merge_into("main", strategy=strategy)
    assert theirs(lakefs, name, "main") == ours(repository.ref("main"))


def copies(repository: Repository, content: dict[str, bytes], branch: str) -> None:
    """Lets a branch hold just these objects."""
    handle = repository.branch(branch)
    handle.delete_objects([one.path for one in handle.objects()])
    for path, data in content.items():
        handle.object(path).upload(data)
    handle.commit(f"content of {branch}")


@pytest.mark.parametrize(
    ("base", "source", "dest", "expected"),
    [
        # The server compares with the base's next key without a look at the key: `y` is lost.
        (
            {"a": b"1", "z": b"X"},
            {"a": b"1", "y": b"X", "z": b"X"},
            {"a": b"1"},
            {"a": b"1", "y": b"X"},
        ),
        # The same where both add a key: no conflict is seen, and the destination wins.
        ({"z": b"X"}, {"k": b"X", "z": b"X"}, {"k": b"Q", "z": b"X"}, None),
    ],
    ids=["a lost file", "a missed conflict"],
)
def test_what_the_servers_merge_loses_ours_keeps(
    lakefs: LakeFS, tmp_path: Path, request: pytest.FixtureRequest, base: Any, source: Any, dest: Any, expected: Any
) -> None:
    repository = Repository.create(str(tmp_path / "lake"))
    copies(repository, base, "main")
    repository.branch("side").create("main")
    copies(repository, source, "side")
    copies(repository, dest, "main")
    name = "defect-" + request.node.callspec.id.replace(" ", "-")
    move_in(lakefs, repository, name)
    lakefs.call("POST", "repositories", name, "refs", "side", "merge", "main", body={})
    after = [path for path, *_ in theirs(lakefs, name, "main")]
    side = repository.branch("side")
    if expected is None:
        assert side.conflicts_with("main") is not None
        assert after == ["k", "z"]
    else:
        side.merge_into("main")
        assert [one.path for one in repository.ref("main").objects()] == list(expected)
        assert after == ["a"]


def test_we_take_the_servers_refs(lakefs: LakeFS, tmp_path: Path) -> None:
    folder = lakefs.create("moved-out", bare=False)
    numbers = random.Random(8)

    def upload(branch: str, count: int) -> None:
        for _ in range(count):
            path = f"t/{numbers.randrange(300):04}"
            data = numbers.randbytes(numbers.randrange(60))
            lakefs.call("POST", "repositories", "moved-out", "branches", branch, "objects", path=path, raw=data)
        body = {"message": f"to {branch}", "metadata": {"k": "v"}}
        lakefs.call("POST", "repositories", "moved-out", "branches", branch, "commits", body=body)

    upload("main", 200)
    lakefs.call("POST", "repositories", "moved-out", "branches", body={"name": "side", "source": "main"})
    upload("side", 30)
    upload("main", 10)
    body = {"strategy": "source-wins"}
    lakefs.call("POST", "repositories", "moved-out", "refs", "side", "merge", "main", body=body)
    lakefs.call("POST", "repositories", "moved-out", "tags", body={"id": "v1", "ref": "main"})
    upload("main", 10)
    lakefs.call("PUT", "repositories", "moved-out", "refs", "dump")

    # As it lies there: read only, at the dump.
    watched = Repository(str(folder))
    for ref in ("main", "side", "v1"):
        assert ours(watched.ref(ref)) == theirs(lakefs, "moved-out", ref), ref
    # Moved into a place of its own.
    own = tmp_path / "lake"
    shutil.copytree(folder, own, ignore=shutil.ignore_patterns("dummy"))
    repository = Repository.create(str(own))
    repository.restore_refs()
    for ref in ("main", "side", "v1"):
        assert ours(repository.ref(ref)) == theirs(lakefs, "moved-out", ref), ref
        log = [one["id"] for one in lakefs.pages("repositories", "moved-out", "refs", ref, "commits")]
        assert sorted(log) == sorted(commit.id for commit in repository.ref(ref).log())
    assert list(repository.fsck()) == []
    write(repository.branch("main"), numbers, 20, "by esker")
    # And back into a server.
    move_in(lakefs, repository, "moved-back")
    assert theirs(lakefs, "moved-back", "main") == ours(repository.ref("main"))
