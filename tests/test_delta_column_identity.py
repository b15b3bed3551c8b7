"""Ids and physical names of mapped columns: who keeps them, and who never has another's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.delta import ArrayType, DeltaTable, Field, PrimitiveType, Schema, StructType, write_deltalake
from esker.delta.definition.column_identity import identified
from esker.delta.definition.protocol import fields_of
from esker.delta.transaction import AddAction
from esker.exceptions import InvalidArgumentError, UnsupportedError

MODES = ["name", "id"]
FEED = {"delta.enableChangeDataFeed": "true"}


def _mapped(mode: str, **more: str) -> dict[str, str]:
    return {"delta.columnMapping.mode": mode, **more}


def _rows(uri: str) -> list[dict[str, Any]]:
    """The rows, read by esker and by deltalake, which must agree."""
    found = DeltaTable(uri).to_pyarrow_table().to_pylist()
    theirs = pa.table(
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("SELECT * FROM t").read_all()
    )
    assert sorted(map(str, theirs.to_pylist())) == sorted(map(str, found))
    return found


def _identities(uri: str) -> dict[str, tuple[Any, Any]]:
    fields = fields_of(DeltaTable(uri).schema().fields)
    keys = ("delta.columnMapping.id", "delta.columnMapping.physicalName")
    return {path: (field.metadata.get(keys[0]), field.metadata.get(keys[1])) for path, field in fields}


def _are_apart(uri: str) -> None:
    found = _identities(uri)
    ids = [number for number, _ in found.values()]
    assert len(set(ids)) == len(ids)
    assert max(ids) <= int(DeltaTable(uri).metadata().configuration["delta.columnMapping.maxColumnId"])
    names = [name for _, name in found.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mode", MODES)
def test_columns_of_another_table_get_ids_of_their_own(tmp_path: Path, mode: str) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    write_deltalake(other, pa.table({"x": [1], "y": [2]}), configuration=_mapped(mode))
    write_deltalake(one, pa.table({"a": [1], "b": [2]}), configuration=_mapped(mode))
    DeltaTable(one).alter.add_columns(DeltaTable(other).schema().fields)
    write_deltalake(one, pa.table({"a": [5], "b": [6], "x": [7], "y": [8]}), mode="append")
    found = sorted(_rows(one), key=lambda row: row["a"])
    assert found == [{"a": 1, "b": 2, "x": None, "y": None}, {"a": 5, "b": 6, "x": 7, "y": 8}]
    _are_apart(one)


@pytest.mark.parametrize("mode", MODES)
def test_a_field_with_an_id_that_is_taken_gets_another(tmp_path: Path, mode: str) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"a": [1], "b": [2]}), configuration=_mapped(mode))
    inner = Field("i", "long", metadata={"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "a"})
    nested = StructType([inner])
    DeltaTable(uri).alter.add_columns(
        [
            Field("z", "long", metadata={"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "b"}),
            Field("s", nested),
            Field("l", ArrayType(nested, True)),
        ]
    )
    _are_apart(uri)
    assert _rows(uri) == [{"a": 1, "b": 2, "z": None, "s": None, "l": None}]


@pytest.mark.parametrize("mode", [*MODES, "none"])
def test_feeds_know_columns_after_an_overwrite_of_the_schema(tmp_path: Path, mode: str) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": ["a"], "n": [1]}), configuration=_mapped(mode, **FEED))
    write_deltalake(uri, pa.table({"n": [2], "id": ["b"], "z": [1]}), mode="overwrite", schema_mode="overwrite")
    found = DeltaTable(uri).load_cdf(starting_version=0).read_all().to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["id"], row["n"], row["z"]) for row in found)
    assert told == [(0, "insert", "a", 1, None), (1, "delete", "a", 1, None), (1, "insert", "b", 2, 1)]
    if mode != "none":
        _are_apart(uri)


@pytest.mark.parametrize("mode", [*MODES, "none"])
def test_feeds_know_columns_after_a_table_was_made_anew(tmp_path: Path, mode: str) -> None:
    uri = str(tmp_path)
    configuration = _mapped(mode, **FEED)
    write_deltalake(uri, pa.table({"a": [1], "b": [20]}), configuration=configuration)
    columns = pa.schema([("b", pa.int64()), ("a", pa.int64()), ("c", pa.int64())])
    DeltaTable.create(uri, columns, mode="overwrite", configuration=configuration)
    write_deltalake(uri, pa.table({"a": [3], "b": [40], "c": [5]}), mode="append")
    found = DeltaTable(uri).load_cdf(starting_version=0).read_all().to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["a"], row["b"]) for row in found)
    assert told == [(0, "insert", 1, 20), (1, "delete", 1, 20), (2, "insert", 3, 40)]
    assert _rows(uri) == [{"b": 40, "a": 3, "c": 5}]


def test_a_column_of_a_type_that_does_not_hold_the_old_one_is_another_column(tmp_path: Path) -> None:
    uri = str(tmp_path)
    data = pa.table({"a": [1], "b": pa.array([20], pa.int32()), "c": ["x"], "d": pa.nulls(1)})
    write_deltalake(uri, data, configuration=_mapped("name", **FEED))
    before = _identities(uri)
    data = pa.table({"a": [[1]], "b": [20], "c": [5], "d": ["y"]})
    write_deltalake(uri, data, mode="overwrite", schema_mode="overwrite")
    after = _identities(uri)
    assert (after["b"], after["d"]) == (before["b"], before["d"])
    assert after["a"][0] > 4
    assert after["c"][0] > 4
    _are_apart(uri)
    assert _rows(uri) == [{"a": [1], "b": 20, "c": 5, "d": "y"}]
    found = DeltaTable(uri).load_cdf(starting_version=0).read_all().to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["b"], row["c"], row["d"]) for row in found)
    assert told == [(0, "insert", 20, None, None), (1, "delete", 20, None, None), (1, "insert", 20, 5, "y")]


def test_a_table_that_is_mapped_from_now_on_keeps_its_names(tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"a": [1]}), configuration=FEED)
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    DeltaTable.create(uri, columns, mode="overwrite", configuration=_mapped("name", **FEED))
    write_deltalake(uri, pa.table({"a": [2], "b": [3]}), mode="append")
    found = DeltaTable(uri).load_cdf(starting_version=0).read_all().to_pylist()
    assert sorted((row["_commit_version"], row["a"], row["b"]) for row in found) == [
        (0, 1, None),
        (1, 1, None),
        (2, 2, 3),
    ]
    assert _rows(uri) == [{"a": 2, "b": 3}]


def test_what_a_table_without_mapping_says_of_names_means_nothing(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    write_deltalake(other, pa.table({"x": [1], "y": [2]}), configuration=_mapped("name"))
    DeltaTable.create(one, DeltaTable(other).schema())
    assert set(_identities(one).values()) == {(None, None)}
    write_deltalake(one, pa.table({"x": [7], "y": [8]}), mode="append")
    DeltaTable(one).alter.set_table_properties(_mapped("name"))
    assert _rows(one) == [{"x": 7, "y": 8}]
    # Such a table that is there already, from elsewhere.
    log = Path(one, "_delta_log", "00000000000000000000.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"]):
                field["metadata"] = {
                    "delta.columnMapping.id": 5 + number,
                    "delta.columnMapping.physicalName": f"col-{number}",
                }
            line["metaData"]["schemaString"] = json.dumps(schema)
    Path(one, "_delta_log", "00000000000000000002.json").unlink()
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    DeltaTable(one).alter.set_table_properties(_mapped("name"))
    assert _rows(one) == [{"x": 7, "y": 8}]


@pytest.mark.parametrize("spelled", ["logical", "physical"])
def test_files_of_others_have_partition_values_by_physical_names(tmp_path: Path, spelled: str) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"], configuration=_mapped("name"))
    table = DeltaTable(uri)
    physical = {path: name for path, (_, name) in _identities(uri).items()}
    pq.write_table(pa.table({physical["id"]: [7]}), tmp_path / "x.parquet")
    key = "id" if spelled == "logical" else physical["id"]
    stats = json.dumps({"numRecords": 1, "minValues": {key: 7}, "maxValues": {key: 7}, "nullCount": {key: 0}})
    size = os.path.getsize(tmp_path / "x.parquet")
    partition = {"p" if spelled == "logical" else physical["p"]: "q"}
    action = AddAction("x.parquet", size, partition, 0, True, stats)
    table.create_write_transaction([action], "append", table.schema(), partition_by=["p"])
    found = DeltaTable(uri)
    assert sorted(map(str, found.to_pyarrow_table().to_pylist())) == [
        "{'id': 1, 'p': 'a'}",
        "{'id': 7, 'p': 'q'}",
    ]
    assert found.to_pyarrow_table(filters=[("id", "=", 7)]).num_rows == 1
    assert found.file_uris(file_pruning_predicate=[("id", ">", 7)]) == []
    _rows(uri)
    wider = Schema([*table.schema().fields, Field("n", "long")])
    with pytest.raises(UnsupportedError, match="column mapping"):
        DeltaTable(uri).create_write_transaction([action], "overwrite", wider, partition_by=["p"])


def test_identities_go_with_paths() -> None:
    known = Schema([Field("A", StructType([Field("x", "long", metadata={"delta.columnMapping.id": 3})]))])
    given = Schema([Field("a", StructType([Field("X", "long"), Field("y", "long")])), Field("x", "long")])
    found = {path: field.metadata for path, field in fields_of(identified(given, known).fields)}
    assert found["a.X"] == {"delta.columnMapping.id": 3}
    assert found["a"] == found["a.y"] == found["x"] == {}
    assert identified(Schema([Field("a", PrimitiveType("long"))]), known).fields[0].metadata == {}


@pytest.mark.parametrize("mode", [*MODES, "none"])
@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_columns_of_a_feed_are_no_columns_of_its_table(tmp_path: Path, name: str, mode: str) -> None:
    feed = _mapped(mode, **FEED)
    data = pa.table({"id": [1, 2], name: ["a", "b"]})
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        write_deltalake(str(tmp_path / "new"), data, configuration=feed)
    uri = str(tmp_path / "t")
    write_deltalake(uri, data, configuration=_mapped(mode))
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        DeltaTable(uri).alter.set_table_properties(FEED)
    other = str(tmp_path / "other")
    write_deltalake(other, data.select(["id"]), configuration=feed)
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        DeltaTable(other).alter.add_columns(Field(name, "string"))
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        write_deltalake(other, data, mode="append", schema_mode="merge")
    # A table of another writer that has both.
    write_deltalake(uri, data, mode="append")
    log = Path(uri, "_delta_log", "00000000000000000000.json")
    log.write_text(
        log.read_text().replace('"configuration":{', '"configuration":{"delta.enableChangeDataFeed":"true",')
    )
    log.write_text(log.read_text().replace('"true",}', '"true"}'))
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        DeltaTable(uri).delete("id = 1")
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    assert DeltaTable(uri).delete("id = 1")["num_deleted_rows"] == 2
