"""Stable row ids that esker writes: pylance reads them, and both take turns on one table."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from tests.lineage import SYSTEM, rows, same_lineage, versions


def create(uri: str, count: int = 100, **options: Any) -> esker.LanceDataset:
    return esker.write_dataset(rows(0, count), uri, enable_stable_row_ids=True, **options)


def ids(dataset: esker.LanceDataset | lance.LanceDataset) -> list[int]:
    found = dataset.to_table(columns=["_rowid"])["_rowid"].to_pylist()
    assert len(set(found)) == len(found)
    return found


def test_a_new_table_numbers_its_rows(uri: str) -> None:
    dataset = create(uri, max_rows_per_file=30)
    assert dataset.has_stable_row_ids
    assert lance.dataset(uri).has_stable_row_ids
    assert ids(dataset) == list(range(100))
    same_lineage(lance.dataset(uri), dataset)
    assert lance.dataset(uri)._take_rows([99, 3, 50]).equals(dataset.take_rows([99, 3, 50]))


def test_an_append_counts_on(uri: str) -> None:
    create(uri)
    dataset = esker.write_dataset(rows(100, 150), uri, mode="append", max_rows_per_file=20)
    assert ids(dataset) == list(range(150))
    lance.write_dataset(rows(150, 160), uri, mode="append")
    dataset = esker.write_dataset(rows(160, 161), uri, mode="append")
    assert ids(dataset) == list(range(161))
    for theirs, ours in versions(uri):
        same_lineage(theirs, ours)


def test_an_overwrite_gives_new_ids(uri: str) -> None:
    create(uri)
    dataset = esker.write_dataset(rows(0, 10), uri, mode="overwrite")
    assert dataset.has_stable_row_ids
    assert ids(dataset) == list(range(100, 110))
    assert dataset.take_rows([5]).num_rows == 0
    same_lineage(lance.dataset(uri), dataset)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_table_has_it_keeps(uri: str, mode: str, first: bool) -> None:
    for library in (lance, esker):
        path = f"{uri}-{library.__name__}"
        library.write_dataset(rows(0, 3), path, enable_stable_row_ids=first)
        library.write_dataset(rows(3, 6), path, mode=mode, enable_stable_row_ids=not first)
        assert library.dataset(path).has_stable_row_ids == first


def test_a_commit_by_hand_may_create_a_table_with_stable_ids(uri: str) -> None:
    fragments = esker.fragment.write_fragments(rows(0, 5), uri, mode="create")
    operation = esker.LanceOperation.Overwrite(rows(0, 5).schema, fragments)
    dataset = esker.LanceDataset.commit(uri, operation, enable_stable_row_ids=True)
    assert ids(dataset) == list(range(5))
    appended = esker.LanceOperation.Append(esker.fragment.write_fragments(rows(5, 7), uri))
    dataset = esker.LanceDataset.commit(uri, appended, read_version=1)
    assert ids(dataset) == list(range(7))
    same_lineage(lance.dataset(uri), dataset)


def test_concurrent_appends_share_no_id(uri: str) -> None:
    create(uri, 10)
    base = esker.dataset(uri)

    def append(number: int) -> None:
        data = rows(100 * number, 100 * number + 10)
        if number % 3:
            esker.write_dataset(data, base, mode="append", commit_timeout=timedelta(minutes=5))
        else:
            lance.write_dataset(data, uri, mode="append")

    threads = [threading.Thread(target=append, args=[number]) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dataset = esker.dataset(uri)
    assert sorted(ids(dataset)) == list(range(90))
    found = dataset.to_table(columns=["k", "_rowid", "_row_created_at_version"]).to_pylist()
    by_version: dict[int, set[int]] = {}
    for row in found:
        by_version.setdefault(row["_row_created_at_version"], set()).add(row["k"] // 100)
    # Each version has the rows of one append.
    assert all(len(appends) == 1 for appends in by_version.values())
    same_lineage(lance.dataset(uri), dataset)


def test_pylance_changes_our_tables_in_every_way(uri: str) -> None:
    create(uri, 200, max_rows_per_file=50)
    theirs = lance.dataset(uri)
    theirs.update({"v": "'a'"}, where="k % 7 = 0")
    theirs.delete("k % 11 = 0")
    theirs.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"k": [1, 500, 2], "v": ["m", "m", "m"]})
    )
    theirs.optimize.compact_files()
    esker.write_dataset(rows(600, 610), uri, mode="append")
    theirs = lance.dataset(uri)
    theirs.add_columns({"twice": "k * 2"})
    for theirs, ours in versions(uri):
        same_lineage(theirs, ours)
        wanted = ids(ours)
        random.Random(5).shuffle(wanted)
        assert ours.take_rows(wanted).equals(theirs._take_rows(wanted))


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.add_columns({"twice": "k * 2"}),
        lambda dataset: dataset.add_columns(pa.field("empty", pa.int8())),
        lambda dataset: dataset.alter_columns({"path": "v", "name": "w"}),
        lambda dataset: dataset.alter_columns({"path": "k", "data_type": pa.int32()}),
        lambda dataset: dataset.drop_columns(["v"]),
        lambda dataset: dataset.restore(),
    ],
    ids=["computed", "null", "renamed", "cast", "dropped", "restored"],
)
def test_changes_of_columns_leave_the_lineage_that_pylance_leaves(
    uri: str, change: Callable[[esker.LanceDataset | lance.LanceDataset], object]
) -> None:
    found = []
    for library in (esker, lance):
        path = f"{uri}-{library.__name__}"
        create(path, max_rows_per_file=40)
        lance.dataset(path).update({"v": "'u'"}, where="k % 9 = 0")
        change(library.dataset(path))
        same_lineage(lance.dataset(path), esker.dataset(path))
        found.append(esker.dataset(path).to_table(columns=["k", *SYSTEM]).to_pydict())
    assert found[0] == found[1]


def test_ids_given_out_before_a_restore_are_not_given_out_again(uri: str) -> None:
    create(uri, 10)
    esker.write_dataset(rows(10, 20), uri, mode="append")
    lance.dataset(uri, version=1).restore()
    dataset = esker.write_dataset(rows(20, 25), uri, mode="append")
    assert ids(dataset) == [*range(10), *range(20, 25)]
    same_lineage(lance.dataset(uri), dataset)


@settings(max_examples=10)
@given(
    steps=st.lists(
        st.tuples(
            st.booleans(), st.sampled_from(["append", "overwrite", "delete", "update", "compact"]), st.integers(2, 30)
        ),
        max_size=10,
    )
)
def test_both_libraries_take_turns(
    steps: list[tuple[bool, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    uri = str(tmp_path_factory.mktemp("turns") / "table.lance")
    create(uri, 60, max_rows_per_file=25)
    model = {row["_rowid"]: row for row in esker.dataset(uri).to_table(columns=["k", "v", *SYSTEM]).to_pylist()}
    highest = 59
    for by_us, step, number in steps:
        library = esker if by_us else lance
        theirs = lance.dataset(uri)
        if step in ("append", "overwrite"):
            library.write_dataset(rows(number * 100, number * 101), uri, mode=step, max_rows_per_file=9)
        elif step == "delete":
            theirs.delete(f"k % {number} = 1")
        elif step == "update":
            theirs.update({"v": f"'{number}'"}, where=f"k % {number} = 0")
        else:
            theirs.optimize.compact_files()
        ours = esker.dataset(uri)
        same_lineage(lance.dataset(uri), ours)
        found = {row["_rowid"]: row for row in ours.to_table(columns=["k", "v", *SYSTEM]).to_pylist()}
        assert len(found) == ours.count_rows()
        for row_id, row in found.items():
            # A row that was there has kept key and birth; any other has an id that nobody ever had.
            if row_id in model:
                assert row["k"] == model[row_id]["k"]
                assert row["_row_created_at_version"] == model[row_id]["_row_created_at_version"]
            else:
                assert row_id > highest
        highest = max([highest, *found])
        model = found
