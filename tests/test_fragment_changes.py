"""Fragments changed by themselves, on one machine or many, and committed by one: both libraries read the same."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker import LanceDataset, LanceOperation
from esker._native.deletion import RowsToDelete
from esker.exceptions import EskerError, InvalidArgumentError, SchemaMismatchError
from esker.fragment import DeletionFile, FragmentMetadata
from tests.lineage import same_lineage


def _rows(count: int = 40) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "a": pa.array(range(count), pa.int32()),
            "s": [f"s{n}" for n in range(count)],
            "st": [{"x": n, "y": "q"} for n in range(count)],
        }
    )


def _table(uri: str, **options: Any) -> esker.LanceDataset:
    dataset = esker.write_dataset(_rows(), uri, max_rows_per_file=10, durable=False, **options)
    dataset.delete("id in (3, 10, 19)")
    return dataset


def test_a_fragment_tells_what_would_be_left_of_it(uri: str) -> None:
    dataset = esker.write_dataset(_rows(), uri, max_rows_per_file=10)
    fragment = dataset.get_fragments()[1]
    left = fragment.delete("id in (12, 14, 2)")
    assert left is not None
    assert (left.id, left.num_deletions, left.physical_rows, left.num_rows) == (1, 2, 10, 8)
    assert fragment.delete("id > 3") is None
    untouched = fragment.delete("id < 3")
    assert untouched == fragment.metadata
    rows = fragment.delete_rows([0, 9])
    assert rows is not None
    assert dataset.version == 1, "nothing is visible before a commit"
    operation = LanceOperation.Delete([left], [], "by hand")
    dataset = LanceDataset.commit(uri, operation, read_version=1)
    assert dataset.to_table()["id"].to_pylist() == [n for n in range(40) if n not in (12, 14)]
    again = dataset.get_fragments()[1].delete("id = 13")
    assert again is not None
    assert again.num_deletions == 3
    for wrong, message in (([10], "offset 10 is out of range"), ([-1], "offset -1 is"), ([1 << 32], "out of range")):
        with pytest.raises(InvalidArgumentError, match=message):
            fragment.delete_rows(wrong)
    elsewhere = RowsToDelete()
    assert elsewhere.add(pa.array([5, 77 << 32, 5], pa.uint64())) == 2
    with pytest.raises(InvalidArgumentError, match="rows of fragment 77, which it does not have"):
        elsewhere.stage(dataset._store, dataset._manifest)


def test_a_deletion_file_tells_what_pylances_tells(uri: str) -> None:
    dataset = _table(uri)
    assert dataset.get_fragments()[3].metadata.deletion_file is None
    ours = dataset.get_fragments()[0].metadata.deletion_file
    theirs = lance.dataset(uri).get_fragments()[0].metadata.deletion_file
    assert ours is not None
    for name in ("read_version", "id", "file_type", "num_deleted_rows", "base_id"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.path(0) == theirs.path(0) == dataset.get_fragments()[0].deletion_file()
    assert ours.asdict() == theirs.asdict()


def test_metadata_with_deletions_go_to_other_machines(uri: str) -> None:
    metadata = _table(uri).get_fragments()[1].metadata
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    assert FragmentMetadata.from_json(json.dumps(metadata.to_json())) == metadata
    told = metadata.to_json()
    del told["encoded"]
    again = FragmentMetadata.from_json(told)
    assert (again.deletion_file, again.num_deletions, again.files) == (metadata.deletion_file, 2, metadata.files)
    assert DeletionFile.from_json(metadata.deletion_file.json()) == metadata.deletion_file  # type: ignore[union-attr]
    with pytest.raises(InvalidArgumentError, match="found 'list'"):
        FragmentMetadata(0, metadata.files, 10, DeletionFile(1, 2, "list", 3))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fragments_get_new_columns_one_by_one(uri: str, version: str) -> None:
    dataset = _table(uri, data_storage_version=version)
    merged, schema = [], None
    for fragment in dataset.get_fragments():
        changed, schema = fragment.merge_columns({"twice": "id * 2"})
        merged.append(changed)
    assert schema is not None
    committed = LanceDataset.commit(uri, LanceOperation.Merge(merged, schema), read_version=2)
    assert committed.to_table()["twice"].to_pylist() == [n * 2 for n in range(40) if n not in (3, 10, 19)]
    assert lance.dataset(uri).to_table().equals(committed.to_table())

    merged = []
    for fragment in committed.get_fragments():
        changed, schema = fragment.merge(pa.table({"key": [5, 19, 27], "new": ["a", "b", "c"]}), "id", "key")
        merged.append(changed)
    committed = LanceDataset.commit(uri, LanceOperation.Merge(merged, schema), read_version=3)
    found = {row["id"]: row["new"] for row in committed.to_table().to_pylist() if row["new"]}
    assert found == {5: "a", 27: "c"}
    assert lance.dataset(uri).to_table().equals(committed.to_table())


def test_values_of_new_columns_may_come_from_a_function_or_a_stream(uri: str) -> None:
    fragment = _table(uri).get_fragments()[1]
    by_function, schema = fragment.merge_columns(lambda batch: pa.record_batch([batch["a"]], ["again"]), columns=["a"])
    assert schema.to_pyarrow().names[-1] == "again"
    assert len(by_function.files) == 2
    values = pa.table({"z": range(8)})
    assert len(fragment.merge_columns(values)[0].files) == 2
    for wrong in (pa.table({"z": range(9)}), pa.table({"z": range(7)}), {"a": "id"}):
        with pytest.raises(InvalidArgumentError):
            fragment.merge_columns(wrong)


UPDATES: list[tuple[pa.Table, str, str | None]] = [
    (pa.table({"id": [10, 11, 15, 77], "a": pa.array([1, 2, None, 3], pa.int32())}), "id", None),
    (pa.table({"key": [12], "s": ["new"], "a": pa.array([7], pa.int32())}), "id", "key"),
    (pa.table({"id": [12, 18], "st": [{"x": 100, "y": "e"}, {"x": None, "y": None}]}), "id", None),
    (pa.table({"id": pa.array([None, 13], pa.int64()), "a": pa.array([7, 8], pa.int32())}), "id", None),
    (pa.table({"id": [99], "a": pa.array([7], pa.int32())}), "id", None),
    (pa.table({"_rowaddr": pa.array([(1 << 32) + 4], pa.uint64()), "s": ["new"]}), "_rowaddr", None),
]


@pytest.mark.parametrize("number", range(len(UPDATES)))
@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_columns_are_updated_as_by_pylance(uri: str, version: str, number: int) -> None:
    new, left_on, right_on = UPDATES[number]
    tables = []
    for library, end in ((esker, "1"), (lance, "2")):
        lance.write_dataset(
            _rows(), uri + end, max_rows_per_file=10, enable_stable_row_ids=True, data_storage_version=version
        ).delete("id in (3, 10, 19)")
        dataset = library.dataset(uri + end)
        fragment, fields, offsets = dataset.get_fragments()[1].update_columns(new, left_on, right_on, with_offsets=True)
        operation = library.LanceOperation.Update(
            updated_fragments=[fragment],
            fields_modified=fields,
            update_mode="rewrite_columns",
            updated_fragment_offsets={1: offsets},
        )
        library.LanceDataset.commit(uri + end, operation, read_version=2)
        tables.append(offsets)
    assert tables[0] == tables[1]
    for end in "12":
        same_lineage(lance.dataset(uri + end), esker.dataset(uri + end))
    same_lineage(lance.dataset(uri + "2"), esker.dataset(uri + "1"))
    # Both libraries go on from there.
    for library in (esker, lance):
        library.dataset(uri + "1").update({"a": "a + 1"}, where="id > 15")
        library.dataset(uri + "1").delete("id = 17 or id = 12")
    same_lineage(lance.dataset(uri + "1"), esker.dataset(uri + "1"))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("value", [[1], {"z": 1}, [{"x": 9, "y": "z"}], {"q": [{"z": 5}]}], ids=str)
def test_new_lists_and_structs_are_whole_to_pylance_after_it_updated_them(uri: str, value: Any, version: str) -> None:
    new = pa.table({"id": [0, 1], "c": [value, None]})
    dataset = esker.write_dataset(pa.table({"id": [0, 1]}), uri, data_storage_version=version)
    dataset.add_columns(new.select(["c"]))
    theirs = lance.dataset(uri)
    fragment, fields = theirs.get_fragments()[0].update_columns(new.slice(1), "id")
    operation = lance.LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    theirs = lance.LanceDataset.commit(uri, operation, read_version=2)
    theirs.validate()
    esker.dataset(uri).validate()
    assert theirs.to_table() == esker.dataset(uri).to_table() == new


def test_what_does_not_fit_is_refused(uri: str) -> None:
    fragment = _table(uri).get_fragments()[0]
    for wrong, left_on, error in (
        (pa.table({"id": [1], "a": pa.array([1], pa.int64())}), "id", SchemaMismatchError),
        (pa.table({"id": [1], "none": [1]}), "id", InvalidArgumentError),
        (pa.table({"id": [1]}), "id", InvalidArgumentError),
        (pa.table({"a": pa.array([1], pa.int32())}), "id", InvalidArgumentError),
        (pa.table({"key": [1], "a": pa.array([1], pa.int32())}), "key", InvalidArgumentError),
    ):
        with pytest.raises(error):
            fragment.update_columns(wrong, left_on)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_of_dictionaries_are_updated_whether_nulls_are_among_their_values_or_not(
    uri: str, version: str
) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))
    within = pa.StructArray.from_arrays([coded], ["x"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), coded)
    rows = pa.table({"k": [1, 2, 3], "d": coded, "s": within, "l": lists})
    dataset = esker.write_dataset(rows, uri, data_storage_version=version)
    new = pa.table({"k": [3, 1], "d": pa.array(["z", None]).dictionary_encode().cast(coded.type)})
    new = new.append_column("s", rows["s"].take([0, 1])).append_column("l", rows["l"].take([0, 2]))
    fragment, fields = dataset.get_fragments()[0].update_columns(new, "k")
    operation = LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    made = LanceDataset.commit(dataset, operation, read_version=1)
    expected = [
        {"k": 1, "d": None, "s": {"x": None}, "l": [None]},
        {"k": 2, "d": None, "s": {"x": None}, "l": []},
        {"k": 3, "d": "z", "s": {"x": "a"}, "l": ["a", None]},
    ]
    assert made.to_table().to_pylist() == lance.dataset(uri).to_table().to_pylist() == expected


SIZES = (0, 100, 90_000, 5_000_000)


def _payload(seed: int, size: int) -> bytes:
    return bytes([seed]) * size


@pytest.mark.parametrize("shape", ["plain", "struct", "list"])
@pytest.mark.parametrize("stable", [False, True])
def test_blobs_of_every_size_are_updated_by_key(uri: str, shape: str, stable: bool) -> None:
    """Blobs within the file, in a file of several, in one of their own; others and deleted rows stay what they were."""

    def rows(ids: list[int], blobs: list[bytes | None]) -> pa.Table:
        field, array = esker.blob_field("b"), esker.blob_array(blobs)
        if shape == "struct":
            name = pa.array([f"n{number}" for number in ids])
            array = pa.StructArray.from_arrays([name, array], fields=[pa.field("name", pa.string()), field])
            field = pa.field("b", array.type)
        elif shape == "list":
            kind = pa.list_(field.with_name("item"))
            offsets = pa.array(range(len(ids) + 1), pa.int32())
            array = pa.Array.from_buffers(kind, len(ids), [None, offsets.buffers()[1]], children=[array])
            field = pa.field("b", kind)
        return pa.Table.from_arrays(
            [pa.array(ids, pa.int64()), array, pa.array(ids, pa.int64())],
            schema=pa.schema([("id", pa.int64()), field, ("n", pa.int64())]),
        )

    def values(library: Any) -> dict[int, bytes | None]:
        found = library.dataset(uri).to_table(blob_handling="all_binary")
        column = found["b"].combine_chunks()
        if shape == "struct":
            assert column.field("name").to_pylist() == [f"n{number}" for number in found["id"].to_pylist()]
            column = column.field("b")
        elif shape == "list":
            column = column.flatten()
        return dict(zip(found["id"].to_pylist(), column.to_pylist(), strict=True))

    ids = [0, 1, 2, 3, 4, 5, 6, 7, 8]
    old = {key: _payload(key + 1, SIZES[key % 4]) if key != 4 else None for key in ids}
    dataset = esker.write_dataset(
        rows(ids, list(old.values())), uri, data_storage_version="2.2", enable_stable_row_ids=stable
    )
    dataset.delete("id = 3 or id = 8")
    new = {key: None if key == 2 else _payload(100 + key, SIZES[(key + 1) % 4]) for key in (0, 2, 4, 6, 77)}
    fragment, fields = dataset.get_fragments()[0].update_columns(rows([*new], [*new.values()]).drop(["n"]), "id")
    operation = LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    LanceDataset.commit(dataset, operation, read_version=dataset.version)
    want = {key: new.get(key, value) for key, value in old.items() if key not in (3, 8)}
    assert values(esker) == values(lance) == want
    # Other verbs go on from there, and nothing of them is lost with the old version.
    compacted = esker.dataset(uri)
    compacted.optimize.compact_files()
    compacted.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert values(esker) == values(lance) == want


def test_an_update_of_blobs_that_is_refused_leaves_no_file(uri: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"outside")
    table = pa.table({"id": [1, 2], "b": esker.blob_array([b"x" * 90_000, b"y" * 5_000_000])})
    dataset = esker.write_dataset(table, uri, data_storage_version="2.2")
    there = {path for path in Path(uri).rglob("*") if path.is_file()}
    new = pa.table({"id": [2], "b": esker.blob_array([outside.as_uri()])})
    for kind in (InvalidArgumentError, OSError):
        with pytest.raises(kind, match="outside registered external bases"):
            dataset.get_fragments()[0].update_columns(new, "id")
    with pytest.raises(SchemaMismatchError, match="another type"):
        dataset.get_fragments()[0].update_columns(pa.table({"id": [2], "b": ["text"]}), "id")
    assert {path for path in Path(uri).rglob("*") if path.is_file()} == there


def test_changed_rows_that_are_no_bitmap_are_refused(uri: str) -> None:
    dataset = esker.write_dataset(_rows(), uri)
    upsert = dataset.merge_insert("id").when_matched_update_all()
    transaction, _ = upsert.execute_uncommitted(_rows().slice(0, 1))
    assert isinstance(transaction.operation, LanceOperation.Update)
    transaction.operation.updated_fragment_offsets = {0: b"not a bitmap"}
    with pytest.raises(ValueError, match=r"updated_fragment_offsets\[0\].*RoaringBitmap"):
        LanceDataset.commit(dataset, transaction)
    assert esker.dataset(uri).version == 1


@pytest.mark.parametrize("verb", ["update columns", "upsert", "rewrite columns", "nothing dropped before"])
def test_a_prepared_update_names_no_file_of_columns_that_were_dropped_meanwhile(verb: str, uri: str) -> None:
    """A clean-up may have removed the file: no row could be read then."""
    rows = pa.table({"k": list(range(8)), "n": [0] * 8})
    esker.write_dataset(rows, uri, max_rows_per_file=4).add_columns({"c": "k", "d": "n"})
    if verb != "nothing dropped before":
        esker.dataset(uri).drop_columns(["d"])
    stale = esker.dataset(uri)
    new = pa.table({"k": [2], "n": [5]})
    if verb in ("update columns", "nothing dropped before"):
        fragment, fields = stale.get_fragments()[0].update_columns(new, "k")
        change: Any = LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    else:
        upsert = stale.merge_insert("k").when_matched_update_all()
        if verb == "rewrite columns":
            upsert = upsert.write_mode("rewrite_columns")
            source = new
        else:
            source = pa.table({"k": [2], "n": [5], "c": [2]})
        change = upsert.execute_uncommitted(source)[0].operation
    esker.dataset(uri).drop_columns(["c"] if verb != "nothing dropped before" else ["c", "d"])
    esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0))
    try:
        LanceDataset.commit(uri, change, read_version=stale.version)
    except EskerError:
        assert verb == "upsert"
    else:
        rows = rows.set_column(1, "n", pa.array([0, 0, 5, 0, 0, 0, 0, 0]))
    for library in (esker, lance):
        found = library.dataset(uri)
        assert found.to_table().sort_by("k").equals(rows)
        for fragment in found.get_fragments():
            fragment.validate()
    esker.dataset(uri).update({"n": "n + 1"})
    assert lance.dataset(uri).to_table().num_rows == 8


def test_a_file_whose_columns_are_gone_is_named_no_more(uri: str) -> None:
    rows = pa.table({"k": [1, 2], "n": [0, 0]})
    esker.write_dataset(rows, uri).add_columns({"c": "k", "d": "n"})
    dataset = esker.dataset(uri)
    dataset.drop_columns(["d"])
    fragment, fields = dataset.get_fragments()[0].update_columns(pa.table({"k": [2], "c": [7]}), "k")
    change = LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")
    made = LanceDataset.commit(dataset, change, read_version=dataset.version)
    assert [list(file.fields) for file in made.get_fragments()[0].metadata.files] == [[0, 1], [2]]
    for library in (esker, lance):
        library.dataset(uri).get_fragments()[0].validate()
        assert library.dataset(uri).to_table()["c"].to_pylist() == [1, 7]
