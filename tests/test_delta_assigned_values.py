"""What `update` and `merge` make of values of other types than their columns have, beside deltalake."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable
from esker.exceptions import InvalidArgumentError
from tests.delta_rows import rows

TEXTS, NUMBERS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int64())
VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([True, None]),
    "byte": pa.array([1, 0], pa.int8()),
    "long": pa.array([1, 300]),
    "float": pa.array([1.5, float("nan")], pa.float32()),
    "double": pa.array([1.5, 1e300]),
    "decimal": pa.array([Decimal("1.50"), Decimal("999.99")], pa.decimal128(5, 2)),
    "text": pa.array(["1", "x"]),
    "bytes": pa.array([b"1", b"\xff"]),
    "date": pa.array([date(2024, 1, 1), date(9999, 1, 1)]),
    "instant": pa.array([datetime(2024, 1, 2, 3, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
    "local": pa.array([datetime(2024, 1, 2, 3)] * 2, pa.timestamp("us")),
    "list": pa.array([[1], [300]]),
    "texts": pa.array([["1"], ["x", "2"]]),
    "pair": pa.array([{"a": 1}, {"a": 2}]),
    "text_pair": pa.array([{"a": "1"}, {"a": "x"}]),
    "map": pa.array([[("k", 1)], [("j", 2)]], NUMBERS),
    "text_map": pa.array([[("1", "1")], [("x", "x")]], TEXTS),
}

KINDS = ("byte", "float", "decimal", "text", "bytes", "date", "instant", "list", "texts", "pair", "map")
REFUSALS: dict[Any, type[Exception]] = {DeltaTable: InvalidArgumentError, deltalake.DeltaTable: Exception}
"""Of deltalake's errors some are of no class of its own."""


def assigned(place: Path, table: Any, verb: str, columns: tuple[str, str], strict: bool) -> list[Any] | None:
    """What a column is that is assigned another; None if that is refused."""
    (column, given), opened = columns, table(str(place))
    try:
        if verb == "update":
            opened.update({column: given}, error_on_type_mismatch=strict)
        else:
            merger = opened.merge(pa.table({"id": [0, 1]}), "t.id = s.id", "s", "t", error_on_type_mismatch=strict)
            merger.when_matched_update({column: f"t.{given}"}).execute()
    except REFUSALS[table]:
        return None
    found = rows(DeltaTable(place).to_pyarrow_table(columns=["id", column]))
    opened.update({column: "null"})
    return found


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("given", VALUES)
def test_values_of_any_type_become_what_deltalake_makes_of_them(tmp_path: Path, given: str, strict: bool) -> None:
    columns = {f"to_{name}": pa.nulls(2, VALUES[name].type) for name in KINDS if name != given}
    table = pa.table({"id": [0, 1], given: VALUES[given], **columns})
    for name in ("ours", "theirs"):
        deltalake.write_deltalake(tmp_path / name, table)
    for column in columns:
        expected = assigned(tmp_path / "theirs", deltalake.DeltaTable, "update", (column, given), strict)
        for verb in ("update",) if strict else ("update", "merge"):
            assert assigned(tmp_path / "ours", DeltaTable, verb, (column, given), strict) == expected


def test_only_bytes_that_are_no_text_are_null(tmp_path: Path) -> None:
    data = pa.table({"id": range(5), "x": [b"a", b"\xff", b"b", None, "ü".encode()], "v": pa.nulls(5, pa.string())})
    deltalake.write_deltalake(tmp_path, data)
    table = DeltaTable(tmp_path)
    table.update({"v": "x"}, error_on_type_mismatch=False)
    assert table.to_pyarrow_table().sort_by("id")["v"].to_pylist() == ["a", None, "b", None, "ü"]
    table.update({"v": "x"}, predicate="id > 1")


def test_a_map_whose_key_does_not_fit_is_null(tmp_path: Path) -> None:
    kind = pa.map_(pa.int64(), pa.string())
    data = pa.table({"id": [0, 1], "m": VALUES["text_map"], "v": pa.nulls(2, kind)})
    deltalake.write_deltalake(tmp_path, data)
    table = DeltaTable(tmp_path)
    table.update({"v": "m"}, error_on_type_mismatch=False)
    assert table.to_pyarrow_table().sort_by("id")["v"].to_pylist() == [[(1, "1")], None]


