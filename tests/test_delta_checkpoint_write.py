"""Checkpoints as they are written, and the end of log files: deltalake reads on from both."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable, PostCommitHookProperties, write_deltalake
from esker.delta.definition.durations import milliseconds
from tests.delta_logs import PROTOCOL, add, checkpoint, commit, metadata, remove


def _log(path: Path, pattern: str) -> list[str]:
    return sorted(found.name for found in (path / "_delta_log").glob(pattern))


def _fill(path: Path, count: int, **configuration: str) -> None:
    for number in range(count):
        data = pa.table({"id": [number], "p": [f"p{number % 2}"], "s": [{"x": number}]})
        mode: Any = "overwrite" if number == 4 else "append"
        write_deltalake(path, data, mode=mode, partition_by=["p"], configuration=configuration if number == 0 else None)


def _only_checkpoints(path: Path) -> None:
    """Takes the entries away that a checkpoint stands for."""
    newest = max(int(name[:20]) for name in _log(path, "*.checkpoint*"))
    for name in _log(path, "*.json"):
        if int(name[:20]) <= newest and ".checkpoint." not in name:
            (path / "_delta_log" / name).unlink()


SPARK_COLUMNS = ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]
SPARK_ADD = ["path", "partitionValues", "size", "modificationTime", "dataChange", "tags", "deletionVector", "baseRowId"]
SPARK_REMOVE = ["path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size"]


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
        {"delta.checkpointInterval": "3"},
    ],
)
def test_deltalake_reads_on_from_a_checkpoint(tmp_path: Path, configuration: dict[str, str]) -> None:
    _fill(tmp_path, 13, **configuration)
    interval = int(configuration.get("delta.checkpointInterval", 10))
    want = [f"{version:020}.checkpoint.parquet" for version in range(interval, 13, interval)]
    assert _log(tmp_path, "*.checkpoint*") == want
    before = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    _only_checkpoints(tmp_path)
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist() == before.to_pylist()
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="s.x = 11 AND p = 'p1'")["id"].to_pylist() == [11]
    hint = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
    file = tmp_path / "_delta_log" / want[-1]
    table = pq.read_table(file)
    assert (hint["version"], hint["size"], hint["sizeInBytes"]) == (int(want[-1][:20]), len(table), file.stat().st_size)
    assert "parts" not in hint
    assert table.schema.names == SPARK_COLUMNS
    names = [field.name for field in table.schema.field("add").type]
    assert names[: len(SPARK_ADD)] == SPARK_ADD
    assert ("stats" in names) == (configuration.get("delta.checkpoint.writeStatsAsJson") != "false")
    struct = "delta.checkpoint.writeStatsAsStruct" in configuration
    assert ("stats_parsed" in names, "partitionValues_parsed" in names) == (struct, struct)
    assert [field.name for field in table.schema.field("remove").type][:6] == SPARK_REMOVE
    assert {str(table.schema.field("protocol").type.field(i).type) for i in range(2)} == {"int32"}
    if struct:
        parsed = [row["stats_parsed"] for row in table.column("add").to_pylist() if row]
        assert all(row["minValues"]["s"]["x"] == row["minValues"]["id"] for row in parsed)


@pytest.mark.parametrize("mode", ["name", "id", "none"])
def test_typed_partition_values_have_the_names_of_files_as_in_deltalake(tmp_path: Path, mode: str) -> None:
    found: list[Any] = []
    settings = {"delta.columnMapping.mode": mode, "delta.checkpoint.writeStatsAsStruct": "true"}
    write_deltalake(tmp_path, pa.table({"x": [1, 2], "p": [7, None]}), partition_by="p", configuration=settings)
    for library in (deltalake, None):
        DeltaTable(tmp_path).create_checkpoint() if library is None else deltalake.DeltaTable(
            tmp_path
        ).create_checkpoint()
        (name,) = _log(tmp_path, "*.checkpoint.parquet")
        adds = pq.read_table(tmp_path / "_delta_log" / name).column("add").drop_null().to_pylist()
        found.append(sorted((add["path"], add["partitionValues"], add["partitionValues_parsed"]) for add in adds))
        (tmp_path / "_delta_log" / name).unlink()
        (tmp_path / "_delta_log" / "_last_checkpoint").unlink()
    (theirs, ours) = found
    assert ours == theirs
    assert sorted(str(value) for _, _, parsed in ours for value in parsed.values()) == ["7", "None"]


def test_a_v2_checkpoint_has_its_files_in_a_sidecar(tmp_path: Path) -> None:
    _fill(tmp_path, 11, **{"delta.checkpointPolicy": "v2"})
    assert DeltaTable(tmp_path).protocol().reader_features == ["v2Checkpoint"]
    (name,) = _log(tmp_path, "*.checkpoint*")
    assert len(list((tmp_path / "_delta_log" / "_sidecars").iterdir())) == 1
    top = pq.read_table(tmp_path / "_delta_log" / name)
    assert [row for row in top["checkpointMetadata"].to_pylist() if row] == [{"version": 10, "tags": None}]
    want = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    _only_checkpoints(tmp_path)
    assert DeltaTable(tmp_path).to_pyarrow_table().sort_by("id") == want
    _fill_more(tmp_path, 10)
    assert len(_log(tmp_path, "*.checkpoint*")) == 2
    _only_checkpoints(tmp_path)
    assert DeltaTable(tmp_path).count() == len(want) + 10
    with pytest.raises(exceptions.UnsupportedError, match="parts"):
        DeltaTable(tmp_path).create_checkpoint(parts=2)


def _fill_more(path: Path, count: int) -> None:
    for number in range(count):
        data = pa.table({"id": [100 + number], "p": ["p0"], "s": [{"x": 0}]})
        write_deltalake(path, data, mode="append")


def test_several_parts_on_request(tmp_path: Path) -> None:
    _fill(tmp_path, 9)
    DeltaTable(tmp_path).create_checkpoint(parts=3)
    assert len(_log(tmp_path, "*.checkpoint.*.parquet")) == 3
    assert json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())["parts"] == 3
    want = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    _only_checkpoints(tmp_path)
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist() == want
    _fill_more(tmp_path, 2)
    DeltaTable(tmp_path).create_checkpoint()
    _only_checkpoints(tmp_path)
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == len(want) + 2


def test_expired_tombstones_are_left_out(tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    week = 7 * 86_400_000
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("a"), add("b"), add("c")])
    commit(tmp_path, 1, [remove("a", deletionTimestamp=now - week - 60_000), remove("b", deletionTimestamp=now)])
    DeltaTable(tmp_path).create_checkpoint()
    table = pq.read_table(tmp_path / "_delta_log" / f"{1:020}.checkpoint.parquet")
    assert [row["path"] for row in table["remove"].to_pylist() if row] == ["b"]
    assert [row["path"] for row in table["add"].to_pylist() if row] == ["c"]


def test_no_field_is_dropped_that_is_not_understood(tmp_path: Path) -> None:
    base = add("a", surprise={"x": 1}, clusteringProvider="liquid", baseRowId=7)
    commit(tmp_path, 2, [PROTOCOL, metadata(), base, add("b")])
    lines = (tmp_path / "_delta_log" / f"{2:020}.json").read_text().splitlines()
    rows = [{"configuration": None, "partitionValues": None, **json.loads(line)} for line in lines]
    rows = [json.loads(json.dumps(row).replace(": {}", ": null")) for row in rows]
    names = ["protocol", "metaData", "add"]
    columns = {name: pa.array([row.get(name) for row in rows]) for name in names}
    pq.write_table(pa.table(columns), tmp_path / "_delta_log" / f"{2:020}.checkpoint.parquet")
    commit(tmp_path, 3, [add("c", other="y", tags={"t": "u"}), {"txn": {"appId": "j", "version": 4, "more": 5}}])
    DeltaTable(tmp_path).create_checkpoint()
    table = pq.read_table(tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet")
    found = {row["path"]: row for row in table["add"].to_pylist() if row}
    assert found["a"]["surprise"] == {"x": 1}
    assert (found["a"]["clusteringProvider"], found["a"]["baseRowId"]) == ("liquid", 7)
    assert (found["c"]["other"], found["c"]["tags"]) == ("y", [("t", "u")])
    assert next(row for row in table["txn"].to_pylist() if row)["more"] == 5
    DeltaTable(tmp_path).create_checkpoint()
    assert pq.read_table(tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet") == table


def test_spellings_of_one_path_and_vectors_are_reconciled(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 3, "cardinality": 1}
    checkpoint(tmp_path, f"{0:020}.checkpoint.parquet", [PROTOCOL, metadata(), add("a%20b"), add("c"), add("d")])
    now = int(time.time() * 1000)
    gone = f"file:{tmp_path}/a%20b"
    both = [remove("c", deletionTimestamp=now), add("c", deletionVector=vector)]
    commit(tmp_path, 1, [remove(gone, deletionTimestamp=now), *both])
    DeltaTable(tmp_path).create_checkpoint()
    table = pq.read_table(tmp_path / "_delta_log" / f"{1:020}.checkpoint.parquet")
    adds = {row["path"]: row["deletionVector"] for row in table["add"].to_pylist() if row}
    assert adds.keys() == {"c", "d"}
    assert adds["c"]["offset"] == 1
    assert sorted(row["path"] for row in table["remove"].to_pylist() if row) == sorted(["c", gone])


def test_bounds_that_are_not_exact_are_none_in_a_checkpoint(tmp_path: Path) -> None:
    settings = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    write_deltalake(
        tmp_path, pa.table({"id": [1, 2, 3]}), configuration={**settings, "delta.enableDeletionVectors": "true"}
    )
    DeltaTable(tmp_path).delete("id = 3")
    DeltaTable(tmp_path).create_checkpoint()
    (name,) = _log(tmp_path, "*.checkpoint.parquet")
    (add_,) = filter(None, pq.read_table(tmp_path / "_delta_log" / name).column("add").to_pylist())
    assert add_["stats_parsed"]["maxValues"] == {"id": 3}
    assert add_["stats_parsed"]["tightBounds"] is False
    # And in a checkpoint of texts that is made of it.
    _only_checkpoints(tmp_path)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.checkpoint.writeStatsAsJson": "true"})
    DeltaTable(tmp_path).create_checkpoint()
    (add_,) = filter(
        None, pq.read_table(tmp_path / "_delta_log" / f"{2:020}.checkpoint.parquet").column("add").to_pylist()
    )
    assert json.loads(add_["stats"])["tightBounds"] is False
    assert deltalake.DeltaTable(tmp_path).get_add_actions().num_rows == 1


def test_a_newer_hint_stays(tmp_path: Path) -> None:
    _fill(tmp_path, 13)
    DeltaTable(tmp_path, 5).create_checkpoint()
    assert json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())["version"] == 10
    assert DeltaTable(tmp_path, 5).count() == 2


def _age(path: Path, names: list[str], days: float) -> None:
    then = time.time() - days * 86_400
    for name in names:
        os.utime(path / "_delta_log" / name, (then, then))


def test_old_log_files_go_up_to_a_checkpoint(tmp_path: Path) -> None:
    _fill(tmp_path, 25)
    rows = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    table = DeltaTable(tmp_path)
    table.cleanup_metadata()
    assert len(_log(tmp_path, "*.json")) == 25, "nothing is old"
    # Version 17 is the oldest that is kept: it needs the checkpoint of version 10.
    _age(tmp_path, [name for name in _log(tmp_path, "0*") if int(name[:20]) < 17], 31)
    table.cleanup_metadata()
    assert [int(name[:20]) for name in _log(tmp_path, "*.json")] == list(range(10, 25))
    assert _log(tmp_path, "*.checkpoint*")[0].startswith(f"{10:020}")
    assert DeltaTable(tmp_path).to_pyarrow_table().sort_by("id") == rows
    assert deltalake.DeltaTable(tmp_path, version=12).to_pyarrow_table().num_rows == DeltaTable(tmp_path, 12).count()
    with pytest.raises(exceptions.NotFoundError):
        DeltaTable(tmp_path, 9)


def test_log_compaction_files_go_with_the_entries_that_they_stand_for(tmp_path: Path) -> None:
    _fill(tmp_path, 25)
    peer = deltalake.DeltaTable(tmp_path)
    for first, last in [(0, 4), (5, 12), (10, 14), (11, 16), (18, 20)]:
        peer.compact_logs(first, last)
    # One that was made just now of old entries holds none of them back.
    _age(
        tmp_path,
        [name for name in _log(tmp_path, "0*") if int(name[:20]) < 17 and not name.startswith(f"{5:020}.0")],
        31,
    )
    DeltaTable(tmp_path).cleanup_metadata()
    starts = [int(name[:20]) for name in _log(tmp_path, "*.compacted.json")]
    assert starts == [5, 11, 18], "of what the checkpoint of version 10 stands for, the young one is left"
    _age(tmp_path, _log(tmp_path, f"{5:020}.0*"), 31)
    DeltaTable(tmp_path).cleanup_metadata()
    assert [int(name[:20]) for name in _log(tmp_path, "*.compacted.json")] == [11, 18]
    entries = [int(name[:20]) for name in _log(tmp_path, "*.json") if "compacted" not in name]
    assert entries == list(range(10, 25))
    for version in range(10, 25):
        assert (
            deltalake.DeltaTable(tmp_path, version).to_pyarrow_table().num_rows == DeltaTable(tmp_path, version).count()
        )


def test_a_handle_cleans_up_by_what_the_table_says_now(tmp_path: Path) -> None:
    _fill(tmp_path, 15, **{"delta.logRetentionDuration": "interval 1 day"})
    table = DeltaTable(tmp_path)
    _age(tmp_path, _log(tmp_path, "0*"), 3)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    table.cleanup_metadata()
    assert len(_log(tmp_path, "*.json")) == 16
    DeltaTable(tmp_path).alter.set_table_properties({"delta.logRetentionDuration": "interval 2 days"})
    table.cleanup_metadata()
    assert _log(tmp_path, "*.json")[0] == f"{10:020}.json"


@pytest.mark.parametrize("name", ["checkpointProtection", "ofTheFuture"])
def test_the_log_of_a_table_that_is_not_written_is_not_cleaned_up(tmp_path: Path, name: str) -> None:
    _fill(tmp_path, 12)
    table = DeltaTable(tmp_path)
    settings = {"delta.requireCheckpointProtectionBeforeVersion": "12"}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [name]}}
    told = metadata(configuration=settings, partitionColumns=["p"])
    told["metaData"]["schemaString"] = table.schema().to_json()
    commit(tmp_path, 12, [protocol, told])
    _age(tmp_path, _log(tmp_path, "0*"), 40)
    for opened in (table, DeltaTable(tmp_path)):
        with pytest.raises(exceptions.UnsupportedError, match=name):
            opened.cleanup_metadata()
    assert len(_log(tmp_path, "*.json")) == 13


def test_a_commit_cleans_up_where_the_table_says_so(tmp_path: Path) -> None:
    _fill(tmp_path, 20, **{"delta.logRetentionDuration": "interval 1 day"})
    _age(tmp_path, [name for name in _log(tmp_path, "0*") if int(name[:20]) < 15], 2)
    off = PostCommitHookProperties(cleanup_expired_logs=False)
    data = pa.table({"id": [99], "p": ["p0"], "s": [{"x": 0}]})
    table = DeltaTable(tmp_path, 5)
    write_deltalake(tmp_path, data, mode="append", post_commithook_properties=off)
    assert len(_log(tmp_path, "*.json")) == 21
    for _ in range(10):
        write_deltalake(tmp_path, data, mode="append")
    assert min(int(name[:20]) for name in _log(tmp_path, "*.json")) == 10
    # What happened since then cannot be known any more: no append over it, and no entry where one was.
    with pytest.raises(exceptions.CommitConflictError, match="no more"):
        write_deltalake(table, data, mode="append")
    assert DeltaTable(tmp_path).version() == 30


def test_a_commit_by_a_machine_whose_clock_is_ahead_takes_no_young_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store, whose clock dates the files, says how old they are."""
    _fill(tmp_path, 10)
    later = time.time_ns() + 60 * 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    write_deltalake(tmp_path, pa.table({"id": [99], "p": ["p0"], "s": [{"x": 0}]}), mode="append")
    assert _log(tmp_path, "*.checkpoint.parquet") == [f"{10:020}.checkpoint.parquet"]
    assert len(_log(tmp_path, "*.json")) == 11
    assert DeltaTable(tmp_path, 0).count() == 1


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("interval 1 week", 604_800_000),
        ("INTERVAL 2 days 3 hours", 183_600_000),
        ("30 minutes", 1_800_000),
        ("interval 0 days", 0),
    ],
)
def test_durations(text: str, want: int) -> None:
    assert milliseconds(text) == want


@pytest.mark.parametrize("text", ["", "interval", "1 month", "interval 3", "day 1", "1 day x"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(exceptions.InvalidArgumentError, match="duration"):
        milliseconds(text)


def test_the_entry_that_is_missing_behind_a_checkpoint_is_the_one_that_is_named(tmp_path: Path) -> None:
    _fill(tmp_path, 4)
    DeltaTable(tmp_path, version=1).create_checkpoint()
    for version in (0, 1, 3):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    write_deltalake(tmp_path / "other", pa.table({"id": [1]}))
    (tmp_path / "other" / "_delta_log" / f"{0:020}.json").rename(tmp_path / "_delta_log" / f"{4:020}.json")
    with pytest.raises(exceptions.CorruptFileError, match="3.json: expected the commit of version 3, found none"):
        DeltaTable(tmp_path)
    assert DeltaTable(tmp_path, version=2).count() == 3
