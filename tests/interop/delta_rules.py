"""What Spark's own Delta makes of rules, feeds, statistics and upgrades that esker wrote, and esker of Spark's.

Part of `make interop`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, write_deltalake
from esker.spark.char_lengths import check_lengths, lengths_of

from .delta_spark import SparkDelta, SparkError
from .delta_turns import SCHEMA, SQL_TYPES, one_row

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDelta]:
    """The peer."""
    with SparkDelta(tmp_path_factory.mktemp("spark")) as peer:
        yield peer


def ids(table: pa.Table) -> list[int]:
    """The ids of rows."""
    return sorted(table["id"].to_pylist())


def both(spark: SparkDelta, path: Path) -> list[int]:
    """The ids that both see."""
    found = ids(DeltaTable(path).to_pyarrow_table())
    assert ids(spark.read(path)) == found
    return found


def adds(path: Path, version: int) -> list[dict[str, Any]]:
    """The files that a version added."""
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def test_our_rules_are_theirs(spark: SparkDelta, tmp_path: Path) -> None:
    fields = [
        Field("id", "long", False),
        Field("at", "timestamp"),
        Field("year", "integer", metadata={"delta.generationExpression": "year(at)"}),
    ]
    DeltaTable.create(tmp_path, Schema(fields), partition_by=["year"])
    DeltaTable(tmp_path).alter.add_constraint({"small": "id < 100", "named": "`id` IS NOT NULL"})
    given = pa.table({"id": [1], "at": pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC"))})
    write_deltalake(tmp_path, given, mode="append")
    spark.write(tmp_path, given.set_column(0, "id", pa.array([2])))
    assert both(spark, tmp_path) == [1, 2]
    assert set(spark.read(tmp_path)["year"].to_pylist()) == {2023}
    refused = {
        "small": given.set_column(0, "id", pa.array([100])),
        "null": given.set_column(0, "id", pa.array([None], pa.int64())),
        "Generated": given.append_column("year", pa.array([1999], pa.int32())),
    }
    for word, rows in refused.items():
        with pytest.raises(SparkError, match=f"(?i){word}"):
            spark.write(tmp_path, rows)
        with pytest.raises(exceptions.InvalidArgumentError):
            write_deltalake(tmp_path, rows, mode="append")
    assert both(spark, tmp_path) == [1, 2]


def test_their_rules_are_ours(spark: SparkDelta, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.run(
        f"CREATE TABLE delta.`{path}` (id BIGINT NOT NULL, name STRING, day DATE, "
        "y INT GENERATED ALWAYS AS (year(day)), "
        "n BIGINT GENERATED ALWAYS AS (id * 2 + 1)) USING delta PARTITIONED BY (y)"
    )
    spark.run(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (length(name) <= 3 OR name LIKE 'x%')")
    rows = pa.table({"id": [1], "name": ["abc"], "day": pa.array([19_000], pa.date32())})
    write_deltalake(path, rows, mode="append")
    found = spark.read(path).to_pylist()
    assert [(row["y"], row["n"]) for row in found] == [(2022, 3)]
    with pytest.raises(exceptions.InvalidArgumentError, match="short"):
        write_deltalake(path, rows.set_column(1, "name", pa.array(["abcd"])), mode="append")
    with pytest.raises(exceptions.InvalidArgumentError, match="NOT NULL"):
        write_deltalake(path, rows.set_column(0, "id", pa.array([None], pa.int64())), mode="append")
    assert both(spark, path) == [1]


def test_append_only_is_told_by_both(spark: SparkDelta, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    with pytest.raises(SparkError, match="(?i)append"):
        spark.run(f"DELETE FROM delta.`{tmp_path}` WHERE id = 1")
    spark.write(tmp_path, pa.table({"id": [2]}))
    assert both(spark, tmp_path) == [1, 2]


def changes(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of a feed, but for when they changed."""
    kept = ["_commit_version", "_change_type", "id", "p"]
    return sorted(tuple(map(str, row.values())) for row in table.select(kept).to_pylist())


@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize("mapped", [False, True])
def test_the_feed_is_one(spark: SparkDelta, tmp_path: Path, partition_by: list[str] | None, mapped: bool) -> None:
    properties = {**FEED, "delta.enableDeletionVectors": "true"}
    if mapped:
        properties["delta.columnMapping.mode"] = "name"
    rows = pa.table({"id": range(8), "p": ["a", "b c"] * 4})
    write_deltalake(tmp_path, rows, partition_by=partition_by, configuration=properties)
    write_deltalake(tmp_path, pa.table({"id": [6, 9], "p": ["a", "d"]}), mode="overwrite", predicate="id >= 5")
    spark.run(f"UPDATE delta.`{tmp_path}` SET p = 'u' WHERE id < 2")
    spark.run(f"DELETE FROM delta.`{tmp_path}` WHERE id = 3")
    write_deltalake(tmp_path, pa.table({"id": [2], "p": ["z"]}), mode="overwrite", predicate="id = 2")
    spark.run(f"DELETE FROM delta.`{tmp_path}` WHERE p = 'z'")
    write_deltalake(tmp_path, pa.table({"id": [7], "p": ["a"]}), mode="overwrite")
    newest = DeltaTable(tmp_path).version()
    for start, end in [(0, newest), (1, 1), (4, 4), (newest, newest)]:
        ours = DeltaTable(tmp_path).load_cdf(start, end).read_all()
        theirs = spark.read(tmp_path, readChangeFeed="true", startingVersion=start, endingVersion=end)
        assert changes(ours) == changes(theirs)
    assert both(spark, tmp_path) == [7]


