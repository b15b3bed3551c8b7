"""A branch is a store: tables are written in a transaction and read at any ref, and do not know it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import NotFoundError, UnsupportedError
from esker.repo import Repository
from esker.store.stores import resolve


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "repo", committer="me")
    made.branch("main").object("t/a").upload("one")
    made.branch("main").object("u").upload("two")
    made.branch("main").commit("first")
    return made


def test_a_folder_of_a_transaction_answers_as_a_store_does(repo: Repository) -> None:
    with repo.branch("main").transact("change") as tx:
        tx.object("t/staged").upload("before")
        store = resolve(tx.store_uri("t"))
        assert store.list_paths() == ["a", "staged"]
        assert store.get("a") == b"one"
        assert store.get_ranges("staged", [(2, 4), (0, 1)]) == [b"fo", b"b"]
        store.put("b/c", b"three")
        assert store.put_if_absent("d", b"four")
        assert not store.put_if_absent("d", b"five")
        assert not store.put_if_absent("a", b"five")
        writer = store.writer("e")
        writer.write(b"fi")
        writer.write(b"ve")
        assert writer.finish() == 4
        store.delete("a")
        store.delete("never there")
        assert [(meta.path, meta.size) for meta in store.list()] == [("b/c", 5), ("d", 4), ("e", 4), ("staged", 6)]
        assert store.list_folders() == ["b/"]
        assert store.head("e").size == 4
        with pytest.raises(NotFoundError):
            store.get("a")
        # The transaction sees what its stores do, and they what it does.
        assert [found.path for found in tx.objects(prefix="t/")] == ["t/b/c", "t/d", "t/e", "t/staged"]
        tx.object("t/f").upload("six")
        assert store.get("f") == b"six"
        assert tx.object("t/e").reader().read() == b"five"
        with pytest.raises(UnsupportedError):
            tx.reset_changes()
        assert not repo.ref("main").object("t/d").exists()
    assert [found.path for found in repo.ref("main").objects()] == ["t/b/c", "t/d", "t/e", "t/f", "t/staged", "u"]
    with pytest.raises(UnsupportedError, match="ended"):
        store.put("late", b"x")
    with pytest.raises(NotFoundError):
        resolve(tx.store_uri("t"))
    assert list(repo.fsck()) == []


def test_an_error_leaves_nothing_of_what_stores_wrote(repo: Repository) -> None:
    before = repo.ref("main").get_commit()
    with suppress(KeyError), repo.branch("main").transact("change") as tx:
        resolve(tx.store_uri()).put("x", b"x")
        raise KeyError
    assert repo.ref("main").get_commit() == before


def test_a_ref_is_a_store_that_refuses_to_change(repo: Repository) -> None:
    repo.tag("v1").create("main")
    store = resolve(repo.ref("v1").store_uri("t"))
    assert (store.list_paths(), store.get("a")) == (["a"], b"one")
    for change in (lambda: store.put("x", b""), lambda: store.delete("a"), lambda: store.put_if_absent("x", b"")):
        with pytest.raises(UnsupportedError, match="transact"):
            change()
    assert resolve(repo.ref("main~1").store_uri()).list() == []


def test_one_commit_covers_tables_of_both_kinds(repo: Repository) -> None:
    rows = pa.table({"n": list(range(1000))})
    with repo.branch("main").transact("two tables") as tx:
        dataset = esker.write_dataset(rows, tx.store_uri("lance"))
        esker.write_dataset(rows.slice(0, 10), tx.store_uri("lance"), mode="append")
        assert dataset.count_rows() == 1000
        write_deltalake(tx.store_uri("delta"), rows)
        write_deltalake(tx.store_uri("delta"), rows.slice(0, 5), mode="append")
    first = repo.ref("main").get_commit().id
    with repo.branch("main").transact("more") as tx:
        esker.dataset(tx.store_uri("lance")).delete("n >= 100")
        write_deltalake(tx.store_uri("delta"), rows, mode="overwrite")
    for ref, lance, delta in ((first, 1010, 1005), ("main", 110, 1000)):
        found = esker.dataset(repo.ref(ref).store_uri("lance"))
        assert found.count_rows() == lance
        assert found.to_table(filter="n < 3").num_rows == 6
        assert DeltaTable(repo.ref(ref).store_uri("delta")).to_pyarrow_table().num_rows == delta
    assert esker.dataset(repo.ref("main").store_uri("lance")).take([99], columns=["n"])["n"].to_pylist() == [99]
    assert list(repo.fsck()) == []


def test_a_table_that_was_rolled_back_never_was(repo: Repository) -> None:
    rows = pa.table({"n": [1, 2, 3]})
    with repo.branch("main").transact("table") as tx:
        esker.write_dataset(rows, tx.store_uri("lance"))
    with suppress(KeyError), repo.branch("main").transact("append") as tx:
        esker.write_dataset(rows, tx.store_uri("lance"), mode="append")
        assert esker.dataset(tx.store_uri("lance")).count_rows() == 6
        raise KeyError
    assert esker.dataset(repo.ref("main").store_uri("lance")).count_rows() == 3


def test_imported_objects_are_read_through_a_store_or_named(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("far away")
    repo.branch("main").import_data().object(str(tmp_path / "outside"), "t/far").run()
    store = resolve(repo.ref("main").store_uri("t"))
    assert [(meta.path, meta.size) for meta in store.list()] == [("a", 3), ("far", 8)]
    assert store.get("far") == b"far away"
    assert store.get_ranges("far", [(4, 8)]) == [b"away"]
    with repo.branch("main").transact("change") as tx:
        assert resolve(tx.store_uri("t")).get("far") == b"far away"
        tx.object("t/more").upload("x")
    (tmp_path / "outside").unlink()
    with pytest.raises(NotFoundError, match="outside"):
        resolve(repo.ref("main").store_uri("t")).get("far")
