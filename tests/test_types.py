"""All that files of version 2.0 can hold beyond the plain types, nested in each other; and what they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.arrow
import pandas as pd
import pyarrow as pa
import pytest

import esker
from esker.exceptions import SchemaMismatchError, UnsupportedError
from tests.samples import same

_PAIR = pa.struct([("a", pa.int32()), ("b", pa.float64())])


def _field(array: pa.Array, metadata: dict[str, str] | None = None, *, nullable: bool = True) -> pa.Table:
    return pa.table([array], schema=pa.schema([pa.field("c", array.type, nullable, metadata)]))


def _dictionary(indices: list[int | None], index_type: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, index_type), values)


HELD = {
    "null": _field(pa.nulls(500)),
    "dictionary": _field(pa.array(["a", "b", None, "a"] * 300).dictionary_encode()),
    "dictionary of int8": _field(_dictionary([0, 1, None, 0], pa.int8(), pa.array(["a", "b"]))),
    "dictionary of uint16": _field(_dictionary([0, 1, None], pa.uint16(), pa.array(["a", "b"], pa.large_string()))),
    "dictionary of numbers": _field(_dictionary([0, 1, None], pa.int32(), pa.array([10, 20]))),
    "dictionary with a null among its values": _field(
        _dictionary([0, 1, 2, None], pa.int32(), pa.array(["x", None, "y"]))
    ),
    "packed struct": _field(pa.array([{"a": i, "b": i / 2} for i in range(500)], _PAIR), {"packed": "true"}),
    "packed struct by its newer name": _field(
        pa.array([{"a": i, "b": i / 2} for i in range(500)], _PAIR), {"lance-encoding:packed": "true"}
    ),
    "packed struct of vectors": _field(
        pa.array(
            [{"a": i, "v": [i, i + 0.5]} for i in range(99)],
            pa.struct([("a", pa.int32()), ("v", pa.list_(pa.float32(), 2))]),
        ),
        {"packed": "true"},
    ),
    "list of structs": _field(
        pa.array([[{"x": 1, "y": "a"}], [], None, [{"x": None, "y": None}, {"x": 3, "y": "z"}]] * 99)
    ),
    "list of structs, all null or empty": _field(
        pa.array([None, []] * 9, pa.list_(pa.struct([("x", pa.int8()), ("y", pa.list_(pa.string()))])))
    ),
    "struct of lists": _field(pa.array([{"l": [1, 2]}, {"l": None}, {"l": []}] * 99)),
    "struct of structs of lists of structs": _field(
        pa.array([{"s": {"l": [{"x": [1, None]}, {"x": None}]}}, {"s": {"l": None}}] * 50)
    ),
    "list of vectors": _field(pa.array([[[1.0, 2.0]], [], None] * 70, pa.list_(pa.list_(pa.float32(), 2)))),
    "vector of vectors": _field(
        pa.array([[[1.0, 2.0], [3.0, 4.0]], None] * 70, pa.list_(pa.list_(pa.float32(), 2), 2))
    ),
    "vector of bool": _field(pa.array([[True, False, None], [None, True, True], None] * 70, pa.list_(pa.bool_(), 3))),
    "vector with nulls inside": _field(pa.array([[1, None], [3, 4], None] * 70, pa.list_(pa.int32(), 2))),
    "vector of fixed binary": _field(pa.array([[b"ab", b"cd"]] * 70, pa.list_(pa.binary(2), 2))),
    "vector of decimals": _field(pa.array([[1, 2]] * 70, pa.list_(pa.decimal128(10, 2), 2))),
    "list of dictionaries": _field(pa.ListArray.from_arrays([0, 2, 3], pa.array(["a", "b", "a"]).dictionary_encode())),
    "list of null": _field(pa.array([[None], [], None], pa.list_(pa.null()))),
    "list of bool": _field(pa.array([[True, None], [], None] * 333)),
    "list of large_utf8": _field(pa.array([["a", None], [], None], pa.list_(pa.large_string()))),
    "large_list of list": _field(pa.array([[["a", None], []], [], None] * 50, pa.large_list(pa.list_(pa.string())))),
    "list of list of list": _field(pa.array([[[[1], None], []], [], None, [None]] * 50)),
    "list of binary": _field(pa.array([[b"a", None], [], None], pa.list_(pa.binary()))),
    "list whose items are not null": _field(
        pa.array([[1], [2, 3]], pa.list_(pa.field("item", pa.int32(), nullable=False)))
    ),
    "list with a named item": _field(
        pa.array([[1], None], pa.list_(pa.field("element", pa.int32(), metadata={"a": "b"})))
    ),
    "empty struct": _field(pa.array([{}, {}], pa.struct([]))),
    "time zone": _field(pa.array([1, None], pa.timestamp("ns", "Europe/Berlin"))),
    "bfloat16 extension": _field(lance.arrow.bfloat16_array([1.5, None])),
    "tensor extension": _field(
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.float32(), [2, 2]), pa.array([[1.0, 2.0, 3.0, 4.0]], pa.list_(pa.float32(), 4))
        )
    ),
    "long text": _field(pa.array(["x" * 100_000, None, "", "y" * 70_000] * 5)),
    "no nulls allowed": _field(pa.array([1, 2, 3]), nullable=False),
}

VERSIONS = ("2.0", "2.1", "2.2")
NOT_HELD = {("packed struct of vectors", "2.1")}
CELLS = [(name, version) for name in HELD for version in VERSIONS if (name, version) not in NOT_HELD]

REFUSED = {
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), r"2\.2"),
    "null struct": (pa.array([None, {"x": 1}]), r"2\.1"),
    "list of null structs": (pa.array([[{"x": 1}], [None]]), r"2\.1"),
    "empty struct in a list": (pa.array([[{}]], pa.list_(pa.struct([]))), "without fields"),
    "null empty struct": (pa.array([{}, None], pa.struct([])), "null"),
    "vector of text": (pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "fixed"),
    "vector of structs": (pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int8())]), 1)), "fixed"),
    "vector of lists": (pa.array([[[1]]], pa.list_(pa.list_(pa.int8()), 1)), "fixed"),
    "interval": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "(?i)interval"),
    "run ends": (pa.RunEndEncodedArray.from_arrays([2, 4], [1, 2]), "(?i)run"),
    "decimal32": (pa.array([1], pa.decimal32(5, 2)), "(?i)decimal32"),
}


HELD_BY = {
    "map": ["2.2"],
    "null struct": ["2.1", "2.2"],
    "list of null structs": ["2.1", "2.2"],
    "vector of structs": ["2.2"],
    "empty struct in a list": ["2.0"],
}
"""The versions that hold what others refuse."""


@pytest.mark.parametrize(("name", "version"), CELLS)
def test_esker_writes_it_and_both_read_it(name: str, version: str, uri: str) -> None:
    table = HELD[name]
    same(table, esker.write_dataset(table, uri, data_storage_version=version).to_table())
    same(table, lance.dataset(uri).to_table())


@pytest.mark.parametrize(("name", "version"), CELLS)
def test_pylance_writes_it_and_esker_reads_it(name: str, version: str, uri: str) -> None:
    table = HELD[name]
    lance.write_dataset(table, uri, data_storage_version=version)
    same(table, esker.dataset(uri).to_table())


@pytest.mark.parametrize(("name", "version"), CELLS)
def test_its_rows_are_taken(name: str, version: str, uri: str) -> None:
    table = HELD[name]
    last = table.num_rows - 1
    taken = esker.write_dataset(table, uri, data_storage_version=version).take([last, 0, last])
    assert taken["c"].to_pylist() == [table["c"][row].as_py() for row in (last, 0, last)]


@pytest.mark.parametrize(
    ("name", "version"), [(name, v) for name in REFUSED for v in VERSIONS if v not in HELD_BY.get(name, [])]
)
def test_what_cannot_be_held_is_refused_with_column_and_version(name: str, version: str, uri: str) -> None:
    array, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words) as caught:
        esker.write_dataset(_field(array), uri, data_storage_version=version)
    assert "'c" in str(caught.value)
    assert not Path(uri, "_versions").exists()
    assert not list(Path(uri).glob("data/*")), "nothing half-written stays"


@pytest.mark.parametrize("version", [*VERSIONS, "0.1"])
def test_vectors_of_no_values_are_refused_wherever_they_are(version: str, uri: str) -> None:
    vectors = pa.array([[], []], pa.list_(pa.int32(), 0))
    for array in (vectors, pa.StructArray.from_arrays([vectors], ["v"])):
        for library in (esker, lance):
            with pytest.raises(OSError, match="dimension must be a positive integer"):
                library.write_dataset(_field(array), uri, data_storage_version=version)
    assert not Path(uri).exists()
    table = esker.write_dataset(pa.table({"a": [1, 2]}), uri, data_storage_version=version)
    with pytest.raises(SchemaMismatchError, match="'v'"):
        table.add_columns(pa.table({"v": vectors}))


def test_dictionaries_that_differ_between_batches_are_written(uri: str) -> None:
    batches = [
        pa.record_batch({"c": pa.array(values).dictionary_encode()})
        for values in (["a", "b"], ["c", None, "a"], ["d"] * 3)
    ]
    written = esker.write_dataset(iter(batches), uri, schema=batches[0].schema).to_table()
    expected = ["a", "b", "c", None, "a", "d", "d", "d"]
    assert written["c"].to_pylist() == lance.dataset(uri).to_table()["c"].to_pylist() == expected


@pytest.mark.parametrize("module", [esker, lance])
def test_the_order_of_categories_does_not_matter_to_what_is_added(module: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "c": pd.Categorical(["a", "b", "a"], ordered=True)})
    table = module.write_dataset(frame, str(tmp_path / "t"))
    assert not table.schema.field("c").type.ordered
    table = module.write_dataset(frame, table.uri, mode="append")
    table.insert(frame)
    newer = frame.assign(id=[3, 4, 5])
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(newer)
    fragments = module.fragment.write_fragments(frame, table.uri, mode="append")
    table = module.LanceDataset.commit(table.uri, module.LanceOperation.Append(fragments), read_version=table.version)
    assert sorted(table.to_table(filter="c = 'b'")["id"].to_pylist()) == [2, 2, 2, 2, 4]


@pytest.mark.parametrize("nest", ["struct", "list", "large_list", "map"])
def test_the_order_of_nested_categories_does_not_matter_to_what_is_added(nest: str, uri: str) -> None:
    ordered = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", "b"]), ordered=True)
    ends = pa.array([0, 2, 4], pa.int32())
    nested = {
        "struct": lambda: pa.StructArray.from_arrays([ordered], ["c"]),
        "list": lambda: pa.ListArray.from_arrays(ends, ordered),
        "large_list": lambda: pa.LargeListArray.from_arrays(ends.cast(pa.int64()), ordered),
        "map": lambda: pa.MapArray.from_arrays(ends, pa.array([1, 2, 1, 2]), ordered),
    }
    rows = pa.table({"c": nested[nest]()})
    esker.write_dataset(rows, uri)
    found = esker.write_dataset(rows, uri, mode="append").to_table()
    assert found["c"].to_pylist() == rows["c"].to_pylist() * 2
