"""`fsck(tables=True)` names each table of a ref that does not open, and each file that a version lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import esker
from esker.cli.main import main
from esker.delta import DeltaTable, write_deltalake
from esker.repo import Repository
from tests.delta_logs import add, commit, metadata
from tests.test_delta_vectors import FEATURES, stored


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Tables of both formats in folders of many kinds, one in another, on a branch and a tag of their own each."""
    made = Repository.create(tmp_path / "repo", committer="me")
    with made.branch("main").transact("tables") as tx:
        for folder in ("lake/lance", "lake/lance/inner", "b"):
            esker.write_dataset(rows(1, 2), tx.store_uri(folder))
            esker.write_dataset(rows(3, 4), tx.store_uri(folder), mode="append")
            esker.dataset(tx.store_uri(folder)).delete("id = 1")
        for folder in ("lake/delta", "b"):
            write_deltalake(tx.store_uri(folder), rows(1))
            write_deltalake(tx.store_uri(folder), rows(2), mode="append")
            write_deltalake(tx.store_uri(folder), rows(3), mode="overwrite")
    made.tag("v1").create("main")
    made.branch("feature/x").create("main")
    with made.branch("feature/x").transact("more") as tx:
        esker.write_dataset(rows(5), tx.store_uri("lake/lance"), mode="append")
    return made


def paths(repo: Repository, prefix: str) -> list[str]:
    return [found.path for found in repo.ref("main").objects(prefix=prefix)]


def findings(repo: Repository) -> list[str]:
    return list(Repository(repo.uri).fsck(tables=True))


def without(repo: Repository, path: str) -> None:
    repo.branch("main").object(path).delete()
    repo.branch("main").commit("broken")


def test_healthy_tables_have_no_findings_and_progress_is_told(repo: Repository) -> None:
    seen: list[tuple[str, int, int | None]] = []
    assert list(repo.fsck(tables=True, progress=lambda *told: seen.append(told))) == []
    checked = [(count, total) for step, count, total in seen if step == "checking tables"]
    assert (checked[0], checked[-1]) == ((0, 3), (3, 3))


def test_files_that_another_version_took_away_by_a_clean_up_are_no_findings(repo: Repository) -> None:
    with repo.branch("main").transact("clean") as tx:
        dataset = esker.dataset(tx.store_uri("lake/lance"))
        dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert findings(repo) == []


def test_a_data_file_of_lance_that_is_gone_is_named_with_every_ref_that_lacks_it(repo: Repository) -> None:
    (gone, *_) = sorted(paths(repo, "lake/lance/data/"))
    oldest = esker.dataset(repo.ref("main").store_uri("lake/lance"), version=1)
    first = [f"data/{file.path}" for fragment in oldest.get_fragments() for file in fragment.data_files()]
    without(repo, gone)
    (found,) = findings(repo)
    name = gone.removeprefix("lake/lance/")
    since = 1 if name in first else 2
    assert found == (
        f"branch 'main', table 'lake/lance' (lance), version 3, since version {since}: expected the file {name!r} on "
        "the same ref, found none"
    )
    repo.branch("copy").create("main")
    assert [finding.partition(",")[0] for finding in findings(repo)] == ["branch 'copy'", "branch 'main'"]


def test_a_tag_of_lance_that_names_nothing_is_named(repo: Repository) -> None:
    with repo.branch("main").transact("tags") as tx:
        for name, version in (("first", 1), ("last", 3), ("odd", 2)):
            esker.dataset(tx.store_uri("b")).tags.create(name, version)
    assert findings(repo) == []
    (first,) = (path for path in paths(repo, "b/_versions/") if path.endswith(f"{2**64 - 2}.manifest"))
    repo.branch("main").object("b/_refs/tags/odd.json").upload(b"{}")
    without(repo, first)
    found = [finding for finding in findings(repo) if "(lance), tag " in finding]
    assert found == [
        "branch 'main', table 'b' (lance), tag 'first': expected version 1 on the same ref, found none",
        "branch 'main', table 'b' (lance), tag 'odd': expected JSON with the number of a version, found something else",
    ]


def test_a_deletion_file_of_lance_that_is_gone_is_named(repo: Repository) -> None:
    (gone,) = paths(repo, "b/_deletions/")
    without(repo, gone)
    (found,) = findings(repo)
    assert found == (
        f"branch 'main', table 'b' (lance), version 3: expected the file {gone.removeprefix('b/')!r} on the same ref, "
        "found none"
    )