def test_statistics_are_as_theirs(spark: SparkDelta, tmp_path: Path) -> None:
    numbers = random.Random(5)
    rows = pa.Table.from_pylist([one_row(numbers, n) for n in range(200)], SCHEMA)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_deltalake(ours, rows)
    columns = ", ".join(f"{field.name} {SQL_TYPES[field.name]}" for field in SCHEMA)
    spark.run(f"CREATE TABLE delta.`{theirs}` ({columns}) USING delta")
    spark.write(theirs, rows)
    (mine,) = adds(ours, 0)
    (other,) = adds(theirs, 1)
    found, wanted = (json.loads(add["stats"], parse_float=Decimal) for add in (mine, other))
    assert found["numRecords"] == wanted["numRecords"]
    assert found["nullCount"] == wanted["nullCount"]
    # Text is cut as theirs: its bounds may be wider than theirs, never narrower. Infinity is no number of JSON.
    for name in ("id", "day", "d", "at", "p"):
        assert str(found["minValues"][name]) == str(wanted["minValues"][name]), name
        if name != "at":
            assert str(found["maxValues"][name]) == str(wanted["maxValues"][name]), name
    assert found["minValues"]["s"] == wanted["minValues"]["s"]
    assert found["maxValues"]["s"]["u"] == wanted["maxValues"]["s"]["u"]


def test_checkpoints_have_their_columns(spark: SparkDelta, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    write_deltalake(
        tmp_path,
        pa.table({"id": [3], "p": ["b"]}),
        mode="overwrite",
        predicate="p = 'b'",
        txn_app_id="x",
        txn_version=1,
    )
    spark.checkpoint(tmp_path)
    name = tmp_path / "_delta_log" / f"{1:020}.checkpoint.parquet"
    theirs = pq.read_table(name)
    hint = json.loads((tmp_path / "_delta_log/_last_checkpoint").read_text())
    name.unlink()
    (tmp_path / "_delta_log/_last_checkpoint").unlink()
    DeltaTable(tmp_path).create_checkpoint()
    ours = pq.read_table(name)
    said = json.loads((tmp_path / "_delta_log/_last_checkpoint").read_text())
    for column in ours.column_names:
        kinds = [(table.schema.field(column).type) for table in (ours, theirs)]
        inner = [{kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)} for kind in kinds]
        common = set(inner[0]) & set(inner[1])
        assert {key: inner[0][key] for key in common} == {key: inner[1][key] for key in common}, column
        values = [
            sorted(
                json.dumps({k: v for k, v in row.items() if k in common and v is not None}, default=str, sort_keys=True)
                for row in table[column].to_pylist()
                if row
            )
            for table in (ours, theirs)
        ]
        if column not in ("add", "remove"):
            assert values[0] == values[1], column
        assert len(values[0]) == len(values[1]), column
    assert {key: said[key] for key in ("version", "size")} == {key: hint[key] for key in ("version", "size")}
    assert both(spark, tmp_path) == [1, 3]


def test_what_we_upgrade_they_read_and_write(spark: SparkDelta, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int32()), "p": ["a"], "s": [{"t": 1}]})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    for properties in (
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableTypeWidening": "true"},
        {"delta.checkpointPolicy": "v2"},
        FEED,
    ):
        DeltaTable(tmp_path).alter.set_table_properties(properties)
        spark.write(tmp_path, rows)
        write_deltalake(tmp_path, rows, mode="append")
        both(spark, tmp_path)
    wide = rows.set_column(0, "id", pa.array([1 << 40]))
    write_deltalake(tmp_path, wide, mode="append", schema_mode="merge")
    assert both(spark, tmp_path)[-1] == 1 << 40
    spark.write(tmp_path, wide)
    spark.run(f"DELETE FROM delta.`{tmp_path}` WHERE id = 1")
    assert both(spark, tmp_path) == [1 << 40] * 2
    spark.run(f"ALTER TABLE delta.`{tmp_path}` RENAME COLUMN id TO key")
    spark.run(f"ALTER TABLE delta.`{tmp_path}` DROP COLUMN s")
    write_deltalake(tmp_path, pa.table({"key": [5], "p": ["z"]}), mode="append")
    assert sorted(spark.read(tmp_path)["key"].to_pylist()) == [5, 1 << 40, 1 << 40]
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["key"].to_pylist()) == [5, 1 << 40, 1 << 40]
    history = [(row["version"], row["operation"]) for row in DeltaTable(tmp_path).history()]
    told = spark.rows(f"DESCRIBE HISTORY delta.`{tmp_path}`").select(["version", "operation"]).to_pylist()
    assert history == [(row["version"], row["operation"]) for row in told]


