"""What a checkpoint holds beside what Spark's have, and beside a plain model that replays the log action by action."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import esker.delta
from esker import exceptions
from esker.delta import DeltaTable, write_deltalake
from tests.delta_logs import CHECKPOINT, PROTOCOL, add, commit, metadata, remove

FOLDER = Path(__file__).parents[2] / "shared" / "fixtures" / "delta"
KINDS = ("txn", "add", "remove", "metaData", "protocol", "domainMetadata")


def _checkpoint(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020}.checkpoint.parquet"


def _plain(value: Any) -> Any:
    """A value without nulls; maps and objects are the same, and what is derived of other fields is left out."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        value = dict(value)
    if isinstance(value, dict):
        derived = ("dataChange", "stats_parsed", "partitionValues_parsed")
        found = {key: _plain(inner) for key, inner in value.items() if key not in derived}
        return {key: inner for key, inner in found.items() if inner not in (None, {}, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _actions(path: Path) -> dict[str, list[str]]:
    """The actions of a checkpoint's file, by kind, each as sorted JSON."""
    table = pq.read_table(path)
    found = {}
    for kind in set(KINDS) & set(table.column_names):
        rows = [_plain(row) for row in table[kind].to_pylist()]
        found[kind] = sorted(json.dumps(row, sort_keys=True, default=str) for row in rows if row)
    return {kind: rows for kind, rows in found.items() if rows}


def _of_spark() -> list[Path]:
    found = FOLDER.glob("*/delta/_delta_log/*.checkpoint.parquet")
    # One has no metadata, on purpose.
    return sorted(path for path in found if "missing-metadata" not in str(path))


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder ../shared/fixtures is not there")
def test_the_columns_are_those_of_spark(tmp_path: Path) -> None:
    (theirs,) = (FOLDER / "checkpoint" / "delta" / "_delta_log").glob("*10.checkpoint.parquet")
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("a")])
    DeltaTable(tmp_path).create_checkpoint()

    def columns(path: Path) -> list[tuple[Any, ...]]:
        schema = pq.ParquetFile(path).schema
        found = [schema.column(i) for i in range(len(schema))]
        return [
            (c.path, c.physical_type, str(c.logical_type), c.max_definition_level, c.max_repetition_level)
            for c in found
            # Spark has this one from release 3.1 on.
            if c.path != "add.clusteringProvider"
        ]

    assert columns(_checkpoint(tmp_path, 0)) == columns(theirs)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder ../shared/fixtures is not there")
@pytest.mark.parametrize("theirs", _of_spark(), ids=lambda path: path.parents[2].name)
def test_every_action_of_a_spark_checkpoint_is_kept(theirs: Path, tmp_path: Path) -> None:
    shutil.copytree(theirs.parents[1], tmp_path / "t")
    version = int(theirs.name[:20])
    table = DeltaTable(tmp_path / "t", version)
    want = _actions(theirs)
    want.pop("remove", None)  # They are older than a week.
    table.create_checkpoint()
    found = _actions(_checkpoint(tmp_path / "t", version))
    assert "remove" not in found
    assert found == want


