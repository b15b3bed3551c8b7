"""Tables on branches where two things meet: threads and hooks, clean-ups and collections, replays and numbers."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker._native.store import Store
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import AlreadyExistsError, NotFoundError
from esker.lance.operation.index import Index
from esker.repo import HookEvent, HookRefusedError, Repository, TableConflictError
from esker.repo.stores import folder_store, transactions
from esker.repo.transaction import TransactionBranch


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(str(tmp_path / "lake"), committer="me")


def write(format: str, uri: Any, *ids: int, mode: str = "append", **options: Any) -> None:
    if format == "lance":
        esker.write_dataset(rows(*ids), uri, mode=mode, **options)
    else:
        write_deltalake(uri, rows(*ids), mode=mode, **options)  # type: ignore[arg-type]


def ids(format: str, uri: str, version: int | None = None) -> list[int]:
    if format == "lance":
        return sorted(esker.dataset(uri, version=version).to_table()["id"].to_pylist())
    return sorted(DeltaTable(uri, version=version).to_pyarrow_table()["id"].to_pylist())


def transact(repo: Repository, work: Callable[[TransactionBranch], None]) -> None:
    with repo.branch("main").transact("a transaction") as tx:
        work(tx)


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def refuse(event: HookEvent) -> None:
    raise HookRefusedError("not today")


@pytest.mark.parametrize(("format", "log"), [("lance", "_versions/"), ("delta", "_delta_log/")])
def test_a_version_that_may_be_refused_is_read_by_no_other_thread_of_the_handle(
    repo: Repository, format: str, log: str
) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 1, mode="overwrite")
    handle: Any = esker.dataset(uri) if format == "lance" else DeltaTable(uri)
    store = handle._table.store if format == "lance" else handle._store
    before, seen = store.list_paths(log), []

    def audit(event: HookEvent) -> None:
        in_a_thread(lambda: seen.append(store.list_paths(log)))
        refuse(event)

    repo.add_hook("pre-commit", audit)
    with pytest.raises(HookRefusedError):
        write(format, handle, 2)
    assert seen == [before]


def test_a_handle_goes_on_after_a_collection_took_what_a_refused_commit_had_left(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    write("lance", uri, 1, 2, mode="create")
    handle = esker.dataset(uri)
    hooks = [refuse]
    repo.add_hook("pre-commit", lambda event: hooks.pop()(event) if hooks else None)
    with pytest.raises(HookRefusedError):
        handle.delete("id = 1")
    repo.gc(dry_run=False, grace_s=-10)
    with pytest.raises(NotFoundError, match="garbage collection"):
        handle.delete("id = 1")
    handle.delete("id = 1")
    assert ids("lance", uri) == [2]
    assert list(repo.fsck(tables=True)) == []


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_threads_of_a_transaction_may_note_a_later_version_first(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, mode="overwrite")
    plain = folder_store.plain

    def ours(tx: TransactionBranch) -> None:
        def overtaken(store: Store, path: str, data: bytes) -> bool:
            staged = plain(store, path, data)
            monkeypatch.setattr(transactions, "plain", plain)
            in_a_thread(lambda: write(format, tx.store_uri("t"), 3))
            return staged

        monkeypatch.setattr(transactions, "plain", overtaken)
        write(format, tx.store_uri("t"), 2)
        assert ids(format, tx.store_uri("t")) == [1, 2, 3]
        write(format, uri, 9)

    transact(repo, ours)
    assert ids(format, uri) == [1, 2, 3, 9]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_threads_that_ask_for_the_first_uri_at_once_write_to_one_table(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 1, mode="overwrite")
    begin = transactions.begin
    both = threading.Barrier(2)
    uris: list[str] = []

    def slow(*args: Any) -> str:
        # As where the repository is behind a network.
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return begin(*args)

    monkeypatch.setattr(transactions, "begin", slow)

    def append(tx: TransactionBranch, number: int) -> None:
        uris.append(tx.store_uri("t"))
        write(format, uris[-1], number)

    def ours(tx: TransactionBranch) -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(append, tx, number) for number in (2, 3)]:
                done.result()

    transact(repo, ours)
    assert ids(format, uri) == [1, 2, 3]
    assert len(set(uris)) == 1
    with pytest.raises(NotFoundError, match="it may have ended"):
        write(format, uris[0], 4)


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_table_that_a_transaction_makes_anew_has_no_entries_of_the_one_before(repo: Repository, format: str) -> None:
    def ours(tx: TransactionBranch) -> None:
        for number in range(4):
            write(format, tx.store_uri("t"), number, mode="append" if number else "overwrite")
        tx.delete_objects([found.path for found in tx.objects(prefix="t/")])
        write(format, tx.store_uri("t"), 10, mode="overwrite")
        write(format, tx.store_uri("t"), 11)
        first = 1 if format == "lance" else 0
        assert [entry.number for entry in tx._staging.entries] == [first, first + 1]
        repo.branch("main").object("beside").upload(b"")
        repo.branch("main").commit("beside")

    transact(repo, ours)
    assert ids(format, repo.branch("main").store_uri("t")) == [10, 11]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_what_builds_on_a_number_that_others_have_committed_is_a_conflict(repo: Repository, format: str) -> None:
    """The delete would have hit the others' rows, since its fragment had their number."""
    job: dict[str, Any] = {"application": ("job", 7)} if format == "lance" else {"txn_app_id": "job", "txn_version": 7}
    main = repo.branch("main")
    uri = main.store_uri("t")
    write(format, uri, 1, 2, mode="overwrite")

    def ours(tx: TransactionBranch) -> None:
        write(format, tx.store_uri("t"), 3, 4, **job)
        if format == "lance":
            esker.dataset(tx.store_uri("t")).delete("id = 3")
        write(format, uri, 103, 104, **job)

    with pytest.raises(TableConflictError, match="number of an application") as raised:
        transact(repo, ours)
    assert raised.value.retryable
    assert ids(format, uri) == [1, 2, 103, 104]
    with main.transact("once more") as tx:
        write(format, tx.store_uri("t"), 3, 4, **job)
        write(format, tx.store_uri("t"), 5)
    assert ids(format, uri) == [1, 2, 5, 103, 104]


