"""Rows updated by one library are what the other would have made of them, at every place that a scan shows."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker.exceptions import CommitConflictError, InvalidArgumentError, SchemaMismatchError
from tests.lineage import same_lineage


def _rows(count: int = 20) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "a": pa.array(range(count), pa.int32()),
            "f": pa.array([n / 4 for n in range(count)], pa.float32()),
            "s": [f"s{n}" for n in range(count)],
            "t": pa.array([n * 10**6 for n in range(count)], pa.timestamp("us")),
            "st": [{"x": n, "y": "q"} for n in range(count)],
            "l": [[n] for n in range(count)],
            "d": pa.array([f"d{n % 3}" for n in range(count)]).dictionary_encode(),
        }
    )


def _pair(uri: str, **options: Any) -> tuple[esker.LanceDataset, lance.LanceDataset]:
    """One table twice: for us and for them."""
    made = [lance.write_dataset(_rows(), uri + end, max_rows_per_file=7, **options) for end in "12"]
    return esker.dataset(uri + "1"), made[1]


def _same(ours: esker.LanceDataset, theirs: lance.LanceDataset) -> None:
    """Our table, as both libraries read it, is their table."""
    assert ours.version == theirs.version
    lance.dataset(ours.uri).validate()
    same_lineage(lance.dataset(ours.uri), ours)
    same_lineage(theirs, ours)


UPDATES: list[tuple[dict[str, str], str | None]] = [
    ({"a": "a * 10"}, "id < 3"),
    ({"a": "1"}, None),
    ({"s": "'x' || s", "a": "NULL"}, "id % 3 = 0"),
    ({"a": "2.7"}, "id = 1"),
    ({"a": "-2.7"}, "id = 1"),
    ({"a": "'12'"}, "id = 1"),
    ({"s": "12"}, "id > 15"),
    ({"s": "f"}, "id > 15"),
    ({"f": "id / 3"}, "id > 5"),
    ({"t": "'2024-02-03 04:05:06'"}, "id > 5"),
    ({"st": "named_struct('x', id + 5, 'y', 'r')"}, "id = 8"),
    ({"l": "[1, 2]"}, "id = 8"),
    ({"d": "'new'"}, "id = 8"),
    ({"a": "length(s)"}, "s LIKE 's1%'"),
    ({"a": "5"}, "id > 1000"),
    ({"a": "5"}, "st.x = 3"),
]


@pytest.mark.parametrize(("updates", "where"), UPDATES, ids=[f"{u} where {w}" for u, w in UPDATES])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_an_update_makes_what_pylances_makes(
    uri: str, updates: dict[str, str], where: str | None, stable: bool
) -> None:
    ours, theirs = _pair(uri, enable_stable_row_ids=stable)
    assert ours.update(updates, where) == theirs.update(updates, where)
    _same(ours, theirs)
    own, other = (lance.dataset(d.uri).read_transaction(2).operation for d in (ours, theirs))
    assert sorted(own.fields_for_preserving_frag_bitmap) == sorted(other.fields_for_preserving_frag_bitmap)
    assert (sorted(own.removed_fragment_ids), own.update_mode) == (sorted(other.removed_fragment_ids), "rewrite_rows")
    deletions = [{f.id: f.num_deletions for f in operation.updated_fragments} for operation in (own, other)]
    assert deletions[0] == deletions[1]
    assert [f.num_rows for f in own.new_fragments] == [f.num_rows for f in other.new_fragments]


def test_new_values_are_computed_from_the_row_as_it_was(uri: str) -> None:
    # pylance computes one after the other, in any order: of an exchange it makes two equal columns.
    dataset, _ = _pair(uri)
    dataset.update({"a": "id + 100", "id": "CASE WHEN a > 10 THEN 0 ELSE a + 50 END"}, "id in (2, 16)")
    assert dataset.to_table(columns=["id", "a"]).to_pylist()[-2:] == [{"id": 52, "a": 102}, {"id": 0, "a": 116}]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_both_update_one_table_in_turn(uri: str, version: str) -> None:
    ours, theirs = _pair(uri, data_storage_version=version, enable_stable_row_ids=True)
    steps = [
        ({"a": "a + 1"}, "id % 2 = 0"),
        ({"a": "a + 10"}, "id % 3 = 0"),
        ({"s": "'again'"}, "id < 12"),
        ({"a": "0"}, "s = 'again' and a > 3"),
    ]
    for number, (updates, where) in enumerate(steps):
        theirs.update(updates, where)
        (esker if number % 2 else lance).dataset(ours.uri).update(updates, where)
        ours.checkout_latest()
        _same(ours, theirs)
        theirs.delete(f"id = {number}")
        (lance if number % 2 else esker).dataset(ours.uri).delete(f"id = {number}")
        ours.checkout_latest()
        _same(ours, theirs)


def test_files_of_version_0_1_name_their_fields_in_rising_order(uri: str) -> None:
    rows = pa.table({"k": [1, 2], "a": pa.array([1, 2], pa.int32()), "b": [5, 6]})
    dataset = esker.write_dataset(rows, uri, data_storage_version="legacy")
    # A column of another type has a new field id, before those of columns behind it.
    dataset.alter_columns({"path": "a", "data_type": pa.int64()})
    dataset.update({"b": "7"}, where="k = 1")
    peer = lance.dataset(uri)
    peer.validate()
    assert peer.to_table() == dataset.to_table()
    assert [file.fields for file in peer.get_fragments()[-1].data_files()] == [[0, 2, 3]]


def test_a_table_of_version_0_1_is_updated(uri: str) -> None:
    rows = pa.table({"id": range(10), "s": [f"s{n}" for n in range(10)]})
    ours = esker.write_dataset(rows, uri, data_storage_version="0.1", max_rows_per_file=4)
    assert ours.update({"s": "'new'"}, "id in (1, 5)") == {"num_rows_updated": 2}
    assert lance.dataset(uri).update({"s": "'newer'"}, "id = 5 or id = 9") == {"num_rows_updated": 2}
    ours.checkout_latest()
    expected = {n: f"s{n}" for n in range(10)} | {1: "new", 5: "newer", 9: "newer"}
    found = ours.to_table().to_pylist()
    assert {row["id"]: row["s"] for row in found} == expected
    assert lance.dataset(uri).to_table().to_pylist() == found


@pytest.mark.parametrize(
    ("updates", "where", "error"),
    [
        ({}, None, InvalidArgumentError),
        ({"nothing": "1"}, None, InvalidArgumentError),
        ({"A": "1"}, None, InvalidArgumentError),
        ({"st.nothing": "1"}, None, InvalidArgumentError),
        ({"st": "st", "st.x": "1"}, None, InvalidArgumentError),
        ({"_rowid": "1"}, None, InvalidArgumentError),
        ({"a": "_rowid"}, None, InvalidArgumentError),
        ({"a": "nothing + 1"}, None, InvalidArgumentError),
        ({"a": "a +"}, None, InvalidArgumentError),
        ({"a": "1"}, "nothing = 1", InvalidArgumentError),
        ({"a": "3000000000"}, "id = 1", InvalidArgumentError),
        ({"a": "'text'"}, "id = 1", InvalidArgumentError),
        ({"a": 7}, "id = 1", TypeError),
    ],
)
def test_what_cannot_be_done_changes_nothing(uri: str, updates: Any, where: str | None, error: type[Exception]) -> None:
    ours, theirs = _pair(uri)
    with pytest.raises(error):
        ours.update(updates, where)
    with pytest.raises((ValueError, TypeError, OSError)):
        theirs.update(updates, where)
    assert (ours.version, esker.dataset(ours.uri).version) == (1, 1)
    assert len(list(Path(ours.uri, "data").iterdir())) == 3
    assert not Path(ours.uri, "_deletions").exists()


def test_a_null_in_a_column_that_has_none_is_refused(uri: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}, schema=schema), uri)
    with pytest.raises(SchemaMismatchError, match="id"):
        dataset.update({"id": "NULL"})
    assert esker.dataset(uri).version == 1


def test_a_pyarrow_expression_may_say_which_rows(uri: str) -> None:
    ours, theirs = _pair(uri)
    for dataset in (ours, theirs):
        assert dataset.update({"a": "5"}, where=pc.field("id") == 2) == {"num_rows_updated": 1}
    _same(ours, theirs)


def test_blobs_move_with_their_rows(uri: str) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    blobs = [bytes([n]) * (n * 30_000 + 1) for n in range(8)]
    rows = pa.table({"id": range(8), "b": blobs}, schema=pa.schema([("id", pa.int64()), field]))
    for version in ("2.0", "2.2"):
        dataset = esker.write_dataset(rows, uri + version, data_storage_version=version)
        assert dataset.update({"id": "id + 100"}, "id in (2, 7)") == {"num_rows_updated": 2}
        for each in (dataset, lance.dataset(uri + version)):
            found = each.to_table(blob_handling="all_binary")
            assert found["id"].to_pylist() == [0, 1, 3, 4, 5, 6, 102, 107]
            assert found["b"].to_pylist() == [blobs[n % 100] for n in found["id"].to_pylist()]


def test_columns_that_came_later_are_updated_too(uri: str) -> None:
    ours, theirs = _pair(uri, enable_stable_row_ids=True)
    for dataset in (ours, theirs):
        dataset.add_columns({"twice": "id * 2"})
        dataset.drop_columns(["f"])
        dataset.update({"twice": "twice + 1", "s": "NULL"}, where="id > 10")
    _same(ours, theirs)


def test_a_stale_dataset_updates_on_top_of_the_newest(uri: str) -> None:
    stale, _ = _pair(uri)
    lance.dataset(stale.uri).update({"a": "a + 100"}, where="id = 1 or id = 8")
    lance.write_dataset(_rows(1), stale.uri, mode="append")
    # Other rows of the same fragments: nothing is computed again.
    assert stale.update({"a": "a + 1000"}, where="id in (2, 9)", conflict_retries=0) == {"num_rows_updated": 2}
    values = {row["id"]: row["a"] for row in stale.to_table(columns=["id", "a"]).to_pylist()}
    assert {n: values[n] for n in (1, 2, 8, 9)} == {1: 101, 2: 1002, 8: 108, 9: 1009}
    # A row of which they changed the value: computed again from it.
    old = esker.dataset(stale.uri, version=1)
    with pytest.raises(CommitConflictError) as caught:
        old.update({"a": "a + 1000"}, where="id = 1", conflict_retries=0)
    assert (caught.value.operation, caught.value.other_operation, caught.value.retryable) == ("Update", "Update", True)
    assert old.update({"a": "a + 1000"}, where="id = 1") == {"num_rows_updated": 1}
    assert old.to_table(filter="id = 1")["a"].to_pylist() == [1101]


COLUMN_CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "dropped": lambda dataset: dataset.drop_columns(["c"]),
    "dropped with its file": lambda dataset: dataset.drop_columns(["added"]),
    "renamed": lambda dataset: dataset.alter_columns({"path": "c", "name": "new"}),
    "added": lambda dataset: dataset.add_columns({"z": "id * 2"}),
    "added as nulls": lambda dataset: dataset.add_columns(pa.field("z", pa.int32())),
    "cast": lambda dataset: dataset.alter_columns({"path": "c", "data_type": pa.int32()}),
}


@pytest.mark.parametrize("change", list(COLUMN_CHANGES))
@pytest.mark.parametrize("kind", ["append", "update", "delete"])
def test_changes_of_rows_go_on_top_of_changes_of_columns(uri: str, kind: str, change: str) -> None:
    rows = pa.table({"id": range(6), "x": range(6), "c": range(6)})
    lance.write_dataset(rows, uri, data_storage_version="2.1").add_columns({"added": "id + 1"})
    stale = esker.dataset(uri)
    COLUMN_CHANGES[change](lance.dataset(uri))
    new = pa.table({"id": [9], "x": [9], "c": [9], "added": [10]})
    if (kind, change) == ("append", "cast"):
        # pylance appends, and what it appended to the column is read as null.
        with pytest.raises(CommitConflictError) as caught:
            stale.insert(new)
        assert (caught.value.other_operation, caught.value.retryable) == ("Merge", True)
        return
    {
        "append": lambda: stale.insert(new),
        "update": lambda: stale.update({"x": "x + 100"}, where="id = 1"),
        "delete": lambda: stale.delete("id = 1"),
    }[kind]()
    expected = [{**row, "added": row["id"] + 1} for row in rows.to_pylist()]
    if kind == "append":
        expected.append(new.to_pylist()[0])
    else:
        (gone,) = [row for row in expected if row["id"] == 1]
        expected.remove(gone)
        if kind == "update":
            expected.append({**gone, "x": 101})
    for row in expected:
        if change.startswith("dropped"):
            del row["c" if change == "dropped" else "added"]
        if change == "renamed":
            row["new"] = row.pop("c")
        if change.startswith("added"):
            row["z"] = row["id"] * 2 if change == "added" and row["id"] != 9 else None
    assert stale.to_table().to_pylist() == lance.dataset(uri).to_table().to_pylist() == expected
    # A later column gets an id of its own, or one that nothing is found under.
    lance.dataset(uri).add_columns(pa.field("later", pa.int64()))
    assert esker.dataset(uri).count_rows("later is not null") == 0
    assert lance.dataset(uri).count_rows("later is not null") == 0


def test_a_numbered_change_happens_once(uri: str) -> None:
    dataset, _ = _pair(uri)
    for rows in (20, 0, 0):
        done = esker.dataset(dataset.uri).update({"a": "a + 1"}, application=("nightly", 5))
        assert done == {"num_rows_updated": rows}
    for rows in (1, 0):
        gone = dataset.delete("id = 3 or id = 100 + a", application=("nightly", 6))
        assert gone == {"num_deleted_rows": rows}
        assert dataset.version == 3
    assert dataset.delete("id = 4", application=("nightly", 5)) == {"num_deleted_rows": 0}
    found = {row["id"]: row["a"] for row in lance.dataset(dataset.uri).to_table(columns=["id", "a"]).to_pylist()}
    assert found == {n: n + 1 for n in range(20) if n != 3}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_increments_of_one_row_by_many_writers_all_count(uri: str, stable: bool) -> None:
    rows = pa.table({"id": range(10), "n": [0] * 10})
    esker.write_dataset(rows, uri, max_rows_per_file=5, enable_stable_row_ids=stable, durable=False)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(4):
                # One row that all want, and one of one's own beside it.
                esker.dataset(uri).update({"n": "n + 1"}, f"id = 0 or id = {number}", conflict_retries=200)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = {row["id"]: row["n"] for row in esker.dataset(uri).to_table().to_pylist()}
    assert found == {0: 16, 1: 4, 2: 4, 3: 4, 4: 4, 5: 0, 6: 0, 7: 0, 8: 0, 9: 0}
    same_lineage(lance.dataset(uri), esker.dataset(uri))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.lists(st.integers(0, 29), min_size=1, max_size=12)), max_size=6)
)
def test_any_updates_and_deletes_keep_ids_and_versions(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, bool, list[int]]]
) -> None:
    uri = str(tmp_path_factory.mktemp("updates") / "table")
    rows = pa.table({"id": range(30), "n": [0] * 30})
    esker.write_dataset(rows, uri, max_rows_per_file=11, enable_stable_row_ids=True, durable=False)
    model = dict.fromkeys(range(30), 0)
    for ours, deletes, keys in steps:
        dataset = (esker if ours else lance).dataset(uri)
        condition = f"id in ({', '.join(map(str, keys))})"
        if deletes:
            dataset.delete(condition)
            model = {key: value for key, value in model.items() if key not in keys}
        else:
            dataset.update({"n": "n + 1"}, condition)
            model = {key: value + (key in keys) for key, value in model.items()}
    same_lineage(lance.dataset(uri), esker.dataset(uri))
    found = esker.dataset(uri).to_table(columns=["id", "n", "_rowid", "_row_created_at_version"]).to_pylist()
    assert {row["id"]: row["n"] for row in found} == model
    assert all(row["_rowid"] == row["id"] and row["_row_created_at_version"] == 1 for row in found)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_pylance_finds_changed_rows_by_its_indices(uri: str, stable: bool) -> None:
    rows = pa.table({"id": range(600), "a": [n % 50 for n in range(600)], "b": [n % 7 for n in range(600)]})
    lance.write_dataset(rows, uri, max_rows_per_file=200, enable_stable_row_ids=stable)
    for column, kind in (("id", "BTREE"), ("a", "BTREE"), ("b", "BITMAP")):
        lance.dataset(uri).create_scalar_index(column, kind)
    model = {n: (n % 50, n % 7) for n in range(600)}
    for step in range(8):
        modulus = step % 4 + 2
        if step % 3 == 2:
            esker.dataset(uri).delete(f"id % {modulus * 7} = 1")
            model = {n: value for n, value in model.items() if n % (modulus * 7) != 1}
        else:
            esker.dataset(uri).update({"a": "a + 1"}, where=f"id % {modulus} = 0")
            model = {n: (a + (n % modulus == 0), b) for n, (a, b) in model.items()}
        theirs = lance.dataset(uri)
        queries: list[tuple[str, Callable[[int, int, int], bool]]] = [
            ("a = 5", lambda n, a, b: a == 5),
            ("a > 40", lambda n, a, b: a > 40),
            ("id < 20", lambda n, a, b: n < 20),
            ("a = 6 and b = 2", lambda n, a, b: (a, b) == (6, 2)),
        ]
        for query, holds in queries:
            expected = sorted(n for n, (a, b) in model.items() if holds(n, a, b))
            assert sorted(theirs.to_table(filter=query)["id"].to_pylist()) == expected, (step, query)
            assert sorted(esker.dataset(uri).to_table(filter=query)["id"].to_pylist()) == expected, (step, query)


MEMORY = """
import sys, threading, psutil, pyarrow as pa, esker
uri = sys.argv[1]
esker.write_dataset(pa.table({"id": [1], "text": ["x"]}), uri + "-warm").update({"id": "id + 1"})
process = psutil.Process()
before = process.memory_info().rss
peak, done = 0, threading.Event()
def watch():
    global peak
    while not done.wait(0.005):
        peak = max(peak, process.memory_info().rss)
