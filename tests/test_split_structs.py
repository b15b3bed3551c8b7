"""Structs whose fields lie in several files of a fragment, or in none, as pylance writes parts of structs."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

import esker

INNER = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string()), ("t", INNER)])
ROWS = pa.table(
    {
        "k": range(6),
        "s": pa.array([{"a": n, "b": str(n), "t": {"x": n * 10, "y": [str(n)] * (n % 3)}} for n in range(6)], STRUCT),
        "v": range(6),
    }
)
PARTS = {
    "one field": ([{"a": 100}, {"a": None}, {"a": 300}], pa.struct([("a", pa.int64())])),
    "one that is nested": (
        [{"t": {"x": 1}}, {"t": {"x": None}}, {"t": {"x": 3}}],
        pa.struct([("t", pa.struct([("x", pa.int64())]))]),
    ),
}
NULLS = {"null structs": ([None, {"a": 2}, None], PARTS["one field"][1])}


def _split(uri: str, version: str, part: str, *, in_place: bool) -> lance.LanceDataset:
    """A table of pylance: in the first file of a fragment a struct, in the second some of its fields, or neither."""
    theirs = lance.write_dataset(ROWS, uri, max_rows_per_file=4, data_storage_version=version)
    values, type_ = {**PARTS, **NULLS}[part]
    keys = [1, 3, 5] if in_place else [1, 5, 9]
    source = pa.table({"k": keys, "s": pa.array(values, type_)})
    merge = theirs.merge_insert("k").when_matched_update_all()
    if in_place:
        merge.write_mode("rewrite_columns").execute(source)
    else:
        merge.when_not_matched_insert_all().execute(source)
        more = pa.table({"k": [7, 8, 9], "s": pa.array(values, type_)})
        theirs = lance.write_dataset(more, uri, mode="append")
    return lance.dataset(uri)


CASES = [
    *(
        (version, part, in_place)
        for version in ("2.1", "2.2")
        for part in (*PARTS, *NULLS)
        for in_place in (True, False)
    ),
]


@pytest.mark.parametrize(("version", "part", "in_place"), CASES)
def test_parts_of_structs_are_read_as_pylance_reads_them(version: str, part: str, in_place: bool, uri: str) -> None:
    theirs = _split(uri, version, part, in_place=in_place)
    ours = esker.dataset(uri)
    wanted = theirs.to_table()
    assert ours.to_table() == wanted
    rows = range(wanted.num_rows)
    assert ours.take(rows[::-1]) == theirs.take(list(rows[::-1]))
    for columns in (["s.a"], ["s.t.x", "k"], ["s.t", "s.b"], ["s.t.y"]):
        assert ours.to_table(columns=columns).to_pylist() == theirs.to_table(columns=columns).to_pylist()
    shown = wanted.to_pylist()
    for filter, keep in [
        ("s.a > 2", lambda row: row["s"] is not None and (row["s"]["a"] or 0) > 2),
        ("s.b IS NULL", lambda row: row["s"] is None or row["s"]["b"] is None),
        ("s IS NULL", lambda row: row["s"] is None),
        ("s.t.x = 10", lambda row: ((row["s"] or {}).get("t") or {}).get("x") == 10),
    ]:
        assert ours.to_table(filter=filter).to_pylist() == [row for row in shown if keep(row)]
    ours.validate()


@pytest.mark.parametrize(("version", "part", "in_place"), CASES)
def test_tables_with_parts_of_structs_go_on_to_be_changed(version: str, part: str, in_place: bool, uri: str) -> None:
    _split(uri, version, part, in_place=in_place)
    ours = esker.dataset(uri)
    before = {row["k"]: row for row in ours.to_table().to_pylist() if row["k"] not in (2, 9)}
    ours.delete("k in (2, 9)")
    ours.update({"v": "v + 1"}, where="k < 3")
    again = pa.table({"k": [5, 0], "s": pa.array([{"b": "five"}, {"b": "none"}], pa.struct([("b", pa.string())]))})
    ours.merge_insert("k").when_matched_update_all().execute(again)
    for number, text in ((5, "five"), (0, "none")):
        before[number]["s"] = {**(before[number]["s"] or {"a": None, "t": None}), "b": text}
    for number in (0, 1):
        before[number]["v"] += 1
    for reader in (esker, lance):
        found = {row["k"]: row for row in reader.dataset(uri).to_table().to_pylist()}
        assert found == before
    ours.drop_columns(["s.b"])
    for row in before.values():
        if row["s"] is not None:
            del row["s"]["b"]
    assert {row["k"]: row for row in esker.dataset(uri).to_table().to_pylist()} == before


def test_items_of_lists_that_lack_fields_have_nulls_there(uri: str) -> None:
    items = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    lance.write_dataset(pa.table({"k": [1], "l": pa.array([[{"a": 1, "b": 2}]], items)}), uri)
    part = pa.array([[{"a": 3}, None], None, []], pa.list_(pa.struct([("a", pa.int64())])))
    theirs = lance.write_dataset(pa.table({"k": [2, 3, 4], "l": part}), uri, mode="append")
    assert esker.dataset(uri).to_table() == theirs.to_table()
    assert theirs.to_table()["l"].to_pylist() == [[{"a": 1, "b": 2}], [{"a": 3, "b": None}, None], None, []]
