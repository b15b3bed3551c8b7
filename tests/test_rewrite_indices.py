"""Indices of pylance's after a compaction or another change of ours: its answers with them are those without."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

import esker
from esker._native.table import Index
from esker.fragment import DataFile
from tests.rewrites import land, rewrite

ROWS = 400
SCALAR = {
    "BTREE": ("n", ["n = 77", "n >= 90 and n < 215", "n is null"]),
    "BITMAP": ("s", ["s = 's3'", "s in ('s1', 's5')"]),
    "LABEL_LIST": ("l", ["array_has_any(l, ['l1'])", "array_has_all(l, ['l2', 'l3'])"]),
    "NGRAM": ("t", ["contains(t, 'text 12')"]),
    "ZONEMAP": ("n", ["n = 77", "n >= 90 and n < 215"]),
    "BLOOMFILTER": ("n", ["n = 77", "n = 301"]),
    "INVERTED": ("t", []),
}


def _rows(start: int, stop: int) -> pa.Table:
    keys = np.arange(start, stop)
    vectors = np.random.default_rng(start).random((stop - start, 16), dtype=np.float32)
    return pa.table(
        {
            "id": keys,
            "n": pa.array([None if key % 50 == 9 else int(key) for key in keys], pa.int64()),
            "s": [f"s{key % 7}" for key in keys],
            "l": [[f"l{key % 3}", f"l{key % 5}"] for key in keys],
            "t": [f"some text {key}" for key in keys],
            "x": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16),
        }
    )


def _table(uri: str, stable: bool) -> lance.LanceDataset:
    return lance.write_dataset(_rows(0, ROWS), uri, max_rows_per_file=100, enable_stable_row_ids=stable)


def _same(uri: str, predicate: str) -> None:
    dataset = lance.dataset(uri)
    with_index = dataset.scanner(columns=["id"], filter=predicate, use_scalar_index=True).to_table()
    without = dataset.scanner(columns=["id"], filter=predicate, use_scalar_index=False).to_table()
    ours = esker.dataset(uri).to_table(columns=["id"], filter=predicate)
    expected = sorted(without["id"].to_pylist())
    assert sorted(with_index["id"].to_pylist()) == expected
    if "array_has" not in predicate:
        assert sorted(ours["id"].to_pylist()) == expected


def _bitmaps(uri: str) -> dict[str, set[int]]:
    return {index.name: set(index.fragment_ids or ()) for index in esker.dataset(uri)._manifest.indices}


def _coverage(uri: str) -> dict[int, list[str]]:
    dataset = esker.dataset(uri)
    return dataset._manifest.index_coverage(dataset._log.store)


def _index(uri: str, name: str) -> Index:
    (found,) = [index for index in esker.dataset(uri)._manifest.indices if index.name == name]
    return found


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", sorted(SCALAR))
def test_answers_with_a_scalar_index_are_those_without(uri: str, kind: str, stable: bool) -> None:
    column, predicates = SCALAR[kind]
    dataset = _table(uri, stable)
    dataset.delete("id in (5, 150, 151)")
    lance.dataset(uri).create_scalar_index(column, kind, name="i")
    prepared = rewrite(uri, [0, 1, 2], rows_per_file=180)
    lance.dataset(uri).delete("id in (6, 77, 299)")
    land(uri, prepared)
    for predicate in predicates:
        _same(uri, predicate)
    # A second one on top of the first, and rows that come and go after it.
    lance.write_dataset(_rows(ROWS, ROWS + 50), uri, mode="append")
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()[1:3]))
    lance.dataset(uri).delete("id in (7, 200)")
    for predicate in predicates:
        _same(uri, predicate)
    if kind == "INVERTED":
        found = lance.dataset(uri).to_table(columns=["id"], full_text_query="210")["id"].to_pylist()
        assert found == [210]
    positional = kind in ("ZONEMAP", "BLOOMFILTER") or (stable and kind == "BTREE")
    covered = [number for number, segments in _coverage(uri).items() if segments]
    assert (len(covered) >= 2) is not positional, covered


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ"])
def test_answers_with_a_vector_index_are_those_without(uri: str, kind: str, stable: bool) -> None:
    dataset = _table(uri, stable)
    options: dict[str, Any] = {"num_sub_vectors": 4, "num_bits": 4} if kind == "IVF_PQ" else {}
    dataset.create_index("x", kind, num_partitions=2, **options)
    before = _index(uri, "x_idx").uuid
    prepared = rewrite(uri, [0, 1], [2, 3])
    lance.dataset(uri).delete("id in (6, 77)")
    land(uri, prepared)
    assert _index(uri, "x_idx").uuid == before
    assert all(segments == [before] for segments in _coverage(uri).values())
    keys = _rows(0, ROWS)["x"].to_pylist()
    for key in (3, 120, 250, 399):
        nearest: dict[str, Any] = {"column": "x", "q": np.array(keys[key], np.float32), "k": 1, "nprobes": 2}
        nearest |= {"refine_factor": 50}
        exact = lance.dataset(uri).to_table(columns=["id"], nearest={**nearest, "use_index": False})
        found = lance.dataset(uri).to_table(columns=["id"], nearest=nearest)
        assert found["id"].to_pylist() == exact["id"].to_pylist() == [key]


def test_with_stable_ids_bitmaps_move_whole_groups_only(uri: str) -> None:
    _table(uri, stable=True).create_scalar_index("s", "BITMAP", name="i")
    lance.write_dataset(_rows(ROWS, ROWS + 100), uri, mode="append")
    land(uri, rewrite(uri, [0, 1]))
    assert _bitmaps(uri) == {"i": {2, 3, 5}}
    land(uri, rewrite(uri, [3, 4]))
    assert _bitmaps(uri) == {"i": {2, 5}}
    assert [bool(segments) for segments in _coverage(uri).values()] == [True, True, False]
    _same(uri, "s = 's3'")


def test_a_fragment_reuse_index_is_trimmed_when_no_index_needs_it(uri: str) -> None:
    dataset = _table(uri, stable=False)
    dataset.create_scalar_index("n", "BTREE", name="i")
    land(uri, rewrite(uri, [0, 1]))
    assert _index(uri, "__lance_frag_reuse").details is not None
    _same(uri, "n = 77")
    dataset = lance.dataset(uri)
    dataset.drop_index("i")
    land(uri, rewrite(uri, [2, 3]))
    assert _bitmaps(uri) == {}
    _same(uri, "n = 77")


def test_a_fragment_reuse_index_of_pylance_is_read_and_carried_on(uri: str) -> None:
    dataset = _table(uri, stable=False)
    dataset.create_scalar_index("n", "BTREE", name="i")
    dataset.optimize.compact_files(defer_index_remap=True, target_rows_per_fragment=200)
    covered = _coverage(uri)
    assert covered == {number: [_index(uri, "i").uuid] for number in esker.dataset(uri).fragment_ids()}
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()))
    assert list(_coverage(uri).values()) == [[_index(uri, "i").uuid]]
    _same(uri, "n >= 90 and n < 215")
    esker.dataset(uri).delete("n = 100")
    esker.write_dataset(_rows(ROWS, ROWS + 10), uri, mode="append", durable=False)
    _same(uri, "n >= 90 and n < 415")


def test_a_column_that_changes_in_place_after_a_compaction_is_not_answered_by_the_index(uri: str) -> None:
    _table(uri, stable=False).create_scalar_index("n", "BTREE", name="i")
    land(uri, rewrite(uri, [0, 1], [2, 3]))
    fragment = lance.dataset(uri).get_fragments()[0]
    changed = pa.table({"_rowaddr": pa.array([fragment.fragment_id << 32], pa.uint64()), "n": pa.array([7777])})
    ours = esker.dataset(uri).get_fragments()[0]
    metadata, fields = ours.update_columns(changed, left_on="_rowaddr", right_on="_rowaddr")
    update = esker.LanceOperation.Update([], [metadata], [], fields_modified=fields)
    esker.LanceDataset.commit(uri, update, read_version=esker.dataset(uri).version)
    _same(uri, "n = 7777")
    _same(uri, "n = 0")
    assert [bool(segments) for segments in _coverage(uri).values()] == [False, True]


def _items_of_pylance(uri: str) -> None:
    """New lists in the first fragment, of which pylance's file and transaction name the items alone."""
    fragment = lance.dataset(uri).get_fragments()[0]
    new = pa.table({"id": range(100), "l": [["new"]] * 100})
    written, fields = fragment.update_columns(new, left_on="id", right_on="id")
    updated = esker.FragmentMetadata.from_json(json.dumps(written.to_json()))
    operation = esker.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    esker.LanceDataset.commit(uri, operation, read_version=esker.dataset(uri).version)