NUMBER_MAP = pa.map_(pa.int64(), pa.int64())
WITH_BAD_KEYS: dict[str, tuple[pa.Array, pa.DataType, list[Any]]] = {
    "struct": (
        pa.array(
            [{"a": "1", "m": [("x", "2")]}, {"a": "z", "m": [("3", "y")]}], pa.struct([("a", "string"), ("m", TEXTS)])
        ),
        pa.struct([("a", pa.int64()), ("m", NUMBER_MAP)]),
        [{"a": 1, "m": None}, {"a": None, "m": [(3, None)]}],
    ),
    "list": (
        pa.array([[[("1", "1")], [("2", "2"), ("x", "1")]], None], pa.list_(TEXTS)),
        pa.list_(NUMBER_MAP),
        [[[(1, 1)], None], None],
    ),
    "map": (
        pa.array([[("k", [("x", "1")]), ("j", [("1", "1")])], []], pa.map_(pa.string(), TEXTS)),
        pa.map_(pa.string(), NUMBER_MAP),
        [[("k", None), ("j", [(1, 1)])], []],
    ),
}


@pytest.mark.parametrize("verb", ["update", "merge"])
@pytest.mark.parametrize("case", WITH_BAD_KEYS)
def test_a_map_whose_key_does_not_fit_is_null_alone(tmp_path: Path, case: str, verb: str) -> None:
    """deltalake ends such an update with an error of its own library."""
    given, kind, expected = WITH_BAD_KEYS[case]
    deltalake.write_deltalake(tmp_path, pa.table({"id": [0, 1], "m": given, "v": pa.nulls(2, kind)}))
    table = DeltaTable(tmp_path)
    if verb == "update":
        table.update({"v": "m"}, error_on_type_mismatch=False)
    else:
        merger = table.merge(pa.table({"id": [0, 1]}), "t.id = s.id", "s", "t", error_on_type_mismatch=False)
        merger.when_matched_update({"v": "t.m"}).execute()
    assert table.to_pyarrow_table().sort_by("id")["v"].to_pylist() == expected


def test_what_cannot_be_cast_is_refused_where_no_row_is_meant(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1], "b": [b"x"], "l": [[b"x"]]}))
    for updates in ({"b": "id"}, {"l": "[id]"}):
        with pytest.raises(InvalidArgumentError, match="a number has no bytes"):
            DeltaTable(tmp_path).update(updates, predicate="id = 2")


FLOATS = [1.005, -1.005, 2.675, 8.345, 0.49999999999999994, 999.994, 1e-9, 0.0]
DECIMALS: dict[str, tuple[pa.Array, pa.DataType]] = {
    "double": (pa.array(FLOATS), pa.decimal128(5, 2)),
    "float": (pa.array(FLOATS, pa.float32()), pa.decimal128(5, 2)),
    "whole": (pa.array(FLOATS), pa.decimal128(10, 0)),
    "fine": (pa.array(FLOATS), pa.decimal128(38, 16)),
    "list": (pa.array([[value] for value in FLOATS]), pa.list_(pa.decimal128(5, 2))),
    "struct": (pa.array([{"a": value} for value in FLOATS]), pa.struct([("a", pa.decimal128(5, 2))])),
}


@pytest.mark.parametrize("verb", ["update", "merge", "insert"])
@pytest.mark.parametrize("case", DECIMALS)
def test_floats_become_decimals_as_in_the_same_verb_of_deltalake(tmp_path: Path, case: str, verb: str) -> None:
    values, kind = DECIMALS[case]
    ids = pa.array(range(len(values)))
    source = pa.table({"id": ids, "f": values})
    found = []
    for table in (DeltaTable, deltalake.DeltaTable):
        place = tmp_path / table.__module__
        deltalake.write_deltalake(place, source.append_column("v", pa.nulls(len(ids), kind)))
        opened: Any = table(str(place))
        if verb == "update":
            opened.update({"v": "f"})
        elif verb == "merge":
            opened.merge(source, "t.id = s.id", "s", "t").when_matched_update({"v": "s.f"}).execute()
        else:
            merger = opened.merge(source, "t.id = s.id + 100", "s", "t")
            merger.when_not_matched_insert({"id": "s.id + 100", "v": "s.f"}).execute()
        found.append(DeltaTable(place).to_pyarrow_table().sort_by("id")["v"].to_pylist())
    assert found[0] == found[1]


def test_a_merge_keeps_large_floats_as_they_are(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": [0], "v": pa.nulls(1, pa.decimal128(38, 2))}))
    for value in (1e13, 1e16, 2.0**80):
        merger = DeltaTable(tmp_path).merge(pa.table({"id": [0], "f": [value]}), "t.id = s.id", "s", "t")
        merger.when_matched_update({"v": "s.f"}).execute()
        assert DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist() == [Decimal(value)]
