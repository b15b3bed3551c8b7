"""Tables that are written by a branch's URI: each commit of a table is one commit of the branch."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    EskerError,
    NotFoundError,
    UnsupportedError,
)
from esker.repo import HookEvent, Repository
from esker.repo.errors import ProtectedBranchError, TableConflictError
from esker.store.stores import resolve


def rows(*ids: int, value: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([value] * len(ids), pa.string())})


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(str(tmp_path / "lake"), committer="me")


def write(format: str, uri: Any, *ids: int, mode: str = "append") -> None:
    if format == "lance":
        esker.write_dataset(rows(*ids), uri, mode=mode)
    else:
        write_deltalake(uri, rows(*ids), mode=mode)  # type: ignore[arg-type]


def ids(format: str, uri: str) -> list[int]:
    table = esker.dataset(uri).to_table() if format == "lance" else DeltaTable(uri).to_pyarrow_table()
    return sorted(table["id"].to_pylist())


def opened(format: str, uri: str) -> Any:
    return esker.dataset(uri) if format == "lance" else DeltaTable(uri)


def commits(repo: Repository) -> list[str]:
    return [commit.id for commit in repo.branch("main").log()]


def same_to_peers(repo: Repository, format: str, path: str, expected: list[int], folder: Path) -> None:
    repo.ref("main").export(str(folder))
    place = str(folder / path)
    found = lance.dataset(place).to_table() if format == "lance" else deltalake.DeltaTable(place).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == expected


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_each_commit_of_a_table_is_one_of_the_branch(repo: Repository, format: str, tmp_path: Path) -> None:
    uri = repo.branch("main").store_uri("lake/t")
    before = len(commits(repo))
    for number in range(1, 5):
        write(format, uri, number, mode="overwrite" if number == 1 else "append")
        assert len(commits(repo)) == before + number
    made = repo.branch("main").get_commit()
    assert (made.metadata["esker.table"], made.metadata["esker.version"]) == (
        "lake/t",
        "4" if format == "lance" else "3",
    )
    assert ids(format, uri) == [1, 2, 3, 4]
    # An older commit has an older version.
    assert ids(format, repo.ref("main~2").store_uri("lake/t")) == [1, 2]
    same_to_peers(repo, format, "lake/t", [1, 2, 3, 4], tmp_path / "out")
    assert list(repo.fsck()) == []


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_writers_that_open_the_same_version_go_one_after_the_other(repo: Repository, format: str) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 1, mode="overwrite")
    handles = [opened(format, uri) for _ in range(3)]
    for number, handle in enumerate(handles, 2):
        write(format, handle, number)
    assert ids(format, uri) == [1, 2, 3, 4]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_threads_that_append_all_land_once(repo: Repository, format: str) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 0, mode="overwrite")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(3):
                write(format, uri, 10 * number + turn)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids(format, uri) == [0, *(10 * number + turn for number in range(1, 5) for turn in range(3))]


def test_all_verbs_of_a_lance_table_work_there(repo: Repository, tmp_path: Path) -> None:
    uri = repo.branch("main").store_uri("t")
    table = esker.write_dataset(rows(1, 2, 3), uri)
    table.insert(rows(4))
    table.delete("id = 1")
    table.update({"v": "'y'"}, where="id = 2")
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 5, value="z"))
    table.add_columns({"twice": "id * 2"})
    table.alter_columns({"path": "twice", "name": "double"})
    version = table.version
    table.drop_columns(["double"])
    table.checkout_version(version).restore()
    table.update_config({"a": "b"})
    expected = {2: "y", 3: "z", 4: "x", 5: "z"}
    found = esker.dataset(uri).to_table()
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected
    assert sorted(found["double"].to_pylist()) == [4, 6, 8, 10]
    assert {commit.metadata.get("esker.operation") for commit in repo.branch("main").log()} >= {
        "Append",
        "Delete",
        "Update",
        "Merge",
        "Project",
        "Restore",
    }
    same_to_peers(repo, "lance", "t", [2, 3, 4, 5], tmp_path / "out")


def test_all_verbs_of_a_delta_table_work_there(repo: Repository, tmp_path: Path) -> None:
    uri = repo.branch("main").store_uri("d")
    write_deltalake(uri, rows(1, 2, 3), partition_by=["v"])
    write_deltalake(uri, rows(4, value="y"), mode="append")
    write_deltalake(uri, rows(7), mode="overwrite", predicate="v = 'x'")
    table = DeltaTable(uri)
    table.alter.add_columns([esker.delta.Field("more", "long")])
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 5 days"})
    table.create_checkpoint()
    assert ids("delta", uri) == [4, 7]
    assert [entry["operation"] for entry in DeltaTable(uri).history()][-1] == "WRITE"
    same_to_peers(repo, "delta", "d", [4, 7], tmp_path / "out")


def test_a_checkpoint_comes_with_the_commit_that_it_is_of(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("d")
    before = len(commits(repo))
    write_deltalake(uri, rows(0), configuration={"delta.checkpointInterval": "3"})
    for number in range(1, 7):
        write_deltalake(uri, rows(number), mode="append")
    assert len(commits(repo)) == before + 7
    names = [found.path for found in repo.ref("main").objects(prefix="d/_delta_log/")]
    assert [name for name in names if "checkpoint" in name] == [
        "d/_delta_log/00000000000000000003.checkpoint.parquet",
        "d/_delta_log/00000000000000000006.checkpoint.parquet",
        "d/_delta_log/_last_checkpoint",
    ]
    # The commit of version 3 has its own checkpoint.
    at_three = [found.path for found in repo.ref("main~3").objects(prefix="d/_delta_log/")]
    assert at_three[-2:] == ["d/_delta_log/00000000000000000003.json", "d/_delta_log/_last_checkpoint"]
    assert ids("delta", uri) == list(range(7))


def test_the_copy_of_the_newest_manifest_comes_with_its_commit(repo: Repository, tmp_path: Path) -> None:
    # A table of the earliest writers: V1 names, and a copy of the newest manifest.
    place = str(tmp_path / "old")
    lance.write_dataset(rows(1), place, enable_v2_manifest_paths=False)
    with repo.branch("main").transact("import") as tx:
        for path in (Path(place)).rglob("*"):
            if path.is_file():
                tx.object(f"t/{path.relative_to(place)}").upload(path.read_bytes())
        tx.object("t/_latest.manifest").upload((Path(place) / "_versions/1.manifest").read_bytes())
    uri = repo.branch("main").store_uri("t")
    before = len(commits(repo))
    esker.write_dataset(rows(2), uri, mode="append")
    assert len(commits(repo)) == before + 1
    stats = {found.path: found.checksum for found in repo.ref("main").objects(prefix="t/")}  # type: ignore[union-attr]
    assert stats["t/_latest.manifest"] == stats["t/_versions/2.manifest"]


@pytest.mark.parametrize("format", ["lance", "delta"])
@pytest.mark.parametrize("what", ["reset", "drop", "replace"])
def test_a_handle_never_writes_to_another_table_than_it_read(repo: Repository, format: str, what: str) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, mode="overwrite")
    first = main.get_commit().id
    write(format, uri, 2)
    handle = opened(format, uri)
    if what == "reset":
        main.reset_to(first)
    else:
        main.delete_objects([found.path for found in main.objects(prefix="t/")])
        main.commit("drop")
    if what == "replace":
        write(format, uri, 8, mode="overwrite")
        write(format, uri, 9)
        # As many versions as the handle knows.
    there = commits(repo)
    with pytest.raises((TableConflictError, NotFoundError)) as caught:
        write(format, handle, 3)
    assert isinstance(caught.value, TableConflictError)
    assert caught.value.tables[0].table == "t"
    assert commits(repo) == there
    if what == "reset":
        if format == "lance":
            handle.checkout_latest()
        else:
            handle.update_incremental()
        write(format, handle, 4)
        assert ids(format, uri) == [1, 4]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_handle_notices_a_reset_after_which_others_went_on(repo: Repository, format: str) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, mode="overwrite")
    first = main.get_commit().id
    write(format, uri, 2)
    handle = opened(format, uri)
    main.reset_to(first)
    write(format, uri, 20)
    write(format, uri, 30)
    if format == "lance":
        handle.checkout_latest()
        assert sorted(handle.to_table()["id"].to_pylist()) == [1, 20, 30]
    else:
        handle.update_incremental()
        assert sorted(handle.to_pyarrow_table()["id"].to_pylist()) == [1, 20, 30]
    write(format, handle, 4)
    assert ids(format, uri) == [1, 4, 20, 30]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_handle_knows_its_own_commits_as_well(repo: Repository, format: str) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, mode="overwrite")
    handle = opened(format, uri)
    write(format, uri, 2)
    write(format, handle, 3)
    second = main.get_commit().id
    write(format, handle, 4)
    main.reset_to(second)
    write(format, uri, 5)
    write(format, uri, 6)
    with pytest.raises(TableConflictError):
        write(format, handle, 7)
    assert ids(format, uri) == [1, 2, 3, 5, 6]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_an_open_handle_reads_on_whatever_becomes_of_the_branch(repo: Repository, format: str) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, 2, mode="overwrite")
    handle = opened(format, uri)
    main.delete_objects([found.path for found in main.objects(prefix="t/")])
    main.commit("drop")
    found = handle.to_table() if format == "lance" else handle.to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == [1, 2]
    copy = pickle.loads(pickle.dumps(handle))
    found = copy.to_table() if format == "lance" else copy.to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == [1, 2]


def test_a_clean_up_is_one_commit_that_deletes_keys_and_no_bytes(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    esker.write_dataset(rows(1), uri)
    esker.write_dataset(rows(2), uri, mode="overwrite")
    before, stored = main.get_commit().id, len(resolve(repo.uri).list("data/"))
    there = len(commits(repo))
    esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert len(commits(repo)) == there + 1
    assert [one["version"] for one in esker.dataset(uri).versions()] == [2]
    assert len(resolve(repo.uri).list("data/")) >= stored
    # The commit before still has it all.
    assert ids("lance", repo.ref(before).store_uri("t")) == [2]
    assert esker.dataset(repo.ref(before).store_uri("t"), version=1).to_table()["id"].to_pylist() == [1]


def test_a_clean_up_that_another_commit_needs_is_refused(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    esker.write_dataset(rows(1), uri)
    esker.write_dataset(rows(2), uri, mode="overwrite")
    cleaner = esker.dataset(uri)
    esker.dataset(uri, version=1).restore()
    # Its look at the newest versions is before the other's commit only in a race: the store is asked to flush then.
    store = cleaner._store
    store.delete(next(path for path in store.list_paths("data/")))
    for path in store.list_paths("data/"):
        store.delete(path)
    with pytest.raises(TableConflictError, match="refers to"):
        store.flush("Clean-up")  # type: ignore[attr-defined]
    assert ids("lance", uri) == [1]


def test_what_a_hook_refuses_is_not_there(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    esker.write_dataset(rows(1), uri)

    def audit(event: HookEvent) -> None:
        raise ValueError("no rows today")

    repo.add_hook("pre-commit", audit)
    handle = esker.dataset(uri)
    with pytest.raises(ValueError, match="no rows today"):
        esker.write_dataset(rows(2), handle, mode="append")
    assert (handle.latest_version, ids("lance", uri)) == (1, [1])
    repo._core.hooks._hooks.clear()
    esker.write_dataset(rows(3), handle, mode="append")
    assert ids("lance", uri) == [1, 3]


def test_a_protected_branch_takes_no_commits_of_tables(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    esker.write_dataset(rows(1), uri)
    handle = esker.dataset(uri)
    repo.change_settings(protected_branches=["main"])
    with pytest.raises(ProtectedBranchError):
        esker.write_dataset(rows(2), handle, mode="append")
    assert ids("lance", uri) == [1]


def test_files_that_are_not_on_the_branch_are_no_part_of_a_version(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    esker.write_dataset(rows(1), uri)
    fragments = esker.fragment.write_fragments(rows(2), uri)
    with pytest.raises(NotFoundError, match="in one transaction"):
        esker.LanceDataset.commit(uri, esker.LanceOperation.Append(fragments), read_version=1)
    assert ids("lance", uri) == [1]
    # Through one handle they are.
    handle = esker.dataset(uri)
    fragments = esker.fragment.write_fragments(rows(3), handle)
    esker.LanceDataset.commit(handle, esker.LanceOperation.Append(fragments), read_version=1)
    assert ids("lance", uri) == [1, 3]


@contextmanager
def locked(version: int) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    "use",
    [
        lambda uri, place: esker.write_dataset(rows(2), uri, mode="append", manifest_store=f"sqlite://{place}/m.db"),
        lambda uri, place: esker.dataset(uri).shallow_clone(uri + "-clone", 1),
        lambda uri, place: esker.dataset(uri, commit_lock=locked).delete("id = 1"),
        lambda uri, place: esker.dataset(place / "outside").shallow_clone(uri + "-clone", 1),
    ],
    ids=["manifest-store", "shallow-clone", "lock", "shallow-clone-of-another"],
)
def test_what_a_branch_cannot_keep_is_refused_by_name(
    repo: Repository, tmp_path: Path, use: Callable[[str, Path], object]
) -> None:
    uri = repo.branch("main").store_uri("t")
    esker.write_dataset(rows(1), uri)
    esker.write_dataset(rows(1), tmp_path / "outside")
    before = commits(repo)
    with pytest.raises(UnsupportedError):
        use(uri, tmp_path)
    assert commits(repo) == before


def test_two_that_create_a_table_get_one(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    esker.write_dataset(rows(1), uri)
    with pytest.raises(AlreadyExistsError):
        esker.write_dataset(rows(2), uri)
    assert ids("lance", uri) == [1]


def test_a_deleted_branch_is_named(repo: Repository) -> None:
    other = repo.branch("other").create("main")
    uri = other.store_uri("t")
    esker.write_dataset(rows(1), uri)
    handle = esker.dataset(uri)
    other.delete()
    with pytest.raises(EskerError, match="other"):
        esker.write_dataset(rows(2), handle, mode="append")


def test_deletes_of_the_same_rows_meet_in_the_tables_own_rules(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    esker.write_dataset(rows(1, 2, 3, 4), uri)
    one, other = esker.dataset(uri), esker.dataset(uri)
    one.delete("id = 1")
    other.delete("id = 2")
    assert ids("lance", uri) == [3, 4]
    late = esker.dataset(uri, version=1)
    with pytest.raises(CommitConflictError):
        esker.LanceDataset.commit(
            late, esker.LanceOperation.Merge([], late.lance_schema), read_version=1, max_retries=0
        )
    assert ids("lance", uri) == [3, 4]
