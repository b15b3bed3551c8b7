"""Merges whose source has structs that lack fields of the table's: those stay as they are, as whole columns do."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from tests.merging import Clauses, merge_both, pair, same_rows, upsert

DEEP = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        pa.field("t", pa.struct([("x", pa.dictionary(pa.int32(), pa.string())), ("y", pa.list_(pa.int64()))])),
    ]
)
ROWS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "s": pa.array(
            [
                {"a": 1, "b": "one", "t": {"x": "p", "y": [1]}},
                None,
                {"a": None, "b": "three", "t": None},
                {"a": 4, "b": None, "t": {"x": None, "y": None}},
            ],
            DEEP,
        ),
        "v": [10, 20, 30, 40],
    }
)


def _source(keys: list[int], structs: list[Any], type_: pa.DataType, **more: Any) -> pa.Table:
    return pa.table({"k": keys, "s": pa.array(structs, type_), **more})


A = pa.struct([("a", pa.int64())])
Y = pa.struct([("t", pa.struct([("y", pa.list_(pa.int64()))]))])
SOURCES = {
    "one field": _source([1, 2, 3, 9], [{"a": 5}, {"a": 6}, {"a": None}, {"a": 7}], A),
    "null structs": _source([1, 2, 3, 9], [None, None, {"a": 1}, None], A),
    "within a struct": _source([1, 2, 3, 4, 9], [{"t": {"y": [5]}}, {"t": None}, {"t": {"y": [6]}}, None, None], Y),
    "in another order": _source(
        [4, 1, 9],
        [{"t": {"x": "q"}, "a": 8}, {"t": {"x": None}, "a": None}, {"t": {"x": "r"}, "a": 9}],
        pa.struct([("t", pa.struct([("x", pa.dictionary(pa.int32(), pa.string()))])), ("a", pa.int64())]),
    ),
    "beside other columns": _source([3, 9], [{"b": "B"}, {"b": "C"}], pa.struct([("b", pa.string())]), v=[300, 900]),
}
CLAUSES: dict[str, Clauses] = {
    "upsert": upsert,
    "update": lambda m: m.when_matched_update_all(),
    "insert": lambda m: m.when_not_matched_insert_all(),
    "update if": lambda m: m.when_matched_update_all("target.k > 1").when_not_matched_insert_all(),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("source", SOURCES)
def test_fields_that_the_source_lacks_keep_their_values(uri: str, source: str, clauses: str, version: str) -> None:
    options = {"data_storage_version": version, "max_rows_per_file": 3}
    _, theirs = merge_both(uri, ROWS, SOURCES[source], "k", CLAUSES[clauses], **options)
    # pylance's files hold the fields of the source only: we read them all the same.
    assert esker.dataset(theirs.uri).to_table() == theirs.to_table()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("source", ["one field", "null structs", "within a struct", "in another order"])
def test_fields_change_in_place(uri: str, source: str, stable: bool) -> None:
    ours, theirs = pair(uri, ROWS, max_rows_per_file=3, enable_stable_row_ids=stable)
    for dataset in (ours, theirs):
        dataset.delete("k = 2")
        merge = dataset.merge_insert("k").when_matched_update_all().write_mode("rewrite_columns")
        merge.execute(SOURCES[source])
    same_rows(ours, theirs)
    assert esker.dataset(theirs.uri).to_table() == theirs.to_table()


def test_a_table_of_version_2_0_keeps_fields_too(uri: str) -> None:
    rows = ROWS.filter(pa.array([True, False, False, True]))
    source = _source([1, 9], [{"a": 5}, {"a": 7}], A)
    # pylance cannot read what it makes of this one itself.
    ours = esker.write_dataset(rows, uri, data_storage_version="2.0")
    ours.merge_insert("k").when_matched_update_all().execute(source)
    found = {row["k"]: row["s"] for row in lance.dataset(uri).to_table().to_pylist()}
    assert found == {1: {"a": 5, "b": "one", "t": {"x": "p", "y": [1]}}, 4: rows["s"][1].as_py()}


def test_what_waits_on_disk_keeps_fields_too(uri: str) -> None:
    count = 3000
    rows = pa.table({"k": range(count), "s": [{"a": n, "b": str(n)} for n in range(count)]})
    source = pa.table({"k": range(0, count, 2), "s": [{"a": -n} for n in range(0, count, 2)]})
    dataset = esker.write_dataset(rows, uri)
    builder = dataset.merge_insert("k").when_matched_update_all().memory_limit(4096)
    assert builder.execute(iter(source.to_batches(max_chunksize=100)), schema=source.schema)["num_updated_rows"] == 1500
    found = {row["k"]: row["s"] for row in lance.dataset(uri).to_table().to_pylist()}
    assert found == {n: {"a": -n if n % 2 == 0 else n, "b": str(n)} for n in range(count)}


REQUIRED = pa.struct([("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)])


def test_fields_that_cannot_be_null_stay_where_rows_match(uri: str) -> None:
    rows = _source([1, 2], [{"a": 1, "b": 2}, None], REQUIRED)
    ours, theirs = pair(uri, rows)
    for dataset in (ours, theirs):
        dataset.merge_insert("k").when_matched_update_all().execute(_source([1], [{"a": 7}], A))
    same_rows(ours, theirs)
    with pytest.raises(SchemaMismatchError, match="'s.b' is missing in the source"):
        upsert(ours.merge_insert("k")).execute(_source([1], [{"a": 7}], A))
    # Below a null there is none to keep.
    with pytest.raises(SchemaMismatchError, match="column 'b'.*not nullable.*1 nulls"):
        ours.merge_insert("k").when_matched_update_all().execute(_source([2], [{"a": 7}], A))
    assert (ours.version, len(list(ours._store.list("data/")))) == (2, 2)


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (
            _source([1], [{"a": 1, "z": 2}], pa.struct([("a", pa.int64()), ("z", pa.int64())])),
            "'s.z' is not in the table",
        ),
        (_source([1], [{"A": 1}], pa.struct([("A", pa.int64())])), "'s.A' is not in the table"),
        (_source([1], [{"a": "x"}], pa.struct([("a", pa.string())])), "'s.a' has another type"),
    ],
)
def test_fields_that_the_table_lacks_are_refused_as_by_pylance(uri: str, source: pa.Table, match: str) -> None:
    ours, theirs = pair(uri, ROWS)
    with pytest.raises(SchemaMismatchError, match=match):
        upsert(ours.merge_insert("k")).execute(source)
    with pytest.raises(OSError, match="Append with different schema"):
        upsert(theirs.merge_insert("k")).execute(source)


def test_items_of_lists_must_be_whole_where_rows_are_updated(uri: str) -> None:
    items = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    rows = pa.table({"k": [1], "l": pa.array([[{"a": 1, "b": 2}]], items)})
    source = pa.table({"k": [1, 9], "l": pa.array([[{"a": 7}, {"a": 8}], []], pa.list_(A))})
    dataset = esker.write_dataset(rows, uri)
    with pytest.raises(SchemaMismatchError, match="'l' has lists whose items lack fields"):
        upsert(dataset.merge_insert("k")).execute(source)
    # New rows have no values to keep.
    assert dataset.merge_insert("k").when_not_matched_insert_all().execute(source)["num_inserted_rows"] == 1
    assert lance.dataset(uri).to_table()["l"].to_pylist() == [[{"a": 1, "b": 2}], []]


def test_a_key_must_be_whole(uri: str) -> None:
    ours, theirs = pair(uri, ROWS)
    with pytest.raises(SchemaMismatchError, match="key column 's' lacks fields"):
        upsert(ours.merge_insert("s")).execute(_source([1], [{"a": 1}], A))
    with pytest.raises(OSError, match="Cannot infer common argument type"):
        upsert(theirs.merge_insert("s")).execute(_source([1], [{"a": 1}], A))


def test_a_condition_sees_the_fields_that_the_source_has(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    source = SOURCES["one field"]
    with pytest.raises(InvalidArgumentError, match="found b: there are a"):
        dataset.merge_insert("k").when_matched_update_all("source.s.b = 'x'").execute(source)
    merge = dataset.merge_insert("k").when_matched_update_all("source.s.a > 5 and target.s.b is null")
    assert merge.execute(source)["num_updated_rows"] == 1
    assert dataset.to_table(filter="k = 2")["s"].to_pylist() == [{"a": 6, "b": None, "t": None}]


def test_a_field_that_another_writer_dropped_meanwhile_is_named(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    stale = esker.dataset(uri)
    builder = stale.merge_insert("k").when_matched_update_all()
    dataset.drop_columns(["s.a"])
    dataset.update({"v": "0"})
    with pytest.raises(SchemaMismatchError, match="s.a"):
        builder.execute(SOURCES["one field"])


TYPED = pa.struct([("x", pa.int32()), ("y", pa.string())])
REPLACED: dict[str, tuple[pa.Array, Any, str | None]] = {
    "a field that is required now": (
        pa.array([{"x": 1, "y": "a"}] * 2, TYPED),
        lambda it: it.alter_columns({"path": "c.y", "nullable": False}),
        None,
    ),
    "another type": (
        pa.array([1, 2], pa.int32()),
        lambda it: it.alter_columns({"path": "c", "data_type": pa.int64()}),
        "expected int64, found int32|should have type int64 but type was int32",
    ),
    "json in place of bytes": (
        pa.array([b"hello"] * 2, pa.large_binary()),
        lambda it: (it.drop_columns(["c"]), it.add_columns(pa.schema([pa.field("c", pa.json_(pa.string()))]))),
        "should have type json|does not match the file schema",
    ),
    "bytes in place of json": (
        pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["[1]"] * 2)),
        lambda it: (it.drop_columns(["c"]), it.add_columns(pa.schema([pa.field("c", pa.large_binary())]))),
        "but type was json|does not match the file schema",
    ),
}


@pytest.mark.parametrize("case", REPLACED)
@pytest.mark.parametrize("more", [{}, {"v": [5, 5]}], ids=["all columns", "some columns"])
def test_a_source_is_fitted_to_what_others_have_made_of_its_columns(uri: str, case: str, more: Any) -> None:
    values, change, refused = REPLACED[case]
    source = pa.table({"k": [1, 9], "c": values})
    ours, theirs = pair(uri, pa.table({"k": [0, 1], "c": values, **more}))
    for stale in (ours, theirs):
        change((esker if stale is ours else lance).dataset(stale.uri))
        builder = upsert(stale.merge_insert("k"))
        if refused is None:
            assert builder.execute(source)["num_updated_rows"] == 1
        else:
            with pytest.raises(SchemaMismatchError if stale is ours else OSError, match=refused):
                builder.execute(source)
    assert esker.dataset(ours.uri).version == lance.dataset(theirs.uri).version
    same_rows(esker.dataset(ours.uri), lance.dataset(theirs.uri))


@pytest.mark.parametrize("limit", [None, 1 << 20], ids=["in memory", "on disk"])
def test_keys_are_found_in_a_column_that_others_have_cast(uri: str, limit: int | None) -> None:
    keys = pa.table({"k": pa.array(range(500_000), pa.int32())})
    stale = esker.write_dataset(keys, uri)
    esker.dataset(uri).alter_columns({"path": "k", "data_type": pa.int64()})
    stream = pa.RecordBatchReader.from_batches(keys.schema, keys.slice(0, 400_000).to_batches(max_chunksize=10_000))
    builder = stale.merge_insert("k").when_matched_delete()
    if limit is not None:
        builder = builder.memory_limit(limit)
    assert builder.execute(stream)["num_deleted_rows"] == 400_000
    assert esker.dataset(uri).count_rows() == 100_000
