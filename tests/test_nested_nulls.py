"""Nulls at each level of nested columns, as a peer sees them that reads one field alone."""

from __future__ import annotations

import itertools
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from tests.samples import same

_REQUIRED = pa.struct([pa.field("x", pa.float32(), nullable=False)])
_LIST = pa.list_(pa.field("item", pa.int32(), nullable=False))

# By name: the type of column c, some values of it, and the paths of its fields.
SHAPES: dict[str, tuple[pa.DataType, list[Any], list[str]]] = {
    "struct": (pa.struct([("x", pa.float64())]), [{"x": 1.0}, None, {"x": 2.0}, {"x": None}], ["c.x"]),
    "struct of what is never null": (_REQUIRED, [{"x": 1.0}, None, {"x": 2.0}], ["c.x"]),
    "struct of strings": (pa.struct([("x", pa.string())]), [{"x": "a"}, None, {"x": ""}], ["c.x"]),
    "struct of dictionaries": (
        pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))]),
        [{"x": "a"}, None, {"x": "b"}],
        ["c.x"],
    ),
    "struct of lists": (
        pa.struct([("z", pa.list_(pa.int32()))]),
        [{"z": [1]}, None, {"z": []}, {"z": [None]}],
        ["c.z"],
    ),
    "struct of lists that are never null": (
        pa.struct([pa.field("z", _LIST, nullable=False)]),
        [{"z": [1]}, None, {"z": []}],
        ["c.z"],
    ),
    "struct of vectors": (pa.struct([("v", pa.list_(pa.float32(), 2))]), [{"v": [1, 2]}, None, {"v": [3, 4]}], ["c.v"]),
    "struct of structs": (
        pa.struct([("y", _REQUIRED)]),
        [{"y": {"x": 1.0}}, None, {"y": None}, {"y": {"x": 2.0}}],
        ["c.y", "c.y.x"],
    ),
    "struct of a struct that is never null": (
        pa.struct([pa.field("y", _REQUIRED, nullable=False)]),
        [{"y": {"x": 1.0}}, None, {"y": {"x": 2.0}}],
        ["c.y", "c.y.x"],
    ),
    "struct of structs of lists": (
        pa.struct([("y", pa.struct([pa.field("z", _LIST, nullable=False)]))]),
        [{"y": {"z": [1]}}, None, {"y": None}, {"y": {"z": []}}],
        ["c.y", "c.y.z"],
    ),
    "list of structs": (
        pa.list_(pa.struct([("y", _REQUIRED)])),
        [[{"y": {"x": 1.0}}, None, {"y": None}], None, [], [None]],
        [],
    ),
    "struct of lists of structs": (
        pa.struct([("l", pa.list_(_REQUIRED))]),
        [{"l": [{"x": 1.0}, None]}, None, {"l": None}, {"l": []}],
        ["c.l"],
    ),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_field_below_a_null_struct_is_null_to_whoever_reads_it_alone(shape: str, version: str, uri: str) -> None:
    data_type, values, paths = SHAPES[shape]
    # Each value alone, in pairs, and all of them: whether a page holds a null decides how it is written.
    choices = [choice for size in (1, 2, len(values)) for choice in itertools.combinations(values, size)]
    for number, choice in enumerate(choices):
        rows = list(choice) * 3
        # A null struct's fields hold values of some kind in Arrow: valid ones as pyarrow makes them, or nulls.
        table = pa.table({"id": range(len(rows)), "c": pa.array(rows, data_type)})
        place = f"{uri}-{number}"
        ours = esker.write_dataset(table, place, data_storage_version=version, durable=False)
        peer = lance.dataset(place)
        assert peer.to_table()["c"].to_pylist() == rows, choice
        assert ours.to_table()["c"].to_pylist() == rows, choice
        for path in paths:
            expected = [_at(row, path.split(".")[1:]) for row in rows]
            assert peer.to_table(columns=[path])[path].to_pylist() == expected, (path, choice)
            assert ours.to_table(columns=[path])[path].to_pylist() == expected, (path, choice)
            missing = [row for row, value in enumerate(expected) if value is None]
            assert peer.to_table(filter=f"{path} is null")["id"].to_pylist() == missing, (path, choice)
            assert ours.to_table(filter=f"{path} is null")["id"].to_pylist() == missing, (path, choice)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nested_nulls_of_the_peer_are_read_at_each_level(shape: str, version: str, uri: str) -> None:
    data_type, values, paths = SHAPES[shape]
    table = pa.table({"c": pa.array(values * 3, data_type)})
    theirs = lance.write_dataset(table, uri, data_storage_version=version)
    ours = esker.dataset(uri)
    same(theirs.to_table(), ours.to_table())
    for path in paths:
        assert ours.to_table(columns=[path])[path].to_pylist() == [_at(row, path.split(".")[1:]) for row in values * 3]


def _at(value: Any, path: list[str]) -> Any:
    for name in path:
        value = None if value is None else value[name]
    return value