def _fields(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["tags"] = {"k": draw(st.text(max_size=3)), "n": None}
    if draw(st.booleans()):
        fields["partitionValues"] = {"p": draw(st.sampled_from(["x", "y", None]))}
    if draw(st.booleans()):
        fields["surprise"] = {draw(st.sampled_from("ab")): draw(st.integers(-5, 5)), "deep": {"list": [1.5]}}
    if draw(st.booleans()):
        fields |= {"baseRowId": draw(st.integers(0, 9)), "defaultRowCommitVersion": 3}
    if kind == "add":
        fields["stats"] = json.dumps({"numRecords": draw(st.integers(0, 9)), "minValues": {"id": 1}})
    else:
        fields.pop("tags", None)
        fields["deletionTimestamp"] = int(time.time() * 1000) + draw(st.sampled_from([0, -8 * 86_400_000]))
        if draw(st.booleans()):
            fields |= {"extendedFileMetadata": True, "size": draw(st.integers(0, 9))}
    return fields


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_checkpoint_is_a_plain_model_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("t")
    draw = data.draw
    state: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    versions = draw(st.integers(1, 7))
    for version in range(versions):
        actions: list[Any] = []
        if version == 0 or draw(st.integers(0, 4)) == 0:
            actions.append(
                metadata(name=draw(st.sampled_from(["n", None])), partitionColumns=["p"], more={"x": version})
            )
        if version == 0:
            actions.append(PROTOCOL)
        for name in draw(st.lists(st.sampled_from(["a", "b%20c", "d", "x=1/e", "f"]), unique=True, max_size=4)):
            kind = draw(st.sampled_from(["add", "remove"]))
            fields = data.draw(st.composite(_fields)(kind))
            # One file has several names.
            spelled = f"file:{path}/{name}" if draw(st.booleans()) else name
            actions.append(add(spelled, **fields) if kind == "add" else remove(spelled, **fields))
            state["file", name] = (kind, actions[-1][kind])
        for app in draw(st.lists(st.sampled_from("pq"), unique=True)):
            actions.append({"txn": {"appId": app, "version": version, "note": f"n{version}"}})
            state["txn", app] = ("txn", actions[-1]["txn"])
        if draw(st.booleans()):
            gone = draw(st.booleans())
            actions.append({"domainMetadata": {"domain": "d", "configuration": str(version), "removed": gone}})
            state["domain", "d"] = ("domainMetadata", actions[-1]["domainMetadata"])
        for action in actions:
            for kind in ("metaData", "protocol"):
                if kind in action:
                    state[kind, ""] = (kind, action[kind])
        commit(path, version, draw(st.permutations(actions)))
        if draw(st.booleans()):
            DeltaTable(path).create_checkpoint()
    DeltaTable(path).create_checkpoint()
    week = int(time.time() * 1000) - 7 * 86_400_000
    want: dict[str, list[str]] = {}
    for kind, fields in state.values():
        if kind == "remove" and fields["deletionTimestamp"] < week:
            continue
        if not fields.get("removed"):
            want.setdefault(kind, []).append(json.dumps(_plain(fields), sort_keys=True))
    found = _actions(_checkpoint(path, versions - 1))
    assert found == {kind: sorted(rows) for kind, rows in want.items()}
    hint = json.loads((path / "_delta_log" / "_last_checkpoint").read_text())
    assert hint["size"] == sum(len(rows) for rows in found.values())
    assert hint["numOfAddFiles"] == len(found.get("add", []))
    for log in (path / "_delta_log").glob("*.json"):
        log.unlink()
    counts = []
    libraries: list[Any] = [deltalake, esker.delta]
    for library in libraries:
        listed = pa.table(library.DeltaTable(path).get_add_actions(flatten=True))
        counts.append(sorted(zip(listed["path"].to_pylist(), listed["num_records"].to_pylist(), strict=True)))
    assert counts[0] == counts[1]
    assert len(counts[0]) == len(found.get("add", []))


def test_a_field_of_two_types_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("a", odd=1)])
    commit(tmp_path, 1, [add("b", odd="x")])
    with pytest.raises(exceptions.UnsupportedError, match="'odd' of add has values of different types"):
        DeltaTable(tmp_path).create_checkpoint()
    assert sorted(file.name for file in (tmp_path / "_delta_log").iterdir()) == [f"{n:020}.json" for n in range(2)]


