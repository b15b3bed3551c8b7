"""Deletes, updates and merges of Delta tables on branches of a repository: by the branch's URI, and in transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.repo import Repository
from esker.repo.errors import TableConflictError
from tests.test_delta_delete import read_by_theirs

ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(ids, pa.int64())})


@pytest.fixture(params=[{}, ON], ids=["copy", "vectors"])
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    made = Repository.create(str(tmp_path / "lake"), committer="me")
    uri = made.branch("main").store_uri("d")
    write_deltalake(uri, rows(*range(1000)), configuration=request.param)
    return made


def state(where: Any) -> dict[int, int]:
    table = DeltaTable(where.store_uri("d")).to_pyarrow_table()
    return dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))


def same_to_peers(repo: Repository, folder: Path) -> None:
    repo.ref("main").export(str(folder))
    theirs = read_by_theirs(folder / "d")
    assert dict(zip(theirs["id"].to_pylist(), theirs["n"].to_pylist(), strict=True)) == state(repo.ref("main"))
    assert deltalake.DeltaTable(str(folder / "d")).version() == DeltaTable(repo.ref("main").store_uri("d")).version()
    assert list(repo.fsck()) == []


def test_by_a_branchs_uri_each_verb_is_one_commit_of_the_branch(repo: Repository, tmp_path: Path) -> None:
    repo.branch("dev").create("main")
    table = DeltaTable(repo.branch("main").store_uri("d"))
    assert table.delete("id % 2 = 0")["num_deleted_rows"] == 500
    assert table.update({"n": "n + 1"}, predicate="id < 10")["num_updated_rows"] == 5
    assert table.delete("id = 77777")["num_deleted_rows"] == 0
    assert len(list(repo.branch("main").log())) == len(list(repo.branch("dev").log())) + 2
    expected = {n: n + (n < 10) for n in range(1000) if n % 2}
    assert state(repo.ref("main")) == expected
    assert state(repo.ref("dev")) == {n: n for n in range(1000)}
    same_to_peers(repo, tmp_path / "out")


def test_a_lost_race_on_a_branch_is_run_again(repo: Repository, tmp_path: Path) -> None:
    stale = DeltaTable(repo.branch("main").store_uri("d"))
    DeltaTable(Repository(repo.uri).branch("main").store_uri("d")).update({"n": "n + 1"}, predicate="id in (1, 2)")
    stale.update({"n": "n * 10"}, predicate="id in (2, 3)")
    found = state(repo.ref("main"))
    assert (found[1], found[2], found[3]) == (2, 30, 30)
    same_to_peers(repo, tmp_path / "out")


def test_verbs_in_a_transaction_land_together(repo: Repository, tmp_path: Path) -> None:
    with repo.branch("main").transact("both") as tx:
        table = DeltaTable(tx.store_uri("d"))
        table.delete("id >= 500")
        table.update({"n": "0"}, predicate="id < 3")
        assert len(state(repo.ref("main"))) == 1000
    assert state(repo.ref("main")) == {n: 0 if n < 3 else n for n in range(500)}
    same_to_peers(repo, tmp_path / "out")


def test_a_transaction_goes_on_top_of_appends_of_other_rows(repo: Repository, tmp_path: Path) -> None:
    with repo.branch("main").transact("ours") as tx:
        DeltaTable(tx.store_uri("d")).delete("id between 500 and 2000")
        DeltaTable(tx.store_uri("d")).update({"n": "0"}, predicate="id in (1, 2)")
        write_deltalake(Repository(repo.uri).branch("main").store_uri("d"), rows(-7, -8), mode="append")
    expected = {n: 0 if n in (1, 2) else n for n in [-8, -7, *range(500)]}
    assert state(repo.ref("main")) == expected
    same_to_peers(repo, tmp_path / "out")


def upsert(uri: str, *ids: int) -> dict[str, Any]:
    source = pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([-1] * len(ids), pa.int64())})
    merger = DeltaTable(uri).merge(source, "t.id = s.id", "s", "t").when_matched_update_all()
    return merger.when_not_matched_insert_all().execute()


def test_a_merge_is_one_commit_of_the_branch_and_runs_again_there(repo: Repository, tmp_path: Path) -> None:
    before = len(list(repo.branch("main").log()))
    uri = repo.branch("main").store_uri("d")
    assert upsert(uri, 1, 2, 5000)["num_target_rows_inserted"] == 1
    assert len(list(repo.branch("main").log())) == before + 1
    stale = DeltaTable(uri)
    upsert(Repository(repo.uri).branch("main").store_uri("d"), 3, 6000)
    gone = pa.table({"id": pa.array([3, 6000], pa.int64())})
    assert stale.merge(gone, "t.id = s.id", "s", "t").when_matched_delete().execute()["num_target_rows_deleted"] == 2
    with repo.branch("main").transact("both") as tx:
        upsert(tx.store_uri("d"), 4, 7000)
        DeltaTable(tx.store_uri("d")).delete("id = 2")
    expected = {n: -1 if n in (1, 4) else n for n in range(1000) if n not in (2, 3)}
    assert state(repo.ref("main")) == {**expected, 5000: -1, 7000: -1}
    same_to_peers(repo, tmp_path / "out")


def test_a_transaction_that_lost_rows_is_refused_whole(repo: Repository) -> None:
    def race() -> None:
        with repo.branch("main").transact("ours") as tx:
            DeltaTable(tx.store_uri("d")).delete("id = 1")
            DeltaTable(Repository(repo.uri).branch("main").store_uri("d")).delete("id = 2")

    with pytest.raises(TableConflictError):
        race()
    assert sorted(state(repo.ref("main"))) == [0, 1, *range(3, 1000)]
