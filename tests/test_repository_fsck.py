"""A check finds whatever was damaged: every kind of object, wherever its bytes were changed or lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, timestamp_pb2

from esker.cli import main as cli
from esker.repo import Repository, repository
from esker.repo.refs.refs_dump import records


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fsck") / "lake"
    repo = Repository.create(folder)
    repo.change_settings(retention_days=90)
    main = repo.branch("main")
    for n in range(40):
        main.object(f"a/{n}").upload(str(n))
        main.commit(f"commit {n}", {"n": str(n)})
    repo.branch("dev").create("main")
    repo.branch("dev").object("b").upload("b")
    repo.branch("dev").commit("dev")
    repo.branch("dev").merge_into("main")
    repo.branch("dev").reset_to("main~1")
    repo.tag("v1").create("main")
    repo.dump_refs()
    return folder


@pytest.fixture
def lake(pristine: Path, tmp_path: Path) -> Path:
    shutil.copytree(pristine, tmp_path / "lake")
    return tmp_path / "lake"


def test_nothing_is_wrong_with_what_nobody_damaged(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(repository(lake).fsck()) == []
    assert cli(["repo", "fsck", str(lake), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def _last(lake: Path, pattern: str) -> Path:
    return sorted(lake.glob(pattern))[-1]


def _edit(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))


def _other_commit(lake: Path) -> None:
    one, two = sorted(lake.glob("_esker/commits/*"))[:2]
    two.write_bytes(one.read_bytes())


def _lost_parent(lake: Path) -> None:
    head = repository(lake).ref("main").get_commit()
    (lake / "_esker/commits" / head.parents[1]).unlink()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "object lost": lambda lake: _last(lake, "data/*/*").unlink(),
    "object cut": lambda lake: _last(lake, "data/*/*").write_bytes(b""),
    "object longer": lambda lake: _last(lake, "data/*/*").write_bytes(b"much longer"),
    "commit lost": lambda lake: _lost_parent(lake),
    "commit of another id": _other_commit,
    "commit no JSON": lambda lake: _last(lake, "_esker/commits/*").write_bytes(b"{"),
    "commit says otherwise": lambda lake: _edit(
        _last(lake, "_esker/commits/*"), lambda said: said.update(message="another")
    ),
    "generation wrong": lambda lake: _edit(_last(lake, "_esker/commits/*"), lambda said: said.update(generation=99)),
    "entry lost": lambda lake: (lake / "_esker/refs/heads/main" / f"{20:020}").unlink(),
    "entry no JSON": lambda lake: (lake / "_esker/refs/heads/main" / f"{20:020}").write_bytes(b"x"),
    "entry of no kind": lambda lake: _edit(
        lake / "_esker/refs/heads/main" / f"{20:020}", lambda said: said.update(kind="moved")
    ),
    "entry for another commit": lambda lake: (lake / "_esker/refs/heads/main" / f"{20:020}").write_bytes(
        (lake / "_esker/refs/heads/main" / f"{19:020}").read_bytes()
    ),
    "tag to nowhere": lambda lake: (lake / "_esker/refs/tags/v1").write_text('{"commit_id": "' + "0" * 64 + '"}'),
    "tag no JSON": lambda lake: (lake / "_esker/refs/tags/v1").write_text("v1"),
    "settings no JSON": lambda lake: _last(lake, "_esker/settings/*").write_text("{"),
    "settings senseless": lambda lake: _edit(_last(lake, "_esker/settings/*"), lambda said: said.update(raggedness=-1)),
    "pack of other bytes": lambda lake: _last(lake, "_esker/packs/*").write_text("[]"),
    "expired no JSON": lambda lake: (lake / "_esker/expired.json").write_text("x"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(name: str, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DAMAGE[name](lake)
    findings = list(repository(lake).fsck())
    assert findings, name
    assert cli(["repo", "fsck", str(lake)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == findings[0]
    assert f"{len(findings)} findings" in said.err


def test_every_table_that_counts_is_read(lake: Path) -> None:
    content = repository(lake).ref("main").get_commit().meta_range_id
    dumped = json.loads((lake / "_lakefs/refs_manifest.json").read_text())["commits_meta_range_id"]
    ranges = [path.name for path in (lake / "_lakefs").iterdir() if len(path.name) == 64]
    for table in (content, dumped, *ranges[:5]):
        path = lake / "_lakefs" / table
        before = path.read_bytes()
        path.write_bytes(before[:60] + bytes([before[60] ^ 1]) + before[61:])
        assert any(table in finding for finding in repository(lake).fsck()), table
        path.write_bytes(before)


def test_a_dump_tells_how_its_records_are_read(lake: Path) -> None:
    repo = repository(lake)
    dump = repo.dump_refs()
    storage = repo._core.storage
    file = descriptor_pb2.FileDescriptorProto(name="dump.proto", package="io.treeverse.lakefs.graveler")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    file.syntax = "proto3"
    parts = {
        "commit": dump.commits_meta_range_id,
        "branch": dump.branches_meta_range_id,
        "tag": dump.tags_meta_range_id,
    }
    for entity, metarange in parts.items():
        said = storage.records(metarange).properties
        assert (said["entity"], said["type"]) == (entity.encode(), b"metaranges")
        json_format.Parse(said["schema_definition"], file.message_type.add())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    for entity, metarange in parts.items():
        name = storage.records(metarange).properties["schema_name"].decode()
        message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for key, data in records(storage, metarange):
            found = message.FromString(data)
            assert found.id == key.decode()
            if entity == "commit":
                commit = repo.ref(found.id).get_commit()
                assert (found.message, found.generation, dict(found.metadata)) == (
                    commit.message,
                    commit.generation,
                    dict(commit.metadata),
                )
                assert found.creation_date.seconds == commit.creation_date
            else:
                assert found.commit_id == repo.ref(found.id).get_commit().id


def test_a_restored_dump_brings_no_commit_of_its_own(lake: Path, tmp_path: Path) -> None:
    repo = repository(lake)
    first = repo.dump_refs()
    moved = Repository.create(tmp_path / "moved", committer="somebody else")
    for folder in ("_lakefs", "data"):
        shutil.copytree(lake / folder, Path(moved.uri, folder), dirs_exist_ok=True)
    moved.restore_refs()
    assert moved.dump_refs() == first
    assert list(repository(moved.uri).fsck()) == []
    assert repository(moved.uri).gc().objects == 0


def test_a_namespace_of_an_old_server_is_read_only_too(lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "namespace"
    for below in ("_lakefs", "data"):
        shutil.copytree(lake / below, folder / below)
    (folder / "dummy").write_bytes(b"this is dummy data - created by lakeFS in order to check accessibility")
    with pytest.raises(NotImplementedError, match="dummy"):
        Repository.create(folder)
    assert len(list(repository(folder).ref("main").objects())) == 41
    with pytest.raises(NotImplementedError):
        repository(folder).branch("main").object("x").upload("x")
    # Elsewhere it is a file as any other.
    (tmp_path / "free").mkdir()
    (tmp_path / "free/dummy").write_text("mine")
    Repository.create(tmp_path / "free")
