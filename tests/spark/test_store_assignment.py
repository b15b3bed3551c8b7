"""Which DataFrames go into which tables: every pair of types, by one rule for both formats, beside Spark's own."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from esker.delta import DeltaTable
from esker.delta import Field as DeltaField
from esker.delta import Schema as DeltaSchema
from esker.exceptions import EskerError, InvalidArgumentError, SchemaMismatchError
from esker.spark.matching import check_append
from esker.spark.spelling import spelled_as
from esker.spark.types import table_schema
from tests.spark.jobs import read, wrote
from tests.spark.streams import Batch

NOON = dt.datetime(2024, 7, 1, 12, 0, 0, 1)
VALUES: dict[str, tuple[T.DataType, list[Any]]] = {
    "boolean": (T.BooleanType(), [True]),
    "tinyint": (T.ByteType(), [-128, 127]),
    "smallint": (T.ShortType(), [-(2**15), 7]),
    "int": (T.IntegerType(), [-(2**31), 7]),
    "bigint": (T.LongType(), [-(2**63), 2**53 + 1, 7]),
    "float": (T.FloatType(), [0.5, math.inf, -0.0]),
    "double": (T.DoubleType(), [0.1, 1e300, 0.5]),
    "decimal(10,2)": (T.DecimalType(10, 2), [Decimal("7.25"), Decimal("7.00")]),
    "decimal(38,0)": (T.DecimalType(38, 0), [Decimal(10**37), Decimal(7)]),
    "string": (T.StringType(), ["7", "2024-07-01", "true"]),
    "binary": (T.BinaryType(), [b"7"]),
    "date": (T.DateType(), [dt.date(2024, 7, 1)]),
    "timestamp": (T.TimestampType(), [NOON.replace(tzinfo=dt.UTC)]),
    "timestamp_ntz": (T.TimestampNTZType(), [NOON]),
    "array<int>": (T.ArrayType(T.IntegerType()), [[1, None]]),
    "array<string>": (T.ArrayType(T.StringType()), [["1"]]),
    "struct<a:int>": (T.StructType().add("a", T.IntegerType()), [{"a": 1}]),
    "struct<a:bigint>": (T.StructType().add("a", T.LongType()), [{"a": 2**40}]),
    "struct<a:string>": (T.StructType().add("a", T.StringType()), [{"a": "1"}]),
    "struct<b:int>": (T.StructType().add("b", T.IntegerType()), [{"b": 1}]),
    "struct<a:int,b:int>": (T.StructType().add("a", T.IntegerType()).add("b", T.IntegerType()), [{"a": 1, "b": 2}]),
    "void": (T.NullType(), [None]),
}
WHOLE = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double")
DECIMAL = ("decimal(10,2)", "decimal(38,0)")
TABLES = [name for name in VALUES if name != "void"]


def fits(frame: str, table: str) -> bool:
    """The rule, as the guide has it."""
    if frame in (table, "void") or (frame in DECIMAL and table in DECIMAL):
        return True
    if {frame, table} == {"struct<a:int>", "struct<a:bigint>"}:
        return True
    return (frame in WHOLE and table in (*WHOLE, *REAL, *DECIMAL)) or (frame in REAL and table in REAL)


def stores(found: T.DataType, wanted: T.DataType) -> bool:
    """Spark's ANSI store assignment."""
    times = (T.DateType, T.TimestampType, T.TimestampNTZType)
    if found == wanted or isinstance(found, T.NullType):
        return True
    if isinstance(found, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return stores(found.elementType, wanted.elementType)
    if isinstance(found, T.StructType) and isinstance(wanted, T.StructType):
        pairs = zip(found.fields, wanted.fields, strict=False)
        return len(found) == len(wanted) and all(stores(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(found, T.NumericType) and isinstance(wanted, T.NumericType):
        return True
    if isinstance(wanted, T.StringType) and isinstance(found, T.AtomicType):
        return True
    return isinstance(found, times) and isinstance(wanted, times)


def _frame(name: str) -> T.StructType:
    return T.StructType().add("x", VALUES[name][0])


def _accepts(frame: str, table: str) -> bool:
    try:
        check_append(_frame(frame), table_schema(_frame(table)), "t")
    except SchemaMismatchError:
        return False
    return True


def test_a_type_fits_another_of_its_kind_and_nothing_that_spark_would_refuse() -> None:
    for table in TABLES:
        for frame in VALUES:
            assert _accepts(frame, table) == fits(frame, table), (frame, table)
            assert not fits(frame, table) or stores(VALUES[frame][0], VALUES[table][0]), (frame, table)


@pytest.mark.parametrize("table_format", ["lance", "delta"])
@pytest.mark.parametrize("table", TABLES)
def test_what_is_stored_is_the_value_that_was_given(table: str, table_format: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, _frame(table), [{"x": VALUES[table][1][-1]}], tableFormat=table_format)
    there = 1
    for frame in VALUES:
        for value in VALUES[frame][1]:
            try:
                wrote(uri, _frame(frame), [{"x": value}, {"x": None}], maxRowsPerFile=10)
            except SchemaMismatchError:
                # Of another kind, or a value that the column cannot hold.
                assert not fits(frame, table) or not _holds(table, value), (frame, value)
                continue
            assert fits(frame, table), (frame, value)
            found = [row["x"] for row in read(uri)]
            there += 2
            assert len(found) == there
            assert found.count(None) >= 1
            assert any(_same(value, other, table) for other in found), (frame, value, found)
    peer = deltalake.DeltaTable(uri).to_pyarrow_table() if table_format == "delta" else lance.dataset(uri).to_table()
    assert peer.num_rows == there


def _holds(table: str, value: Any) -> bool:
    """Whether a value that fits by its kind is one of the column's."""
    if isinstance(value, dict):
        return abs(value["a"]) < 2**31
    if table in WHOLE:
        bits = 8 * 2 ** WHOLE.index(table) - 1
        return bool(-(2**bits) <= value < 2**bits)
    if table in REAL and isinstance(value, int):
        return abs(value) <= 2 ** (24 if table == "float" else 53)
    if table == "float":
        return bool(math.isinf(value) or abs(value) < 3e38)
    if table in DECIMAL:
        scale = 2 if table == "decimal(10,2)" else 0
        return bool(abs(value) < 10 ** (8 if scale else 38)) and Decimal(value) == round(Decimal(value), scale)
    return True


def _same(value: Any, found: Any, table: str) -> bool:
    if table == "float" and isinstance(value, float) and found is not None:
        return bool(found == pytest.approx(value, rel=1e-6))
    return bool(found == value)


def test_columns_are_nullable_whatever_the_frame_says_unless_the_table_was_made_so(tmp_path: Path) -> None:
    frame = T.StructType(
        [T.StructField("id", T.LongType(), False), T.StructField("l", T.ArrayType(T.LongType(), False), False)]
    )
    loose = T.StructType().add("id", T.LongType()).add("l", T.ArrayType(T.LongType()))
    for table_format in ("lance", "delta"):
        uri = str(tmp_path / table_format)
        wrote(uri, frame, [{"id": 1, "l": [1]}], tableFormat=table_format)
        wrote(uri, loose, [{"id": None, "l": None}, {"id": 2, "l": [None]}])
        found = read(uri)
        assert {"id": None, "l": None} in found
        assert {"id": 2, "l": [None]} in found
    # A column that a merge adds, and columns that an overwrite brings.
    more = T.StructType(
        [*frame.fields, T.StructField("n", T.StructType([T.StructField("a", T.LongType(), False)]), False)]
    )
    wrote(str(tmp_path / "delta"), more, [{"id": 3, "l": [3], "n": {"a": 3}}], mergeSchema=True)
    wrote(str(tmp_path / "delta"), loose, [{"id": 4, "l": [4]}], mergeSchema=True)
    for overwritten in (False, True):
        assert all(_nullable(field.to_arrow()) for field in DeltaTable(str(tmp_path / "delta")).schema().fields), (
            overwritten
        )
        wrote(str(tmp_path / "delta"), more, [{"id": 3, "l": [3], "n": {"a": 3}}], overwrite=True, overwriteSchema=True)
    strict = str(tmp_path / "strict")
    DeltaTable.create(strict, DeltaSchema([DeltaField("id", "long", nullable=False)]))
    with pytest.raises(EskerError, match="'id'.*nulls"):
        wrote(strict, T.StructType().add("id", T.LongType()), [{"id": None}])
    wrote(strict, T.StructType().add("id", T.LongType()), [{"id": 1}])
    assert not DeltaTable(strict).schema().fields[0].nullable


def _nullable(field: pa.Field) -> bool:
    kind = field.type
    inner = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return field.nullable and all(_nullable(part) for part in inner)


def test_a_merge_fills_fields_that_rows_lack_and_checks_the_others(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pair = T.StructType().add("a", T.LongType()).add("b", T.StringType())
    wrote(
        uri,
        T.StructType().add("id", T.LongType()).add("s", pair),
        [{"id": 1, "s": {"a": 1, "b": "x"}}],
        tableFormat="delta",
    )
    only = T.StructType().add("s", T.StructType().add("b", T.StringType()).add("c", T.IntegerType()))
    with pytest.raises(SchemaMismatchError, match="id missing.*mergeSchema=true"):
        wrote(uri, only, [{"s": {"b": "y", "c": 2}}])
    wrote(uri, only, [{"s": {"b": "y", "c": 2}}, {"s": None}], mergeSchema=True)
    assert sorted(read(uri), key=str) == [
        {"id": 1, "s": {"a": 1, "b": "x", "c": None}},
        {"id": None, "s": None},
        {"id": None, "s": {"a": None, "b": "y", "c": 2}},
    ]
    with pytest.raises(SchemaMismatchError, match=r"'s\.a' expected bigint, found string"):
        wrote(
            uri, T.StructType().add("s", T.StructType().add("a", T.StringType())), [{"s": {"a": "1"}}], mergeSchema=True
        )


def test_names_of_many_columns_are_compared_once_each() -> None:
    class Name(str):
        lowered = 0

        def lower(self) -> str:
            Name.lowered += 1
            return super().lower()

    names = [Name(f"c{number}") for number in range(1000)]
    assert spelled_as(names, [Name(f"C{number}") for number in range(1000)]) == [f"C{n}" for n in range(1000)]
    assert Name.lowered < 10_000


@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_a_name_that_a_frame_has_twice_is_named_with_what_helps(tmp_path: Path, table_format: str) -> None:
    uri = str(tmp_path)
    wrote(uri, T.StructType().add("id", T.LongType()), [{"id": 1}], tableFormat=table_format)
    twice = T.StructType().add("id", T.LongType()).add("id", T.LongType())
    with pytest.raises(SchemaMismatchError, match="found id twice: give each column a name of its own$"):
        wrote(uri, twice, [])


def test_a_user_reads_a_column_as_another_type_of_its_kind_only(tmp_path: Path) -> None:
    for table_format in ("lance", "delta"):
        uri = str(tmp_path / table_format)
        wrote(
            uri,
            T.StructType().add("id", T.LongType()).add("w", T.StringType()),
            [{"id": 1, "w": "7"}],
            tableFormat=table_format,
        )
        assert read(uri, T.StructType().add("id", T.IntegerType())) == [{"id": 1}]
        with pytest.raises(SchemaMismatchError, match="'w' expected int, found string"):
            read(uri, T.StructType().add("w", T.IntegerType()))
        with pytest.raises(SchemaMismatchError, match="'id' expected timestamp, found bigint"):
            read(uri, T.StructType().add("id", T.TimestampType()))


def test_columns_of_json_take_texts_and_stay_what_they_are(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    kinds = pa.schema({"id": pa.int64(), "j": pa.json_()})
    lance.write_dataset(pa.Table.from_pylist([{"id": 1, "j": "[1]"}], kinds), uri, data_storage_version="2.2")
    frame = T.StructType().add("id", T.LongType()).add("j", T.StringType())
    wrote(uri, frame, [{"id": 2, "j": '{"a":2}'}, {"id": 3, "j": None}])
    Batch(uri, frame, "query", 0, maxFilesPerCommit=1).run([{"id": 4, "j": "{}"}], [{"id": 5, "j": "[5]"}])
    expected = [(1, "[1]"), (2, '{"a":2}'), (3, None), (4, "{}"), (5, "[5]")]
    found = lance.dataset(uri).to_table()
    assert sorted((row["id"], row["j"]) for row in found.to_pylist()) == expected
    assert sorted((row["id"], row["j"]) for row in read(uri)) == expected
    assert lance.dataset(uri).to_table(filter="json_get_int(j, 'a') = 2")["id"].to_pylist() == [2]
    # Bytes would be taken for JSON as files hold it, which nobody could read.
    binary = T.StructType().add("id", T.LongType()).add("j", T.BinaryType())
    with pytest.raises(SchemaMismatchError, match="'j' expected string, found binary"):
        wrote(uri, binary, [{"id": 6, "j": b"{}"}])
    with pytest.raises(InvalidArgumentError, match="column 'j', row 0: Failed to encode JSON"):
        wrote(uri, frame, [{"id": 6, "j": "no JSON"}])
    wrote(uri, frame, [{"id": 7, "j": "[7]"}], overwrite=True)
    assert lance.dataset(uri).schema == found.schema
    wrote(uri, frame, [{"id": 8, "j": "no JSON"}], overwrite=True, overwriteSchema="true")
    assert lance.dataset(uri).to_table().to_pylist() == [{"id": 8, "j": "no JSON"}]
