"""Features that a table's protocol names: those that no column and no property uses are no reason to refuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable, Field, Schema, TableMerger, write_deltalake
from tests.delta_logs import SCHEMA, add, commit, metadata

READERS = ["variantType", "variantType-preview", "variantShredding", "variantShredding-preview", "geospatial"]
WRITERS = [
    "allowColumnDefaults",
    "checkpointProtection",
    "collations",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "identityColumns",
    "materializePartitionColumns",
]
VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def _protocol(readers: list[str], writers: list[str]) -> dict[str, Any]:
    features = {"readerFeatures": readers, "writerFeatures": [*readers, *writers]}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}


def _fields(**columns: Any) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


@pytest.mark.parametrize("feature", [*READERS, *WRITERS])
def test_a_feature_that_nothing_uses_is_no_reason_to_refuse_a_table(tmp_path: Path, feature: str) -> None:
    protocol = _protocol([feature] if feature in READERS else [], [] if feature in READERS else [feature])
    commit(tmp_path, 0, [protocol, metadata()])
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "p": ["a", "b"]}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [3], "p": ["a"]}), mode="overwrite", predicate="p = 'a'")
    write_deltalake(tmp_path, pa.table({"id": [4], "p": ["c"], "n": [1]}), mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [2, 3, 4]
    assert feature in (table.protocol().writer_features or [])
    table.create_checkpoint()
    assert DeltaTable(tmp_path).count() == 3


@pytest.mark.parametrize(
    "properties",
    [{"delta.enableDeletionVectors": "true"}, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}],
)
def test_tables_whose_features_the_peer_lists_on_its_own_are_read_and_written(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}), configuration=properties)
    assert "variantType" in deltalake.DeltaTable(tmp_path / "t").protocol().reader_features
    write_deltalake(tmp_path / "t", pa.table({"id": [3]}), mode="append")
    deltalake.DeltaTable(tmp_path / "t").delete("id = 1")
    write_deltalake(tmp_path / "t", pa.table({"id": [4]}), mode="append")
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["id"].to_pylist()) == [2, 3, 4]
    peer = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "t"))
    assert sorted(pa.table(peer.execute("select id from t"))["id"].to_pylist()) == [2, 3, 4]


@pytest.mark.parametrize("feature", ["rowTracking", "clustering", "coordinatedCommits-preview", "unheardOf"])
def test_features_that_always_ask_for_something_are_refused_in_a_write(tmp_path: Path, feature: str) -> None:
    commit(tmp_path, 0, [_protocol([], [feature]), metadata()])
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 0
    with pytest.raises(exceptions.UnsupportedError, match=feature):
        write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), mode="append")


@pytest.mark.parametrize(
    ("feature", "changes", "words"),
    [
        ("icebergCompatV1", {"configuration": {"delta.enableIcebergCompatV1": "true"}}, "icebergCompatV1"),
        ("icebergCompatV2", {"configuration": {"delta.enableIcebergCompatV2": "TRUE"}}, "icebergCompatV2"),
        (
            "checkpointProtection",
            {"configuration": {"delta.requireCheckpointProtectionBeforeVersion": "7"}},
            "checkpointProtection",
        ),
        ("materializePartitionColumns", {"partitionColumns": ["p"]}, "materializePartitionColumns"),
        ("collations", {"p": {"__COLLATIONS": {"p": "ICU.de"}}}, "'p' has a collation"),
        ("identityColumns", {"id": {"delta.identity.start": 1}}, "'id' is an identity column"),
    ],
)
def test_features_that_something_uses_are_refused_in_a_write_by_name(
    tmp_path: Path, feature: str, changes: dict[str, Any], words: str
) -> None:
    schema = json.loads(json.dumps(SCHEMA))
    for field in schema["fields"]:
        field["metadata"] = changes.pop(field["name"], {})
    commit(tmp_path, 0, [_protocol([], [feature]), metadata(schemaString=json.dumps(schema), **changes)])
    with pytest.raises(exceptions.UnsupportedError, match=words):
        write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), mode="append")


def test_a_column_with_a_default_is_given(tmp_path: Path) -> None:
    schema = json.loads(json.dumps(SCHEMA))
    schema["fields"][1]["metadata"] = {"CURRENT_DEFAULT": "'none'"}
    commit(tmp_path, 0, [_protocol([], ["allowColumnDefaults"]), metadata(schemaString=json.dumps(schema))])
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), mode="append")
    with pytest.raises(exceptions.UnsupportedError, match="'p' has the default 'none'.*give the column"):
        write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append", schema_mode="merge")
    # What a merge inserts, too; what it updates has the column already.
    source = pa.table({"id": [1, 2]})

    def merger() -> TableMerger:
        return DeltaTable(tmp_path).merge(source, "t.id = s.id", "s", "t").when_matched_update_all()

    for without in (merger().when_not_matched_insert_all(), merger().when_not_matched_insert({"id": "s.id"})):
        with pytest.raises(exceptions.UnsupportedError, match="'p' has the default 'none'.*give the column"):
            without.execute()
    merger().when_not_matched_insert({"id": "s.id", "p": "'b'"}).execute()
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert found == [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}]


@pytest.fixture
def with_variant(tmp_path: Path) -> Path:
    """A table with a column of type variant, one within a struct, one in a list, and a geometry."""
    schema = _fields(
        id="long",
        v="variant",
        s={"type": "struct", "fields": [{"name": "v", "type": "variant", "nullable": True, "metadata": {}}]},
        l={"type": "array", "elementType": "variant", "containsNull": True},
        g="geometry(OGC:CRS84)",
    )
    properties = {"delta.enableChangeDataFeed": "true"}
    features = _protocol(["variantType", "geospatial"], ["changeDataFeed"])
    commit(tmp_path, 0, [features, metadata(schemaString=schema, configuration=properties)])
    value = {"metadata": b"\x01", "value": b"\x00"}
    rows = pa.table(
        {
            "id": [1, 2],
            "v": pa.array([value, value], VARIANT),
            "s": pa.array([{"v": value}, None], pa.struct([("v", VARIANT)])),
            "l": pa.array([[value], []], pa.list_(VARIANT)),
            "g": pa.array([b"g", None], pa.binary()),
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    commit(tmp_path, 1, [add("a.parquet", size=(tmp_path / "a.parquet").stat().st_size, stats='{"numRecords":2}')])
    return tmp_path


def test_beside_columns_that_are_not_read_others_are(with_variant: Path) -> None:
    table = DeltaTable(with_variant)
    assert table.schema().fields[1].type.type == "variant"
    assert Schema.from_json(table.schema().to_json()) == table.schema()
    assert table.count() == 2
    assert table.to_pyarrow_table(columns=["id"])["id"].to_pylist() == [1, 2]
    assert table.to_pyarrow_table(columns=["id"], filters="id > 1")["id"].to_pylist() == [2]
    assert table.to_pyarrow_table(columns=["id"], filters=[("id", "=", 1)])["id"].to_pylist() == [1]
    assert table.scan(["id"]).read_all().num_rows == 2
    assert table.load_cdf(columns=["id", "_change_type"]).read_all()["id"].to_pylist() == [1, 2]
    table.create_checkpoint()
    assert DeltaTable(with_variant).to_pyarrow_table(columns=["id"]).num_rows == 2


@pytest.mark.parametrize("name", ["v", "s", "l", "g"])
def test_a_column_that_is_not_read_is_refused_by_its_name(with_variant: Path, name: str) -> None:
    table = DeltaTable(with_variant)
    kind = "geometry" if name == "g" else "variant"
    for read in (
        lambda: table.to_pyarrow_table(columns=["id", name]),
        lambda: table.scan([name]).read_all(),
        lambda: table.to_pyarrow_table(columns=["id"], filters=f"{name} is null"),
        lambda: table.to_pyarrow_table(columns=["id"], filters=pc.field(name).is_null()),
        lambda: table.load_cdf(columns=[name]).read_all(),
    ):
        with pytest.raises(exceptions.UnsupportedError, match=f"'{name}' is of type {kind}"):
            read()
    for read in (table.to_pyarrow_table, table.to_pyarrow_dataset, lambda: pa.table(table)):
        with pytest.raises(exceptions.UnsupportedError, match="name the other columns"):
            read()


def test_a_table_with_a_column_that_is_not_read_is_not_written(with_variant: Path, tmp_path: Path) -> None:
    with pytest.raises(exceptions.UnsupportedError, match="'v' is of type variant.*does not write"):
        write_deltalake(with_variant, pa.table({"id": [1]}), mode="append", schema_mode="merge")
    with pytest.raises(exceptions.UnsupportedError, match="'v' is of type variant"):
        DeltaTable(with_variant).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(exceptions.UnsupportedError, match="'v' is of type variant"):
        DeltaTable.create(tmp_path / "new", Schema([Field("id", "long"), Field("v", "variant")]))


EMPTY = pa.struct([])
HOLDING = [EMPTY, pa.list_(EMPTY), pa.struct([("a", EMPTY)]), pa.map_(pa.string(), EMPTY)]


@pytest.mark.parametrize("kind", HOLDING, ids=str)
def test_structs_without_fields_are_refused_before_anything_is_written(tmp_path: Path, kind: pa.DataType) -> None:
    rows = pa.table({"id": [1], "a": pa.array([None], kind)})
    theirs = (deltalake.write_deltalake, deltalake.exceptions.DeltaError)
    for write, error in ((write_deltalake, exceptions.UnsupportedError), theirs):
        with pytest.raises(error, match="Parquet does not support writing empty structs"):
            write(tmp_path / "new", rows)
        assert not DeltaTable.is_deltatable(str(tmp_path / "new"))
    write_deltalake(tmp_path / "there", rows.select(["id"]))
    with pytest.raises(exceptions.UnsupportedError, match="column 'a'"):
        write_deltalake(tmp_path / "there", rows, mode="append", schema_mode="merge")
    deltalake.DeltaTable(tmp_path / "there").alter.add_columns(
        [deltalake.Field("a", deltalake.Schema.from_arrow(rows.schema).fields[1].type)]
    )
    table = DeltaTable(tmp_path / "there")
    with pytest.raises(exceptions.UnsupportedError, match="column 'a'"):
        table.update({"id": "2"})
    with pytest.raises(exceptions.UnsupportedError, match="column 'a'"):
        table.merge(rows, "t.id = s.id + 1", "s", "t").when_not_matched_insert({"id": "s.id"}).execute()
    assert table.version() == 1
    assert len(list((tmp_path / "there").glob("*.parquet"))) == 1
