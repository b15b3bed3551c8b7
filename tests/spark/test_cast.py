"""The map between Arrow's types and Spark's, without Spark: each value there and back."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from esker.exceptions import SchemaMismatchError, UnsupportedError
from esker.spark.cast import cast_batch
from esker.spark.types import exchange_schema, exchange_type, spark_schema, spark_type, table_schema

WHOLE = [0, None, 1, 100]
TIMES = [10**9, None, 5 * 10**9]
LISTS = [[1, 2], None, [3, 4], [5, 6]]
RAGGED = [[1, 2], None, [], [None, 6]]
DECIMALS = [decimal.Decimal("1.5"), None, decimal.Decimal("-999.99")]

COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    *[(made, WHOLE) for made in (pa.int8(), pa.int16(), pa.int32(), pa.int64())],
    *[(made, WHOLE) for made in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())],
    (pa.uint64(), [2**64 - 1, None]),
    *[(made, [1.5, None, -0.25]) for made in (pa.float16(), pa.float32(), pa.float64())],
    (pa.bool_(), [True, None, False]),
    *[(made, ["a", None, "", "ü"]) for made in (pa.string(), pa.large_string(), pa.string_view())],
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b", "a"]),
    (pa.dictionary(pa.uint16(), pa.large_string()), ["a", None, "b", "a"]),
    *[(made, [b"ab", None, b"cd"]) for made in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))],
    *[(pa.timestamp(unit), TIMES) for unit in ("s", "ms", "us", "ns")],
    *[(pa.timestamp(unit, tz="America/New_York"), TIMES) for unit in ("s", "ms", "us", "ns")],
    *[(pa.duration(unit), TIMES) for unit in ("s", "ms", "us", "ns")],
    *[(made, [1000, None, 2000]) for made in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))],
    (pa.date32(), [1, None, -1]),
    (pa.date64(), [86_400_000, None]),
    *[(made, DECIMALS) for made in (pa.decimal128(10, 2), pa.decimal256(10, 2), pa.decimal64(10, 2))],
    *[(pa.list_(item), RAGGED) for item in (pa.uint8(), pa.float32(), pa.float16())],
    (pa.large_list(pa.int32()), RAGGED),
    (pa.list_(pa.float32(), 2), LISTS),
    (pa.list_(pa.float16(), 2), LISTS),
    (pa.list_(pa.field("item", pa.uint8(), nullable=False), 2), LISTS),
    (pa.list_(pa.list_(pa.uint8(), 2)), [[[1, 2], [3, 4]], None, []]),
    (pa.struct({"a": pa.uint16(), "b": pa.large_string()}), [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
    (pa.struct({"v": pa.list_(pa.float16(), 2)}), [{"v": [1, 2]}, None, {"v": None}]),
    (pa.struct([pa.field("a", pa.uint16(), nullable=False)]), [{"a": 1}, None, {"a": 3}]),
    (pa.list_(pa.struct({"a": pa.uint16()})), [[{"a": 1}], None, [{"a": None}, None]]),
    (pa.map_(pa.large_string(), pa.uint8()), [[("a", 1)], None, [("b", None)], []]),
    (
        pa.map_(pa.string(), pa.struct([pa.field("a", pa.uint16(), nullable=False)])),
        [[("x", {"a": 1}), ("y", None)], None, [], [("z", None)]],
    ),
    (pa.null(), [None, None]),
]


@pytest.mark.parametrize(("made", "values"), COLUMNS, ids=[str(made) for made, _ in COLUMNS])
def test_a_value_survives_the_way_to_spark_and_back(made: pa.DataType, values: list[Any]) -> None:
    table = pa.schema({"c": made})
    wanted = exchange_schema(spark_schema(table))
    whole = pa.array(values, made)
    for array in (whole, whole[1:], whole[:1], whole[:0]):
        batch = pa.record_batch([array], schema=table)
        there = cast_batch(batch, wanted)
        back = cast_batch(there, table)
        there.validate(full=True)
        back.validate(full=True)
        assert there.schema == wanted
        assert back.schema == table
        assert back.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(("made", "values"), COLUMNS, ids=[str(made) for made, _ in COLUMNS])
def test_spark_itself_maps_our_spark_types_to_our_exchange_types(made: pa.DataType, values: list[Any]) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = spark_schema(pa.schema({"c": made}))
    assert exchange_schema(schema) == to_arrow_schema(schema, timezone="UTC")


@pytest.mark.parametrize("made", [pa.decimal256(76, 0), pa.decimal128(5, -2), pa.month_day_nano_interval()])
def test_a_type_that_spark_lacks_is_refused_by_column(made: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"'s\.c'") as caught:
        spark_type(pa.struct({"c": made}), "s")
    assert caught.value.column == "s.c"


@pytest.mark.parametrize(
    "made",
    [
        spark.VariantType(),
        spark.YearMonthIntervalType(),
        spark.CalendarIntervalType(),
        spark.MapType(spark.NullType(), spark.NullType()),
    ],
)
def test_a_type_that_a_table_lacks_is_refused_by_column(made: spark.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"'c\.item'"):
        exchange_type(spark.ArrayType(made), "c")


def test_extension_types_travel_as_their_storage() -> None:
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    )
    batch = pa.record_batch([tensors], names=["t"])
    there = cast_batch(batch, exchange_schema(spark_schema(batch.schema)))
    assert there.schema.field("t").type == pa.list_(pa.float32())
    assert cast_batch(there, batch.schema).equals(batch)


def test_columns_and_struct_fields_are_found_by_name() -> None:
    batch = pa.record_batch({"b": [1], "a": pa.array([{"y": 2, "x": 3}])})
    wanted = pa.schema({"a": pa.struct({"x": pa.int64(), "y": pa.int8()}), "b": pa.int64()})
    assert cast_batch(batch, wanted).to_pylist() == [{"a": {"x": 3, "y": 2}, "b": 1}]


def test_a_new_table_is_nullable_all_the_way_down() -> None:
    frame = spark.StructType().add("l", spark.ArrayType(spark.LongType(), False), False)
    field = table_schema(frame).field("l")
    assert field.nullable
    assert field.type.value_field.nullable


REFUSED: list[tuple[str, pa.Array, pa.Field]] = [
    ("missing", pa.array([1]), pa.field("d", pa.int64())),
    ("too large", pa.array([300]), pa.field("c", pa.uint8())),
    ("negative", pa.array([-1]), pa.field("c", pa.uint64())),
    ("null", pa.array([1, None]), pa.field("c", pa.int64(), nullable=False)),
    ("length", pa.array([[1.0], [1.0, 2.0]]), pa.field("c", pa.list_(pa.float32(), 2))),
    ("nanoseconds", pa.array([1], pa.timestamp("ns")), pa.field("c", pa.timestamp("us"))),
    ("digits", pa.array([decimal.Decimal("1.55")]), pa.field("c", pa.decimal128(5, 1))),
    ("width", pa.array([b"abc"]), pa.field("c", pa.binary(2))),
    ("dictionary", pa.array([str(i) for i in range(300)]), pa.field("c", pa.dictionary(pa.int8(), pa.string()))),
    ("within", pa.array([{"x": 300}]), pa.field("c", pa.struct({"x": pa.uint8()}))),
    ("no such field", pa.array([{"x": 300}]), pa.field("c", pa.struct({"y": pa.int64()}))),
]


@pytest.mark.parametrize(("array", "field"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_value_that_does_not_fit_is_an_error_and_never_another_value(array: pa.Array, field: pa.Field) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        cast_batch(pa.record_batch([array], names=["c"]), pa.schema([field]))
    assert caught.value.column.split(".")[0] == field.name


def test_nanoseconds_are_cut_on_request_only() -> None:
    batch = pa.record_batch([pa.array([1_999], pa.timestamp("ns"))], names=["t"])
    wanted = pa.schema({"t": pa.timestamp("us")})
    assert cast_batch(batch, wanted, truncate=True).column(0).cast(pa.int64()).to_pylist() == [1]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(0, 255), min_size=3, max_size=3)), st.integers(0, 3))
def test_vectors_with_nulls_anywhere_survive(vectors: list[list[int | None] | None], skip: int) -> None:
    table = pa.schema({"v": pa.list_(pa.uint8(), 3)})
    batch = pa.record_batch([pa.array(vectors, table.field("v").type)], schema=table)[skip:]
    there = cast_batch(batch, exchange_schema(spark_schema(table)))
    assert there.to_pylist() == batch.to_pylist()
    assert cast_batch(there, table).to_pylist() == batch.to_pylist()


FIELDS = [made for made, _ in COLUMNS if made != pa.null()]


@pytest.mark.parametrize("made", FIELDS, ids=map(str, FIELDS))
def test_structs_that_are_all_null_have_fields_that_are_not(made: pa.DataType) -> None:
    array = pa.array([None, None], pa.struct([pa.field("a", made, nullable=False), pa.field("b", made)]))
    kind = spark_type(made, "a")
    fields = [spark.StructField("a", kind, False), spark.StructField("b", kind)]
    wanted = exchange_schema(spark.StructType().add("c", spark.StructType(fields)))
    for some in (array, array[1:], array[:0]):
        found = cast_batch(pa.record_batch([some], ["c"]), wanted)
        found.validate(full=True)
        assert found["c"].to_pylist() == [None] * len(some)


def test_entries_below_null_maps_are_left_out() -> None:
    entries = pa.array(["a", "b", "c", "d", "e"]), pa.array([1, 2, 3, None, 5], pa.int32())
    mask = pa.array([False, True, False, False])
    offsets = pa.array([0, 1, 3, 3, 5], pa.int32())
    maps = pa.MapArray.from_buffers(
        pa.map_(pa.string(), pa.int32()),
        4,
        [pc.invert(mask).buffers()[1], offsets.buffers()[1]],
        children=[
            pa.StructArray.from_arrays(
                entries, fields=[pa.field("key", pa.string(), False), pa.field("value", pa.int32())]
            )
        ],
    )
    values = [[("a", 1)], None, [], [("d", None), ("e", 5)]]
    wanted = pa.schema({"m": pa.map_(pa.string(), pa.int64())})
    for first in range(4):
        for count in range(5 - first):
            part = pa.record_batch({"m": maps.slice(first, count)})
            assert cast_batch(part, wanted)["m"].to_pylist() == values[first : first + count]