def test_applications_not_heard_of_for_long_are_left_out_where_the_table_says_so(tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    old = {"txn": {"appId": "old", "version": 1, "lastUpdated": now - 3 * 86_400_000}}
    young = {"txn": {"appId": "young", "version": 2, "lastUpdated": now}}
    untold = {"txn": {"appId": "untold", "version": 3}}
    properties = {"delta.setTransactionRetentionDuration": "interval 2 days"}
    commit(tmp_path, 0, [PROTOCOL, metadata(), old, young, untold])
    DeltaTable(tmp_path).create_checkpoint()
    assert len(_actions(_checkpoint(tmp_path, 0))["txn"]) == 3
    commit(tmp_path, 1, [metadata(configuration=properties)])
    DeltaTable(tmp_path).create_checkpoint()
    rows = [json.loads(row)["appId"] for row in _actions(_checkpoint(tmp_path, 1))["txn"]]
    assert sorted(rows) == ["untold", "young"]


def test_statistics_go_from_texts_to_columns_and_back(tmp_path: Path) -> None:
    data = pa.table(
        {
            "i": [1, 2],
            "d": pa.array(["1.50", "-2.25"]).cast(pa.decimal128(10, 2)),
            "t": pa.array([1_123_456, 2_000_001], pa.timestamp("us", "UTC")),
            "day": pa.array([1, 2], pa.date32()),
            "f": [0.5, 1.5],
            "s": [{"x": "a"}, {"x": "b"}],
        }
    )
    struct = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    write_deltalake(tmp_path, data, configuration=struct)
    (text,) = [
        json.loads(line)["add"]["stats"]
        for line in (tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        if line.startswith('{"add"')
    ]
    DeltaTable(tmp_path).create_checkpoint()
    (first,) = [row for row in pq.read_table(_checkpoint(tmp_path, 0))["add"].to_pylist() if row]
    assert "stats" not in first
    assert first["stats_parsed"]["minValues"]["i"] == 1
    DeltaTable(tmp_path).alter.set_table_properties(dict.fromkeys(struct, "true"))
    for log in (tmp_path / "_delta_log").glob("*0.json"):
        log.unlink()
    DeltaTable(tmp_path).create_checkpoint()
    (second,) = [row for row in pq.read_table(_checkpoint(tmp_path, 1))["add"].to_pylist() if row]
    assert json.loads(second["stats"]) == json.loads(text)
    assert second["stats_parsed"] == first["stats_parsed"]


def test_a_large_log_is_cut_into_row_groups(tmp_path: Path) -> None:
    files = [add(f"p={number % 7}/{number}", partitionValues={"p": str(number % 7)}) for number in range(20_000)]
    commit(tmp_path, 0, [PROTOCOL, metadata(partitionColumns=["p"]), *files[:15_000]])
    commit(tmp_path, 1, files[15_000:])
    gone = [remove(file["add"]["path"], deletionTimestamp=int(time.time() * 1000)) for file in files[::3]]
    commit(tmp_path, 2, gone)
    want = {file["add"]["path"] for file in files} - {file["remove"]["path"] for file in gone}
    # From entries, and from the checkpoint before, of which row groups are copied.
    for _ in range(2):
        DeltaTable(tmp_path).create_checkpoint()
        assert pq.ParquetFile(_checkpoint(tmp_path, 2)).num_row_groups > 2
        found = _actions(_checkpoint(tmp_path, 2))
        assert {json.loads(row)["path"] for row in found["add"]} == want
        assert len(found["remove"]) == len(gone)
    DeltaTable(tmp_path).create_checkpoint(parts=2)
    both = [_actions(part) for part in sorted((tmp_path / "_delta_log").glob("*.checkpoint.*.parquet"))]
    assert sorted(both[0]["add"] + both[1]["add"]) == found["add"]
    assert sorted(both[0]["remove"] + both[1]["remove"]) == found["remove"]


@pytest.mark.parametrize("as_struct", ["false", "true"])
def test_row_groups_that_nothing_changed_are_what_they_would_be_if_written_anew(tmp_path: Path, as_struct: str) -> None:
    table, stats = tmp_path / "t", json.dumps({"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 2}})
    properties = [("delta.checkpoint.writeStatsAsStruct", as_struct)]
    state = metadata(configuration=properties, format={"provider": "parquet", "options": []})
    values = [("p", None)]
    files = [add(f"a%20{number}", partitionValues=values, stats=stats, tags=[("k", "v")]) for number in range(5000)]
    (table / "_delta_log").mkdir(parents=True)
    with pq.ParquetWriter(_checkpoint(table, 0), CHECKPOINT) as writer:
        for rows in ([PROTOCOL, state], files):
            columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in CHECKPOINT]
            writer.write_table(pa.Table.from_arrays(columns, schema=CHECKPOINT))
    commit(table, 1, [add("later", stats=stats)])
    shutil.copytree(table, tmp_path / "anew")
    # In several parts nothing is copied.
    DeltaTable(table).create_checkpoint()
    DeltaTable(tmp_path / "anew").create_checkpoint(parts=2)
    parts = [pq.read_table(part) for part in (tmp_path / "anew" / "_delta_log").glob(f"{1:020}.checkpoint.*")]
    found, anew = pq.read_table(_checkpoint(table, 1)), pa.concat_tables(parts)
    assert found.schema == anew.schema
    for name in found.column_names:
        told = [sorted(map(str, (row for row in each[name].to_pylist() if row))) for each in (found, anew)]
        assert told[0] == told[1], name
    assert len(found) == len(anew) == 5003
    assert not any(row["dataChange"] for row in found["add"].to_pylist() if row)
    commit(table, 2, [remove(f"file://{table}/a%207", deletionTimestamp=int(time.time() * 1000))])
    DeltaTable(table).create_checkpoint()
    for log in (table / "_delta_log").glob("*.json"):
        log.unlink()
    names = [uri.rsplit("/", 1)[-1] for uri in deltalake.DeltaTable(table).file_uris()]
    assert len(names) == len(DeltaTable(table).file_uris()) == 5000
    assert not [name for name in names if name in ("a 7", "a%207")]
