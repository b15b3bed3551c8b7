"""Histories of tables on branches in which a table once broke, one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError
from esker.repo import Branch, MergeConflictError, Repository, TransactionBranch
from esker.repo.errors import TableConflictError
from tests.table_histories import Format, Rows, find_content, peers_rows, read_rows, rows_of, write

FORMATS: list[Format] = ["lance", "delta"]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


def add(branch: Branch, format: Format, *ids: int, mode: str = "append") -> None:
    with branch.transact(f"{mode} {ids}") as tx:
        write(tx.store_uri("t"), format, ids, mode)


def rows(repo: Repository, ref: str = "main", path: str = "t") -> Rows:
    log = find_content(repo.ref(ref))[0][path]
    return read_rows(repo.ref(ref).store_uri(path), log.format)


def drop(branch: Branch | TransactionBranch) -> None:
    branch.delete_objects([found.path for found in branch.objects(prefix="t/")])


def clean(uri: str) -> None:
    esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)


def sound(repo: Repository, folder: Path) -> None:
    """Nothing is missing, and the peers read each branch as esker does."""
    assert list(Repository(repo.uri).fsck(tables=True)) == []
    for branch in repo.branches():
        place = folder / branch.id
        repo.ref(branch.id).export(str(place))
        for path, log in find_content(repo.ref(branch.id))[0].items():
            assert peers_rows(place / path, log.format) == rows(repo, branch.id, path)


def test_two_tables_on_two_branches(repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    with main.transact("both") as tx:
        for format in FORMATS:
            write(tx.store_uri(format), format, [1], "append")
    for id in (2,):
        with main.transact("more") as tx:
            for format in FORMATS:
                write(tx.store_uri(format), format, [id], "append")
    side = repo.branch("f").create("main")
    for branch, id in ((side, 10), (main, 20)):
        with branch.transact("apart") as tx:
            for format in FORMATS:
                write(tx.store_uri(format), format, [id], "append")
    assert [rows(repo, "main~2", format) for format in FORMATS] == [(1,), (1,)]
    with pytest.raises(TableConflictError) as refused:
        side.merge_into("main")
    assert [(one.table, one.kind) for one in refused.value.tables] == [("delta", "diverged"), ("lance", "diverged")]
    for strategy, expected in (("source-wins", (1, 2, 10)), ("dest-wins", (1, 2, 20))):
        repo.branch(strategy).create("main")
        side.merge_into(strategy, strategy=strategy)
        assert [rows(repo, strategy, format) for format in FORMATS] == [expected] * 2
    sound(repo, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_reset_under_a_transaction_is_a_conflict(format: Format, repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    add(main, format, 1)
    first = main.get_commit().id
    add(main, format, 2)
    add(main, format, 3)

    def late() -> None:
        with main.transact("late") as tx:
            write(tx.store_uri("t"), format, [4], "append")
            Repository(repo.uri).branch("main").reset_to(first)

    with pytest.raises(TableConflictError) as refused:
        late()
    assert [(one.table, one.kind) for one in refused.value.tables] == [("t", "reset")]
    assert rows(repo) == (1,)
    add(main, format, 5)
    assert rows(repo) == (1, 5)
    sound(repo, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_is_dropped_under_a_transaction_is_a_conflict(
    format: Format, repo: Repository, tmp_path: Path
) -> None:
    main = repo.branch("main")
    add(main, format, 1)
    add(main, format, 2)

    def append(between: Callable[[], None]) -> None:
        with main.transact("append") as tx:
            write(tx.store_uri("t"), format, [3], "append")
            between()

    def others_drop() -> None:
        other = Repository(repo.uri).branch("main")
        drop(other)
        other.commit("drop")

    with pytest.raises(TableConflictError) as refused:
        append(others_drop)
    assert [(one.table, one.kind) for one in refused.value.tables] == [("t", "dropped")]
    assert list(repo.ref("main").objects()) == []
    sound(repo, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_drop_under_which_others_append_is_a_conflict(format: Format, repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    add(main, format, 1)

    def dropping() -> None:
        with main.transact("drop") as tx:
            drop(tx)
            add(Repository(repo.uri).branch("main"), format, 2)

    with pytest.raises(MergeConflictError):
        dropping()
    assert rows(repo) == (1, 2)
    sound(repo, tmp_path)


@pytest.mark.parametrize("restores_first", [True, False])
def test_a_clean_up_and_a_restore_at_once_keep_the_files(
    restores_first: bool, repo: Repository, tmp_path: Path
) -> None:
    main = repo.branch("main")
    add(main, "lance", 1)
    add(main, "lance", 2, mode="overwrite")

    def restore(branch: Branch, between: Callable[[], None]) -> None:
        with branch.transact("restore") as tx:
            esker.dataset(tx.store_uri("t"), version=1).restore()
            between()

    def clean_up(branch: Branch, between: Callable[[], None]) -> None:
        with branch.transact("clean up") as tx:
            clean(tx.store_uri("t"))
            between()

    other = Repository(repo.uri).branch("main")
    begins, comes_between = (restore, clean_up) if restores_first else (clean_up, restore)
    try:
        begins(main, lambda: comes_between(other, lambda: None))
    except TableConflictError as error:
        assert [(one.table, one.kind) for one in error.tables] == [("t", "cleaned-up")]  # noqa: PT017
        assert rows(repo) == ((2,) if restores_first else (1,))
    else:
        assert rows(repo) == (1,)
    add(main, "lance", 3)
    sound(repo, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_one_commit_covers_ten_tables_at_the_price_of_one(format: Format) -> None:
    repo = Repository.create(f"memory://ten-tables-{format}", committer="me")
    with repo.branch("main").transact("make") as tx:
        for n in range(10):
            write(tx.store_uri(f"t{n}"), format, [n], "append")
    counts = {}
    for count in (0, 1, 2, 10):
        other = Repository(repo.uri)
        before = other._core.store.io_stats_snapshot()
        with other.branch("main").transact("append") as tx:
            tx.object("plain").upload(str(count))
            for n in range(count):
                write(tx.store_uri(f"t{n}"), format, [100], "append")
        after = other._core.store.io_stats_snapshot()
        counts[count] = after.write_iops - before.write_iops
    # What the tables themselves write, and the same for the repository.
    each = counts[1] - counts[0]
    assert counts == {count: counts[0] + count * each for count in counts}
    assert each <= 3


@pytest.mark.parametrize("format", FORMATS)
def test_peers_read_what_is_exported_with_its_history(format: Format, repo: Repository, tmp_path: Path) -> None:
    import deltalake
    import lance

    main = repo.branch("main")
    add(main, format, 1)
    add(main, format, 2)
    repo.ref("main").export(str(tmp_path / "out"))
    place = str(tmp_path / "out/t")
    told = lance.dataset(place).versions() if format == "lance" else deltalake.DeltaTable(place).history()
    assert len(told) == 2
    assert all(one["timestamp"] for one in told)
    assert peers_rows(tmp_path / "out/t", format) == (1, 2)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("live", [False, True], ids=["transaction", "held handle"])
def test_an_append_never_lands_in_another_table(format: Format, live: bool, repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    add(main, format, 1)
    add(main, format, 2)
    held = esker.dataset(main.store_uri("t")) if format == "lance" else None
    held_delta = DeltaTable(main.store_uri("t")) if format == "delta" else None
    another = pa.table({"id": ["text"], "w": [1.5]})

    def replace() -> None:
        with Repository(repo.uri).branch("main").transact("another table") as tx:
            drop(tx)
            for _ in range(2):
                if format == "lance":
                    esker.write_dataset(another, tx.store_uri("t"), mode="append" if _ else "create")
                else:
                    write_deltalake(tx.store_uri("t"), another, mode="append")

    def append() -> None:
        with main.transact("append") as tx:
            write(tx.store_uri("t"), format, [3], "append")
            replace()

    def append_to_held() -> None:
        replace()
        if held is not None:
            esker.write_dataset(rows_of([3]), held, mode="append")
        elif held_delta is not None:
            write_deltalake(held_delta, rows_of([3]), mode="append")

    with pytest.raises(CommitConflictError):
        append_to_held() if live else append()
    log = find_content(repo.ref("main"))[0]["t"]
    assert len(log.entries) == 2
    uri = repo.ref("main").store_uri("t")
    found = esker.dataset(uri).to_table() if format == "lance" else DeltaTable(uri).to_pyarrow_table()
    assert found["id"].to_pylist() == ["text", "text"]
    assert list(Repository(repo.uri).fsck(tables=True)) == []


@pytest.mark.parametrize("format", FORMATS)
def test_tables_of_two_formats_that_are_created_at_once_are_a_conflict(
    format: Format, repo: Repository, tmp_path: Path
) -> None:
    main, other = repo.branch("main"), FORMATS[1 - FORMATS.index(format)]

    def create() -> None:
        with main.transact("mine") as tx:
            write(tx.store_uri("t"), format, [1], "create")
            add(Repository(repo.uri).branch("main"), other, 2, mode="create")

    with pytest.raises(TableConflictError) as refused:
        create()
    assert [(one.table, one.format, one.kind) for one in refused.value.tables] == [("t", other, "both-created")]
    assert rows(repo) == (2,)
    sound(repo, tmp_path)


def test_a_clean_up_of_a_delta_log_that_lost_the_branch_takes_no_entry(repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    with main.transact("make") as tx:
        at_once = {"delta.logRetentionDuration": "interval 0 days", "delta.enableExpiredLogCleanup": "false"}
        write_deltalake(tx.store_uri("t"), rows_of([1]), configuration=at_once)
        write_deltalake(tx.store_uri("t"), rows_of([2]), mode="append")
    with main.transact("clean up, and append") as tx:
        DeltaTable(tx.store_uri("t")).create_checkpoint()
        DeltaTable(tx.store_uri("t")).cleanup_metadata()
        write(tx.store_uri("t"), "delta", [3], "append")
        add(Repository(repo.uri).branch("main"), "delta", 4)
    # The checkpoint that stood for them was of a log that went on otherwise.
    assert sorted(find_content(repo.ref("main"))[0]["t"].entries) == [0, 1, 2, 3]
    assert rows(repo) == (1, 2, 3, 4)
    sound(repo, tmp_path)


def test_a_restore_is_replayed_over_what_others_have_overwritten(repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    add(main, "lance", 1)
    add(main, "lance", 2)
    with main.transact("restore") as tx:
        esker.dataset(tx.store_uri("t"), version=1).restore()
        add(Repository(repo.uri).branch("main"), "lance", 4, mode="overwrite")
    assert tx.versions == {"t": (4,)}
    assert rows(repo) == (1,)
    sound(repo, tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_versions_of_a_table_that_was_dropped_and_made_anew_are_the_new_ones(format: Format, repo: Repository) -> None:
    main = repo.branch("main")
    with main.transact("twice") as tx:
        write(tx.store_uri("t"), format, [1], "create")
        drop(tx)
        write(tx.store_uri("t"), format, [2], "create")
    assert tx.versions == {"t": tuple(find_content(repo.ref("main"))[0]["t"].entries)}
    assert rows(repo) == (2,)


@pytest.mark.parametrize("format", FORMATS)
def test_a_merge_that_drops_a_table_leaves_none_of_its_files(format: Format, repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    add(main, format, 1)
    add(main, format, 2)
    side = repo.branch("side").create("main")
    drop(side)
    side.commit("drop")
    # A file of the table's own to which no version refers, as an attempt leaves it.
    main.object("t/_transactions/left.txn" if format == "lance" else "t/part-left.parquet").upload(b"left")
    main.commit("left behind")
    side.merge_into("main")
    assert list(repo.ref("main").objects()) == []
    sound(repo, tmp_path)
