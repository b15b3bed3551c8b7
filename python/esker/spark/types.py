"""The mapping between Arrow's types and Spark's, in both directions.

Spark has fewer types than Arrow: a column is shown with the narrowest Spark type that holds all values of its type.

| a table's Arrow type                          | in Spark                  | exchanged as        |
|-----------------------------------------------|---------------------------|---------------------|
| bool, int8 ... int64, float32, float64        | the same                  | the same            |
| uint8, uint16, uint32                         | short, int, bigint        | int16, int32, int64 |
| uint64                                        | decimal(20, 0)            | decimal128          |
| float16                                       | float                     | float32             |
| decimal of up to 38 digits                    | decimal                   | decimal128          |
| utf8, large_utf8, utf8_view                   | string                    | utf8                |
| binary, large, view, fixed size               | binary                    | binary              |
| date32, date64                                | date                      | date32              |
| time32, time64                                | time(6)                   | time64[ns]          |
| timestamp without a zone, any unit            | timestamp_ntz             | timestamp[us]       |
| timestamp with a zone, any unit               | timestamp                 | timestamp[us, UTC]  |
| duration                                      | interval day to second    | duration[us]        |
| list, large_list, list_view, fixed_size_list  | array                     | list                |
| struct, map, null                             | struct, map, void         | the same            |
| dictionary, run-end encoded, extension        | as the values, as storage |                     |

All columns are nullable in Spark, as with its own file formats. `esker.spark.cast` casts the values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from esker.arrow.nested import is_list_like
from esker.exceptions import UnsupportedError

__all__ = ["exchange_schema", "exchange_type", "nullable_type", "spark_schema", "spark_type", "table_schema"]

# Spark has a type for the time of day since 4.1.
_TIME: Any = getattr(spark, "TimeType", None)
_MAX_DIGITS = 38
_ROW_NUMBERS = ("_rowid", "_rowaddr", "_rowoffset")

_SAME: list[tuple[pa.DataType, type[spark.DataType]]] = [
    (pa.bool_(), spark.BooleanType),
    (pa.int8(), spark.ByteType),
    (pa.int16(), spark.ShortType),
    (pa.int32(), spark.IntegerType),
    (pa.int64(), spark.LongType),
    (pa.float32(), spark.FloatType),
    (pa.float64(), spark.DoubleType),
    (pa.string(), spark.StringType),
    (pa.binary(), spark.BinaryType),
    (pa.date32(), spark.DateType),
    (pa.timestamp("us"), spark.TimestampNTZType),
    (pa.timestamp("us", tz="UTC"), spark.TimestampType),
    (pa.duration("us"), spark.DayTimeIntervalType),
    (pa.null(), spark.NullType),
]
_WIDENED: list[tuple[pa.DataType, type[spark.DataType]]] = [
    (pa.uint8(), spark.ShortType),
    (pa.uint16(), spark.IntegerType),
    (pa.uint32(), spark.LongType),
    (pa.float16(), spark.FloatType),
    (pa.large_string(), spark.StringType),
    (pa.string_view(), spark.StringType),
    (pa.large_binary(), spark.BinaryType),
    (pa.binary_view(), spark.BinaryType),
    (pa.date64(), spark.DateType),
]
_TO_SPARK = dict([*_SAME, *_WIDENED])


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema of a table.

    Args:
        schema: The table's Arrow schema.

    Returns:
        One nullable field for each column, in the same order.

    Raises:
        UnsupportedError: Spark has no type for that of a column.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.types import spark_schema
        >>> spark_schema(pa.schema({"id": pa.uint32(), "vector": pa.list_(pa.float32(), 2)})).simpleString()
        'struct<id:bigint,vector:array<float>>'
    """
    return spark.StructType([_shown(field) for field in schema])


