"""`source-wins` over Delta tables that both sides changed: a RESTORE that keeps what may never go back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, Field, PrimitiveType, write_deltalake
from esker.repo import Branch
from esker.repo.errors import TableConflictError
from tests.delta_logs import add, commit, remove
from tests.table_branches import Lake, rows_of
from tests.test_delta_vectors import FEATURES, inline, stored


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, "delta")
    made.write(made.main, 1)
    made.write(made.main, 2)
    return made


def actions(lake: Lake, version: int, ref: str = "main") -> list[tuple[str, Any]]:
    data = lake.repo.ref(ref).object(f"{lake.path}/_delta_log/{version:020}.json").reader().read()
    return [next(iter(json.loads(line).items())) for line in data.splitlines()]


def by_hand(lake: Lake, branch: Branch, version: int, made: Callable[[Path], list[Any]]) -> None:
    """Commits an entry of the log as another writer would have written it."""
    lake.by_peer(branch, lambda place: commit(Path(place), version, made(Path(place))))


def adds(lake: Lake, ref: str) -> dict[str, Any]:
    """The files of a version with all that deltalake reads of them."""
    with tempfile.TemporaryDirectory() as folder:
        lake.repo.ref(ref).export(folder)
        table = pa.table(deltalake.DeltaTable(f"{folder}/{lake.path}").get_add_actions(flatten=True))
        return {row["path"]: row for row in table.drop_columns(["modification_time"]).to_pylist()}


def test_files_come_back_with_partitions_statistics_and_tags(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "delta")
    day = pa.table({"id": [1, 2, 3], "day": ["a", None, "ö/ä"]})
    lake.change(lake.main, lambda uri: write_deltalake(uri, day, partition_by=["day"]))
    f = lake.fork()
    more = pa.table({"id": [4, 5], "day": ["a", "z y"]})
    lake.change(f, lambda uri: write_deltalake(uri, more, mode="append"))
    lake.change(lake.main, lambda uri: write_deltalake(uri, day, mode="overwrite"))
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (2, [1, 2, 3, 4, 5])
    assert adds(lake, "main") == adds(lake, "f")
    info = next(fields for name, fields in actions(lake, 2) if name == "commitInfo")
    assert (info["operation"], info["isBlindAppend"]) == ("RESTORE", False)
    assert info["operationParameters"]["origin"] == f.get_commit().id
    assert info["operationMetrics"]["numRemovedFiles"] == "3"
    assert info["operationMetrics"]["numRestoredFiles"] == "5"


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_files_whose_entries_are_cleaned_up_come_out_of_the_checkpoint(tmp_path: Path, policy: str) -> None:
    lake = Lake(tmp_path, "delta")
    lake.write(lake.main, 1, configuration={"delta.checkpointPolicy": policy})
    lake.write(lake.main, 2)
    lake.change(lake.main, lambda uri: DeltaTable(uri).create_checkpoint())
    lake.main.delete_objects([f"{lake.path}/_delta_log/{n:020}.json" for n in (0, 1)])
    lake.main.commit("clean up")
    lake.write(lake.main, 3)
    f = lake.fork()
    lake.write(f, 4)
    lake.write(lake.main, 9, mode="overwrite")
    f.merge_into("main", strategy="source-wins")
    assert lake.read_here(lake.repo.ref("main")) == (4, [1, 2, 3, 4])
    if policy == "classic":
        assert lake.read() == (4, [1, 2, 3, 4])
        assert adds(lake, "main") == adds(lake, "f")


def test_a_checkpoint_is_written_where_it_is_due_and_no_entry_goes(lake: Lake) -> None:
    lake.change(lake.main, lambda uri: DeltaTable(uri).alter.set_table_properties(SHORT))
    f = lake.fork()
    lake.write(f, 3)
    for number in (4, 5):
        lake.write(lake.main, number)
    before = lake.history()
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (5, [1, 2, 3])
    assert f"_delta_log/{5:020}.checkpoint.parquet" in lake.paths()
    assert before.items() <= lake.history().items()


SHORT = {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 0 seconds"}


def vectors(lake: Lake, branch: Branch, rows: list[int], kind: str) -> None:
    """Deletes rows of the only file by a vector, as Spark does."""

    def made(place: Path) -> list[Any]:
        table = DeltaTable(str(place))
        before = next(
            action["add"]
            for n in range(table.version(), -1, -1)
            for line in (place / "_delta_log" / f"{n:020}.json").read_text().splitlines()
            if "add" in (action := json.loads(line))
        )
        vector = inline(rows) if kind == "inline" else stored(place, rows)
        gone = {key: before[key] for key in ("deletionVector", "partitionValues", "size") if key in before}
        return [remove(before["path"], **gone), {"add": {**before, **vector}}]

    by_hand(lake, branch, DeltaTable(branch.store_uri(lake.path)).version() + 1, made)


@pytest.mark.parametrize("kind", ["inline", "stored"])
def test_two_vectors_of_one_file_do_not_unite(tmp_path: Path, kind: str) -> None:
    lake = Lake(tmp_path, "delta")
    lake.write(lake.main, 1, 2, 3, 4)
    by_hand(lake, lake.main, 1, lambda place: [FEATURES])
    vectors(lake, lake.main, [3], kind)
    f = lake.fork()
    vectors(lake, f, [2, 3], kind)
    vectors(lake, lake.main, [0, 3], kind)
    assert lake.read_here(f)[1] == [1, 2]
    assert lake.read_here(lake.main)[1] == [2, 3]
    with pytest.raises(TableConflictError, match="diverged|both sides"):
        f.merge_into("main")
    f.merge_into("main", strategy="source-wins")
    assert lake.read_here(lake.main) == (4, [1, 2])
    told = dict(actions(lake, 4))
    assert told["remove"]["path"] == told["add"]["path"]
    assert told["remove"]["deletionVector"] != told["add"]["deletionVector"]


def test_columns_properties_and_features_become_the_source_s(lake: Lake) -> None:
    f = lake.fork()
    wide = rows_of(3).append_column("w", pa.array([1.5]))
    lake.change(f, lambda uri: write_deltalake(uri, wide, mode="append", schema_mode="merge"))
    lake.change(f, lambda uri: DeltaTable(uri).alter.add_constraint({"small": "id < 100"}))
    lake.change(
        lake.main, lambda uri: DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    )
    id = DeltaTable(lake.main.store_uri(lake.path)).metadata().id
    f.merge_into("main", strategy="source-wins")
    assert lake.read() == (3, [1, 2, 3])
    table = DeltaTable(lake.main.store_uri(lake.path))
    assert table.metadata().id == id
    assert table.schema().to_arrow().names == ["id", "v", "w"]
    assert table.metadata().configuration == {"delta.constraints.small": "id < 100"}
    # The feature of the change feed is not taken away again, and that of constraints is there.
    assert table.protocol().min_writer_version >= 4
    with pytest.raises(Exception, match="small"):
        lake.change(lake.main, lambda uri: write_deltalake(uri, rows_of(1000), mode="append", schema_mode="merge"))


def test_ids_of_columns_go_on_from_the_higher_one(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "delta")
    lake.write(lake.main, 1, configuration={"delta.columnMapping.mode": "name"})
    f = lake.fork()

    def widened(branch: Branch, id: int, *names: str) -> None:
        wide = rows_of(id)
        for name in names:
            wide = wide.append_column(name, pa.array([1]))
        lake.change(branch, lambda uri: write_deltalake(uri, wide, mode="append", schema_mode="merge"))

    widened(f, 2, "a")
    widened(lake.main, 3, "b", "c", "d")
    f.merge_into("main", strategy="source-wins")
    table = DeltaTable(lake.main.store_uri(lake.path))
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "5"


@pytest.mark.parametrize("side", ["main", "f"])
def test_times_of_commits_stay_on_and_go_on(tmp_path: Path, side: str) -> None:
    lake = Lake(tmp_path, "delta")
    lake.write(lake.main, 1)
    f = lake.fork()
    on = {"delta.enableInCommitTimestamps": "true"}
    lake.write(f, 2)
    lake.write(lake.main, 3)
    lake.write(lake.main, 4)
    lake.change(lake.repo.branch(side), lambda uri: DeltaTable(uri).alter.set_table_properties(on))
    before = DeltaTable(lake.main.store_uri(lake.path)).version()
    f.merge_into("main", strategy="source-wins")
    table = DeltaTable(lake.main.store_uri(lake.path))
    assert table.version() == before + 1
    configuration = table.metadata().configuration
    assert configuration["delta.enableInCommitTimestamps"] == "true"
    since = before if side == "main" else before + 1
    assert configuration["delta.inCommitTimestampEnablementVersion"] == str(since)
    assert "inCommitTimestamp" in actions(lake, before + 1)[0][1]
    assert lake.read()[1] == [1, 2]


def test_domains_become_the_source_s(lake: Lake) -> None:
    feature = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "domainMetadata"]}

    def domain(name: str, text: str) -> dict[str, Any]:
        return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}

    by_hand(lake, lake.main, 2, lambda _: [{"protocol": feature}, domain("same", "1"), domain("both", "1")])
    f = lake.fork()
    by_hand(lake, f, 3, lambda _: [domain("both", "2"), domain("theirs", "1")])
    by_hand(lake, lake.main, 3, lambda _: [domain("both", "3"), domain("ours", "1")])
    f.merge_into("main", strategy="source-wins")
    told = [fields for name, fields in actions(lake, 4) if name == "domainMetadata"]
    assert {(one["domain"], one["configuration"], one["removed"]) for one in told} == {
        ("both", "2", False),
        ("theirs", "1", False),
        ("ours", "1", True),
    }
    assert lake.read() == (4, [1, 2])


def test_an_append_only_table_loses_no_rows(lake: Lake) -> None:
    lake.change(lake.main, lambda uri: DeltaTable(uri).alter.set_table_properties({"delta.appendOnly": "true"}))
    f = lake.fork()
    lake.write(f, 3)
    lake.write(lake.main, 4)
    with pytest.raises(TableConflictError, match="append-only") as caught:
        f.merge_into("main", strategy="source-wins")
    assert [one.kind for one in caught.value.tables] == ["unsupported"]
    assert not f.merge_plan("main", strategy="source-wins").merges
    f.merge_into("main", strategy="dest-wins")
    assert lake.read() == (3, [1, 2, 4])


def test_files_that_lie_elsewhere_are_refused(lake: Lake, tmp_path: Path) -> None:
    f = lake.fork()
    by_hand(lake, f, 2, lambda _: [add(f"file://{tmp_path}/elsewhere.parquet")])
    lake.write(lake.main, 4)
    with pytest.raises(TableConflictError, match="elsewhere") as caught:
        f.merge_into("main", strategy="source-wins")
    assert [one.kind for one in caught.value.tables] == ["unsupported"]


@pytest.mark.parametrize("mode", ["id", "name"])
def test_a_column_does_not_get_the_id_that_another_has_here(mode: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, "delta")
    mapped = {"delta.columnMapping.mode": mode, "delta.enableChangeDataFeed": "true"}
    lake.write(lake.main, 1, configuration=mapped)
    f = lake.fork()
    for branch, column, id in ((lake.main, "ours", 2), (f, "theirs", 3)):
        field = Field(column, PrimitiveType("long"))
        lake.change(branch, lambda uri, field=field: DeltaTable(uri).alter.add_columns([field]))
        more = rows_of(id).append_column(column, pa.array([id * 100], pa.int64()))
        lake.change(branch, lambda uri, more=more: write_deltalake(uri, more, mode="append"))
    if mode == "id":
        with pytest.raises(TableConflictError, match="3 is that of 'ours' here and of 'theirs' on the other branch"):
            f.merge_into("main", strategy="source-wins")
        return
    f.merge_into("main", strategy="source-wins")
    feed = pa.table(DeltaTable(lake.main.store_uri(lake.path)).load_cdf(starting_version=0))
    assert set(zip(*feed.select(["id", "theirs"]).to_pydict().values(), strict=True)) == {
        (1, None),
        (2, None),
        (3, 300),
    }