def _replaced_items(uri: str) -> None:
    lists = esker.dataset(uri).lance_schema.field("l")
    assert lists is not None
    [item] = lists.children()
    with LanceFileWriter(f"{uri}/data/new.lance", version="2.1") as writer:
        writer.write_batch(pa.table({"l": [["new"]] * 100}))
    file = DataFile("new.lance", [item.id()], [0], 2, 1)
    operation = esker.LanceOperation.DataReplacement([esker.LanceOperation.DataReplacementGroup(0, file)])
    esker.LanceDataset.commit(uri, operation, read_version=esker.dataset(uri).version)


def _cast_items(uri: str) -> None:
    esker.dataset(uri).alter_columns({"path": "l.item", "data_type": pa.large_string()})


@pytest.mark.parametrize("change", [_items_of_pylance, _replaced_items, _cast_items])
@pytest.mark.parametrize("stable", [False, True])
def test_lists_whose_items_change_in_place_are_not_answered_by_the_index(
    uri: str, change: Callable[[str], None], stable: bool
) -> None:
    lance.write_dataset(
        _rows(0, ROWS), uri, max_rows_per_file=100, data_storage_version="2.1", enable_stable_row_ids=stable
    ).create_scalar_index("l", "LABEL_LIST", name="labels")
    change(uri)
    assert 0 not in _bitmaps(uri)["labels"]
    for predicate in SCALAR["LABEL_LIST"][1]:
        _same(uri, predicate)
    _same(uri, "array_has(l, 'new')")