def test_an_update_of_own_rows_with_stable_ids_is_a_conflict_once_others_have_the_ids(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write("lance", uri, 1, mode="create", enable_stable_row_ids=True)

    def ours(tx: TransactionBranch) -> None:
        write("lance", tx.store_uri("t"), 2, 3)
        esker.dataset(tx.store_uri("t")).update({"id": "20"}, where="id = 2")
        write("lance", uri, 8, 9)

    with pytest.raises(TableConflictError, match="row ids") as raised:
        transact(repo, ours)
    assert raised.value.retryable
    with main.transact("rows that are deleted at once") as tx:
        write("lance", tx.store_uri("t"), 2, 3)
        esker.dataset(tx.store_uri("t")).delete("id = 2")
        write("lance", uri, 10)
    found = esker.dataset(uri).to_table(with_row_id=True)
    assert found["id"].to_pylist() == [1, 8, 9, 10, 3]
    assert len(set(found["_rowid"].to_pylist())) == 5


@pytest.mark.parametrize("versions", [1, 2, 4])
@pytest.mark.parametrize("format", ["lance", "delta"])
def test_a_table_that_a_transaction_makes_anew_and_others_overwrite_is_a_conflict(
    repo: Repository, format: str, versions: int
) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 1, mode="overwrite")
    write(format, uri, 2)

    def ours(tx: TransactionBranch) -> None:
        for found in list(tx.objects(prefix="t/")):
            tx.object(found.path).delete()
        for number in range(versions):
            write(format, tx.store_uri("t"), 50 + number, mode="append" if number else "overwrite")
        # Refers to none of the files that the transaction takes away.
        write(format, uri, 9, mode="overwrite")

    with pytest.raises(TableConflictError) as raised:
        transact(repo, ours)
    assert [(found.table, found.kind) for found in raised.value.tables] == [("t", "replaced")]
    assert ids(format, uri) == [9]
    assert list(repo.fsck(tables=True)) == []