def test_a_truncated_manifest_does_not_open_and_older_versions_are_checked_still(repo: Repository) -> None:
    newest = min(paths(repo, "b/_versions/"))
    data = repo.ref("main").object(newest).reader().read()
    repo.branch("main").object(newest).upload(data[: len(data) // 2])
    repo.branch("main").commit("torn")
    found = findings(repo)
    assert [finding.partition(": ")[0] for finding in found] == ["branch 'main', table 'b' (lance), version 3"] * 2
    assert "it does not open" in found[0]


def test_a_data_file_of_delta_that_is_gone_is_named_in_the_newest_version_and_in_those_before(repo: Repository) -> None:
    files = DeltaTable(repo.ref("main").store_uri("lake/delta")).file_uris()
    newest = files[0].rpartition("/")[2]
    (old, older) = [path for path in paths(repo, "lake/delta/part-") if not path.endswith(newest)]
    without(repo, f"lake/delta/{newest}")
    without(repo, old)
    found = findings(repo)
    assert len(found) == 2
    assert any("version 2:" in one and newest in one for one in found)
    assert any(old.removeprefix("lake/delta/") in one and "version 2" not in one for one in found)
    assert not any(older.removeprefix("lake/delta/") in one for one in found)


def entry(repo: Repository, folder: str, number: int, *actions: dict[str, object]) -> None:
    path = f"{folder}/_delta_log/{number:020}.json"
    repo.branch("main").object(path).upload("\n".join(json.dumps(action) for action in actions))
    repo.branch("main").commit(f"entry {number}")


def test_files_that_a_vacuum_may_have_taken_are_no_findings(repo: Repository) -> None:
    """What was removed longer ago than the table keeps it may be gone; what is younger may not."""
    uri = repo.ref("main").store_uri("lake/delta")
    old = [
        path
        for path in paths(repo, "lake/delta/part-")
        if path.rpartition("/")[2] not in str(DeltaTable(uri).file_uris())
    ]
    log = repo.ref("main").object("lake/delta/_delta_log/00000000000000000002.json").reader().read().decode()
    actions = [json.loads(line) for line in log.splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = 1
    for path in old:
        repo.branch("main").object(path).delete()
    entry(repo, "lake/delta", 2, *actions)
    assert findings(repo) == []


def test_a_missing_entry_in_the_middle_of_a_delta_log_does_not_open(repo: Repository) -> None:
    without(repo, "lake/delta/_delta_log/00000000000000000001.json")
    (found,) = findings(repo)
    assert found.startswith("branch 'main', table 'lake/delta' (delta), version 2: it does not open: ")
    assert "00000000000000000001" in found or "version 1" in found


def test_absolute_paths_lie_outside_of_the_branch(repo: Repository) -> None:
    far = {
        "path": "s3://elsewhere/a.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 0,
        "dataChange": True,
    }
    entry(repo, "lake/delta", 3, {"add": far})
    (found,) = findings(repo)
    assert found.startswith(
        "branch 'main', table 'lake/delta' (delta), version 3: it refers to the file 's3://elsewhere"
    )


def test_base_paths_of_lance_lie_outside_of_the_branch(repo: Repository, tmp_path: Path) -> None:
    outside, base = tmp_path / "outside", str(tmp_path / "base")
    esker.write_dataset(rows(1), outside)
    esker.dataset(outside).add_bases([esker.DatasetBasePath(base, "far")])
    esker.write_dataset(rows(2), outside, mode="append")
    for file in outside.rglob("*"):
        if file.is_file():
            repo.branch("main").object(f"far/{file.relative_to(outside)}").upload(file)
    repo.branch("main").commit("take over")
    (found,) = findings(repo)
    start = "branch 'main', table 'far' (lance), version 3, since version 2: it refers to the base path"
    assert found.startswith(start)
    assert base in found


def test_what_refs_have_in_common_is_read_once(repo: Repository) -> None:
    for number in range(30):
        esker.write_dataset(rows(number), repo.branch("main").store_uri("lake/lance"), mode="append")
    for name in ("b1", "b2", "b3"):
        repo.branch(name).create("main")
    esker.write_dataset(rows(99), repo.branch("b3").store_uri("lake/lance"), mode="append")
    counted = Repository(repo.uri)

    def requests(tables: bool) -> int:
        counted._core.store.io_stats()
        assert list(counted.fsck(tables=tables)) == []
        return counted._core.store.io_stats().read_iops

    requests(True)
    # 33 manifests of one log, one more of another, and less than ten requests for each of the five other tables.
    assert requests(True) - requests(False) < 33 + 50


def test_a_missing_file_of_deletion_vectors_is_named(repo: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(rows(*range(100)), outside / "f.parquet")
    commit(outside, 0, [FEATURES, metadata(), add("f.parquet", **stored(outside, [1, 2]))])
    with repo.branch("main").transact("take over") as tx:
        for file in outside.rglob("*"):
            if file.is_file():
                tx.object(f"peer/{file.relative_to(outside)}").upload(file)
    assert DeltaTable(repo.ref("main").store_uri("peer")).count() == 98
    assert findings(repo) == []
    (gone,) = paths(repo, "peer/deletion_vector_")
    without(repo, gone)
    assert findings(repo) == [
        f"branch 'main', table 'peer' (delta), version 0: expected the file {gone.removeprefix('peer/')!r} on the same "
        "ref, found none"
    ]


def test_tables_that_were_never_committed_to_a_ref_and_empty_repositories_are_fine(tmp_path: Path) -> None:
    assert list(Repository.create(tmp_path / "empty").fsck(tables=True)) == []


def test_the_command_line_checks_tables_when_asked(repo: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repo", "fsck", "--tables", repo.uri]) == 0
    without(repo, sorted(paths(repo, "b/data/"))[0])
    assert main(["repo", "fsck", repo.uri]) == 0
    assert main(["repo", "fsck", "--tables", repo.uri]) != 0
    assert "table 'b' (lance)" in capsys.readouterr().out