def test_a_large_fragment_reuse_index_lies_in_a_file(uri: str) -> None:
    # Of every 65,536 rows a bitmap of 8 KiB says which moved: 28 of them.
    count = 1_800_000
    keys = pa.table({"n": pa.array(np.arange(count), pa.int32())})
    dataset = lance.write_dataset(keys, uri, max_rows_per_file=count // 2, max_rows_per_group=100_000)
    dataset.delete("n % 3 = 0")
    lance.dataset(uri).create_scalar_index("n", "BTREE", name="i")
    land(uri, rewrite(uri, [0, 1]))
    entry = _index(uri, "__lance_frag_reuse")
    assert entry.details is not None
    assert len(entry.details[1]) < 1000
    assert esker.dataset(uri)._log.store.head(f"{entry.folder}details.binpb").size > 200 * 1024
    assert all(segments == [_index(uri, "i").uuid] for segments in _coverage(uri).values())
    found = lance.dataset(uri).to_table(filter="n in (70000, 1100000, 999999, 3)")["n"].to_pylist()
    assert sorted(found) == [70000, 1100000]
    land(uri, rewrite(uri, esker.dataset(uri).fragment_ids()))
    found = lance.dataset(uri).to_table(filter="n in (70000, 1100000, 999999, 3)")["n"].to_pylist()
    assert sorted(found) == [70000, 1100000]


def test_the_transaction_of_a_compaction_that_remaps_indices_is_read(uri: str) -> None:
    dataset = _table(uri, stable=False)
    dataset.create_scalar_index("n", "BTREE", name="i")
    before = _index(uri, "i").uuid
    dataset.optimize.compact_files()
    read = esker.dataset(uri).read_transaction(esker.dataset(uri).version)
    assert read is not None
    assert isinstance(read.operation, esker.LanceOperation.Rewrite)
    (index,) = read.operation.rewritten_indices
    assert (index.old_id, index.new_id) == (before, _index(uri, "i").uuid)
    assert (index.new_details_type_url, index.new_index_version) == ("/lance.table.BTreeIndexDetails", 0)
