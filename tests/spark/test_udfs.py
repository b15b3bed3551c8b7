"""Functions over tables: fused with the scan, and rows that are looked up by random access."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import esker
import esker.spark
from esker.delta import write_deltalake
from esker.exceptions import CommitConflictError, InvalidArgumentError, SchemaMismatchError, UnsupportedError

ROWS = 1_000


@pytest.fixture
def vectors(uri: str) -> str:
    values = pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 2), pa.float32()), 2)
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{i}" for i in range(ROWS)], "v": values})
    lance.write_dataset(table, uri, max_rows_per_file=300)
    return uri


def test_a_function_gets_the_batches_of_the_table_as_they_are(spark: SparkSession, vectors: str) -> None:
    def longest(batch: pa.RecordBatch) -> pa.Table | None:
        assert batch.schema.field("v").type == pa.list_(pa.float32(), 2)
        assert batch.schema.names == ["id", "v"]
        if batch.column("id")[0].as_py() < 300:
            return None
        last = batch.slice(batch.num_rows - 1)
        # Another order of columns, another type of one: they are matched by name.
        return pa.table({"sum": [float(sum(last.column("v")[0].as_py()))], "id": last.column("id").cast(pa.int32())})

    found = esker.spark.map_batches(vectors, longest, ["id", "v"], "id < 900", schema="id bigint, sum double")
    assert found.schema.simpleString() == "struct<id:bigint,sum:double>"
    rows = sorted((row.id, row["sum"]) for row in found.collect())
    assert rows[-1] == (899, 899 * 4 + 1.0)
    assert all(total == number * 4 + 1 for number, total in rows)
    assert esker.spark.map_batches(vectors, lambda b: [b, b], ["id"]).count() == 2 * ROWS
    assert esker.spark.map_batches(vectors, lambda b: iter([b, pa.Table.from_batches([b])]), ["id"]).count() == 2 * ROWS


@pytest.mark.parametrize(
    ("fn", "found"),
    [
        (lambda b: 3, "found int;"),
        (lambda b: b.to_pandas(), "found DataFrame;"),
        (lambda b: b.to_pylist(), "found list of dict;"),
        (lambda b: b.to_pydict(), "found dict;"),
        (lambda b: b["id"], "found Int64Array;"),
        (lambda b: [b, None], "found list of NoneType;"),
        (lambda b: (n for n in range(3)), "found generator of int;"),
    ],
)
def test_a_function_that_returns_no_batches_is_told_what_it_must_return(
    fn: Callable[[pa.RecordBatch], Any], found: str, spark: SparkSession, vectors: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=f"returns a batch.*{found}"), esker.spark.errors():
        esker.spark.map_batches(vectors, fn, ["id"], "id < 5").collect()


def test_what_could_never_run_is_refused_before_any_task(spark: SparkSession, vectors: str) -> None:
    wrong: list[tuple[Any, Any, str]] = [
        (None, None, "a function of a batch, found None"),
        (_first, "id bigint, id bigint", "different names, found id twice"),
        (_first, pa.schema({"id": pa.int64()}), "as a StructType or as DDL such as .*, found id: int64"),
        (_first, "int", "as a StructType or as DDL such as .*, found 'int'"),
    ]
    for fn, schema, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            esker.spark.map_batches(vectors, fn, "id", schema=schema, spark=spark)
    assert esker.spark.map_batches(vectors, _first, "id", spark=spark).columns == ["id"]


def _first(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, 1)


def test_a_worker_opens_a_table_once(spark: SparkSession, vectors: str) -> None:
    version = esker.dataset(vectors).version

    def taken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = set()
        for batch in batches:
            for start in range(0, batch.num_rows, 10):
                dataset = esker.spark.worker_dataset(vectors, version)
                seen.add(id(dataset))
                rows = dataset.take(batch.column(0).slice(start, 10), columns=["name"])
                yield pa.RecordBatch.from_arrays([rows["name"].combine_chunks()], names=["name"])
        assert len(seen) == 1, os.getpid()

    names = spark.range(0, 100, 1, 2).mapInArrow(taken, "name string")
    assert sorted(row.name for row in names.collect()) == sorted(f"n{i}" for i in range(100))


def test_an_open_table_is_not_taken_for_another_one_at_its_place(tmp_path: object) -> None:
    uri = f"{tmp_path}/t"
    for values in ([1, 2], [3, 4, 5]):
        esker.write_dataset(pa.table({"id": values}), uri)
        assert esker.spark.worker_dataset(uri, 1).to_table()["id"].to_pylist() == values
        shutil.rmtree(uri)


@pytest.mark.parametrize("by", [esker, lance])
def test_a_version_is_told_from_that_of_another_table_by_its_transaction(tmp_path: Path, by: Any) -> None:
    uri = str(tmp_path / "t")
    by.write_dataset(pa.table({"id": [1, 2]}), uri)
    transaction = esker.dataset(uri).read_transaction(1)
    assert transaction is not None
    for _ in range(2):
        assert esker.spark.worker_dataset(uri, 1, transaction=transaction.uuid).count_rows() == 2
    shutil.rmtree(uri)
    by.write_dataset(pa.table({"id": [3, 4, 5]}), uri)
    with pytest.raises(CommitConflictError, match="version 1 of .* the table was replaced meanwhile"):
        esker.spark.worker_dataset(uri, 1, transaction=transaction.uuid)
    assert esker.spark.worker_dataset(uri, 1).count_rows() == 3


def test_rows_are_looked_up_by_key_and_by_row_id(spark: SparkSession, vectors: str) -> None:
    asked = spark.sql("SELECT * FROM VALUES (7L, 'a'), (999L, 'b'), (-1L, 'c'), (NULL, 'd'), (7L, 'e') AS t(ID, tag)")
    found = esker.spark.lookup(asked, vectors, on="id", columns=["NAME", "v"])
    assert found.schema.simpleString() == "struct<ID:bigint,tag:string,name:string,v:array<float>>"
    rows = {row.tag: (row.ID, row["name"], row.v) for row in found.collect()}
    assert rows == {
        "a": (7, "n7", [14.0, 15.0]),
        "b": (999, "n999", [1998.0, 1999.0]),
        "c": (-1, None, None),
        "d": (None, None, None),
        "e": (7, "n7", [14.0, 15.0]),
    }
    inner = esker.spark.lookup(asked, vectors, on="id", columns=["name"], how="inner")
    assert sorted(row.tag for row in inner.collect()) == ["a", "b", "e"]
    texts = spark.sql("SELECT 'n5' AS name")
    assert [row.id for row in esker.spark.lookup(texts, vectors, on="name", columns=["id"]).collect()] == [5]
    numbers = spark.sql("SELECT explode(array(3L, (1L << 32) + 1, 77L << 32, NULL)) AS _rowid")
    by_id = {row._rowid: row["name"] for row in esker.spark.lookup(numbers, vectors, columns=["name"]).collect()}
    assert by_id == {3: "n3", (1 << 32) + 1: "n301", 77 << 32: None, None: None}


@pytest.mark.parametrize(
    ("kind", "keys", "ddl", "asked"),
    [
        (pa.int64(), [2**53, 2**53 + 1, None, None], "bigint", [2**53 + 1, None, 7]),
        (pa.int64(), [2**53 + 1, None], "bigint", [2**53, 2**53 + 1]),
        (pa.string(), ["a", None, "b", None], "string", ["b", None, "c"]),
        (pa.float64(), [1.5, math.nan, None, 0.0], "double", [math.nan, None, -0.0, 1.5, 2.5]),
        (pa.float64(), [1.5, None, None], "double", [math.nan, 1.5]),
        (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)], "date", [date(9999, 12, 31), None]),
        (pa.decimal128(38, 2), [Decimal("1e30"), None], "decimal(38,2)", [Decimal("1e30"), Decimal(1), None]),
        (pa.binary(), [b"a", None], "binary", [b"a", None]),
    ],
    ids=str,
)
def test_keys_with_nulls_find_what_a_join_does(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, keys: list[Any], ddl: str, asked: list[Any]
) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"k": pa.array(keys, kind), "v": [f"row {key!r}" for key in keys]}), uri)
    frame = spark.createDataFrame([(key,) for key in asked], f"k {ddl}").coalesce(1)
    found = esker.spark.lookup(frame, uri, on="k").collect()
    joined = frame.join(esker.spark.read(spark, uri).to_df(), "k", "left").collect()
    assert sorted(map(str, found)) == sorted(map(str, joined))


@pytest.mark.parametrize(
    ("kind", "keys", "ddl", "asked"),
    [
        (pa.int32(), [1, 2], "bigint", [1, 5_000_000_000, None]),
        (pa.uint8(), [1, 255], "int", [1, -7, 300, 255]),
        (pa.int64(), [1, 2], "double", [1.0, 1.5, 1e300, math.nan, math.inf, None]),
        (pa.int64(), [1, 2], "decimal(10,2)", [Decimal("1.00"), Decimal("1.50")]),
        (pa.uint64(), [1, 2**64 - 1], "bigint", [1, -1]),
        (pa.float32(), [0.1, 0.5, math.nan], "double", [0.1, 0.5, math.nan, 1e300]),
        (pa.float64(), [float(2**60), 0.5], "bigint", [2**60, 0, None]),
        (pa.decimal128(10, 2), [Decimal("1.00")], "decimal(10,3)", [Decimal("1.000"), Decimal("1.001")]),
        (pa.decimal128(10, 2), [Decimal("1.00")], "int", [1, 2_000_000_000]),
        (
            pa.timestamp("s"),
            [datetime(2024, 1, 1)],
            "timestamp_ntz",
            [datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 5)],
        ),
        (pa.string(), ["a", "b"], "binary", [b"a", b"\xff"]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], "string", ["a", "c", None]),
    ],
    ids=str,
)
def test_keys_of_another_type_of_their_kind_are_found_by_value(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, keys: list[Any], ddl: str, asked: list[Any]
) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"k": pa.array(keys, kind), "v": [f"row {key!r}" for key in keys]}), uri)
    frame = spark.createDataFrame([(key,) for key in asked], f"k {ddl}").coalesce(1)
    found = esker.spark.lookup(frame, uri, on="k").collect()
    table = esker.spark.read(spark, uri).to_df().withColumnRenamed("k", "there")
    joined = frame.join(table, frame["k"] == table["there"], "left").drop("there").collect()
    assert sorted(map(str, found)) == sorted(map(str, joined))


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        (pa.timestamp("us"), "timestamp"),
        (pa.timestamp("us", "UTC"), "timestamp_ntz"),
        (pa.timestamp("us", "UTC"), "date"),
        (pa.date32(), "timestamp_ntz"),
        (pa.bool_(), "int"),
        (pa.int64(), "boolean"),
        (pa.string(), "int"),
        (pa.int64(), "string"),
        (pa.float64(), "decimal(10,2)"),
    ],
    ids=str,
)
def test_keys_of_another_kind_are_refused_before_any_task(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, ddl: str
) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"k": pa.nulls(1, kind), "v": [1]}), uri)
    with pytest.raises(InvalidArgumentError, match=r"'K' in the DataFrame to be .* found .*; cast it first"):
        esker.spark.lookup(spark.createDataFrame([], f"k {ddl}"), uri, on="K")
    with pytest.raises(InvalidArgumentError, match="to be bigint as in the table, found double; cast it first"):
        esker.spark.lookup(spark.sql("SELECT 1D AS _rowid"), uri)


def test_what_a_lookup_refuses(spark: SparkSession, vectors: str, tmp_path: object) -> None:
    frame = spark.sql("SELECT 1L AS id, 'x' AS name")
    with pytest.raises(InvalidArgumentError, match="on both sides"):
        esker.spark.lookup(frame, vectors, on="id")
    with pytest.raises(InvalidArgumentError, match="'_rowid' in the DataFrame"):
        esker.spark.lookup(frame, vectors)
    with pytest.raises(InvalidArgumentError, match="'key'"):
        esker.spark.lookup(frame, vectors, on="key")
    several: Any
    for several in (["id"], ("id", "name"), None):
        with pytest.raises(InvalidArgumentError, match="on: expected the name of one column, found .*; join the"):
            esker.spark.lookup(frame, vectors, on=several)
    nested = spark.sql("SELECT array(1L) AS id, array(1.0F, 2.0F) AS v")
    with pytest.raises(InvalidArgumentError, match=r"compared, found 'V' of type fixed_size_list<.* in the table at"):
        esker.spark.lookup(nested, vectors, on="V")
    with pytest.raises(InvalidArgumentError, match="compared, found 'id' of type array<bigint> in the DataFrame"):
        esker.spark.lookup(nested, vectors, on="id", columns=["name"])
    write_deltalake(f"{tmp_path}/d", pa.table({"id": [1]}))
    with pytest.raises(UnsupportedError, match="Delta table"):
        esker.spark.lookup(frame, f"{tmp_path}/d", on="id")
    esker.write_dataset(pa.table({"id": [1, 1], "v": [1, 2]}), f"{tmp_path}/twice")
    with pytest.raises(InvalidArgumentError, match="one row for each value"), esker.spark.errors():
        esker.spark.lookup(frame, f"{tmp_path}/twice", on="id", columns=["v"]).collect()
