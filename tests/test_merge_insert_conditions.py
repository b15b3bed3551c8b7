"""Conditions of merges on what is null: a field of a null struct is null, whatever lies below it in memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

import esker

INNER = pa.StructArray.from_arrays([pa.array([7, 8, 9, 10])], ["x"], mask=pa.array([False, False, True, False]))
HIDDEN = pa.StructArray.from_arrays(
    [pa.array([1, 50, 3, None]), INNER], ["a", "t"], mask=pa.array([False, True, False, False])
)
PLAIN = pa.array([{"a": 0, "t": {"x": 0}}] * 4)


def _table(values: pa.Array) -> pa.Table:
    return pa.table({"id": [1, 2, 3, 4], "s": values})


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("source.s.a > 2", {3}),
        ("source.s.a IS NULL", {2, 4}),
        ("source.s.a IS NOT NULL", {1, 3}),
        ("source.s IS NULL", {2}),
        ("source.s.a = 50", set()),
        ("source.s.t.x > 0", {1, 4}),
        ("source.s.t.x IS NULL", {2, 3}),
        ("coalesce(source.s.a, 0) = 0", {2, 4}),
        ("source.s.a IN (50, 1)", {1}),
        ("NOT (source.s.a > 2)", {1}),
    ],
)
def test_a_condition_does_not_see_what_lies_below_a_null_struct(condition: str, ids: set[int], uri: str) -> None:
    dataset = esker.write_dataset(_table(PLAIN), uri)
    merge = dataset.merge_insert("id").when_matched_update_all(condition)
    assert merge.execute(_table(HIDDEN))["num_updated_rows"] == len(ids)
    changed = {row["id"] for row in dataset.to_table().to_pylist() if row["s"] != PLAIN[0].as_py()}
    assert changed == ids


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(
    ("condition", "ids"),
    [("target.s.a > 2", {3}), ("target.s.a IS NULL", {2, 4}), ("target.s.t.x IS NULL", {2, 3})],
)
def test_nor_what_lies_below_one_of_the_table(condition: str, ids: set[int], version: str, uri: str) -> None:
    dataset = esker.write_dataset(_table(HIDDEN), uri, data_storage_version=version)
    merge = dataset.merge_insert("id").when_matched_update_all(condition)
    assert merge.execute(_table(PLAIN))["num_updated_rows"] == len(ids)
    again = esker.write_dataset(_table(HIDDEN), uri + "2", data_storage_version=version)
    goes = again.merge_insert("id").when_not_matched_by_source_delete(condition.replace("target.", ""))
    assert goes.execute(pa.table({"id": pa.array([], pa.int64())}))["num_deleted_rows"] == len(ids)
    assert {1, 2, 3, 4} - set(again.to_table()["id"].to_pylist()) == ids


@pytest.mark.parametrize("filter", [None, "source.s.a > 2"])
def test_a_struct_that_is_null_is_no_key_and_its_hidden_values_are_none(filter: str | None, uri: str) -> None:
    keys = pa.StructArray.from_arrays([pa.array([1, 50, 3])], ["a"], mask=pa.array([False, True, False]))
    dataset = esker.write_dataset(pa.table({"k": pa.array([{"a": 50}, {"a": 1}, None]), "v": [1, 2, 3]}), uri)
    condition = None if filter is None else filter.replace("source.s", "source.k")
    merge = dataset.merge_insert("k").when_matched_update_all(condition)
    assert merge.execute(pa.table({"k": keys, "v": [10, 20, 30]}))["num_updated_rows"] == (1 if filter is None else 0)
    expected = [1, 10, 3] if filter is None else [1, 2, 3]
    found = {repr(row["k"]): row["v"] for row in dataset.to_table().to_pylist()}
    assert found == dict(zip(["{'a': 50}", "{'a': 1}", "None"], expected, strict=True))
