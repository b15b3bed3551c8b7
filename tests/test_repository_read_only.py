"""A namespace that a lakeFS server owns opens read only at its last dump of refs. `make interop` has a real server."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CorruptFileError, NotFoundError, UnsupportedError
from esker.repo import Branch, Repository

MARKER = "_lakefs/dummy"


@pytest.fixture
def source(tmp_path: Path) -> Repository:
    """A repository with two branches, a tag and a dump of its refs."""
    repository = Repository.create(str(tmp_path / "source"))
    main = repository.branch("main")
    main.object("a").upload(b"1")
    main.commit("first")
    repository.tag("v1").create("main")
    repository.branch("side/x").create("main").object("b").upload(b"22")
    repository.branch("side/x").commit("second")
    main.object("a").upload(b"333")
    main.commit("third")
    repository.dump_refs()
    return repository


@pytest.fixture
def namespace(source: Repository, tmp_path: Path) -> Path:
    """The same as a server would have it: without our refs, with its marker."""
    folder = tmp_path / "namespace"
    for below in ("_lakefs", "data"):
        shutil.copytree(Path(source.uri, below), folder / below)
    (folder / MARKER).write_bytes(b"this is dummy data")
    # Something that garbage collection would delete.
    (folder / "data/0/orphan").parent.mkdir()
    (folder / "data/0/orphan").write_bytes(b"nobody's")
    return folder


def test_it_reads_as_it_was_when_its_refs_were_dumped(source: Repository, namespace: Path) -> None:
    found = Repository(namespace)
    assert [branch.id for branch in found.branches()] == ["main", "side/x"]
    assert [tag.id for tag in found.tags()] == ["v1"]
    for ref in ("main", "side/x", "v1", "main~1", source.ref("main").get_commit().id[:12]):
        assert found.ref(ref).get_commit() == source.ref(ref).get_commit()
        assert list(found.ref(ref).objects()) == list(source.ref(ref).objects())
        assert [c.id for c in found.ref(ref).log()] == [c.id for c in source.ref(ref).log()]
    assert found.ref("side/x").object("b").reader().read() == b"22"
    assert [(one.type, one.path) for one in found.ref("v1").diff("main", type="two_dot")] == [("changed", "a")]
    assert found.branch("side/x").merge_into("main", dry_run=True) == source.ref("main").get_commit().id
    assert list(found.fsck()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda main: main.object("c").upload(b"3"),
        lambda main: main.delete_objects("a"),
        lambda main: main.commit("nothing", allow_empty=True),
        lambda main: main.repack(),
        lambda main: main._core.log("new").put(1, b"{}"),
        lambda main: main.reset_to("v1"),
        lambda main: main.revert("main"),
        lambda main: main.cherry_pick("side/x"),
        lambda main: Branch(main._core, "side/x").merge_into("main"),
        lambda main: Branch(main._core, "new").create("main"),
        lambda main: Branch(main._core, "side/x").delete(),
        lambda main: Repository(main._core.uri).tag("v2").create("main"),
        lambda main: Repository(main._core.uri).tag("v1").delete(),
        lambda main: Repository(main._core.uri).change_settings(raggedness=1),
        lambda main: Repository(main._core.uri).dump_refs(),
        lambda main: Repository(main._core.uri).restore_refs(),
        lambda main: Repository(main._core.uri).gc(dry_run=False, grace_s=0),
    ],
)
def test_nothing_can_be_written(namespace: Path, change: Callable[[Branch], Any]) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in namespace.rglob("*"))
    main = Repository(namespace).branch("main")
    with pytest.raises((UnsupportedError, FileExistsError)):
        change(main)
    assert sorted((path, path.stat().st_mtime_ns) for path in namespace.rglob("*")) == before


def test_what_it_shows_is_exported_pickled_and_counted(source: Repository, namespace: Path, tmp_path: Path) -> None:
    found = Repository(namespace)
    assert found.branch("side/x").export(str(tmp_path / "out")) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"1", "b": b"22"}
    assert found.ref("v1").export("memory://of-a-server") == 1
    again = pickle.loads(pickle.dumps(found))
    assert again.ref("main").get_commit() == found.ref("main").get_commit()
    assert pickle.loads(pickle.dumps(found.ref("v1").object("a"))).reader().read() == b"1"
    assert not found.gc().deleted


def test_a_server_that_dumped_nothing_is_asked_to(namespace: Path) -> None:
    (namespace / "_lakefs/refs_manifest.json").unlink()
    with pytest.raises(NotFoundError, match="lakectl refs-dump"):
        Repository(namespace)
    (namespace / "_lakefs/refs_manifest.json").write_text('{"commits_meta_range_id": 7}')
    with pytest.raises(CorruptFileError, match="expected a dump of refs"):
        Repository(namespace)
    (namespace / MARKER).unlink()
    with pytest.raises(NotFoundError, match="create it first"):
        Repository(namespace)


def test_nobody_creates_a_repository_there(namespace: Path) -> None:
    with pytest.raises(UnsupportedError, match="belongs to a lakeFS server"):
        Repository.create(namespace)


def test_tables_of_the_namespace_are_read_and_never_written(tmp_path: Path) -> None:
    source = Repository.create(str(tmp_path / "with-tables"))
    rows = pa.table({"id": [1, 2]})
    with source.branch("main").transact("tables") as tx:
        esker.write_dataset(rows, tx.store_uri("t"))
        write_deltalake(tx.store_uri("d"), rows)
    source.dump_refs()
    namespace = tmp_path / "server"
    for below in ("_lakefs", "data"):
        shutil.copytree(Path(source.uri, below), namespace / below)
    (namespace / MARKER).write_bytes(b"this is dummy data")
    found = Repository(namespace)
    for ref in (found.ref("main"), found.branch("main")):
        assert esker.dataset(ref.store_uri("t")).count_rows() == 2
        assert DeltaTable(ref.store_uri("d")).to_pyarrow_table().num_rows == 2
    before = sorted(path for path in namespace.rglob("*"))
    with pytest.raises(UnsupportedError):
        esker.write_dataset(rows, found.branch("main").store_uri("t"), mode="append")
    with pytest.raises(UnsupportedError):
        write_deltalake(found.branch("main").store_uri("d"), rows, mode="append")
    assert sorted(path for path in namespace.rglob("*")) == before
    assert list(found.fsck(tables=True)) == []
