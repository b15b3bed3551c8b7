"""Tables that are there get features, modes and wider types; deltalake reads what came of it."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import (
    AddAction,
    BloomFilterProperties,
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Field,
    PrimitiveType,
    StructType,
    TableFeatures,
    WriterProperties,
    write_deltalake,
)
from esker.delta.definition.schema_merge import TYPE_CHANGES

TIMES = "delta.enableInCommitTimestamps"
MODE = "delta.columnMapping.mode"


def entry(table: Path, version: int, name: str) -> list[dict[str, Any]]:
    lines = (table / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [action[name] for action in map(json.loads, lines) if name in action]


def their_rows(table: Path) -> list[dict[str, Any]]:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table)).execute("select * from t")
    return sorted(pa.table(query).to_pylist(), key=lambda row: str(next(iter(row.values()))))


def test_in_commit_timestamps_begin_with_a_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    before = int(time.time() * 1000)
    table.alter.set_table_properties({TIMES: "true"})
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    (info,), (metadata,) = entry(tmp_path, 1, "commitInfo"), entry(tmp_path, 1, "metaData")
    assert metadata["configuration"]["delta.inCommitTimestampEnablementVersion"] == "1"
    stamp = int(metadata["configuration"]["delta.inCommitTimestampEnablementTimestamp"])
    assert stamp == info["inCommitTimestamp"] >= before
    assert entry(tmp_path, 2, "commitInfo")[0]["inCommitTimestamp"] > stamp
    assert "inCommitTimestamp" in (DeltaTable(tmp_path).protocol().writer_features or [])
    assert their_rows(tmp_path) == [{"id": 1}, {"id": 2}]
    table.update_incremental()
    table.load_as_version("2100-01-01")
    assert table.version() == 2


def test_in_commit_timestamps_begin_where_the_commit_lands(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    table.alter.set_table_properties({TIMES: "true"})
    (metadata,) = entry(tmp_path, 2, "metaData")
    assert metadata["configuration"]["delta.inCommitTimestampEnablementVersion"] == "2"


def test_a_table_that_is_replaced_still_tells_since_when_it_has_in_commit_timestamps(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    DeltaTable(tmp_path).alter.set_table_properties({TIMES: "true"})
    since = {key: text for key, text in DeltaTable(tmp_path).metadata().configuration.items() if "Enablement" in key}
    DeltaTable.create(tmp_path, pa.schema([("n", pa.int64())]), mode="overwrite", configuration={TIMES: "true"})
    assert DeltaTable(tmp_path).metadata().configuration == {TIMES: "true", **since}
    # Without them nothing tells of it, and they begin anew with the version that has them again.
    DeltaTable.create(tmp_path, pa.schema([("n", pa.int64())]), mode="overwrite")
    assert DeltaTable(tmp_path).metadata().configuration == {}
    DeltaTable.create(tmp_path, pa.schema([("n", pa.int64())]), mode="overwrite", configuration={TIMES: "true"})
    assert DeltaTable(tmp_path).metadata().configuration["delta.inCommitTimestampEnablementVersion"] == "4"


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_columns_are_mapped_by_name_from_now_on(tmp_path: Path, partition_by: list[str] | None) -> None:
    data = pa.table({"id": [1], "p": ["a"], "s": [{"t": 1, "u": [{"v": 2}]}]})
    write_deltalake(tmp_path, data, partition_by=partition_by)
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties({MODE: "name"})
    assert table.protocol()[:2] == (2, 5)
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "6"
    wider = data.set_column(0, "id", [[2]]).append_column("n", [["new"]])
    write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["p"], row["s"]["u"], row["n"]) for row in found] == [
        (1, "a", [{"v": 2}], None),
        (2, "a", [{"v": 2}], "new"),
    ]
    assert their_rows(tmp_path) == found
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="n = 'new'").num_rows == 1
    (add,) = entry(tmp_path, 2, "add")
    names = pq.read_schema(tmp_path / add["path"]).names
    assert [name for name in names if not name.startswith("col-")] == [
        n for n in ("id", "p", "s") if n != "p" or not partition_by
    ]
    with pytest.raises(exceptions.UnsupportedError, match="none to name"):
        DeltaTable(tmp_path).alter.set_table_properties({MODE: "none"})


WIDER = [
    (pa.int8(), pa.int64(), 3, 1 << 40),
    (pa.int16(), pa.int32(), 3, 1 << 20),
    (pa.float32(), pa.float64(), 0.5, 1e300),
    (pa.decimal128(4, 1), pa.decimal128(6, 3), Decimal("1.5"), Decimal("123.125")),
]


@pytest.mark.parametrize(("old", "new", "first", "second"), WIDER)
def test_types_become_wider(tmp_path: Path, old: pa.DataType, new: pa.DataType, first: Any, second: Any) -> None:
    def rows(kind: pa.DataType, value: Any) -> pa.Table:
        inner = pa.struct([("y", kind)])
        columns = {"x": pa.array([value], kind), "l": pa.array([[value]], pa.list_(kind))}
        columns["s"] = pa.array([{"y": value}], inner)
        columns["m"] = pa.array([[("k", value)]], pa.map_(pa.string(), kind))
        return pa.table(columns)

    write_deltalake(tmp_path, rows(old, first), configuration={"delta.enableTypeWidening": "true"})
    write_deltalake(tmp_path, rows(new, second), mode="append", schema_mode="merge")
    write_deltalake(tmp_path, rows(old, first), mode="append")
    table = DeltaTable(tmp_path)
    found = table.to_pyarrow_table()
    assert found.schema.field("x").type == PrimitiveType.from_arrow(found.schema.field("x").type).to_arrow() != old
    values = sorted(row["x"] for row in found.to_pylist())
    assert values == [first, first, second]
    for row in found.to_pylist():
        assert (row["l"], row["s"], row["m"]) == ([row["x"]], {"y": row["x"]}, [("k", row["x"])])
    assert table.to_pyarrow_table(filters=[("x", "=", second)]).num_rows == 1
    fields = {field.name: field for field in table.schema().fields}
    assert fields["x"].metadata[TYPE_CHANGES][0]["fromType"] == str(PrimitiveType.from_arrow(old).type)
    assert fields["l"].metadata[TYPE_CHANGES][0]["fieldPath"] == "element"
    assert fields["m"].metadata[TYPE_CHANGES][0]["fieldPath"] == "value"
    within = fields["s"].type
    assert isinstance(within, StructType)
    assert TYPE_CHANGES in within.fields[0].metadata


def test_types_stay_where_nothing_says_that_they_become_wider(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": pa.array([1], pa.int16())}))
    write_deltalake(tmp_path, pa.table({"x": [2]}), mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).to_pyarrow_table().schema.field("x").type == pa.int16()
    with pytest.raises(exceptions.SchemaMismatchError, match="int16"):
        write_deltalake(tmp_path, pa.table({"x": [1 << 20]}), mode="append", schema_mode="merge")
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableTypeWidening": "true"})
    DeltaTable(tmp_path).alter.add_constraint({"small": "x < 10"})
    with pytest.raises(exceptions.InvalidArgumentError, match="constraint"):
        write_deltalake(tmp_path, pa.table({"x": [1 << 20]}), mode="append", schema_mode="merge")


def test_versions_and_features_of_the_protocol_go_up(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties({"delta.minWriterVersion": "4", "mine": "x"})
    assert (table.protocol()[:2], table.metadata().configuration) == ((1, 4), {"mine": "x"})
    table.alter.set_table_properties({"delta.feature.deletionVectors": "supported"})
    assert table.protocol().reader_features == ["deletionVectors"]
    assert table.metadata().configuration == {"mine": "x"}
    table.alter.add_feature([TableFeatures.V2Checkpoint, TableFeatures.TimestampWithoutTimezone])
    assert {"v2Checkpoint", "timestampNtz"} <= set(table.protocol().writer_features or [])


def test_double_quotes_name_columns_as_they_do_for_the_peer(tmp_path: Path) -> None:
    data = pa.table({"Product.Id": ["x-0", "x-1", '"'], "a b": [1, 2, 3]})
    write_deltalake(tmp_path, data, partition_by=["Product.Id"])
    write_deltalake(tmp_path, data.slice(0, 1), mode="overwrite", predicate="\"Product.Id\" = 'x-0'")
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table(filters='"a b" >= 2').num_rows == 2
    assert table.to_pyarrow_table(filters="`Product.Id` = '\"'").num_rows == 1
    with pytest.raises(exceptions.InvalidArgumentError, match="nope"):
        table.to_pyarrow_table(filters='"nope" = 1')
    table.alter.add_constraint({"many": '"a b" > 0', "few": '"a b" < 100'})
    assert table.metadata().configuration["delta.constraints.many"] == "`a b` > 0"
    with pytest.raises(exceptions.InvalidArgumentError, match="few"):
        write_deltalake(tmp_path, data.set_column(1, "a b", [[1, 2, 100]]), mode="append")


def test_values_of_filters_are_spelled_as_partition_values_are(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"p": ["2020", "true", "1.5"], "x": [1, 2, 3]}), partition_by=["p"])
    table = DeltaTable(tmp_path)
    for value, x in [(2020, 1), (True, 2), (1.5, 3)]:
        assert table.to_pyarrow_table(filters=[("p", "=", value)])["x"].to_pylist() == [x]


def test_fields_are_added_to_a_struct(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"s": [{"x": 1}]}))
    table = DeltaTable(tmp_path)
    table.alter.add_columns(Field("s", StructType([Field("y", "string")])))
    assert table.to_pyarrow_table().to_pylist() == their_rows(tmp_path) == [{"s": {"x": 1, "y": None}}]
    with pytest.raises(exceptions.InvalidArgumentError, match="'x'"):
        table.alter.add_columns(Field("s", StructType([Field("x", "string")])))


def test_metadata_of_arrow_fields_are_the_columns(tmp_path: Path) -> None:
    generated = pa.field("y", pa.int64(), metadata={"delta.generationExpression": "x + 1", "PARQUET:field_id": "7"})
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"comment": "key"}), generated])
    write_deltalake(tmp_path, pa.Table.from_pylist([{"x": 1, "y": 2}], schema))
    fields = DeltaTable(tmp_path).schema().fields
    assert [f.metadata for f in fields] == [{"comment": "key"}, {"delta.generationExpression": "x + 1"}]
    assert DeltaTable(tmp_path).protocol().min_writer_version == 4
    write_deltalake(tmp_path, pa.table({"x": [5]}), mode="append")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["y"].to_pylist()) == [2, 6]
    with pytest.raises(exceptions.InvalidArgumentError, match="generated"):
        write_deltalake(tmp_path, pa.Table.from_pylist([{"x": 1, "y": 3}], schema), mode="append")
    wider = pa.Table.from_pylist([{"x": 1, "y": 2, "z": 2}], schema.append(generated.with_name("z")))
    with pytest.raises(exceptions.SchemaMismatchError, match="generat"):
        write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")


def test_what_comes_as_nanoseconds_or_by_a_generator_is_written(tmp_path: Path) -> None:
    stamps = pa.table({"t": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))})
    write_deltalake(tmp_path / "ours", stamps)
    deltalake.write_deltalake(tmp_path / "theirs", stamps)
    assert their_rows(tmp_path / "ours") == their_rows(tmp_path / "theirs")
    write_deltalake(tmp_path / "g", (pa.record_batch({"x": [n]}) for n in range(3)))
    assert sorted(row["x"] for row in their_rows(tmp_path / "g")) == [0, 1, 2]


def test_frames_of_polars_and_pandas_are_written(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "c": ["x", "y", None]}).with_columns(pl.col("c").cast(pl.Categorical))
    write_deltalake(tmp_path / "polars", frame)
    assert [field.metadata for field in DeltaTable(tmp_path / "polars").schema()] == [{}, {}]
    assert their_rows(tmp_path / "polars") == [{"id": 1, "c": "x"}, {"id": 2, "c": "y"}, {"id": 3, "c": None}]
    made = pd.DataFrame({"id": [1, 2], "c": pd.Categorical(["a", "b"]), "t": pd.to_datetime(["2024-01-01"] * 2)})
    write_deltalake(tmp_path / "pandas", made, partition_by=["c"])
    write_deltalake(tmp_path / "pandas", made.set_index("id").reset_index(), mode="append")
    assert [(row["id"], row["c"]) for row in their_rows(tmp_path / "pandas")] == [
        (1, "a"),
        (1, "a"),
        (2, "b"),
        (2, "b"),
    ]
    opened = DeltaTable(tmp_path / "pandas")
    assert (
        pl.DataFrame(opened.scan()).height == pl.scan_pyarrow_dataset(opened.to_pyarrow_dataset()).collect().height == 4
    )
    assert duckdb.sql("select count(*) from opened where id = 2").fetchall() == [(2,)]


def test_bloom_filters(tmp_path: Path) -> None:
    bloom = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, fpp=0.01, ndv=100))
    data = pa.table({"x": [str(n) for n in range(1000)], "y": range(1000)})
    sizes = []
    for name, properties in [("with", WriterProperties(column_properties={"x": bloom})), ("without", None)]:
        write_deltalake(tmp_path / name, data, writer_properties=properties)
        sizes.append(next((tmp_path / name).glob("*.parquet")).stat().st_size)
        assert len(their_rows(tmp_path / name)) == 1000
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize(
    "made",
    [
        lambda: WriterProperties(compression="NONE"),  # type: ignore[arg-type]
        lambda: WriterProperties(compression_level=3),
        lambda: WriterProperties(compression="ZSTD", compression_level=23),
        lambda: WriterProperties(compression="SNAPPY", compression_level=1),
        lambda: BloomFilterProperties(True, fpp=1.1),
        lambda: ColumnProperties(encoding="RLE", dictionary_enabled=True),
        lambda: ColumnProperties(encoding="ROT13"),
        lambda: CommitProperties({"readVersion": "1"}),
        lambda: CommitProperties({"isolationLevel": "mine"}),
        lambda: CommitProperties({"x": float("nan")}),
        lambda: CommitProperties([("x", 1)]),  # type: ignore[arg-type]
        lambda: PrimitiveType("int"),
        lambda: PrimitiveType("decimal(1,39)"),
        lambda: StructType.from_json('"long"'),
    ],
)
def test_properties_and_types_that_are_none(made: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        made()


def test_types_to_and_from_json_and_arrow() -> None:
    fields = [Field("x", "decimal(10,2)"), Field("l", "string", False)]
    for made in (StructType(fields), PrimitiveType("date")):
        assert type(made).from_json(made.to_json()) == made
        assert type(made).from_arrow(made.to_arrow()) == made


def test_parameters_are_added_to_the_writers_own(tmp_path: Path) -> None:
    given = {"operationParameters": {"mode": "mine", "more": {"a": 1}}, "attempt": 1}
    write_deltalake(tmp_path, pa.table({"x": [1]}), commit_properties=CommitProperties(given))
    (info,) = entry(tmp_path, 0, "commitInfo")
    assert (info["operationParameters"]["mode"], info["operationParameters"]["more"]) == ("ErrorIfExists", '{"a":1}')
    assert info["attempt"] == 1


def test_files_of_others_are_committed(tmp_path: Path) -> None:
    data = pa.table({"p": ["a", "b"], "x": [1, 2]})
    write_deltalake(tmp_path, data, partition_by=["p"])
    table = DeltaTable(tmp_path)
    pq.write_table(pa.table({"x": [3]}), tmp_path / "mine 1.parquet")
    size = (tmp_path / "mine 1.parquet").stat().st_size
    action = AddAction("mine 1.parquet", size, {"p": "a"}, 1, True, '{"numRecords":1}')
    table.create_write_transaction([action], "append", table.schema(), ["p"])
    assert sorted(row["x"] for row in their_rows(tmp_path)) == [1, 2, 3]
    pq.write_table(pa.table({"x": [4]}), tmp_path / "mine2.parquet")
    action = AddAction("/mine2.parquet", size, {"p": "b"}, 1, True, '{"numRecords":1}')
    table.create_write_transaction([action], "overwrite", table.schema(), "p", [("p", "=", "b")])
    assert sorted(row["x"] for row in their_rows(tmp_path)) == [1, 3, 4]
    assert table.to_pyarrow_table().num_rows == 3
    with pytest.raises(exceptions.SchemaMismatchError, match="schema"):
        table.create_write_transaction([], "append", pa.schema([("x", pa.int64())]), ["p"])
    with pytest.raises(exceptions.InvalidArgumentError, match="partition"):
        table.create_write_transaction([AddAction("x", 1, {}, 1, True, "{}")], "append", table.schema(), ["p"])


def test_lists_of_files_for_engines_without_the_log(tmp_path: Path) -> None:
    data = pa.table({"p": ["a", "b", "b"], "x": [1, 2, 3]})
    write_deltalake(tmp_path, data, partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.generate()
    folder = tmp_path / "_symlink_format_manifest"
    lines = [line for path in folder.rglob("manifest") for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(table.file_uris())
    assert (folder / "p=a" / "manifest").exists()
    assert table.deletion_vectors().read_all().num_rows == 0
    assert len(DeltaTable(tmp_path).partitions()) == 2
