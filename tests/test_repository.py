"""Repositories: what a user does with branches, commits, merges and objects."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import esker
from esker.commit.external import open_manifest_store
from esker.exceptions import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from esker.repo import (
    CommonPrefix,
    HookEvent,
    MergeConflictError,
    NoChangesError,
    ProtectedBranchError,
    Repository,
    repository,
)
from esker.repo.filesystem import RepositoryFileSystem
from tests.ages import made_older


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo")


def write(repo: Repository, branch: str, files: dict[str, str | None], message: str = "change") -> str:
    handle = repo.branch(branch)
    for path, text in files.items():
        if text is None:
            handle.object(path).delete()
        else:
            handle.object(path).upload(text)
    return handle.commit(message).id


def read(repo: Repository, ref: str) -> dict[str, str]:
    found = repo.ref(ref)
    return {o.path: found.object(o.path).reader("r").read() for o in found.objects()}


def test_a_commit_is_seen_by_others_and_staging_is_not(repo: Repository) -> None:
    other = repository(repo.uri)
    main = repo.branch("main")
    main.object("a/x.txt").upload("one", metadata={"k": "v"})
    assert main.object("a/x.txt").reader().read() == b"one"
    assert [c.type for c in main.uncommitted()] == ["added"]
    assert not other.branch("main").object("a/x.txt").exists()
    assert not repo.ref("main").object("a/x.txt").exists()
    commit = main.commit("first", {"job": "7"}).get_commit()
    assert (commit.message, commit.metadata, commit.generation) == ("first", {"job": "7"}, 2)
    assert other.branch("main").get_commit() == commit
    assert read(other, "main") == {"a/x.txt": "one"}
    assert list(main.uncommitted()) == []
    stat = other.ref("main").object("a/x.txt").stat()
    assert (stat.size_bytes, stat.metadata, len(stat.checksum)) == (3, {"k": "v"}, 32)
    with pytest.raises(NoChangesError):
        main.commit("nothing")


def test_listings_see_staged_paths_in_their_places(repo: Repository) -> None:
    write(repo, "main", {"a/1": "x", "a/2": "x", "b/1": "x", "c": "x"})
    main = repo.branch("main")
    main.object("a/15").upload("y")
    main.delete_objects(["a/2", "c", "missing"])
    assert [o.path for o in main.objects()] == ["a/1", "a/15", "b/1"]
    assert list(main.objects(delimiter="/")) == [CommonPrefix("a/"), CommonPrefix("b/")]
    assert [o.path for o in main.objects(prefix="a/", after="a/1")] == ["a/15"]
    assert [(c.type, c.path) for c in main.uncommitted()] == [("added", "a/15"), ("removed", "a/2"), ("removed", "c")]
    main.reset_changes("common_prefix", "a/")
    assert [o.path for o in main.objects()] == ["a/1", "a/2", "b/1"]
    main.reset_changes()
    assert len(list(main.objects())) == 4


def test_branches_tags_and_expressions_lead_to_commits(repo: Repository) -> None:
    first = write(repo, "main", {"a": "1"})
    repo.tag("v1").create("main")
    repo.branch("dev/x").create("main")
    second = write(repo, "dev/x", {"b": "2"})
    merge = repo.branch("dev/x").merge_into("main", squash_merge=False)
    assert [b.id for b in repo.branches()] == ["dev/x", "main"]
    assert [t.id for t in repo.tags()] == ["v1"]
    wanted = {
        "main": merge,
        "main~1": first,
        "main^": first,
        "main^2": second,
        "main@": merge,
        "v1": first,
        merge[:10]: merge,
    }
    assert {name: repo.ref(name).get_commit().id for name in wanted} == wanted
    for missing in ("nope", "main~9", "main^3", "0" * 64):
        with pytest.raises(NotFoundError):
            repo.ref(missing).get_commit()
    with pytest.raises(AlreadyExistsError):
        repo.tag("v1").create("dev/x")
    with pytest.raises(AlreadyExistsError):
        repo.branch("main").create("v1")
    repo.branch("dev/x").delete()
    assert [b.id for b in repo.branches()] == ["main"]
    repo.branch("dev/x").create("v1")
    assert read(repo, "dev/x") == {"a": "1"}
    repo.tag("v1").delete()
    assert list(repo.tags()) == []


def test_log_is_told_by_path_too(repo: Repository) -> None:
    for n in range(4):
        write(repo, "main", {f"d{n % 2}/f{n}": "x"}, f"commit {n}")
    messages = [c.message for c in repo.ref("main").log()]
    assert messages == ["commit 3", "commit 2", "commit 1", "commit 0", "Repository created"]
    assert [c.message for c in repo.ref("main").log(prefixes=["d1/"])] == ["commit 3", "commit 1"]
    assert [c.message for c in repo.ref("main").log(objects=["d0/f0"], max_amount=1)] == ["commit 0"]
    assert [c.message for c in repo.ref("main").log(stop_at="main~1")] == ["commit 3", "commit 2"]


def test_merges_take_both_sides_and_list_conflicts(repo: Repository) -> None:
    write(repo, "main", {"same": "0", "ours": "0", "theirs": "0", "gone": "0"})
    repo.branch("dev").create("main")
    write(repo, "dev", {"theirs": "1", "both": "d", "gone": None})
    write(repo, "main", {"ours": "1", "both": "m"})
    changes = [(c.type, c.path) for c in repo.ref("main").diff("dev")]
    assert changes == [("conflict", "both"), ("removed", "gone"), ("changed", "theirs")]
    plain = [(c.type, c.path) for c in repo.ref("main").diff("dev", type="two_dot")]
    assert plain == [("changed", "both"), ("removed", "gone"), ("changed", "ours"), ("changed", "theirs")]
    before = repo.ref("main").get_commit()
    with pytest.raises(MergeConflictError) as error:
        repo.branch("dev").merge_into("main")
    (conflict,) = error.value.conflicts
    assert (conflict.path, conflict.base) == ("both", None)
    assert pickle.loads(pickle.dumps(error.value)).conflicts == [conflict]
    assert conflict.source is not None
    assert conflict.dest is not None
    assert repo.ref("main").get_commit() == before
    assert repo.ref("dev").conflicts_with("main") is not None
    id = repo.branch("dev").merge_into("main", strategy="source-wins")
    commit = repo.commit(id).get_commit()
    assert commit.metadata == {".lakefs.merge.strategy": "source-wins"}
    assert len(commit.parents) == 2
    assert read(repo, "main") == {"same": "0", "ours": "1", "theirs": "1", "both": "d"}
    with pytest.raises(NoChangesError):
        repo.branch("dev").merge_into("main")


def test_revert_and_cherry_pick_undo_and_repeat(repo: Repository) -> None:
    write(repo, "main", {"a": "1", "b": "1"})
    second = write(repo, "main", {"a": "2", "c": "1"})
    write(repo, "main", {"b": "2"})
    repo.branch("main").revert(second)
    assert read(repo, "main") == {"a": "1", "b": "2"}
    repo.branch("other").create("main~3")
    picked = repo.branch("other").cherry_pick("main~1")
    assert picked.metadata["cherry-pick-origin"] == repo.ref("main~1").get_commit().id
    assert read(repo, "other") == {"a": "1", "b": "2"}
    with pytest.raises(NoChangesError):
        repo.branch("main").revert(second)
    repo.branch("main").reset_to(second)
    assert read(repo, "main") == {"a": "2", "b": "1", "c": "1"}


def test_two_processes_commit_on_top_of_each_other_unless_they_change_the_same(repo: Repository) -> None:
    write(repo, "main", {"a": "0", "b": "0"})
    other = repository(repo.uri)
    repo.branch("main").object("a").upload("1")
    other.branch("main").object("b").upload("1")
    repo.branch("main").commit("a")
    other.branch("main").commit("b")
    assert read(repo, "main") == {"a": "1", "b": "1"}
    repo.branch("main").object("a").upload("2")
    other.branch("main").object("a").upload("3")
    repo.branch("main").commit("mine")
    with pytest.raises(MergeConflictError):
        other.branch("main").commit("theirs")
    assert [c.path for c in other.branch("main").uncommitted()] == ["a"]


def test_threads_that_commit_at_once_all_land(repo: Repository) -> None:
    def work(n: int) -> None:
        mine = repository(repo.uri)
        for k in range(5):
            mine.branch("main").object(f"{n}/{k}").upload(f"{n}{k}")
            mine.branch("main").commit(f"{n}/{k}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(repo, "main")) == 20
    assert len(list(repo.ref("main").log())) == 21


def test_a_transaction_commits_once_or_not_at_all(repo: Repository) -> None:
    write(repo, "main", {"a": "0"})
    with repo.branch("main").transact("load") as tx:
        tx.object("b").upload("1")
        assert [o.path for o in tx.objects()] == ["a", "b"]
        write(repository(repo.uri), "main", {"c": "elsewhere"})
        assert not tx.object("c").exists()
        assert not repo.branch("main").object("b").exists()
    assert read(repo, "main") == {"a": "0", "b": "1", "c": "elsewhere"}

    def fail() -> None:
        with repo.branch("main").transact("bad") as tx:
            tx.object("d").upload("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "d" not in read(repo, "main")
    assert list(repo.branch("main").uncommitted()) == []


def test_imported_objects_are_read_where_they_are(repo: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "lake"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "x.txt").write_text("outside")
    (outside / "y.txt").write_text("why")
    done = repo.branch("main").import_data("take").prefix(str(outside), "in/").object(str(outside / "y.txt"), "y").run()
    assert done.ingested_objects == 3
    assert read(repo, "main") == {"in/sub/x.txt": "outside", "in/y.txt": "why", "y": "why"}
    assert repo.ref("main").physical_paths("y") == [str(outside / "y.txt")]
    with pytest.raises(NoChangesError):
        repo.branch("main").import_data("again").prefix(str(outside), "in/").run()


def test_settings_change_for_all_and_protect_branches(repo: Repository) -> None:
    repo.change_settings(raggedness=7, protected_branches=["ma*"])
    other = repository(repo.uri)
    assert (other.settings.raggedness, other.settings.protected_branches) == (7, ("ma*",))
    with pytest.raises(ProtectedBranchError):
        other.branch("main").object("a").upload("1")
    other.branch("dev").create("main")
    write(other, "dev", {"a": "1"})
    other.branch("dev").merge_into("main")
    assert read(repo, "main") == {"a": "1"}
    truths = ({"grace_s": False}, {"retention_days": True}, {"branch_retention_days": {"main": True}})
    for wrong in ({"nope": 1}, {"max_range_size": 0}, *truths):
        with pytest.raises(InvalidArgumentError):
            repo.change_settings(**wrong)


def test_writers_text_and_copies(repo: Repository) -> None:
    main = repo.branch("main")
    with main.object("t").writer("w") as file:
        file.write("grüße\n")
    assert main.object("t").reader("r").read() == "grüße\n"
    main.object("t").copy("main", "u")
    main.commit("both")
    assert main.object("u").stat().physical_address == main.object("t").stat().physical_address

    def fail() -> None:
        with main.object("v").writer() as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not main.object("v").exists()
    reader = main.object("t").reader()
    reader.seek(-2, 2)
    assert reader.read() == b"e\n"


def test_a_place_that_lakefs_owns_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_lakefs").mkdir()
    (tmp_path / "_lakefs" / "dummy").write_text("")
    with pytest.raises(UnsupportedError, match="belongs to a lakeFS server"):
        Repository.create(tmp_path)
    with pytest.raises(NotFoundError, match="refs-dump"):
        Repository(tmp_path)


def test_names_that_would_confuse_are_refused(repo: Repository) -> None:
    for name in ("", "a b", "a~1", "-x", "x/", "a..b", "0" * 64):
        with pytest.raises(InvalidArgumentError):
            repo.branch(name).create("main")


def test_garbage_is_what_no_commit_that_counts_leads_to(repo: Repository, tmp_path: Path) -> None:
    write(repo, "main", {"a": "1", "b": "1"})
    repo.branch("dev").create("main")
    write(repo, "dev", {"c": "1"})
    repo.branch("main").object("never committed").upload("x")
    repo.branch("main").reset_changes()
    later = time.time() + 2 * 24 * 3600
    # Objects are as old as the store says, whatever time the collector takes it to be.
    assert repo.gc(now=later, dry_run=False).objects == 0
    made_older(repo.uri, 2 * 24 * 3600)
    found = repo.gc()
    assert (found.objects, found.expired, found.deleted) == (1, 0, False)
    assert repo.gc(dry_run=False).objects == 1
    repo.branch("dev").delete()
    assert repo.gc(now=later).objects == 0
    month = time.time() + 60 * 24 * 3600
    made_older(repo.uri, 60 * 24 * 3600)
    found = repo.gc(now=month, dry_run=False)
    assert (found.objects, found.expired) == (1, 2)
    assert found.tables == 2
    assert read(repository(repo.uri), "main") == {"a": "1", "b": "1"}
    assert list(repository(repo.uri).fsck()) == []
    assert repo.gc(now=month).objects == 0


def test_fsck_tells_what_is_missing_or_damaged(repo: Repository) -> None:
    write(repo, "main", {"a": "1", "b": "1"})
    assert list(repo.fsck()) == []
    gone = repo.ref("main").object("a").stat().physical_address
    (Path(repo.uri) / gone).unlink()
    (finding,) = repository(repo.uri).fsck()
    assert "'a'" in finding
    assert gone in finding
    content = repo.ref("main").get_commit().meta_range_id
    file = Path(repo.uri, "_lakefs", content)
    file.write_bytes(file.read_bytes()[:100] + b"x" + file.read_bytes()[101:])
    (finding,) = repository(repo.uri).fsck()
    assert content in finding


def test_refs_move_by_a_dump(repo: Repository, tmp_path: Path) -> None:
    write(repo, "main", {"a": "1"})
    repo.branch("dev/x").create("main")
    write(repo, "dev/x", {"b": "2"})
    repo.tag("v1").create("main")
    repo.branch("dev/x").merge_into("main")
    refs = repo.dump_refs()
    moved = Repository.create(tmp_path / "moved")
    for folder in ("_lakefs", "data"):
        shutil.copytree(Path(repo.uri, folder), Path(moved.uri, folder), dirs_exist_ok=True)
    moved.restore_refs()
    for ref in ("main", "dev/x", "v1"):
        assert moved.ref(ref).get_commit() == repo.ref(ref).get_commit()
    assert read(moved, "main") == {"a": "1", "b": "2"}
    assert len(list(moved.ref("main").log())) == 4
    assert list(moved.fsck()) == []
    again = moved.dump_refs()
    assert (again.branches_meta_range_id, again.tags_meta_range_id) == (
        refs.branches_meta_range_id,
        refs.tags_meta_range_id,
    )
    with pytest.raises(AlreadyExistsError):
        repo.restore_refs()


def test_packing_joins_the_ranges_of_many_appends(repo: Repository) -> None:
    for n in range(12):
        write(repo, "main", {f"{n:03}/x": "x"})
    before = read(repo, "main")
    repo.branch("main").repack()
    assert read(repo, "main") == before
    assert list(repo.ref("main~1").diff("main")) == []
    with pytest.raises(NoChangesError):
        repo.branch("main").repack()


def test_packing_passes_the_protection_of_a_branch_whose_content_stays(repo: Repository) -> None:
    for n in range(12):
        write(repo, "main", {f"{n:03}/x": "x"})
    repo.change_settings(protected_branches=["main"])
    before = read(repo, "main")
    repo.branch("main").repack()
    assert read(repo, "main") == before
    with pytest.raises(ProtectedBranchError):
        repo.branch("main").object("y").upload("y")


def test_pandas_pyarrow_and_duckdb_read_and_write_paths_of_a_branch(repo: Repository) -> None:
    files = RepositoryFileSystem(repo)
    repo.branch("dev/x").create("main")
    frame = pandas.DataFrame({"id": [1, 2, 3]})
    frame.to_parquet("dev/x/t/day=1/a.parquet", filesystem=files)
    pq.write_table(pa.table({"id": [4]}), "dev/x/t/day=2/b.parquet", filesystem=files)
    repo.branch("dev/x").commit("data")
    assert pandas.read_parquet("dev/x/t/day=1/a.parquet", filesystem=files)["id"].tolist() == [1, 2, 3]
    dataset = pyarrow.dataset.dataset("dev/x/t", filesystem=files, format="parquet", partitioning="hive")
    assert dataset.count_rows() == 4
    connection = duckdb.connect()
    connection.register_filesystem(files)
    found = connection.sql("SELECT sum(id) FROM read_parquet('esker://dev/x/t/*/*.parquet')").fetchall()
    assert found == [(10,)]
    assert [entry["name"] for entry in files.ls("dev/x/t")] == ["dev/x/t/day=1", "dev/x/t/day=2"]
    assert files.ls("", detail=False) == ["dev%2Fx", "main"]
    assert files.cat_file("dev/x/t/day=1/a.parquet", 0, 4) == b"PAR1"
    files.cp_file("dev/x/t/day=2/b.parquet", "main/b.parquet")
    repo.branch("main").commit("copied")
    assert files.isfile("main/b.parquet")
    files.rm("main/b.parquet")
    assert not files.exists("main/b.parquet")
    with pytest.raises(FileNotFoundError):
        files.info("main/nothing")


def test_hooks_see_commits_and_merges_and_can_refuse(repo: Repository) -> None:
    seen: list[tuple[str, str, str | None]] = []

    def hook(event: HookEvent) -> None:
        seen.append((event.type, event.branch, event.source))
        if "bad" in event.commit.message:
            raise ValueError("not like this")

    for kind in ("pre-commit", "post-commit", "pre-merge", "post-merge"):
        repo.add_hook(kind, hook)
    repo.branch("dev").create("main")
    write(repo, "dev", {"a": "1"})
    repo.branch("dev").merge_into("main")
    expected = [("pre-commit", "dev", None), ("post-commit", "dev", None)]
    assert seen == [*expected, ("pre-merge", "main", "dev"), ("post-merge", "main", "dev")]
    before = repo.ref("dev").get_commit()
    with pytest.raises(ValueError, match="not like this"):
        write(repo, "dev", {"a": "2"}, "bad")
    assert repo.ref("dev").get_commit() == before


def test_what_was_staged_too_long_ago_is_not_committed(repo: Repository) -> None:
    main = repo.branch("main")
    main.object("a").upload("1")
    main._staging._started = (0.0, time.time() - 25 * 3600)
    with pytest.raises(InvalidArgumentError, match="24 hours ago"):
        main.commit("late")


def test_an_export_copies_objects_to_their_paths(repo: Repository, tmp_path: Path) -> None:
    write(repo, "main", {"a/x": "1", "a/y": "2", "b": "3"})
    assert repo.ref("main").export(str(tmp_path / "out"), prefix="a/") == 2
    assert (tmp_path / "out/a/y").read_text() == "2"
    assert not (tmp_path / "out/b").exists()


def test_a_packed_history_is_one_read_and_old_entries_go(repo: Repository) -> None:
    for n in range(30):
        repo.branch("main").commit(f"commit {n}", allow_empty=True)
    assert repo.pack_refs() == 31
    other = repository(repo.uri)
    other._core.store.io_stats()
    assert len(list(other.ref("main").log())) == 31
    assert other._core.store.io_stats().read_iops < 10
    log = other._core.log("main")
    assert log.compact(keep=100, younger_than_s=0) == 0
    assert log.compact(keep=5) == 0
    assert log.compact(keep=5, younger_than_s=0, now=time.time() + 60) == 26
    fresh = repository(repo.uri)
    assert fresh.ref("main").get_commit().message == "commit 29"
    fresh.branch("main").commit("one more", allow_empty=True)
    assert [c.message for c in other.ref("main").log(max_amount=2)] == ["one more", "commit 29"]
    (Path(repo.uri) / "_esker/refs/heads/main/hint").write_bytes(b"3")
    assert repository(repo.uri).ref("main").get_commit().message == "one more"


def test_an_external_store_lends_what_a_store_lacks(tmp_path: Path) -> None:
    lender = f"sqlite://{tmp_path}/manifests.db"
    repo = Repository.create(tmp_path / "repo", manifest_store=lender)

    def work(n: int) -> None:
        mine = Repository(repo.uri, manifest_store=lender)
        for k in range(3):
            mine.branch("main").object(f"{n}/{k}").upload("x")
            mine.branch("main").commit(f"{n}/{k}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(repo, "main")) == 9
    repo.tag("v1").create("main")
    with pytest.raises(AlreadyExistsError):
        repo.tag("v1").create("main~1")
    repo.tag("v1").delete()
    repo.tag("v1").create("main~1")
    # A writer that died between the external store and the copy: whoever reads finishes it.
    log = repo._core.log("main")
    number = log.head().number  # type: ignore[union-attr]
    final = Path(repo.uri, log.path(number))
    staged = final.with_name(final.name + "-left")
    final.rename(staged)
    store = open_manifest_store(repo.uri, None, lender)
    assert store is not None
    path = log.path(number)
    assert store.put_if_exists(f"{repo.uri}/{path}", 1, str(staged.relative_to(repo.uri)), 1)
    assert len(read(Repository(repo.uri, manifest_store=lender), "main")) == 9
    assert final.exists()
    assert not staged.exists()


def test_a_repository_with_a_lender_is_not_written_without_it(tmp_path: Path) -> None:
    lender = f"sqlite://{tmp_path}/manifests.db"
    repo = Repository.create(tmp_path / "repo", manifest_store=lender)
    uri = repo.branch("main").store_uri("t")
    table = pa.table({"id": [1]})
    # By the handle's own URIs, in its process, and by what is pickled, it is.
    esker.write_dataset(table, uri)
    pickle.loads(pickle.dumps(esker.dataset(uri))).insert(table)
    without = Repository(repo.uri)
    assert [found.path for found in without.ref("main").objects(prefix="t/_versions/")]
    without.branch("main").object("a").upload("x")
    for change in (
        lambda: without.branch("main").commit("lost"),
        lambda: without.branch("other").create("main"),
        lambda: without.tag("v1").create("main"),
    ):
        with pytest.raises(UnsupportedError, match="manifest_store"):
            change()
    code = f"import esker, pyarrow as pa; esker.write_dataset(pa.table({{'id': [2]}}), {uri!r}, mode='append')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UnsupportedError" in done.stderr
    assert esker.dataset(uri).count_rows() == 2