def spark_type(arrow: pa.DataType, column: str) -> spark.DataType:
    """The Spark type of one Arrow type; `column` is for error messages."""
    if isinstance(arrow, pa.BaseExtensionType):
        # Before the look-up: such a type may have no hash.
        return spark_type(arrow.storage_type, column)
    made: type[spark.DataType] | None = _TO_SPARK.get(arrow)
    if made is not None:
        return made()
    kind = pa.types
    if kind.is_dictionary(arrow) or kind.is_run_end_encoded(arrow):
        return spark_type(arrow.value_type, column)
    if kind.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= _MAX_DIGITS:
        return spark.DecimalType(arrow.precision, arrow.scale)
    if kind.is_uint64(arrow):
        return spark.DecimalType(20, 0)
    if kind.is_fixed_size_binary(arrow):
        return spark.BinaryType()
    if kind.is_timestamp(arrow):
        return spark.TimestampNTZType() if arrow.tz is None else spark.TimestampType()
    if kind.is_duration(arrow):
        return spark.DayTimeIntervalType()
    if kind.is_time(arrow) and _TIME is not None:
        made_time: spark.DataType = _TIME(6)
        return made_time
    if is_list_like(arrow):
        return spark.ArrayType(spark_type(arrow.value_type, f"{column}.item"))
    if kind.is_map(arrow):
        key, value = spark_type(arrow.key_type, f"{column}.key"), spark_type(arrow.item_type, f"{column}.value")
        return spark.MapType(key, value)
    if kind.is_struct(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return spark.StructType([spark.StructField(f.name, spark_type(f.type, f"{column}.{f.name}")) for f in fields])
    raise UnsupportedError(
        f"column {column!r} has the type {arrow}, which Spark has no type for: "
        "leave it out with the option `columns`, or read the table without Spark",
        column=column,
        type=str(arrow),
    )


def exchange_schema(schema: spark.StructType) -> pa.Schema:
    """The exact Arrow schema in which Spark exchanges batches of a Spark schema.

    Raises:
        UnsupportedError: Spark does not exchange a type over Arrow, or a table cannot hold it.

    Example:
        >>> from pyspark.sql.types import LongType, StructType
        >>> from esker.spark.types import exchange_schema
        >>> exchange_schema(StructType().add("id", LongType()))
        id: int64
    """
    return pa.schema([_exchange_field(field, field.name) for field in schema.fields])


def exchange_type(made: spark.DataType, column: str) -> pa.DataType:
    """The Arrow type in which Spark exchanges one of its types; `column` is for error messages."""
    if isinstance(made, spark.DecimalType):
        return pa.decimal128(made.precision, made.scale)
    if isinstance(made, spark.ArrayType):
        item = exchange_type(made.elementType, f"{column}.item")
        return pa.list_(pa.field("item", item, nullable=made.containsNull))
    if isinstance(made, spark.MapType):
        if isinstance(made.keyType, spark.NullType):
            raise UnsupportedError(
                f"column {column!r} is of empty maps without types, which a table cannot hold: cast it first, as in "
                "CAST(map() AS MAP<STRING, INT>)",
                column=column,
                type=made.simpleString(),
            )
        key, value = exchange_type(made.keyType, f"{column}.key"), exchange_type(made.valueType, f"{column}.value")
        return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value, nullable=made.valueContainsNull))
    if isinstance(made, spark.StructType):
        return pa.struct([_exchange_field(field, f"{column}.{field.name}") for field in made.fields])
    if isinstance(made, spark.UserDefinedType):
        return exchange_type(made.sqlType(), column)
    if _TIME is not None and isinstance(made, _TIME):
        return pa.time64("ns")
    if isinstance(made, (spark.CharType, spark.VarcharType)):
        return pa.string()
    for arrow, known in _SAME:
        if isinstance(made, known):
            return arrow
    raise UnsupportedError(
        f"column {column!r} has Spark's type {made.simpleString()}, which a table cannot hold: cast it first",
        column=column,
        type=made.simpleString(),
    )


def table_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a new table for a DataFrame.

    The types are those that Spark exchanges, and all columns and fields are nullable, so that later appends may have
    nulls even if this DataFrame has none.

    Raises:
        UnsupportedError: A table cannot hold the Spark type of a column.

    Example:
        >>> from pyspark.sql.types import ArrayType, FloatType, StructType
        >>> from esker.spark.types import table_schema
        >>> table_schema(StructType().add("vector", ArrayType(FloatType(), False), False)).field("vector").nullable
        True
    """
    nullable = spark_schema(exchange_schema(schema))
    return exchange_schema(nullable)


def nullable_type(arrow: pa.DataType) -> pa.DataType:
    """The same type with everything in it nullable, except for the keys of maps.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.types import nullable_type
        >>> nullable_type(pa.struct([pa.field("a", pa.int8(), nullable=False)]))
        StructType(struct<a: int8>)
    """
    kind = pa.types
    if kind.is_struct(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        return pa.struct([pa.field(field.name, nullable_type(field.type)) for field in fields])
    if kind.is_list(arrow):
        return pa.list_(pa.field(arrow.value_field.name, nullable_type(arrow.value_type)))
    if kind.is_map(arrow):
        key = pa.field("key", nullable_type(arrow.key_type), nullable=False)
        return pa.map_(key, pa.field("value", nullable_type(arrow.item_type)))
    return arrow


def has_map(arrow: pa.DataType) -> bool:
    """Whether a type is a map or has one in it, at any depth."""
    return bool(
        pa.types.is_map(arrow)
        or (pa.types.is_nested(arrow) and any(has_map(arrow.field(i).type) for i in range(arrow.num_fields)))
    )


def is_view(arrow: pa.DataType) -> bool:
    """Whether this is one of Arrow's list views."""
    return bool(pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow))


def _shown(field: pa.Field) -> spark.StructField:
    if field.name in _ROW_NUMBERS:
        # Row ids, addresses and offsets are uint64, but never exceed the range of bigint.
        return spark.StructField(field.name, spark.LongType())
    return spark.StructField(field.name, spark_type(field.type, field.name))


def _exchange_field(field: spark.StructField, column: str) -> pa.Field:
    return pa.field(field.name, exchange_type(field.dataType, column), nullable=field.nullable)
