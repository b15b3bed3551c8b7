"""Columns of Delta tables that Spark has made as `char(n)` or `varchar(n)`: no write makes their texts longer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from esker.delta import Schema
from esker.exceptions import SchemaMismatchError
from esker.spark.char_lengths import lengths_of
from esker.spark.options import TableAddress
from esker.spark.streaming.upsert import _Upsert
from tests.spark.jobs import read, wrote
from tests.spark.streams import Batch

_INNER = {"type": "struct", "fields": [{"name": "a:b", "type": "string", "nullable": True, "metadata": {}}]}
_LIST = {"type": "array", "elementType": _INNER, "containsNull": True}
_MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
_SCHEMA = T.StructType([T.StructField("id", T.LongType()), T.StructField("code", T.StringType())])


def _field(name: str, kind: Any, spark_type: str | None = None) -> dict[str, Any]:
    metadata = {} if spark_type is None else {"__CHAR_VARCHAR_TYPE_STRING": spark_type}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def _json(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    made = _json(_field("id", "long"), _field("code", "string", "varchar(3)"))
    deltalake.DeltaTable.create(uri, deltalake.Schema.from_json(made))
    return uri


@pytest.mark.parametrize(
    ("name", "options"),
    [("code", {}), ("CODE", {}), ("code", {"overwrite": True}), ("code", {"mergeSchema": True})],
    ids=["append", "case", "overwrite", "merge"],
)
def test_a_text_that_is_too_long_makes_no_version(table: str, name: str, options: dict[str, Any]) -> None:
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField(name, T.StringType())])
    rows = [{"id": 1, name: "äöü"}, {"id": 2, name: None}]
    wrote(table, schema, rows, **options)
    for text in ("abcd", "abc "):
        with pytest.raises(SchemaMismatchError, match="column 'code' expected texts of at most 3 .*, found one of 4"):
            wrote(table, schema, [{"id": 3, name: text}], **options)
    assert sorted(row["code"] or "" for row in read(table)) == ["", "äöü"]
    assert deltalake.DeltaTable(table).version() == 1


def test_a_schema_that_is_overwritten_has_the_types_of_the_frame(table: str) -> None:
    wrote(table, _SCHEMA, [{"id": 3, "code": "abcd"}], overwrite=True, overwriteSchema=True)
    wrote(table, _SCHEMA, [{"id": 4, "code": "abcde"}])
    assert sorted(row["code"] for row in read(table)) == ["abcd", "abcde"]


def test_batches_of_streams_are_checked(spark: SparkSession, table: str) -> None:
    with pytest.raises(SchemaMismatchError, match="at most 3 characters"):
        Batch(table, _SCHEMA, "query", 0).run([{"id": 3, "code": "abcd"}])
    upsert = _Upsert(TableAddress(table, {}), ["id"], None, {}, "application", is_delta=True)
    upsert(spark.createDataFrame([(1, "abc")], _SCHEMA), 0)
    with pytest.raises(SchemaMismatchError, match="at most 3 characters"):
        upsert(spark.createDataFrame([(1, "abcd")], _SCHEMA), 1)
    assert read(table) == [{"id": 1, "code": "abc"}]


def test_what_is_limited_within_arrays_maps_and_structs(tmp_path: Path) -> None:
    made = _json(
        _field("s", _INNER, "struct<`a:b`:char(2)>"),
        _field("l", _LIST, "array<struct<a:b:varchar(2)>>"),
        _field("m", _MAP, "map<varchar(1),string>"),
    )
    assert lengths_of(Schema.from_json(made)) == {"s": {"a:b": 2}, "l": {"item": {"a:b": 2}}, "m": {"key": 1}}
    uri = str(tmp_path / "t")
    deltalake.DeltaTable.create(uri, deltalake.Schema.from_json(made))
    inner = T.StructType().add("a:b", T.StringType())
    schema = T.StructType().add("s", inner).add("l", T.ArrayType(inner))
    schema = schema.add("m", T.MapType(T.StringType(), T.StringType()))
    good = {"s": {"a:b": "xy"}, "l": [{"a:b": "xy"}, None], "m": {"k": "long"}}
    wrote(uri, schema, [good, {"s": None, "l": None, "m": None}])
    for bad, column in (
        ({"s": {"a:b": "xyz"}}, "s.a:b"),
        ({"l": [None, {"a:b": "xyz"}]}, "l.item.a:b"),
        ({"m": {"kk": None}}, "m.key"),
    ):
        with pytest.raises(SchemaMismatchError, match=f"column '{column}' expected texts of at most"):
            wrote(uri, schema, [{**good, **bad}])
    assert len(read(uri)) == 2


def test_types_without_a_length_limit_nothing() -> None:
    kinds = {"a": "string", "b": "decimal(10,2)", "c": "array<varchar(2)>", "d": "varchar(2)x"}
    fields = [_field(name, "string", kind) for name, kind in kinds.items()]
    assert lengths_of(Schema.from_json(_json(*fields, _field("e", "long")))) == {}