def test_wider_types_of_theirs(spark: SparkDelta, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.run(
        f"CREATE TABLE delta.`{path}` (id SMALLINT, f FLOAT, d DECIMAL(5, 2), l ARRAY<TINYINT>, day DATE) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"
    )
    spark.run(f"INSERT INTO delta.`{path}` VALUES (1, 0.5, 1.25, array(1, 2), DATE'2024-01-01')")
    for change in (
        "id TYPE BIGINT",
        "f TYPE DOUBLE",
        "d TYPE DECIMAL(10, 4)",
        "l.element TYPE INT",
        "day TYPE TIMESTAMP_NTZ",
    ):
        spark.run(f"ALTER TABLE delta.`{path}` ALTER COLUMN {change}")
    spark.run(
        f"INSERT INTO delta.`{path}` VALUES ({1 << 40}, 1e300, 123456.0625, array(70000), "
        "TIMESTAMP_NTZ'2024-01-01 01:02:03')"
    )
    ours = DeltaTable(path).to_pyarrow_table().sort_by("id")
    assert ours.to_pylist() == spark.read(path).sort_by("id").to_pylist()
    write_deltalake(path, ours, mode="append")
    assert both(spark, path) == [1, 1, 1 << 40, 1 << 40]


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({"delta.enableRowTracking": "true"}, "rowTracking"),
        ({"delta.feature.allowColumnDefaults": "supported"}, "allowColumnDefaults"),
    ],
)
def test_what_we_do_not_write_is_named(
    spark: SparkDelta, tmp_path: Path, properties: dict[str, str], refused: str
) -> None:
    path = tmp_path / "t"
    said = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.run(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ({said})")
    spark.run(f"INSERT INTO delta.`{path}` VALUES (1)")
    assert both(spark, path) == [1]
    with pytest.raises(exceptions.UnsupportedError, match=refused):
        write_deltalake(path, pa.table({"id": [2]}), mode="append")


def test_clustered_and_identity_tables_are_read(spark: SparkDelta, tmp_path: Path) -> None:
    clustered, identity = tmp_path / "c", tmp_path / "i"
    spark.run(f"CREATE TABLE delta.`{clustered}` (id BIGINT, x INT) USING delta CLUSTER BY (id)")
    spark.run(f"INSERT INTO delta.`{clustered}` VALUES (1, 2), (3, 4)")
    spark.run(f"OPTIMIZE delta.`{clustered}`")
    assert both(spark, clustered) == [1, 3]
    with pytest.raises(exceptions.UnsupportedError, match="clustering"):
        write_deltalake(clustered, pa.table({"id": [2], "x": pa.array([1], pa.int32())}), mode="append")
    spark.run(f"CREATE TABLE delta.`{identity}` (id BIGINT GENERATED ALWAYS AS IDENTITY, x INT) USING delta")
    spark.run(f"INSERT INTO delta.`{identity}` (x) VALUES (1), (2)")
    assert len(both(spark, identity)) == 2
    with pytest.raises(exceptions.UnsupportedError, match="identity"):
        write_deltalake(identity, pa.table({"x": pa.array([1], pa.int32())}), mode="append")


def test_lengths_of_chars_and_varchars_are_theirs(spark: SparkDelta, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.run(f"CREATE TABLE delta.`{path}` (v VARCHAR(3), c CHAR(3), a ARRAY<VARCHAR(2)>) USING delta")
    lengths = lengths_of(DeltaTable(path).schema())
    rows: list[tuple[str, str, list[str] | None]] = [
        ("äöü", "a", ["ab"]),
        ("abcd", "a", None),
        ("abc ", "a", None),
        ("a", "abcd", None),
        ("a", "abc ", None),
        ("a", "a", ["ab", "abc"]),
    ]
    for number, (v, c, a) in enumerate(rows):
        batch = pa.record_batch({"v": [v], "c": [c], "a": pa.array([a], pa.list_(pa.string()))})
        if number == 0:
            check_lengths(batch, lengths)
            spark.write(path, pa.Table.from_batches([batch]))
            continue
        with pytest.raises(SparkError, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
            spark.write(path, pa.Table.from_batches([batch]))
        with pytest.raises(exceptions.SchemaMismatchError):
            check_lengths(batch, lengths)
    assert spark.read(path)["v"].to_pylist() == ["äöü"]
