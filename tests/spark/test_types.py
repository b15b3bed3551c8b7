"""Every type of the map through Spark itself: read from a table of the peer, written back by the table's schema."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import by_pylance, load, save

D = decimal.Decimal
NOON = dt.datetime(2024, 5, 6, 12, 30, 15)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)

GROUPS: dict[str, dict[str, tuple[pa.DataType, list[Any]]]] = {
    "numbers": {
        **{f"i{made}": (made, [-1, None, 100]) for made in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
        **{f"u{made}": (made, [0, None, 200]) for made in (pa.uint8(), pa.uint16(), pa.uint32())},
        "u64": (pa.uint64(), [0, None, 2**64 - 1]),
        "f32": (pa.float32(), [1.5, None, float("inf")]),
        "f64": (pa.float64(), [1.1, None, -0.0]),
        "bool": (pa.bool_(), [True, None, False]),
        "decimal": (pa.decimal128(20, 3), [D("1.500"), None, D("-99999999999999999.999")]),
    },
    "text": {
        "utf8": (pa.string(), ["a", None, "grün"]),
        "large_utf8": (pa.large_string(), ["", None, "x" * 1000]),
        "binary": (pa.binary(), [b"\x00", None, b""]),
        "large_binary": (pa.large_binary(), [b"\x00", None, b"\xff" * 1000]),
    },
    "times": {
        "date32": (pa.date32(), [dt.date(2024, 2, 29), None, dt.date(1970, 1, 1)]),
        "date64": (pa.date64(), [dt.date(2024, 2, 29), None, dt.date(1970, 1, 1)]),
        **{f"ntz_{unit}": (pa.timestamp(unit), [NOON, None, NOON]) for unit in ("s", "ms", "us", "ns")},
        **{
            f"zoned_{unit}": (pa.timestamp(unit, tz="America/New_York"), [NOON_UTC, None, NOON_UTC])
            for unit in ("s", "ms", "us", "ns")
        },
        **{f"duration_{u}": (pa.duration(u), [dt.timedelta(days=2), None, dt.timedelta(0)]) for u in ("s", "us", "ns")},
        "time32": (pa.time32("ms"), [dt.time(1, 2, 3), None, dt.time(0)]),
        "time64": (pa.time64("us"), [dt.time(1, 2, 3, 4), None, dt.time(0)]),
    },
    "nested": {
        "vector": (pa.list_(pa.float32(), 3), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        "bytes": (pa.list_(pa.uint8(), 2), [[1, 255], [3, 4], [5, 6]]),
        "list": (pa.list_(pa.int32()), [[1, 2], None, []]),
        "words": (pa.list_(pa.string()), [["a", None], None, []]),
        "struct": (pa.struct({"x": pa.uint8(), "y": pa.large_string()}), [{"x": 1, "y": "a"}, {"x": 2, "y": None}] * 2),
    },
}


@pytest.mark.parametrize("group", GROUPS)
def test_types_survive_a_read_and_an_append_through_spark(spark: SparkSession, uri: str, group: str) -> None:
    columns = GROUPS[group]
    table = pa.table({name: pa.array(values[:3], made) for name, (made, values) in columns.items()})
    lance.write_dataset(table, uri, data_storage_version="2.0")
    read = load(spark, uri).coalesce(1)
    save(read, uri)
    both = by_pylance(uri)
    assert both.schema == table.schema
    assert both.slice(0, 3).equals(table)
    assert both.slice(3).equals(table)


def test_spark_sees_the_values_that_the_peer_wrote(spark: SparkSession, uri: str) -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()),
            "v": pa.array([[0.5, 1.5]], pa.list_(pa.float32(), 2)),
            "t": pa.array([NOON], pa.timestamp("ns")),
            "s": pa.array([{"x": 200}], pa.struct({"x": pa.uint8()})),
        }
    )
    lance.write_dataset(table, uri, data_storage_version="2.0")
    read = load(spark, uri)
    assert read.schema.simpleString() == "struct<u:decimal(20,0),v:array<float>,t:timestamp_ntz,s:struct<x:smallint>>"
    row = read.first()
    assert row is not None
    assert (row.u, row.v, row.t, row.s.x) == (D(2**64 - 1), [0.5, 1.5], NOON, 200)


def test_a_new_table_has_the_types_of_the_frame(spark: SparkSession, uri: str) -> None:
    save(
        spark.sql(
            "SELECT 1 AS i, 2L AS l, 1.5f AS f, 1.5d AS d, 1.50BD AS m, 'x' AS s, X'00' AS b, true AS o, "
            "DATE'2024-02-29' AS day, TIMESTAMP'2024-05-06 12:30:15' AS at, "
            "TIMESTAMP_NTZ'2024-05-06 12:30:15' AS local, INTERVAL '2' DAY AS span, "
            "array(1, 2) AS items, named_struct('x', 1, 'y', 'z') AS pair"
        ),
        uri,
    )
    found = by_pylance(uri)
    assert dict(zip(found.schema.names, map(str, found.schema.types), strict=True)) == {
        "i": "int32",
        "l": "int64",
        "f": "float",
        "d": "double",
        "m": "decimal128(3, 2)",
        "s": "string",
        "b": "binary",
        "o": "bool",
        "day": "date32[day]",
        "at": "timestamp[us, tz=UTC]",
        "local": "timestamp[us]",
        "span": "duration[us]",
        "items": "list<item: int32>",
        "pair": "struct<x: int32, y: string>",
    }
    assert found.to_pylist()[0] == {
        "i": 1,
        "l": 2,
        "f": 1.5,
        "d": 1.5,
        "m": D("1.50"),
        "s": "x",
        "b": b"\x00",
        "o": True,
        "day": dt.date(2024, 2, 29),
        "at": NOON_UTC,
        "local": NOON,
        "span": dt.timedelta(days=2),
        "items": [1, 2],
        "pair": {"x": 1, "y": "z"},
    }


def test_nanoseconds_that_spark_cannot_hold_are_an_error_or_cut(spark: SparkSession, uri: str) -> None:
    table = pa.table({"t": pa.array([1_999], pa.timestamp("ns"))})
    lance.write_dataset(table, uri, data_storage_version="2.0")
    with pytest.raises(Exception, match="SchemaMismatchError.*'t'.*nanoseconds"):
        load(spark, uri).collect()
    row = load(spark, uri, nanoseconds="truncate").first()
    assert row is not None
    assert row.t == dt.datetime(1970, 1, 1, 0, 0, 0, 1)
