"""Queries of Spark itself over the source and the sink: restarts, types and zones, upserts and feeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import esker.spark
from esker.delta import DeltaTable, Field, Schema
from esker.exceptions import AlreadyExistsError, InvalidArgumentError
from esker.spark.options import TableAddress
from esker.spark.streaming.upsert import _once, _Upsert
from tests.spark.streams import Query, ids

ROW = "id long, at timestamp, local timestamp_ntz, tags array<struct<k: string, v: double>>, amount decimal(9, 2)"


def _run(writer: Any, checkpoint: Path) -> Any:
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def _forget_the_last_batch(checkpoint: Path) -> None:
    """As if Spark had died after the commit of the sink, before it noted that."""
    notes = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    notes[-1].unlink()
    notes[-1].with_name(f".{notes[-1].name}.crc").unlink(missing_ok=True)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[int, list[dict[str, Any]]], DataFrame]:
    def put(number: int, rows: list[dict[str, Any]]) -> DataFrame:
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        (tmp_path / "new").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / "new").rename(folder / f"{number}.json")
        return spark.readStream.schema(ROW).option("maxFilesPerTrigger", 1).json(str(folder))

    return put


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "at": "2024-07-01T12:00:00Z",
        "local": "2024-07-01T12:00:00",
        "tags": [{"k": "a", "v": number / 2}, None] if number % 2 else None,
        "amount": number + 0.25,
    }


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_stream_into_a_table_and_out_of_it(
    spark: SparkSession, tmp_path: Path, source: Callable[..., DataFrame], kind: str
) -> None:
    uri, out = str(tmp_path / "t"), str(tmp_path / "out")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for number in range(2):
            rows = source(number, [_row(n) for n in range(number * 10, number * 10 + 10)])
            writer = rows.writeStream.format("esker").option("tableFormat", kind).option("path", uri)
            _run(writer, tmp_path / "c")
            _forget_the_last_batch(tmp_path / "c")
            _run(writer, tmp_path / "c")
        read = spark.readStream.format("esker").option("maxRowsPerTrigger", 5).load(uri)
        other = "delta" if kind == "lance" else "lance"
        _run(read.writeStream.format("esker").option("tableFormat", other).option("path", out), tmp_path / "c2")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    for path, found in ((uri, kind), (out, other)):
        table = lance.dataset(path).to_table() if found == "lance" else deltalake.DeltaTable(path).to_pyarrow_table()
        there = sorted(table.to_pylist(), key=lambda row: int(row["id"]))
        assert [row["id"] for row in there] == list(range(20))
        assert there[3]["at"] == datetime(2024, 7, 1, 12, tzinfo=UTC)
        assert there[3]["local"] == datetime(2024, 7, 1, 12)
        assert there[3]["tags"] == [{"k": "a", "v": 1.5}, None]
        assert there[4]["tags"] is None
        assert str(there[3]["amount"]) == "3.25"


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_upserts_and_their_feed(
    spark: SparkSession, tmp_path: Path, source: Callable[..., DataFrame], kind: str
) -> None:
    uri = str(tmp_path / "t")

    def version() -> int:
        return int(lance.dataset(uri).version) if kind == "lance" else deltalake.DeltaTable(uri).version()

    for number, (first, last) in enumerate(((0, 10), (5, 15))):
        rows = source(number, [_row(n) | {"amount": number} for n in range(first, last)])
        upsert = esker.spark.upsert_stream(rows, uri, keys=["ID"], table_format=kind)
        _run(upsert, tmp_path / "c")
        before = version()
        _forget_the_last_batch(tmp_path / "c")
        _run(upsert, tmp_path / "c")
        assert version() == before
    table = lance.dataset(uri).to_table() if kind == "lance" else deltalake.DeltaTable(uri).to_pyarrow_table()
    assert sorted((row["id"], int(row["amount"])) for row in table.to_pylist()) == [(n, int(n >= 5)) for n in range(15)]
    feed = Query(uri, readChangeFeed="true", startingVersion=1).rows()
    kinds = [(row["_change_type"], row["id"]) for row in feed]
    assert sorted(kinds) == sorted(
        [*(("insert", n) for n in range(15))]
        + [(kind, n) for n in range(5, 10) for kind in ("update_preimage", "update_postimage")]
    )
    twice = source(2, [_row(1), _row(1)])
    with pytest.raises(Exception, match="latest"):
        _run(esker.spark.upsert_stream(twice, uri, keys=["id"]), tmp_path / "c")


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_upserts_of_structs_whose_fields_are_never_null(
    tmp_path: Path, source: Callable[..., DataFrame], kind: str
) -> None:
    uri = str(tmp_path / "t")
    pairs = source(0, [_row(1), _row(2)]).selectExpr("id", "if(id = 1, named_struct('a', 'x'), null) AS s")
    _run(esker.spark.upsert_stream(pairs, uri, keys="id", table_format=kind), tmp_path / "c")
    table = lance.dataset(uri).to_table() if kind == "lance" else deltalake.DeltaTable(uri).to_pyarrow_table()
    assert sorted(table.to_pylist(), key=str) == [{"id": 1, "s": {"a": "x"}}, {"id": 2, "s": None}]


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_null_in_a_key_matches_nothing_and_is_inserted(
    spark: SparkSession, tmp_path: Path, source: Callable[..., DataFrame], kind: str
) -> None:
    uri = str(tmp_path / "t")
    for number, names in enumerate((["a", None], ["a", None, None])):
        rows = source(number, [_row(n) | {"id": name and 7} for n, name in enumerate(names)])
        upsert = esker.spark.upsert_stream(rows, uri, keys=["id"], latest="amount", table_format=kind)
        _run(upsert, tmp_path / "c")
        _forget_the_last_batch(tmp_path / "c")
        _run(upsert, tmp_path / "c")
    table = lance.dataset(uri).to_table() if kind == "lance" else deltalake.DeltaTable(uri).to_pyarrow_table()
    assert sorted(table["id"].to_pylist(), key=str) == [7, None, None, None]


def test_what_an_upsert_refuses(spark: SparkSession, tmp_path: Path, source: Callable[..., DataFrame]) -> None:
    rows = source(0, [])
    with pytest.raises(InvalidArgumentError, match="no stream"):
        esker.spark.upsert_stream(spark.range(1), str(tmp_path / "t"), keys="id")
    with pytest.raises(InvalidArgumentError, match="'key'"):
        esker.spark.upsert_stream(rows, str(tmp_path / "t"), keys="key")
    deltalake.write_deltalake(str(tmp_path / "d"), ids(0, 1))
    with pytest.raises(InvalidArgumentError, match="vectors is for Lance tables"):
        esker.spark.upsert_stream(rows, str(tmp_path / "d"), keys="id", vectors={"v": 2})
    with pytest.raises(InvalidArgumentError, match="compact_every is for Lance tables"):
        esker.spark.upsert_stream(rows, str(tmp_path / "d"), keys="id", compact_every=2)
    with pytest.raises(AlreadyExistsError):
        esker.spark.upsert_stream(rows, str(tmp_path / "d"), keys="id", table_format="lance")
    # All of these would only fail in the first batch, some of them after its commit.
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"keys": []}, "keys: expected the columns that make a row the same one, found none"),
        ({"compact_every": 0}, "compact_every: expected a whole number from 1, found 0"),
        ({"compact_every": "2"}, "compact_every: expected a whole number from 1, found '2'"),
        ({"application": ""}, "application: expected a text, found an empty one"),
        ({"vectors": {"id": 2}}, "vectors: expected an array column, found 'id'"),
        ({"vectors": {"no": 2}}, "vectors: expected columns of the DataFrame, found no"),
    ]
    for given, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            esker.spark.upsert_stream(rows, str(tmp_path / "t"), **{"keys": "id", **given})


def test_of_several_rows_of_a_key_the_latest_wins() -> None:
    import pyarrow as pa

    rows = pa.table({"k": [1, 2, 1, 1], "at": [3, 1, 9, None], "v": ["a", "b", "c", "d"]})
    kept = _once(rows, ["k"], "at", is_delta=False)
    assert sorted(row["v"] for row in kept.to_pylist()) == ["b", "c"]
    with pytest.raises(InvalidArgumentError, match="4 rows of 2 keys"):
        _once(rows, ["k"], None, is_delta=False)
    assert _once(rows.slice(0, 2), ["k"], None, is_delta=False).num_rows == 2
    nulls = pa.table({"k": [1, None, None, 1], "m": [1, 2, 2, 1], "v": ["a", "b", "c", "d"]})
    assert sorted(_once(nulls, ["k", "m"], "v", is_delta=False)["v"].to_pylist()) == ["b", "c", "d"]
    assert _once(nulls.slice(1), ["k", "m"], None, is_delta=False).num_rows == 3
    # NaN is the highest value, as in Spark, and no name of a key is one of ours.
    odd = pa.table({"rank": [1, 1, 1], "at": [float("nan"), 2.0, None], "v": ["a", "b", "c"]})
    assert _once(odd, ["rank"], "at", is_delta=False)["v"].to_pylist() == ["a"]


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_zeros_of_both_signs_are_one_key_where_the_merge_takes_them_for_one(kind: str) -> None:
    import pyarrow as pa

    rows = pa.table({"k": [0.0, -0.0, 1.0], "at": [1, 2, 3]})
    kept = _once(rows, ["k"], "at", is_delta=kind == "delta")
    assert sorted(kept["at"].to_pylist()) == ([2, 3] if kind == "delta" else [1, 2, 3])


def test_an_upsert_need_not_have_generated_columns(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    doubled = Field("twice", "long", metadata={"delta.generationExpression": "v * 2"})
    DeltaTable.create(uri, Schema([Field("k", "long"), doubled, Field("v", "long")]))
    upsert = _Upsert(TableAddress(uri, {}), ["K"], None, {}, "query", is_delta=True)
    upsert(spark.createDataFrame([(1, 5), (2, 6)], "K long, V long"), 0)
    upsert(spark.createDataFrame([(7, 1), (8, 3)], "v long, k long"), 1)
    upsert(spark.createDataFrame([(3, 9, 18)], "k long, v long, twice long"), 2)
    found = DeltaTable(uri).to_pyarrow_table().sort_by("k").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, 14, 7), (2, 12, 6), (3, 18, 9)]
    with pytest.raises(InvalidArgumentError, match="generated column 'twice'"):
        upsert(spark.createDataFrame([(3, 9, 1)], "k long, v long, twice long"), 3)


@pytest.mark.parametrize("latest", [None, "by"])
def test_an_upsert_by_uuids(spark: SparkSession, tmp_path: Path, latest: str | None) -> None:
    uri, one, two = str(tmp_path / "t"), UUID(int=1), UUID(int=2)
    kinds = pa.schema({"k": pa.uuid(), "by": pa.uuid(), "v": pa.int64()})
    lance.write_dataset(pa.Table.from_pylist([{"k": one.bytes, "by": one.bytes, "v": 0}], kinds), uri)
    upsert = _Upsert(TableAddress(uri, {}), ["k"], latest, {}, "query")
    rows = [(one.bytes, two.bytes, 1), (two.bytes, one.bytes, 2)]
    if latest is not None:
        rows = [(one.bytes, one.bytes, 3), *rows]
    upsert(spark.createDataFrame(rows, "k binary, by binary, v long"), 0)
    found = lance.dataset(uri).to_table().sort_by("v").to_pylist()
    assert [(row["k"], row["v"]) for row in found] == [(one, 1), (two, 2)]


def test_an_upsert_takes_texts_for_columns_of_json(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    kinds = pa.schema({"k": pa.int64(), "j": pa.json_()})
    lance.write_dataset(pa.Table.from_pylist([{"k": 1, "j": "[1]"}], kinds), uri, data_storage_version="2.2")
    upsert = _Upsert(TableAddress(uri, {}), ["k"], None, {}, "query")
    upsert(spark.createDataFrame([(1, '{"a":1}'), (2, None)], "k long, j string"), 0)
    found = lance.dataset(uri).to_table().sort_by("k").to_pylist()
    assert found == [{"k": 1, "j": '{"a":1}'}, {"k": 2, "j": None}]


def test_an_upsert_refuses_keys_that_are_one_and_values_without_an_order(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("value AS k", "array(value) AS l", "struct(value) AS s")
    with pytest.raises(InvalidArgumentError, match="each key once, found k, K"):
        esker.spark.upsert_stream(rows, str(tmp_path / "t"), keys=["k", "K"])
    for name in ("l", "s"):
        with pytest.raises(InvalidArgumentError, match="values that have an order"):
            esker.spark.upsert_stream(rows, str(tmp_path / "t"), keys=["k"], latest=name)


def test_the_latest_of_columns_that_differ_by_case_alone_is_the_one_that_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    rows = spark.createDataFrame([(1, 5, "z"), (1, 6, "y")], "k long, V long, v string")
    for number, (latest, kept) in enumerate((("V", 6), ("v", 5))):
        _Upsert(TableAddress(uri, {}), ["K"], latest, {}, "query")(rows, number)
        assert lance.dataset(uri).to_table()["V"].to_pylist() == [kept]
    stream = spark.readStream.format("rate").load().selectExpr("value AS k", "value AS AB", "value AS Ab")
    wrong: tuple[dict[str, Any], ...] = ({"keys": "ab"}, {"keys": "k", "latest": "ab"})
    for given in wrong:
        with pytest.raises(InvalidArgumentError, match="expected a column of the stream .*, found 'ab'"):
            esker.spark.upsert_stream(stream, uri, **given)


def test_an_upsert_refuses_keys_that_are_arrays_maps_or_structs(spark: SparkSession, tmp_path: Path) -> None:
    shown = ("value AS k", "array(value) AS l", "struct(value) AS s", "map(value, value) AS m")
    rows = spark.readStream.format("rate").load().selectExpr(*shown)
    for name in ("l", "s", "M"):
        for kind in ("lance", "delta"):
            with pytest.raises(InvalidArgumentError, match=f"keys: expected .* compared, found {name!r} of type"):
                esker.spark.upsert_stream(rows, str(tmp_path / "t"), keys=["k", name], table_format=kind)
