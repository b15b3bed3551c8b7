"""Reverts and cherry-picks of commits that touched Delta tables: what only that format has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, Field, PostCommitHookProperties, PrimitiveType, write_deltalake
from esker.delta.log.entries import vector_id
from esker.repo import Branch, Commit, Repository
from esker.repo.errors import NoChangesError, TableConflictError
from tests.branch_tables import append, check_rows, delete, entries, ids_at, rows
from tests.test_delta_vectors import inline, stored

PLACE = "lake/t"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


@pytest.fixture
def main(repo: Repository) -> Branch:
    return repo.branch("main")


def opened(repo: Repository, ref: str = "main") -> DeltaTable:
    return DeltaTable(repo.ref(ref).store_uri(PLACE))


def written(branch: Branch, data: pa.Table, **options: Any) -> Commit:
    with branch.transact("write") as tx:
        write_deltalake(tx.store_uri(PLACE), data, mode="append", **options)
    return branch.get_commit()


def refused(repo: Repository, kind: str, act: Callable[[str], object], commit: str) -> None:
    before = repo.ref("main").get_commit()
    with pytest.raises(TableConflictError) as caught:
        act(commit)
    assert [(found.table, found.kind) for found in caught.value.tables] == [(PLACE, kind)]
    assert repo.ref("main").get_commit() == before


def logged(repo: Repository, version: int, ref: str = "main") -> list[dict[str, Any]]:
    path = f"{PLACE}/_delta_log/{version:020}.json"
    return [json.loads(line) for line in repo.ref(ref).object(path).reader().read().splitlines()]


def entry(branch: Branch, version: int, actions: list[dict[str, Any]], files: dict[str, bytes] | None = None) -> Commit:
    """Commits an entry as another writer would write it."""
    with branch.transact(f"entry {version}") as tx:
        for name, data in (files or {}).items():
            tx.object(f"{PLACE}/{name}").upload(data)
        lines = "\n".join(json.dumps(action) for action in actions)
        tx.object(f"{PLACE}/_delta_log/{version:020}.json").upload(lines + "\n")
    return branch.get_commit()


def test_actions_come_along_as_their_writer_wrote_them(repo: Repository, main: Branch, tmp_path: Path) -> None:
    written(main, pa.table({"id": [1], "p": ["a b"]}), partition_by="p")
    dev = repo.branch("dev").create("main")
    picked = written(dev, pa.table({"id": [2, 3], "p": ["c/d", None]}))
    written(main, pa.table({"id": [9], "p": ["e"]}))
    main.cherry_pick(picked.id)

    def adds(ref: str, version: int) -> list[dict[str, Any]]:
        return [line["add"] for line in logged(repo, version, ref) if "add" in line]

    assert adds("main", 2) == adds("dev", 1)
    assert len(adds("main", 2)) == 2
    (info,) = (line["commitInfo"] for line in logged(repo, 2) if "commitInfo" in line)
    assert (info["operation"], info["operationParameters"]["mode"]) == ("WRITE", "Append")
    assert info["esker.cherry-picked"] == picked.id
    assert info["isBlindAppend"] is True
    repo.ref("main").export(str(tmp_path / "out"))
    peer = deltalake.DeltaTable(str(tmp_path / "out" / PLACE))
    found = peer.to_pyarrow_table(columns=["id", "p"]).sort_by("id").to_pylist()
    assert [(row["id"], row["p"]) for row in found] == [(1, "a b"), (2, "c/d"), (3, None), (9, "e")]
    assert [one["operation"] for one in peer.history()] == ["WRITE"] * 3
    main.revert("main")
    assert sorted(opened(repo).to_pyarrow_table()["id"].to_pylist()) == [1, 9]
    removed = [line["remove"] for line in logged(repo, 3) if "remove" in line]
    assert {one["path"] for one in removed} == {one["path"] for one in adds("dev", 1)}
    assert all(one["partitionValues"].keys() == {"p"} for one in removed)


_STRUCTS = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}


@pytest.mark.parametrize("policy", [{}, {"delta.checkpointPolicy": "v2"}, _STRUCTS])
def test_files_come_back_whose_entries_a_clean_up_took(
    policy: dict[str, str], repo: Repository, main: Branch, tmp_path: Path
) -> None:
    written(main, rows(1, 2), configuration={**policy, "delta.checkpointInterval": "2"})
    append(main, "delta", 3)
    append(main, "delta", 4)
    with main.transact("log clean-up") as tx:
        for number in (0, 1):
            tx.object(entries(repo, "main", "delta")[number].path).delete()
    gone = delete(main, "delta", 1, 2)
    append(main, "delta", 5)
    main.revert(gone.id)
    assert ids_at(repo, "main", "delta") == [1, 2, 3, 4, 5]
    if policy.get("delta.checkpointPolicy") != "v2":
        check_rows(repo, "delta", tmp_path / "out", 1, 2, 3, 4, 5)
    (added,) = (line["add"] for line in logged(repo, 5) if "add" in line)
    assert json.loads(added["stats"])["numRecords"] == 2


def test_a_checkpoint_rides_with_the_commit_and_no_entry_goes(repo: Repository, main: Branch, tmp_path: Path) -> None:
    written(
        main,
        rows(1),
        configuration={"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 0 seconds"},
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
    )
    commit = append(main, "delta", 2, post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    append(main, "delta", 3, post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    main.revert(commit.id)
    assert sorted(entries(repo, "main", "delta")) == [0, 1, 2, 3]
    assert repo.ref("main").object(f"{PLACE}/_delta_log/{3:020}.checkpoint.parquet").exists()
    check_rows(repo, "delta", tmp_path / "out", 1, 3)


def _with_vectors(main: Branch) -> None:
    written(main, rows(1, 2, 3, 4), configuration={"delta.enableDeletionVectors": "true"})


def _marked(repo: Repository, branch: Branch, version: int, vector: dict[str, Any], **files: bytes) -> Commit:
    """Deletes rows of the one file by another vector."""
    found = [line["add"] for number in range(version) for line in logged(repo, number, branch.id) if "add" in line]
    path = found[0]["path"]
    old = next(one for one in reversed(found) if one["path"] == path)
    removed = {"path": old["path"], "deletionTimestamp": 0, "dataChange": True, "size": old["size"]}
    if "deletionVector" in old:
        removed["deletionVector"] = old["deletionVector"]
    actions = [{"commitInfo": {"operation": "DELETE"}}, {"remove": removed}, {"add": {**old, **vector}}]
    return entry(branch, version, actions, files)


def test_rows_that_vectors_delete_come_back_and_are_picked(repo: Repository, main: Branch, tmp_path: Path) -> None:
    _with_vectors(main)
    dev = repo.branch("dev").create("main")
    vector = stored(tmp_path, [1])
    (name,) = (path.name for path in tmp_path.glob("deletion_vector_*"))
    gone = _marked(repo, dev, 1, vector, **{name: (tmp_path / name).read_bytes()})
    more = _marked(repo, dev, 2, inline([1, 2]))
    assert ids_at(repo, "dev", "delta") == [1, 4]
    append(main, "delta", 9)
    refused(repo, "changed", main.cherry_pick, more.id)
    main.cherry_pick(gone.id)
    assert ids_at(repo, "main", "delta") == [1, 3, 4, 9]
    assert (
        main.object(f"{PLACE}/{name}").stat().physical_address == dev.object(f"{PLACE}/{name}").stat().physical_address
    )
    main.cherry_pick(more.id)
    assert ids_at(repo, "main", "delta") == [1, 4, 9]
    append(main, "delta", 10)
    main.revert("main~1")
    assert ids_at(repo, "main", "delta") == [1, 3, 4, 9, 10]
    main.revert("main~3")
    assert ids_at(repo, "main", "delta") == [1, 2, 3, 4, 9, 10]
    dev.revert(more.id)
    assert ids_at(repo, "dev", "delta") == [1, 3, 4]
    assert list(repo.fsck()) == []


def test_a_restore_where_nothing_came_after_is_told_as_one(repo: Repository, main: Branch, tmp_path: Path) -> None:
    append(main, "delta", 1, 2)
    commit = delete(main, "delta", 1)
    main.revert(commit.id)
    check_rows(repo, "delta", tmp_path / "out", 1, 2)
    last = deltalake.DeltaTable(str(tmp_path / "out" / PLACE)).history(1)[0]
    assert (last["operation"], last["operationParameters"]["version"]) == ("RESTORE", 0)
    assert last["esker.reverted"] == commit.id


def test_rows_that_only_move_are_told_as_such(repo: Repository, main: Branch, tmp_path: Path) -> None:
    for n in (1, 2):
        append(main, "delta", n)
    repo.ref("main").export(str(tmp_path / "there"))
    deltalake.DeltaTable(str(tmp_path / "there" / PLACE)).optimize.compact()
    here = tmp_path / "there" / PLACE
    new = [path for path in here.glob("*.parquet") if not main.object(f"{PLACE}/{path.name}").exists()]
    lines = [json.loads(line) for line in (here / "_delta_log" / f"{2:020}.json").read_text().splitlines()]
    compaction = entry(main, 2, lines, {path.name: path.read_bytes() for path in new})
    append(main, "delta", 3)
    refused(repo, "changed", main.revert, "main~2")
    main.revert(compaction.id)
    check_rows(repo, "delta", tmp_path / "out", 1, 2, 3)
    moved = [part for line in logged(repo, 4) for name, part in line.items() if name in ("add", "remove")]
    assert len(moved) == 3
    assert not any(part["dataChange"] for part in moved)
    main.revert("main~3")
    assert ids_at(repo, "main", "delta") == [1, 3]


@pytest.mark.parametrize("appends", [True, False])
def test_a_change_feed_tells_of_appends_and_removals(appends: bool, repo: Repository, main: Branch) -> None:
    written(main, rows(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    commit = append(main, "delta", 3) if appends else delete(main, "delta", 1)
    append(main, "delta", 4)
    if not appends:
        refused(repo, "unsupported", main.revert, commit.id)
        return
    main.revert(commit.id)
    feed = opened(repo).load_cdf(starting_version=3).read_all()
    assert pa.table(feed).select(["id", "_change_type"]).to_pylist() == [{"id": 3, "_change_type": "delete"}]
    main.cherry_pick(commit.id)
    feed = opened(repo).load_cdf(starting_version=4).read_all()
    assert pa.table(feed).select(["id", "_change_type"]).to_pylist() == [{"id": 3, "_change_type": "insert"}]


def test_an_append_only_table_takes_appends_alone(repo: Repository, main: Branch) -> None:
    written(main, rows(1), configuration={"delta.appendOnly": "true"})
    dev = repo.branch("dev").create("main")
    picked = append(dev, "delta", 2)
    append(main, "delta", 3)
    main.cherry_pick(picked.id)
    assert ids_at(repo, "main", "delta") == [1, 2, 3]
    refused(repo, "unsupported", main.revert, "main")


def test_properties_are_reverted_where_nothing_came_after(repo: Repository, main: Branch) -> None:
    append(main, "delta", 1)
    with main.transact("properties") as tx:
        DeltaTable(tx.store_uri(PLACE)).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    commit = main.get_commit()
    main.revert(commit.id)
    assert "delta.enableDeletionVectors" not in opened(repo).metadata().configuration
    # A protocol is never lowered.
    assert opened(repo).protocol().min_reader_version == 3
    append(main, "delta", 2)
    dev = repo.branch("dev").create(commit.id)
    append(dev, "delta", 5)
    refused(repo, "changed", main.cherry_pick, "dev")
    refused(repo, "unsupported", main.cherry_pick, commit.id)


def test_ids_of_columns_do_not_go_back(repo: Repository, main: Branch) -> None:
    uri = main.store_uri(PLACE)
    mapped = {"delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true"}
    write_deltalake(uri, rows(1), configuration=mapped)

    def widened(id: int, column: str) -> Commit:
        with main.transact("a column, and a row that has it") as tx:
            field = Field(column, PrimitiveType("long"))
            DeltaTable(tx.store_uri(PLACE)).alter.add_columns([field])
            more = rows(id).append_column(column, pa.array([id * 100], pa.int64()))
            write_deltalake(tx.store_uri(PLACE), more, mode="append")
        return main.get_commit()

    before = widened(2, "gone")
    main.revert(before.id)
    reverted = main.get_commit()
    main.revert(reverted.id)
    assert sorted(ids_at(repo, "main", "delta")) == [1, 2]
    main.revert(main.get_commit().id)
    widened(3, "new")
    feed = pa.table(DeltaTable(uri).load_cdf(starting_version=0)).to_pydict()
    assert set(zip(feed["id"], feed["new"], strict=True)) == {(1, None), (2, None), (3, 300)}


def test_a_table_that_is_not_written_is_refused(repo: Repository, main: Branch) -> None:
    append(main, "delta", 1)
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["rowTracking", "domainMetadata", "appendOnly", "invariants"],
    }
    entry(main, 1, [{"protocol": protocol}])
    dev = repo.branch("dev").create("main")
    (added,) = (line["add"] for line in logged(repo, 0) if "add" in line)
    removed = {"path": added["path"], "deletionTimestamp": 0, "dataChange": True}
    commit = entry(dev, 2, [{"remove": removed}])
    entry(main, 2, [{"commitInfo": {"operation": "NOTHING"}}])
    refused(repo, "unsupported", main.cherry_pick, commit.id)


def test_a_commit_that_says_nothing_of_rows_changes_nothing(repo: Repository, main: Branch) -> None:
    append(main, "delta", 1)
    commit = entry(main, 1, [{"txn": {"appId": "job", "version": 1}}])
    append(main, "delta", 2)
    with pytest.raises(NoChangesError):
        main.revert(commit.id)


def test_a_checkpoint_alone_is_nothing_to_pick(repo: Repository, main: Branch) -> None:
    append(main, "delta", 1)
    dev = repo.branch("dev").create("main")
    with dev.transact("checkpoint") as tx:
        DeltaTable(tx.store_uri(PLACE)).create_checkpoint()
    append(main, "delta", 2)
    with pytest.raises(NoChangesError):
        main.cherry_pick("dev")
    with pytest.raises(NoChangesError):
        dev.revert("dev")


def test_a_table_made_out_of_files_becomes_files_again(repo: Repository, main: Branch, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows(1), tmp_path / "f.parquet")
    main.object(f"{PLACE}/f.parquet").upload((tmp_path / "f.parquet").read_bytes())
    files = main.commit("files")
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    said = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
    }
    add = {"path": "f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    entry(main, 0, [{"protocol": protocol}, {"metaData": said}, {"add": add}])
    assert opened(repo).to_pyarrow_table()["id"].to_pylist() == [1]
    main.revert("main")
    assert main.get_commit().meta_range_id == files.get_commit().meta_range_id


def test_absolute_paths_are_refused(repo: Repository, main: Branch) -> None:
    append(main, "delta", 1)
    dev = repo.branch("dev").create("main")
    add = {"path": "/far/f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    commit = entry(dev, 1, [{"add": add}])
    append(main, "delta", 2)
    refused(repo, "unsupported", main.cherry_pick, commit.id)


def test_a_vector_at_no_offset_is_the_same_as_at_the_first() -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "offset": None}
    assert vector_id(vector) == vector_id({"storageType": "i", "pathOrInlineDv": "x"}) != vector_id(None)
