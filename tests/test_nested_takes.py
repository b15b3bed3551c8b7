"""Takes of paths: structs, lists and maps stay in place, with only the fields that are asked for, as in pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import InvalidArgumentError, OutOfRangeError

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "st": pa.array([{"a": 1, "b": {"c": 2, "d": 3}}, None, {"a": None, "b": None}]),
        "l": [[{"x": 1, "y": "p"}, None], [], None],
    }
)
PLAIN = pa.table(
    {
        "id": [1, 2, 3],
        "st": pa.array([{"a": 1, "b": {"c": 2, "d": 3}}] * 3),
        "l": pa.array([[{"x": 1, "y": "p"}], [], None]),
    }
)
"""2.0 has no null structs."""

PATHS = [
    ["st.a"],
    ["st.b.c"],
    ["st.b.d", "id", "st.a"],
    ["st.a", "st"],
    ["st", "st.a"],
    ["st.b", "st.a"],
    ["st.a", "st.a"],
    ["_rowid", "st.a"],
    ["l.item.x"],
    ["l.item.y", "st.b.d", "_rowid"],
]


def _pair(path: Path, version: str, rows: pa.Table, **options: Any) -> tuple[Any, Any]:
    tables = []
    for library in (lance, esker):
        table = library.write_dataset(rows, str(path / library.__name__), data_storage_version=version, **options)
        table.insert(rows)
        table.delete("id = 3 AND _rowid > 3")
        tables.append(table)
    return tables[0], tables[1]


@pytest.mark.parametrize("columns", PATHS, ids=str)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_paths_leave_their_columns_in_place(tmp_path: Path, version: str, columns: list[str]) -> None:
    theirs, ours = _pair(tmp_path, version, PLAIN if version == "2.0" else ROWS)
    for indices in ([4, 0, 1, 0], []):
        assert ours.take(indices, columns=columns) == theirs.take(indices, columns=columns)
    ids = theirs.to_table(columns=["_rowid"], filter="id < 3")["_rowid"]
    assert ours._take_rows(ids, columns) == theirs._take_rows(ids.to_pylist(), columns)
    if "_rowid" not in columns:
        wanted = theirs.get_fragments()[0].take([0, 1], columns=columns)
        found = ours.get_fragments()[0].take([0, 1], columns=columns)
        assert found.schema.names == wanted.schema.names
        assert found.to_pylist() == wanted.to_pylist()
        assert found.schema.types == wanted.schema.types


@pytest.mark.parametrize(
    "columns",
    [
        ["st.b.d", "st.a", "st.b.c"],
        ["st.b.d", "id", "st.b.c"],
        ["st.b.d", "st.b"],
        ["st.b", "st", "st.a"],
        ["l.item.y", "id", "l.item.x"],
        ["id", "id"],
        ["st", "id", "st", "st"],
        ["_rowid", "id", "_rowid", "id"],
    ],
    ids=str,
)
def test_names_that_are_asked_for_again_and_fields_in_another_order(tmp_path: Path, columns: list[str]) -> None:
    theirs, ours = _pair(tmp_path, "2.2", ROWS)
    assert ours.take([4, 0, 1, 0], columns=columns) == theirs.take([4, 0, 1, 0], columns=columns)
    if "_rowid" not in columns:
        wanted = theirs.get_fragments()[0].take([0, 2], columns=columns)
        assert ours.get_fragments()[0].take([0, 2], columns=columns) == wanted
        assert ours.get_fragments()[0].open_session(columns).take([0, 2]) == wanted


def test_a_dict_names_columns_of_its_own(tmp_path: Path) -> None:
    theirs, ours = _pair(tmp_path, "2.2", ROWS)
    for columns in ({"x": "st.a"}, {"x": "st.b.c + 1", "id": "id"}):
        assert ours.take([0, 1], columns=columns) == theirs.take([0, 1], columns=columns)


def test_paths_of_old_columns_are_found_by_their_new_names(tmp_path: Path) -> None:
    theirs, ours = _pair(tmp_path, "2.2", ROWS, enable_stable_row_ids=True)
    for table in (theirs, ours):
        table.alter_columns({"path": "st.a", "name": "z"}, {"path": "st", "name": "s"})
        table.drop_columns(["s.b.c"])
    for columns in (["s.z"], ["s.b.d", "s.z"]):
        assert ours.take([0, 4], columns=columns) == theirs.take([0, 4], columns=columns)


def test_json_below_a_path_is_text(tmp_path: Path) -> None:
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None]))
    table = pa.table({"s": pa.StructArray.from_arrays([json, pa.array([1, 2])], ["j", "n"])})
    ours = esker.write_dataset(table, str(tmp_path / "t"))
    found = ours.take([1, 0], columns=["s.j"])
    assert found.schema.field("s").type == pa.struct([("j", pa.json_())])
    assert found.to_pylist() == [{"s": {"j": None}}, {"s": {"j": '{"a":1}'}}]


def test_maps_and_vectors_are_taken_as_a_whole(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(6), pa.float32()), 2)
    rows = pa.table(
        {
            "m": pa.array([[("k", 1)], [("j", 2)], None], pa.map_(pa.string(), pa.int64())),
            "s": pa.StructArray.from_arrays([pa.array([1, 2, 3]), vectors], ["a", "v"]),
        }
    )
    theirs, ours = (
        library.write_dataset(rows, str(tmp_path / library.__name__), data_storage_version="2.2")
        for library in (lance, esker)
    )
    for columns in (["m.entries.key"], ["s.v.item"]):
        assert ours.take([2, 0], columns=columns) == theirs.take([2, 0], columns=columns)
    assert ours.take([1], columns=("s.a",)).schema.names == ["s"]


PACKED = pa.struct([("a", pa.int64()), ("b", pa.int32())])
MARKED = {"lance-encoding:packed": "true", "packed": "true"}
PACKED_ROWS = pa.table(
    [
        pa.array([{"a": i, "b": 2 * i} for i in range(5)], PACKED),
        pa.array([{"i": i, "p": {"a": i, "b": 3 * i}, "t": str(i)} for i in range(5)]),
        pa.array([[{"a": i, "b": i}] * i for i in range(5)], pa.list_(PACKED)),
        pa.array(range(5)),
    ],
    schema=pa.schema(
        [
            pa.field("p", PACKED, metadata=MARKED),
            pa.field("s", pa.struct([("i", pa.int64()), pa.field("p", PACKED, metadata=MARKED), ("t", pa.string())])),
            pa.field("l", pa.list_(pa.field("item", PACKED, metadata=MARKED))),
            pa.field("id", pa.int64()),
        ]
    ),
)


@pytest.mark.parametrize(
    "columns",
    [
        ["p.b"],
        ["p.b", "p.a"],
        ["p.a", "id", "p"],
        ["s.i"],
        ["s.p.b", "_rowid", "s.t"],
        ["s.p", "p.a"],
        ["l.item.b", "_rowoffset"],
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fields_of_packed_structs_stay_in_them(tmp_path: Path, version: str, columns: list[str]) -> None:
    """pylance returns columns of the same types; in them it reads other bytes than those of the fields."""
    # Version 2.0 has no nulls of the list that holds a packed struct.
    rows = PACKED_ROWS.drop_columns(["l"]) if version == "2.0" else PACKED_ROWS
    if version == "2.0" and "l.item.b" in columns:
        columns = ["p.a", "_rowoffset"]
    theirs = lance.write_dataset(rows, str(tmp_path / "theirs"), data_storage_version=version)
    ours = esker.write_dataset(rows, str(tmp_path / "ours"), data_storage_version=version)
    wanted = theirs.take([3, 1, 3], columns=columns).schema
    found = [ours.take([3, 1, 3], columns=columns), ours._take_rows([3, 1, 3], columns)]
    whole = rows.take([3, 1, 3]).append_column("_rowid", pa.array([3, 1, 3], pa.uint64()))
    whole = whole.append_column("_rowoffset", pa.array([3, 1, 3], pa.uint64()))
    for taken in found:
        assert taken.schema.remove_metadata() == wanted.remove_metadata()
        plain = whole.select(taken.schema.names)
        assert taken.to_pylist() == plain.cast(pa.schema([(it.name, it.type) for it in taken.schema])).to_pylist()


def test_a_field_that_a_packed_struct_does_not_have_is_named(tmp_path: Path) -> None:
    dataset = esker.write_dataset(PACKED_ROWS, str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match=r"column 's.p.z' does not exist, expected one of \['a', 'b'\]"):
        dataset.take([0], columns=["s.p.z"])


def test_ids_beyond_63_bits_are_ids_of_no_row(tmp_path: Path) -> None:
    for library in (lance, esker):
        dataset = library.write_dataset(ROWS, str(tmp_path / library.__name__), enable_stable_row_ids=True)
        assert dataset._take_rows([0, 2**63], ["id"])["id"].to_pylist() == [1]


@pytest.mark.parametrize("columns", [["st.nope"], ["nope.a"], ["l.x"], ["st.a", "nope"]], ids=str)
def test_a_path_that_leads_nowhere_is_named(tmp_path: Path, columns: list[str]) -> None:
    ours = esker.write_dataset(ROWS, str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match=columns[-1]):
        ours.take([0], columns=columns)


def test_numbers_of_a_list_are_checked() -> None:
    dataset = esker.write_dataset(pa.table({"n": [7, 8, 9]}), "memory://numbers-of-a-list")
    for indices in ([2, 0, 2], (2, 0, 2), [2, True, 2], range(2, -1, -1)):
        assert dataset.take(indices)["n"].to_pylist() == [[7, 8, 9][number] for number in indices]
    for indices, found in (
        ([0, -1], "-1"),
        ([0, 3], "3"),
        ([2**63], "9223372036854775808"),
        ([0, -(2**70)], "-1180591620717411303424"),
    ):
        with pytest.raises((OutOfRangeError, InvalidArgumentError), match=found):
            dataset.take(indices)
    for wrong in ([0, None], [1.5], [0, "1"], [True, False]):
        with pytest.raises(InvalidArgumentError):
            dataset.take(wrong)
