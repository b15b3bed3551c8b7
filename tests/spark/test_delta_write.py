"""Writing to Delta tables with `df.write.format("esker")`; deltalake reads what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import esker.spark
from esker.delta import DeltaTable
from esker.exceptions import AlreadyExistsError, InvalidArgumentError
from tests.spark.conftest import load, save
from tests.spark.jobs import batches, planned, staged, wrote


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    data = pa.table({"id": pa.array([0, 1], pa.int64()), "p": ["a", "b"]})
    deltalake.write_deltalake(uri, data, partition_by=["p"])
    return uri


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(10, 20, 1, 3).selectExpr("if(id % 2 = 0, 'a', 'c') AS p", "id")


def _ids(uri: str) -> list[int]:
    found = sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())
    assert sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist()) == found
    return found


def test_an_append_is_one_version(spark: SparkSession, numbers: DataFrame, table: str) -> None:
    save(numbers, table, userMetadata="from spark")
    assert _ids(table) == [0, 1, *range(10, 20)]
    newest = deltalake.DeltaTable(table).history(1)[0]
    assert (newest["version"], newest["userMetadata"], newest["isBlindAppend"]) == (1, "from spark", True)
    assert load(spark, table).where("p = 'c'").count() == 5


def test_overwrites(spark: SparkSession, numbers: DataFrame, table: str) -> None:
    save(numbers.where("p = 'a'"), table, mode="overwrite", replaceWhere="p = 'a'")
    assert _ids(table) == [1, 10, 12, 14, 16, 18]
    with pytest.raises(Exception, match="predicate"):
        save(numbers, table, mode="overwrite", replaceWhere="p = 'a'")
    save(numbers.limit(2), table, mode="overwrite")
    assert len(_ids(table)) == 2
    assert len(list(Path(table).rglob("*.parquet"))) >= 2


@pytest.mark.parametrize("where", ["\"p\" <> 'a'", "\"P\" <> 'a'"])
def test_double_quotes_in_replace_where_name_a_column(table: str, where: str) -> None:
    """As in a filter and in deltalake: a text would be true of all rows."""
    schema = T.StructType().add("id", T.LongType()).add("p", T.StringType())
    wrote(table, schema, [{"id": 7, "p": "b"}], overwrite=True, replaceWhere=where)
    assert _ids(table) == [0, 7]


def test_a_replacement_of_rows_feeds_changes(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    uri = str(tmp_path / "feed")
    data = pa.table({"id": pa.array([0, 1, 11], pa.int64()), "p": ["a", "b", "c"]})
    deltalake.write_deltalake(uri, data, configuration={"delta.enableChangeDataFeed": "true"})
    save(numbers, uri, mode="overwrite", replaceWhere="id >= 1")
    assert _ids(uri) == [0, *range(10, 20)]
    for table in (deltalake.DeltaTable(uri), DeltaTable(uri)):
        changes = pa.table(table.load_cdf(1, 1)).to_pylist()
        found = sorted((row["_change_type"], row["id"]) for row in changes)
        assert found == [("delete", 1), ("delete", 11), *(("insert", number) for number in range(10, 20))]
    staged = list(Path(uri, "_change_data").rglob("*.parquet"))
    assert len(staged) == len([row for row in _entry(uri, 1) if "cdc" in row])


def _entry(uri: str, version: int) -> list[dict[str, object]]:
    text = Path(uri, "_delta_log", f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_columns_are_merged_when_asked(numbers: DataFrame, table: str) -> None:
    wider = numbers.selectExpr("id", "p", "id * 2 AS twice")
    with pytest.raises(Exception, match="twice"):
        save(wider, table)
    save(wider, table, mergeSchema=True)
    assert deltalake.DeltaTable(table).to_pyarrow_table().schema.names == ["id", "p", "twice"]


def test_a_numbered_write_happens_once(numbers: DataFrame, table: str) -> None:
    for _ in range(2):
        save(numbers, table, txnAppId="job", txnVersion=3)
    assert _ids(table) == [0, 1, *range(10, 20)]
    assert deltalake.DeltaTable(table).transaction_version("job") == 3
    assert len(list(Path(table).rglob("*.parquet"))) == len(deltalake.DeltaTable(table).file_uris())
    save(numbers.selectExpr("'x' AS other"), table, txnAppId="job", txnVersion=3)
    with pytest.raises(Exception, match="together"):
        save(numbers, table, txnAppId="job")


def test_rows_that_a_constraint_refuses_make_no_version(numbers: DataFrame, table: str) -> None:
    DeltaTable(table).alter.add_constraint({"small": "id < 15"})
    with pytest.raises(Exception, match="small"):
        save(numbers, table)
    assert (DeltaTable(table).version(), _ids(table)) == (1, [0, 1])
    save(numbers.where("id < 15"), table)
    assert _ids(table) == [0, 1, *range(10, 15)]


def test_what_is_refused(numbers: DataFrame, table: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="both"):
        save(numbers, table, mode="overwrite", partitionOverwriteMode="dynamic", replaceWhere="id = 1")
    with pytest.raises(Exception, match="Delta table"):
        save(numbers, str(tmp_path / "none"), replaceWhere="id = 1", mode="overwrite")
    with pytest.raises(Exception, match="alter"):
        save(numbers, table, **{"delta.appendOnly": "true"})
    save(numbers, str(tmp_path / "lance"))
    with pytest.raises(Exception, match="Lance table"):
        save(numbers, str(tmp_path / "lance"), table_format="delta")


def test_partitions_with_new_rows_are_replaced(numbers: DataFrame, table: str) -> None:
    save(numbers, table, mode="overwrite", partitionOverwriteMode="dynamic")
    assert _ids(table) == [1, *range(10, 20)]
    assert sorted(part["p"] for part in deltalake.DeltaTable(table).partitions()) == ["a", "b", "c"]
    save(numbers.where("p = 'none'"), table, mode="overwrite", partitionOverwriteMode="dynamic")
    assert _ids(table) == [1, *range(10, 20)]
    save(numbers.limit(0), table, mode="overwrite")
    assert _ids(table) == []


def test_partition_columns_and_replacements_follow_sparks_case_rule(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    schema = T.StructType().add("Day", T.StringType()).add("n", T.LongType())
    rows = [{"Day": day, "n": n} for day in "ab" for n in range(2)]
    wrote(uri, schema, rows, tableFormat="delta", partitionColumns="DAY")
    assert deltalake.DeltaTable(uri).metadata().partition_columns == ["Day"]
    wrote(uri, schema, [{"Day": "a", "n": 7}], partitionColumns="day")
    wrote(uri, schema, [{"Day": "b", "n": 9}], overwrite=True, replaceWhere="day = 'b' AND N >= 0")
    found = deltalake.DeltaTable(uri).to_pyarrow_table().to_pylist()
    assert sorted((row["Day"], row["n"]) for row in found) == [("a", 0), ("a", 1), ("a", 7), ("b", 9)]


def test_a_schema_that_is_overwritten_keeps_its_partitions_in_any_case_or_says_what_to_do(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = T.StructType().add("ID", T.LongType()).add("P", T.StringType())
    narrow = T.StructType().add("id", T.LongType())
    wrote(
        uri,
        T.StructType().add("id", T.LongType()).add("p", T.StringType()),
        [],
        tableFormat="delta",
        partitionColumns="p",
    )

    def overwritten(schema: T.StructType, row: dict[str, object], **options: Any) -> list[str]:
        wrote(uri, schema, [row], overwrite=True, overwriteSchema=True, **options)
        assert deltalake.DeltaTable(uri).to_pyarrow_table().to_pylist() == [row]
        return deltalake.DeltaTable(uri).metadata().partition_columns

    assert overwritten(frame, {"ID": 1, "P": "a"}) == ["P"]
    with pytest.raises(InvalidArgumentError, match=r"no 'P' among id; .* partitionColumns, or \[\] for none"):
        overwritten(narrow, {"id": 2})
    with pytest.raises(InvalidArgumentError, match="those of the table, P, found none"):
        wrote(uri, frame, [{"ID": 1, "P": "a"}], partitionColumns="[]")
    assert overwritten(narrow, {"id": 2}, partitionColumns="[]") == []
    assert overwritten(frame, {"ID": 3, "P": "b"}) == []
    assert overwritten(frame, {"ID": 3, "P": "b"}, partitionColumns="p") == ["P"]


def test_a_new_table(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    uri = str(tmp_path / "new")
    given = {"table_format": "delta", "partition_columns": "p", "delta.enableChangeDataFeed": "true"}
    save(numbers, uri, **given)
    theirs = deltalake.DeltaTable(uri)
    assert (theirs.version(), theirs.metadata().partition_columns) == (0, ["p"])
    assert theirs.metadata().configuration == {"delta.enableChangeDataFeed": "true"}
    assert _ids(uri) == list(range(10, 20))
    save(numbers.where("p = 'c'"), uri, table_format="delta")
    assert len(_ids(uri)) == 15
    esker.spark.write(numbers, str(tmp_path / "error"), table_format="delta")
    with pytest.raises(AlreadyExistsError):
        esker.spark.write(numbers, str(tmp_path / "error"), table_format="delta")
    feed = load(spark, uri, readChangeFeed=True, startingVersion=1, filter="_change_type = 'insert'")
    assert feed.columns == ["p", "id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert {(row.id, row._commit_version) for row in feed.collect()} == {(n, 1) for n in range(11, 20, 2)}
    assert load(spark, uri, readChangeFeed=True, startingVersion=0, endingVersion=0, columns="id").count() == 10
    assert load(spark, uri, timestampAsOf="2100-01-01").count() == 15
    assert load(spark, uri, versionAsOf=0).count() == 10
    with pytest.raises(Exception, match="readChangeFeed"):
        load(spark, uri, startingVersion=1).count()


def test_save_modes(numbers: DataFrame, table: str) -> None:
    esker.spark.write(numbers, table, mode="ignore")
    esker.spark.write(numbers.selectExpr("'x' AS other"), table, mode="ignore")
    assert _ids(table) == [0, 1]
    with pytest.raises(AlreadyExistsError):
        esker.spark.write(numbers, table)
    esker.spark.write(numbers, table, mode="append")
    assert len(_ids(table)) == 12


def test_a_write_with_nothing_to_do_asks_nothing_of_the_table_that_is_there(tmp_path: Path) -> None:
    uri, schema = str(tmp_path / "t"), T.StructType().add("id", T.LongType()).add("p", T.StringType())
    made: dict[str, Any] = {"tableFormat": "delta", "delta.enableChangeDataFeed": "true", "partitionColumns": "p"}
    once: dict[str, Any] = {**made, "txnAppId": "job", "txnVersion": 1}
    for mode in ("append", "error"):
        # The reply of the first one was lost: it is run again as it was.
        wrote(uri, schema, [{"id": 0, "p": "a"}], saveMode=mode, **once)
    wrote(uri, schema, [{"id": 1, "p": "a"}], overwrite=True, **once)
    wrote(uri, schema, [{"id": 1, "p": "a"}], saveMode="ignore", **{**made, "partitionColumns": "id"})
    assert (_ids(uri), deltalake.DeltaTable(uri).version()) == ([0], 0)
    with pytest.raises(InvalidArgumentError, match="expected a new table for the properties"):
        wrote(uri, schema, [{"id": 1, "p": "a"}], **{**once, "txnVersion": 2})


@pytest.mark.parametrize("mode", ["append", "ignore", "error", "overwrite"])
def test_a_table_that_another_writer_makes_meanwhile(tmp_path: Path, mode: str) -> None:
    uri, schema = str(tmp_path / "t"), T.StructType().add("id", T.LongType())
    options = {"tableFormat": "delta"} | ({} if mode == "overwrite" else {"saveMode": mode})
    writers = [planned(uri, schema, overwrite=mode == "overwrite", **options) for _ in range(2)]
    tasks = [staged(writer, [batches(schema, [{"id": number}])]) for number, writer in enumerate(writers)]
    writers[0].commit(tasks[0])
    if mode in ("error", "overwrite"):
        with pytest.raises(AlreadyExistsError):
            writers[1].commit(tasks[1])
        writers[1].abort(tasks[1])
    else:
        writers[1].commit(tasks[1])
    assert _ids(uri) == ([0, 1] if mode == "append" else [0])
    assert len(list(Path(uri).rglob("*.parquet"))) == len(deltalake.DeltaTable(uri).file_uris())


def test_batches_of_two_streams_that_make_a_table_are_there_once(tmp_path: Path) -> None:
    uri, schema = str(tmp_path / "t"), T.StructType().add("id", T.LongType()).add("p", T.StringType())
    for again in range(2):
        made = []
        for number in range(2):
            writer = planned(uri, schema, tableFormat="delta").numbered((f"stream {number}", 0))
            made.append((writer, staged(writer, [batches(schema, [{"id": number, "p": "a"}])])))
            if again:
                writer.commit(made[-1][1])
        if not again:
            for writer, messages in made:
                writer.commit(messages)
        assert _ids(uri) == [0, 1]
    table = deltalake.DeltaTable(uri)
    assert (table.version(), table.transaction_version("stream 1")) == (1, 0)
