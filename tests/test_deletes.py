"""Rows deleted by one library are gone for both, and the files that say so are the ones that the other writes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import CommitConflictError, CorruptFileError, InvalidArgumentError
from esker.store import stores
from tests.lineage import same_lineage


def _numbers(count: int) -> pa.Table:
    values = [None if n % 7 == 3 else n % 5 for n in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int64()), "v": pa.array(values, pa.int32())})


def _table(uri: str, count: int = 40, per_file: int = 10, **options: object) -> esker.LanceDataset:
    return esker.write_dataset(_numbers(count), uri, max_rows_per_file=per_file, durable=False, **options)  # type: ignore[arg-type]


def _left(uri: str) -> list[int]:
    theirs, ours = lance.dataset(uri), esker.dataset(uri)
    theirs.validate()
    same_lineage(theirs, ours)
    assert ours.count_rows() == theirs.count_rows()
    return ours.to_table()["id"].to_pylist()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_both_delete_from_one_table_in_turn(uri: str, version: str, stable: bool) -> None:
    dataset = _table(uri, data_storage_version=version, enable_stable_row_ids=stable, allow_null_loss=version == "0.1")
    assert dataset.delete("id in (3, 15, 16)") == {"num_deleted_rows": 3}
    assert dataset.version == 2
    assert _left(uri) == [n for n in range(40) if n not in (3, 15, 16)]
    assert lance.dataset(uri).delete("id = 4 or id > 35") == {"num_deleted_rows": 5}
    assert esker.dataset(uri).delete("id = 3 or id = 5 or id = 17") == {"num_deleted_rows": 2}
    assert lance.dataset(uri).delete("id = 18") == {"num_deleted_rows": 1}
    gone = {3, 4, 5, 15, 16, 17, 18, 36, 37, 38, 39}
    assert _left(uri) == [n for n in range(40) if n not in gone]
    dataset.checkout_latest()
    assert dataset.take([3])["id"].to_pylist() == [6]
    assert [fragment.num_deletions for fragment in dataset.get_fragments()] == [3, 4, 0, 4]
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [7, 6, 10, 6]


def test_a_transaction_says_what_pylance_says(uri: str) -> None:
    dataset = _table(uri)
    dataset.delete("id < 12", commit_message="why")
    read = lance.dataset(uri).read_transaction(2)
    assert read.transaction_properties == {"__lance_commit_message": "why"}
    operation = read.operation
    assert isinstance(operation, lance.LanceOperation.Delete)
    assert operation.deleted_fragment_ids == [0]
    assert [fragment.id for fragment in operation.updated_fragments] == [1]
    assert operation.updated_fragments[0].deletion_file.num_deleted_rows == 2
    assert operation.predicate == "id < 12"


@pytest.mark.parametrize("condition", ["id<12", "id in (1,2)", "  id  =  1 ", "`name` like 'n%' AND not id>3", "true"])
def test_a_transaction_has_the_condition_as_it_was_written(condition: str, tmp_path: Path) -> None:
    found = []
    for library in (lance, esker):
        dataset = library.write_dataset(pa.table({"id": [1, 20], "name": ["n", "m"]}), tmp_path / library.__name__)
        dataset.delete(condition)
        found.append(dataset.read_transaction(2).operation.predicate)
    assert found == [condition, condition]


def test_a_fragment_without_rows_leaves_and_its_id_is_never_used_again(uri: str) -> None:
    dataset = _table(uri)
    dataset.delete("id >= 30")
    dataset.delete("id < 15")
    dataset.delete("id < 20")
    assert dataset.fragment_ids() == [2]
    dataset.insert(_numbers(3))
    assert dataset.fragment_ids() == [2, 4]
    assert not list(Path(uri, "_deletions").glob("0-*"))


@pytest.mark.parametrize(("count", "ending"), [(1, ".arrow"), (4999, ".arrow"), (5000, ".bin"), (9000, ".bin")])
def test_few_rows_make_an_arrow_file_and_many_a_bitmap_as_in_pylance(uri: str, count: int, ending: str) -> None:
    for folder, library in ((uri + "1", esker), (uri + "2", lance)):
        library.write_dataset(pa.table({"id": range(10_000)}), folder)
        library.dataset(folder).delete(f"id < {count}")
        (file,) = Path(folder, "_deletions").iterdir()
        assert file.name.startswith("0-1-")
        assert file.suffix == ending
        assert lance.dataset(folder).to_table()["id"].to_pylist() == list(range(count, 10_000))
        assert esker.dataset(folder).to_table()["id"].to_pylist() == list(range(count, 10_000))


@pytest.mark.parametrize("predicate", ["true", " TRUE ", "id >= 0", "id is not null or v = 3"])
def test_all_rows_may_go(uri: str, predicate: str) -> None:
    dataset = _table(uri)
    dataset.delete("id = 5")
    assert dataset.delete(predicate) == {"num_deleted_rows": 39}
    assert (dataset.count_rows(), dataset.fragment_ids(), dataset.schema.names) == (0, [], ["id", "v"])
    assert dataset.delete(predicate) == {"num_deleted_rows": 0}
    assert _left(uri) == []
    lance.write_dataset(_numbers(2), uri, mode="append")
    assert _left(uri) == [0, 1]


def test_a_truncated_table_keeps_its_columns(uri: str) -> None:
    dataset = _table(uri)
    dataset.truncate_table()
    assert (dataset.version, dataset.count_rows(), dataset.schema.names) == (2, 0, ["id", "v"])
    operation = lance.dataset(uri).read_transaction(2).operation
    assert (operation.deleted_fragment_ids, operation.updated_fragments) == ([0, 1, 2, 3], [])
    assert esker.dataset(uri, version=1).count_rows() == 40


def test_rows_for_which_the_predicate_is_null_stay(uri: str) -> None:
    dataset = _table(uri)
    nulls = dataset.count_rows("v is null")
    dataset.delete("v <> 100")
    assert dataset.count_rows() == nulls > 0
    assert len(_left(uri)) == nulls


def test_nothing_to_delete_makes_a_version_all_the_same(uri: str) -> None:
    dataset = _table(uri)
    assert dataset.delete("id > 100") == {"num_deleted_rows": 0}
    assert dataset.version == 2
    assert not Path(uri, "_deletions").exists()


def test_predicates_are_those_of_a_scan(uri: str) -> None:
    dataset = _table(uri)
    assert dataset.delete(pc.field("id") >= 35) == {"num_deleted_rows": 5}
    assert dataset.delete("_rowaddr = 7") == {"num_deleted_rows": 1}
    assert dataset.delete("_rowoffset < 2") == {"num_deleted_rows": 2}
    assert _left(uri) == [n for n in range(2, 35) if n != 7]
    for wrong in ("nothing = 3", "id + 3", "", "id =", "NULL"):
        with pytest.raises(InvalidArgumentError):
            dataset.delete(wrong)
    with pytest.raises(TypeError):
        dataset.delete(3)
    with pytest.raises(InvalidArgumentError, match="conflict_retries"):
        dataset.delete("id = 9", conflict_retries=-1)
    assert esker.dataset(uri).version == 4


def test_options_of_the_users_scans_do_not_hide_rows_from_a_delete(uri: str) -> None:
    _table(uri)
    dataset = esker.dataset(uri, default_scan_options={"columns": ["v"], "filter": "id < 3", "limit": 1})
    assert dataset.delete("id >= 2 and id < 30") == {"num_deleted_rows": 28}
    assert _left(uri) == [0, 1, *range(30, 40)]


def test_only_the_columns_of_the_predicate_are_read(uri: str) -> None:
    rows = pa.table({"id": range(10_000), "text": [f"{n:0200d}" for n in range(10_000)]})
    dataset = esker.write_dataset(rows, uri, data_storage_version="2.0", durable=False)
    dataset = esker.dataset(uri)
    dataset.io_stats()
    dataset.delete("id % 3 = 0")
    assert dataset.io_stats().read_bytes < 200_000


def test_a_dataset_of_an_older_version_deletes_on_top_of_the_newest(uri: str) -> None:
    stale = _table(uri)
    lance.dataset(uri).delete("id in (1, 11)")
    lance.write_dataset(_numbers(3), uri, mode="append")
    # Other rows of the same fragments: their deletions and ours are merged, in one attempt.
    assert stale.delete("id = 2 or id = 12", conflict_retries=0) == {"num_deleted_rows": 2}
    assert stale.version == 4
    assert _left(uri) == [n for n in range(40) if n not in (1, 2, 11, 12)] + [0, 1, 2]
    # A row that they deleted as well: computed again, where it counts no more.
    stale = esker.dataset(uri, version=1)
    with pytest.raises(CommitConflictError) as caught:
        stale.delete("id in (1, 3)", conflict_retries=0)
    assert (caught.value.operation, caught.value.other_operation, caught.value.retryable) == ("Delete", "Delete", True)
    assert stale.delete("id in (1, 3)") == {"num_deleted_rows": 2}
    assert _left(uri) == [0, *(n for n in range(4, 40) if n not in (11, 12)), 0, 2]


def test_what_leaves_no_room_is_a_conflict_with_both_operations(uri: str) -> None:
    stale = _table(uri)
    esker.write_dataset(_numbers(3), uri, mode="overwrite", durable=False)
    with pytest.raises(CommitConflictError) as caught:
        stale.delete("id = 1")
    assert (caught.value.operation, caught.value.other_operation, caught.value.retryable) == (
        "Delete",
        "Overwrite",
        False,
    )
    assert caught.value.version == 1


@pytest.mark.parametrize("theirs", [True, False], ids=["pylance among them", "esker alone"])
def test_many_writers_delete_from_the_same_fragments_at_once(uri: str, theirs: bool) -> None:
    _table(uri, 400, 100)
    failures: list[BaseException] = []
    counted: list[int] = []

    def work(number: int) -> None:
        try:
            for part in range(5):
                library = lance if theirs and number == 0 else esker
                done = library.dataset(uri).delete(f"id % 8 = {number} and id / 8 % 5 = {part}", conflict_retries=50)
                counted.append(done["num_deleted_rows"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(counted) == 350
    assert _left(uri) == list(range(7, 400, 8))
    assert esker.dataset(uri).version == 36


def test_writers_that_delete_the_same_rows_count_each_once(uri: str) -> None:
    _table(uri, 100, 100)
    counted: list[int] = []

    def work() -> None:
        counted.append(esker.dataset(uri).delete("id >= 10", conflict_retries=50)["num_deleted_rows"])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counted) == [0, 0, 0, 0, 0, 90]
    assert _left(uri) == list(range(10))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 29), min_size=1, max_size=12)), max_size=6))
def test_any_deletes_leave_what_a_set_leaves(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[int]]]
) -> None:
    uri = str(tmp_path_factory.mktemp("deletes") / "table")
    _table(uri, 30)
    left = set(range(30))
    for ours, rows in steps:
        library = esker if ours else lance
        done = library.dataset(uri).delete(f"id in ({', '.join(map(str, rows))})")
        assert done == {"num_deleted_rows": len(left & set(rows))}
        left -= set(rows)
    assert _left(uri) == sorted(left)


def test_a_damaged_deletion_file_is_told_before_anything_is_written(uri: str) -> None:
    dataset = _table(uri)
    dataset.delete("id in (1, 2, 3)")
    (file,) = Path(uri, "_deletions").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[: len(whole) // 2], b"x" * len(whole), whole + b"y"):
        file.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=file.name):
            esker.dataset(uri).delete("id = 7")
        assert list(Path(uri, "_deletions").iterdir()) == [file]
    file.unlink()
    with pytest.raises(FileNotFoundError):
        esker.dataset(uri).delete("id = 7")
    # Fragments that need no look at it go on.
    assert esker.dataset(uri).version == 2


CHANGES: dict[str, Callable[[esker.LanceDataset], object]] = {
    "delete": lambda it: it.delete("v = 1"),
    "update": lambda it: it.update({"v": "7"}, where="v = 1"),
    "merge_insert": lambda it: it.merge_insert("id").when_matched_update_all().execute(_numbers(15)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_ctrl_c_while_deletion_files_are_written_leaves_none_of_them(change: str, uri: str) -> None:
    _table(uri)

    def interrupt(verb: str, path: str) -> None:
        if path.startswith("_deletions/") and verb != "delete":
            signal.raise_signal(signal.SIGINT)

    stores.register("interrupted", lambda uri, options, durable: FaultStore(Store(uri[14:]), watch=interrupt).store)
    try:
        dataset = esker.dataset(f"interrupted://{uri}")
        with pytest.raises(KeyboardInterrupt):
            CHANGES[change](dataset)
    finally:
        del stores._factories["interrupted"]
    assert esker.dataset(uri).version == 1
    assert len(list(Path(uri, "data").iterdir())) == 4
    assert not Path(uri, "_deletions").exists() or not list(Path(uri, "_deletions").iterdir())