thread = threading.Thread(target=watch); thread.start()
assert esker.dataset(uri).update({"id": "id + 1"})["num_rows_updated"] == int(sys.argv[2])
done.set(); thread.join()
print(peak - before)
"""


def test_an_update_of_all_rows_does_not_hold_them(uri: str) -> None:
    count, rows = 150, 10_000  # 150 MB of text that does not compress well.
    schema = pa.schema([("id", pa.int64()), ("text", pa.binary())])

    def stream() -> Any:
        import random

        for number in range(count):
            ids = range(number * rows, (number + 1) * rows)
            yield pa.record_batch([pa.array(ids), [random.randbytes(100) for _ in ids]], schema=schema)

    esker.write_dataset(stream(), uri, schema=schema, durable=False)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, uri, str(count * rows)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The write's limit of 128 MiB and what reads ahead; the rows as they are in memory would be 170 MB more.
    assert int(done.stdout) < 420 << 20, f"{int(done.stdout) >> 20} MiB"


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_fields_within_structs_are_updated_where_the_structs_are_there(uri: str, version: str) -> None:
    inner = pa.struct([("z", pa.int64())])
    rows: list[Any] = [{"a": 1, "n": {"z": 1}}, {"a": 2, "n": {"z": 5}}, {"a": 3, "n": {"z": 7}}]
    if version in ("2.1", "2.2"):
        rows = [rows[0], None, {"a": 3, "n": None}]
    table = pa.table({"id": [1, 2, 3], "s": pa.array(rows, pa.struct([("a", pa.int64()), ("n", inner)]))})
    dataset = esker.write_dataset(table, uri, data_storage_version=version, enable_stable_row_ids=True)
    dataset.update({"s.a": "id * 10", "s.n.z": "s.a"}, "id > 1")
    lance.dataset(uri).validate()
    expected = [rows[0]]
    for number, row in ((2, rows[1]), (3, rows[2])):
        expected.append(row and {"a": number * 10, "n": row["n"] and {"z": row["a"]}})
    for found in (lance.dataset(uri), esker.dataset(uri)):
        assert found.to_table().sort_by("id")["s"].to_pylist() == expected