def test_a_handle_of_a_reset_table_whose_version_is_not_there_overwrites_nothing_else(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write("delta", uri, 1, mode="overwrite")
    before = main.get_commit()
    write("delta", uri, 2)
    handle = DeltaTable(uri)
    main.reset_to(before)
    write("delta", uri, 50)
    with pytest.raises(NotFoundError, match="version 7"):
        handle.load_as_version(7)
    with pytest.raises(TableConflictError, match="was reset"):
        write("delta", handle, 99, mode="overwrite")
    assert sorted(handle.to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    handle.update_incremental()
    write("delta", handle, 99, mode="overwrite")
    assert ids("delta", uri) == [99]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_an_import_over_another_table_is_a_conflict(repo: Repository, format: str, tmp_path: Path) -> None:
    main = repo.branch("main")
    uri, elsewhere = main.store_uri("t"), str(tmp_path / "elsewhere")
    for number in range(4):
        write(format, uri, number, mode="append" if number else "overwrite")
    for number in range(2):
        write(format, elsewhere, 100 + number, mode="append" if number else "overwrite")
    with pytest.raises(TableConflictError) as raised:
        main.import_data("over it").prefix(elsewhere, destination="t/").run()
    assert [(found.table, found.kind) for found in raised.value.tables] == [("t", "replaced")]
    assert ids(format, uri) == [0, 1, 2, 3]
    main.import_data("beside it").prefix(elsewhere, destination="u/").run()
    write(format, elsewhere, 102)
    main.import_data("what has come since").prefix(elsewhere, destination="u/").run()
    assert ids(format, main.store_uri("u")) == [100, 101, 102]


def test_a_handle_of_a_table_that_was_reset_says_to_which_version(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write("lance", uri, 1, mode="create")
    before = main.get_commit()
    write("lance", uri, 2)
    write("lance", uri, 3)
    handle = esker.dataset(uri)
    main.reset_to(before)
    with pytest.raises(TableConflictError, match="was open at version 3, and 'main' was reset to version 1 of it"):
        handle.delete("id = 1")


def test_the_other_side_of_a_merge_that_restored_is_told_from_another_table(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write("lance", uri, 1, mode="create")
    january = repo.branch("january").create("main")
    write("lance", january.store_uri("t"), 2)
    write("lance", uri, 3)
    merge = january.merge_into("main", strategy="source-wins")
    with pytest.raises(TableConflictError, match="take the other parent_number") as raised:
        main.revert(merge, parent_number=2)
    assert [found.kind for found in raised.value.tables] == ["diverged"]
    main.revert(merge, parent_number=1)
    assert ids("lance", uri) == [1, 3]


@pytest.mark.parametrize("format", ["lance", "delta"])
def test_commits_that_threads_noted_in_another_order_are_made_again_in_that_of_their_versions(
    repo: Repository, format: str
) -> None:
    uri = repo.branch("main").store_uri("t")
    write(format, uri, 1, mode="overwrite")

    def ours(tx: TransactionBranch) -> None:
        write(format, tx.store_uri("t"), 2)
        write(format, tx.store_uri("t"), 3)
        # As two threads of it may leave them: an entry is there before it is noted.
        tx._staging.entries.reverse()
        write(format, uri, 9)

    transact(repo, ours)
    added = [
        sorted(set(ids(format, uri, version)) - set(ids(format, uri, version - 1)))
        for version in ((3, 4) if format == "lance" else (2, 3))
    ]
    assert added == [[2], [3]]


def test_an_index_of_own_rows_is_a_conflict_once_others_have_their_fragment_s_number(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    write("lance", uri, 1, mode="create")

    def indexed(fragments: set[int]) -> Callable[[TransactionBranch], None]:
        def ours(tx: TransactionBranch) -> None:
            place = tx.store_uri("t")
            write("lance", place, 2)
            version = esker.dataset(place).version
            index = Index(str(uuid.uuid4()), "i", [0], version, fragments, 0)
            esker.LanceDataset.commit(place, esker.LanceOperation.CreateIndex([index], []), read_version=version)
            write("lance", uri, 9)

        return ours

    with pytest.raises(TableConflictError, match="CreateIndex") as raised:
        transact(repo, indexed({0, 1}))
    assert raised.value.retryable
    transact(repo, indexed({0}))
    assert ids("lance", uri) == [1, 2, 9, 9]


def test_a_tag_of_an_own_version_is_a_conflict_once_others_have_its_number(repo: Repository) -> None:
    main = repo.branch("main")
    uri = main.store_uri("t")
    write("lance", uri, 1, mode="create")

    def tagged(version: int) -> Callable[[TransactionBranch], None]:
        def ours(tx: TransactionBranch) -> None:
            write("lance", tx.store_uri("t"), 2)
            told = json.dumps({"branch": None, "version": version, "manifestSize": 1})
            tx.object("t/_refs/tags/january.json").upload(told.encode())
            write("lance", uri, 9)

        return ours

    with pytest.raises(TableConflictError, match=r"january.json' names version 2, whose number others have taken"):
        transact(repo, tagged(2))
    transact(repo, tagged(1))
    assert main.object("t/_refs/tags/january.json").exists()
    assert ids("lance", uri) == [1, 2, 9, 9]


@pytest.mark.parametrize("mode", ["append", "ignore", "error", "overwrite"])
def test_two_that_make_a_delta_table_meet_as_in_a_folder(repo: Repository, tmp_path: Path, mode: Any) -> None:
    found = []
    for uri in (str(tmp_path / "t"), repo.branch("main").store_uri("t")):

        def behind_another(uri: str = uri) -> Iterator[pa.RecordBatch]:
            write("delta", uri, 2)
            yield from rows(1).to_batches()

        outcome = "done"
        try:
            write_deltalake(uri, pa.RecordBatchReader.from_batches(rows(1).schema, behind_another()), mode=mode)
        except AlreadyExistsError as error:
            outcome = error.kind
        found.append((outcome, ids("delta", uri)))
    assert found[0] == found[1]


@pytest.mark.parametrize("is_tag", [False, True], ids=["clean-up last", "tag last"])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_clean_up_and_a_tag_of_what_it_takes_are_not_both_there(
    is_tag: bool, in_transaction: bool, repo: Repository
) -> None:
    main = repo.branch("main")
    for id in (1, 2, 3):
        write("lance", main.store_uri("t"), id)

    def tag(uri: str) -> None:
        esker.dataset(uri).tags.create("kept", 1)

    def clean(uri: str) -> None:
        esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0))

    first, last = (clean, tag) if is_tag else (tag, clean)
    others, done = Repository(repo.uri).branch("main"), list[HookEvent]()

    def meet(event: HookEvent) -> None:
        if not done:
            done.append(event)
            first(others.store_uri("t"))

    repo.add_hook("pre-commit", meet)
    by_uri = partial(last, main.store_uri("t"))
    by_transaction = partial(transact, repo, lambda tx: last(tx.store_uri("t")))
    with pytest.raises(TableConflictError, match="clean-up") as caught:
        (by_transaction if in_transaction else by_uri)()
    assert caught.value.retryable
    tags = esker.dataset(main.store_uri("t")).tags.list()
    assert list(tags) == ([] if is_tag else ["kept"])
    if tags:
        assert ids("lance", main.store_uri("t"), version=1) == [1]


def test_a_tag_made_meanwhile_names_no_version_of_a_table_that_is_made_anew(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    write("lance", uri, 1, mode="create")

    def anew(tx: TransactionBranch) -> None:
        tx.delete_objects([found.path for found in tx.objects(prefix="t/")])
        write("lance", tx.store_uri("t"), 7, mode="create")
        esker.dataset(uri).tags.create("kept", 1)

    with pytest.raises(TableConflictError, match="the table that was there before"):
        transact(repo, anew)
    assert ids("lance", uri, version=1) == [1]


def test_a_tag_of_a_version_whose_number_was_lost_to_it_is_in_nobody_s_way(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    write("lance", uri, 1, mode="create")

    def work(tx: TransactionBranch) -> None:
        write("lance", tx.store_uri("t"), 2)
        write("lance", uri, 3)
        esker.dataset(uri).tags.create("theirs", 2)

    transact(repo, work)
    assert ids("lance", uri) == [1, 2, 3]
    assert sorted(esker.dataset(uri).checkout_version("theirs").to_table()["id"].to_pylist()) == [1, 3]


@pytest.mark.parametrize("is_append", [False, True], ids=["names last", "append last"])
def test_manifests_that_are_renamed_and_a_version_of_the_old_names_are_not_both_there(
    is_append: bool, repo: Repository
) -> None:
    main = repo.branch("main")
    write("lance", main.store_uri("t"), 1, mode="create", enable_v2_manifest_paths=False)

    def rename(uri: str) -> None:
        esker.dataset(uri).migrate_manifest_paths_v2()

    def append(uri: str) -> None:
        write("lance", uri, 2)

    first, last = (rename, append) if is_append else (append, rename)

    def meet(tx: TransactionBranch) -> None:
        last(tx.store_uri("t"))
        first(main.store_uri("t"))

    with pytest.raises(TableConflictError, match="renamed its manifests") as caught:
        transact(repo, meet)
    assert caught.value.retryable
    assert ids("lance", main.store_uri("t")) == ([1] if is_append else [1, 2])
    transact(repo, lambda tx: last(tx.store_uri("t")))
    assert ids("lance", main.store_uri("t")) == [1, 2]


def test_an_open_handle_appends_nothing_under_the_old_names_of_manifests(repo: Repository) -> None:
    uri = repo.branch("main").store_uri("t")
    write("lance", uri, 1, mode="create", enable_v2_manifest_paths=False)
    old = esker.dataset(uri)
    esker.dataset(uri).migrate_manifest_paths_v2()
    with suppress(TableConflictError):
        old.insert(rows(2))
    write("lance", uri, 3)
    assert ids("lance", uri) in ([1, 3], [1, 2, 3])
