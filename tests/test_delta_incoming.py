"""Rows on their way into a Delta table: fields are found by name at every level, values stay what they are."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import AddAction, ArrayType, DeltaTable, Field, Schema, StructType, write_deltalake

UTC = dt.UTC
INT = pa.int64()


def _struct(**fields: Any) -> pa.DataType:
    return pa.struct(list(fields.items()))


def _in_list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(kind)


def _in_map(kind: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), kind)


def _in_struct(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("inner", kind)])


Place = tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], str]
PLACES: dict[str, Place] = {
    "column": (lambda kind: kind, lambda value: value, "x"),
    "list": (_in_list, lambda value: [value], "x.element"),
    "map": (_in_map, lambda value: [("k", value)], "x.value"),
    "struct": (_in_struct, lambda value: {"inner": value}, "x.inner"),
    "struct in list in map": (
        lambda kind: _in_map(_in_list(_in_struct(kind))),
        lambda value: [("k", [{"inner": value}])],
        "x.value.element.inner",
    ),
    "dictionary": (lambda kind: kind, lambda value: value, "x"),
}


def _rows(place: str, kind: pa.DataType, value: Any) -> pa.Table:
    wrap, put, _ = PLACES[place]
    array = pa.array([put(value)], wrap(kind))
    if place == "dictionary":
        array = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), array)
    return pa.table({"x": array})


def _get(place: str, value: Any) -> Any:
    if place in ("column", "dictionary"):
        return value
    if place == "list":
        return value[0]
    if place == "map":
        return value[0][1]
    if place == "struct":
        return value["inner"]
    return value[0][1][0]["inner"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (_struct(a=INT, b=INT, c=pa.string()), {"a": 2, "b": 3, "c": "precious"}, "found 'c' as well"),
        (_struct(a=INT, bb=INT), {"a": 2, "bb": 3}, "found 'bb' as well"),
        (_struct(a=INT, B=INT), {"a": 2, "B": 3}, "found 'B' as well"),
        (_struct(a=INT), {"a": 2}, "found none called 'b'"),
    ],
    ids=["more", "another", "another case", "fewer"],
)
def test_fields_that_are_not_the_tables_are_refused_at_every_level(
    tmp_path: Path, place: str, kind: pa.DataType, value: Any, words: str
) -> None:
    first = _rows("column" if place == "dictionary" else place, _struct(a=INT, b=INT), {"a": 1, "b": 1})
    write_deltalake(tmp_path / "t", first)
    path = PLACES[place][2]
    with pytest.raises(exceptions.SchemaMismatchError, match=f"'{path}': .*{words}.*schema_mode"):
        write_deltalake(tmp_path / "t", _rows(place, kind, value), mode="append")
    with pytest.raises(exceptions.SchemaMismatchError, match=words):
        write_deltalake(tmp_path / "t", _rows(place, kind, value), mode="overwrite")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["x"].to_pylist() == first["x"].to_pylist()


@pytest.mark.parametrize("place", PLACES)
def test_fields_are_merged_at_every_level_where_that_is_asked_for(tmp_path: Path, place: str) -> None:
    first = _rows("column" if place == "dictionary" else place, _struct(a=INT, b=INT), {"a": 1, "b": 1})
    write_deltalake(tmp_path / "t", first)
    more = _rows(place, _struct(c=pa.string(), a=INT), {"c": "precious", "a": 2})
    write_deltalake(tmp_path / "t", more, mode="append", schema_mode="merge")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()["x"].to_pylist()
    values = sorted((_get(place, value) for value in found), key=lambda value: value["a"])
    assert values == [{"a": 1, "b": 1, "c": None}, {"a": 2, "b": None, "c": "precious"}]
    peer = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()["x"].to_pylist()
    assert sorted(map(str, peer)) == sorted(map(str, found))
    cased = _rows(place, _struct(A=INT), {"A": 2})
    with pytest.raises(exceptions.InvalidArgumentError, match="differ not only by case"):
        write_deltalake(tmp_path / "t", cased, mode="append", schema_mode="merge")


@pytest.mark.parametrize("place", PLACES)
def test_fields_are_found_by_name_in_any_order(tmp_path: Path, place: str) -> None:
    first = _rows("column" if place == "dictionary" else place, _struct(a=INT, b=pa.string()), {"a": 1, "b": "x"})
    write_deltalake(tmp_path / "t", first)
    swapped = _rows(place, _struct(b=pa.large_string(), a=pa.int8()), {"b": "y", "a": 2})
    write_deltalake(tmp_path / "t", swapped, mode="append")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()["x"].to_pylist()
    assert sorted(_get(place, value)["b"] for value in found) == ["x", "y"]
    assert {_get(place, value)["a"]: _get(place, value)["b"] for value in found} == {1: "x", 2: "y"}


def test_what_lies_below_nulls_is_nobodys_value(tmp_path: Path) -> None:
    schema = Schema.from_json(
        '{"type":"struct","fields":[{"name":"x","type":{"type":"struct","fields":['
        '{"name":"a","type":"long","nullable":false,"metadata":{}},'
        '{"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":['
        '{"name":"b","type":"long","nullable":false,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":"long","valueContainsNull":false},'
        '"nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}'
    )
    DeltaTable.create(tmp_path / "t", schema)
    kind = _struct(a=INT, l=pa.list_(_struct(b=INT)), m=pa.map_(pa.string(), INT))
    good = [
        None,
        {"a": 1, "l": None, "m": None},
        {"a": 2, "l": [None, {"b": 1}], "m": [("k", 1)]},
        {"a": 3, "l": [], "m": []},
    ]
    write_deltalake(tmp_path / "t", pa.table({"x": pa.array(good, kind)}), mode="append")
    hidden = pa.StructArray.from_arrays(
        [pa.array([None, 7], INT), pa.nulls(2, kind.field("l").type), pa.nulls(2, kind.field("m").type)],
        fields=[kind.field(i) for i in range(3)],
        mask=pa.array([True, False]),
    )
    write_deltalake(tmp_path / "t", pa.table({"x": hidden}), mode="append")
    assert DeltaTable(tmp_path / "t").count() == 6
    for bad, path in (
        ({"a": None, "l": None, "m": None}, "x.a"),
        ({"a": 1, "l": [{"b": 1}, {"b": None}], "m": None}, "x.l.element.b"),
        ({"a": 1, "l": None, "m": [("k", None)]}, "x.m.value"),
    ):
        for array in (pa.array([bad], kind), pa.array([None, bad, None], kind).slice(1), pa.array([*good, bad], kind)):
            with pytest.raises(exceptions.InvalidArgumentError, match=f"'{path}': expected no nulls"):
                write_deltalake(tmp_path / "t", pa.table({"x": array}), mode="append")
    assert DeltaTable(tmp_path / "t").count() == 6
    assert sorted(str(row) for row in deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()) == sorted(
        str(row) for row in DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    )


TAKEN: list[tuple[str, pa.Array, list[Any]]] = [
    ("decimal(10,2)", pa.array([7, None, -99999999]), [Decimal("7.00"), None, Decimal("-99999999.00")]),
    ("decimal(10,2)", pa.array([7], pa.uint64()), [Decimal("7.00")]),
    ("decimal(38,0)", pa.array([2**63 - 1]), [Decimal(2**63 - 1)]),
    ("decimal(3,2)", pa.array([Decimal("1.5")], pa.decimal128(2, 1)), [Decimal("1.50")]),
    ("decimal(10,2)", pa.array([7]).dictionary_encode(), [Decimal("7.00")]),
    ("byte", pa.array([127, None]), [127, None]),
    ("byte", pa.array([2.0]), [2]),
    ("long", pa.array([Decimal("7.00")]), [7]),
    ("long", pa.array([1], pa.uint8()), [1]),
    ("short", pa.array([200], pa.uint8()), [200]),
    ("float", pa.array([2**40]), [float(2**40)]),
    ("double", pa.array([2**63], pa.uint64()), [float(2**63)]),
    ("double", pa.array([Decimal("1.505")]), [1.505]),
    ("float", pa.array([math.inf, 1.5]), [math.inf, 1.5]),
    ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
    ("string", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    ("string", pa.array(["é".encode(), None]), ["é", None]),
    ("string", pa.array([b"ab", None], pa.binary(2)), ["ab", None]),
    ("string", pa.array([b"ab", None], pa.binary_view()), ["ab", None]),
    ("string", pa.array([b"ab", None, b"ab"], pa.large_binary()).dictionary_encode(), ["ab", None, "ab"]),
    (
        "string",
        pa.DictionaryArray.from_arrays(pa.array([0, None, 0]), pa.array(["v"], pa.string_view())),
        ["v", None, "v"],
    ),
    ("binary", pa.array([b"a", None], pa.large_binary()), [b"a", None]),
    ("binary", pa.array([b"a", None], pa.binary_view()), [b"a", None]),
    ("binary", pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    ("date", pa.array([dt.date(2024, 1, 1)], pa.date64()), [dt.date(2024, 1, 1)]),
    ("timestamp", pa.array([0], pa.timestamp("ns", "America/New_York")), [dt.datetime(1970, 1, 1, tzinfo=UTC)]),
    ("timestamp", pa.array([1], pa.timestamp("s", "UTC")), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
    ("timestamp_ntz", pa.array([1999], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    ("boolean", pa.array([None, None], pa.null()), [None, None]),
]


@pytest.mark.parametrize(("kind", "given", "expected"), TAKEN, ids=lambda value: str(getattr(value, "type", value)))
@pytest.mark.parametrize("nested", [False, True])
def test_the_same_value_of_another_type_is_taken(
    tmp_path: Path, kind: str, given: pa.Array, expected: list[Any], nested: bool
) -> None:
    if nested:
        schema = Schema([Field("x", ArrayType(kind))])
        if pa.types.is_dictionary(given.type):
            given = pa.LargeListArray.from_arrays([0, len(given)], given)
        else:
            given = pa.ListViewArray.from_arrays(pa.array([0], pa.int32()), pa.array([len(given)], pa.int32()), given)
    else:
        schema = Schema([Field("x", kind)])
    DeltaTable.create(tmp_path / "t", schema)
    write_deltalake(tmp_path / "t", pa.table({"x": given}), mode="append")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()["x"].to_pylist()
    assert found == ([expected] if nested else expected)


REFUSED: list[tuple[str, pa.Array, str]] = [
    ("decimal(4,2)", pa.array([1, 100]), "does not fit"),
    ("decimal(4,2)", pa.array([2**63], pa.uint64()), "does not fit"),
    ("decimal(4,2)", pa.array([Decimal("1.505")]), "data loss"),
    ("byte", pa.array([128]), "not in range"),
    ("byte", pa.array([200], pa.uint8()), "not in range"),
    ("long", pa.array([2**63], pa.uint64()), "not in range"),
    ("long", pa.array([1.5]), "truncated"),
    ("long", pa.array([math.nan]), "truncated"),
    ("long", pa.array([Decimal("1.50")]), "data loss"),
    ("long", pa.array([dt.datetime(2024, 1, 1)]), "times become no numbers"),
    ("double", pa.array([2**53 + 1]), "does not hold exactly"),
    ("float", pa.array([1e300]), "beyond the end"),
    ("boolean", pa.array([1]), "only true and false"),
    ("string", pa.array([1]), "only text becomes text"),
    ("string", pa.array([1]).dictionary_encode(), "only text becomes text"),
    ("string", pa.array([b"ab", b"\xff"]), "non UTF-8 data"),
    ("timestamp", pa.array([dt.datetime(2024, 1, 1)]), "without a zone.*assume_timezone"),
    ("timestamp", pa.array([1]), "only times"),
    ("date", pa.array([19000]), "only times"),
]


@pytest.mark.parametrize(("kind", "given", "words"), REFUSED, ids=lambda value: str(getattr(value, "type", value)))
@pytest.mark.parametrize("nested", [False, True])
def test_a_value_that_the_column_does_not_have_is_refused(
    tmp_path: Path, kind: str, given: pa.Array, words: str, nested: bool
) -> None:
    path = "x"
    if nested:
        schema = Schema([Field("x", StructType([Field("f", kind)]))])
        given, path = pa.StructArray.from_arrays([given], ["f"]), "x.f"
    else:
        schema = Schema([Field("x", kind)])
    DeltaTable.create(tmp_path / "t", schema)
    with pytest.raises(exceptions.SchemaMismatchError, match=f"'{path}': expected .*{words}"):
        write_deltalake(tmp_path / "t", pa.table({"x": given}), mode="append")
    assert DeltaTable(tmp_path / "t").version() == 0


LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda item: pa.list_(item, 2)]


@pytest.mark.parametrize("make", LISTS, ids=["list", "large", "view", "large view", "fixed"])
def test_every_kind_of_list_is_taken_wherever_its_items_lie(tmp_path: Path, make: Callable[[Any], pa.DataType]) -> None:
    values = [[1, 2], None, [3, None], [5, 6]]
    array = pa.array(values, make(pa.int32()))
    nested = pa.StructArray.from_arrays([array], ["l"])
    rows = pa.table({"l": array, "s": nested})
    write_deltalake(tmp_path / "t", rows)
    write_deltalake(tmp_path / "t", rows.slice(1, 2), mode="append")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert sorted(map(str, found["l"].to_pylist())) == sorted(map(str, [*values, *values[1:3]]))
    assert [row["l"] for row in found["s"].to_pylist()] == found["l"].to_pylist()
    assert sorted(map(str, deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()["l"].to_pylist())) == sorted(
        map(str, found["l"].to_pylist())
    )
    scattered = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1], pa.int32()), pa.array([1, 2, 2], pa.int32()), pa.array([1, 2, 3])
    )
    write_deltalake(tmp_path / "views", pa.table({"l": scattered}))
    assert DeltaTable(tmp_path / "views").to_pyarrow_table()["l"].to_pylist() == [[3], [1, 2], [2, 3]]


def test_maps_in_slices_are_taken_whole(tmp_path: Path) -> None:
    values = [[("a", {"x": 1})], None, [("b", {"x": 2}), ("c", None)], []]
    kind = pa.map_(pa.string_view(), _struct(x=pa.int32()))
    array = pa.array(values, pa.map_(pa.string(), _struct(x=pa.int32()))).cast(kind)
    write_deltalake(tmp_path / "t", pa.table({"m": array.slice(0, 1)}))
    write_deltalake(tmp_path / "t", pa.table({"m": array.slice(1)}), mode="append")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()["m"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, values))


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_whose_fields_may_be_null_are_read_where_the_tables_may_not(tmp_path: Path, partitioned: bool) -> None:
    kind = StructType(
        [Field("a", "long", nullable=False), Field("s", StructType([Field("b", "string", nullable=False)]))]
    )
    schema = Schema([Field("id", "long"), Field("p", "string"), Field("x", kind), Field("l", ArrayType(kind))])
    partition_by = ["p"] if partitioned else None
    configuration = {"delta.enableChangeDataFeed": "true"}
    DeltaTable.create(tmp_path / "t", schema, partition_by=partition_by, configuration=configuration)
    plain = _struct(a=INT, s=_struct(b=pa.string()))
    values = [{"a": 1, "s": {"b": "u"}}, None, {"a": 2, "s": None}]
    data = {
        "id": [1, 2, 3],
        "p": ["q"] * 3,
        "x": pa.array(values, plain),
        "l": pa.array([values, None, []], pa.list_(plain)),
    }
    rows = pa.table(data)
    pq.write_table(rows.drop_columns("p") if partitioned else rows, tmp_path / "t" / "a.parquet")
    action = AddAction("a.parquet", 1, {"p": "q"} if partitioned else {}, 0, True, '{"numRecords":3}')
    table = DeltaTable(tmp_path / "t")
    table.create_write_transaction([action], "append", schema, partition_by=partition_by)
    expected = rows.to_pylist()
    filters = pc.field("id") > 0
    for found in (
        table.to_pyarrow_table(),
        table.to_pyarrow_table(filters="id > 0"),
        table.to_pyarrow_table(filters=filters),
        table.scan().read_all(),
        table.to_pyarrow_dataset().to_table(filter=filters),
        table.load_cdf().read_all().select(rows.column_names),
    ):
        assert found.select(rows.column_names).to_pylist() == expected
    assert table.to_pyarrow_table().schema == schema.to_arrow()
    assert table.scan().schema == schema.to_arrow()
    write_deltalake(table, rows.slice(0, 1), mode="overwrite", predicate="id = 1")
    assert sorted(map(str, DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist())) == sorted(map(str, expected))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_floats_are_rounded_to_decimals_as_deltalake_rounds_them(tmp_path: Path, place: str, kind: pa.DataType) -> None:
    floats = [1.555, -1.555, 0.1, 0.005, 2.675, -0.0, 899.995, 1 / 3]
    for digits in (pa.decimal128(5, 2), pa.decimal128(38, 20), pa.decimal128(38, 35), pa.decimal128(10, 0)):
        found = []
        for writer in (write_deltalake, deltalake.write_deltalake):
            path = tmp_path / f"{digits}{writer.__module__}"
            deltalake.write_deltalake(path, _rows(place, digits, None if place == "column" else Decimal(0)))
            for value in floats:
                writer(path, _rows(place, kind, value / (1 if digits.scale < 35 else 1000)), mode="append")
            found.append(str(sorted(map(str, DeltaTable(path).to_pyarrow_table()["x"].to_pylist()))))
        assert found[0] == found[1]


def test_a_float_beyond_a_decimal_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, _rows("column", pa.decimal128(5, 2), Decimal(0)))
    for value in (999.995, -1e300, math.nan, math.inf):
        with pytest.raises(exceptions.SchemaMismatchError, match=r"decimal128\(5, 2\), found double: "):
            write_deltalake(tmp_path, _rows("column", pa.float64(), value), mode="append")
