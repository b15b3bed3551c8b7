"""Deletion vectors that deletes write: their bytes, their actions, and what deltalake reads of them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.commit.orphans import StagedFiles
from esker.delta import DeltaTable, write_deltalake
from esker.delta.log.commit import DeltaCommit, LogEntry
from tests.delta_rows import rows
from tests.test_delta_delete import entry, read_by_theirs
from tests.test_delta_vectors import MAGIC, z85

ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
MANY = 200_000


def actions(path: Path, version: int, name: str) -> list[dict[str, Any]]:
    """The actions of one kind in a log entry."""
    return [fields for kind, fields in entry(path, version) if kind == name]


def check_stored(path: Path, vector: dict[str, Any]) -> None:
    """The frame of a vector in a file, by the protocol."""
    (file,) = [file for file in path.glob("deletion_vector_*.bin") if _names(file, vector["pathOrInlineDv"])]
    data = file.read_bytes()
    at, size = vector["offset"], vector["sizeInBytes"]
    body = data[at + 4 : at + 4 + size]
    assert data[0] == 1
    assert struct.unpack(">I", data[at : at + 4]) == (size,)
    assert struct.unpack("<I", body[:4]) == (MAGIC,)
    assert struct.unpack(">I", data[at + 4 + size : at + 8 + size]) == (zlib.crc32(body),)


def _names(file: Path, text: str) -> bool:
    return z85(bytes.fromhex(file.stem.removeprefix("deletion_vector_").replace("-", ""))) == text


def test_a_small_vector_is_in_the_log_and_its_file_stays(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration=ON)
    before = DeltaTable(tmp_path).file_uris()
    table = DeltaTable(tmp_path)
    metrics = table.delete("id in (3, 5)")
    assert (metrics["num_added_files"], metrics["num_removed_files"], metrics["num_copied_rows"]) == (0, 0, 0)
    assert (metrics["num_deleted_rows"], metrics["num_deletion_vectors_added"]) == (2, 1)
    assert table.file_uris() == before
    (removed,), (added,) = actions(tmp_path, 1, "remove"), actions(tmp_path, 1, "add")
    assert "deletionVector" not in removed
    assert (added["deletionVector"]["storageType"], added["deletionVector"]["cardinality"]) == ("i", 2)
    statistics = json.loads(added["stats"])
    assert (statistics["numRecords"], statistics["tightBounds"]) == (10, False)
    assert statistics["maxValues"] == {"id": 9}
    assert table.count() == 8
    assert rows(read_by_theirs(tmp_path)) == rows(table.to_pyarrow_table())
    assert not list(tmp_path.glob("*.bin"))


def test_a_vector_over_a_vector_has_the_rows_of_both_and_the_old_one_is_named(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration=ON)
    table = DeltaTable(tmp_path)
    table.delete("id = 3")
    table.delete("id < 5")
    first, second = actions(tmp_path, 1, "add")[0], actions(tmp_path, 2, "add")[0]
    assert actions(tmp_path, 2, "remove")[0]["deletionVector"] == first["deletionVector"]
    assert second["deletionVector"]["cardinality"] == 5
    assert table.to_pyarrow_table()["id"].to_pylist() == [5, 6, 7, 8, 9]
    # The rest of it: the file goes.
    table.delete("id >= 5")
    assert actions(tmp_path, 3, "remove")[0]["deletionVector"] == second["deletionVector"]
    assert actions(tmp_path, 3, "add") == []
    assert table.file_uris() == []
    assert read_by_theirs(tmp_path).num_rows == table.count() == 0


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large")
    data = pa.table({"id": range(MANY), "k": [n % 7 for n in range(MANY)], "p": [n % 2 for n in range(MANY)]})
    write_deltalake(path, data, configuration={**ON, "delta.enableChangeDataFeed": "true"}, partition_by="p")
    DeltaTable(path).delete("id % 3 = 0 or id between 70000 and 140000")
    return path


def test_large_vectors_share_a_file_that_reads_as_the_protocol_has_it(large: Path) -> None:
    vectors = [added["deletionVector"] for added in actions(large, 1, "add")]
    assert [vector["storageType"] for vector in vectors] == ["u", "u"]
    assert len({vector["pathOrInlineDv"] for vector in vectors}) == 1
    for vector in vectors:
        check_stored(large, vector)
    expected = [n for n in range(MANY) if n % 3 and not 70_000 <= n <= 140_000]
    assert sorted(DeltaTable(large).to_pyarrow_table()["id"].to_pylist()) == expected
    assert sorted(read_by_theirs(large)["id"].to_pylist()) == expected


def test_the_feed_has_the_rows_that_vectors_deleted(large: Path) -> None:
    feed = pa.table(DeltaTable(large).load_cdf(1, 1))
    assert set(feed["_change_type"].to_pylist()) == {"delete"}
    assert sorted(feed["id"].to_pylist()) == [n for n in range(MANY) if not n % 3 or 70_000 <= n <= 140_000]
    theirs = pa.table(deltalake.DeltaTable(large).load_cdf(1, 1))
    assert sorted(theirs["id"].to_pylist()) == sorted(feed["id"].to_pylist())


def test_a_checkpoint_keeps_vectors_and_deltalake_rewrites_their_files(tmp_path: Path) -> None:
    data = pa.table({"id": range(1000), "k": [n % 7 for n in range(1000)]})
    write_deltalake(tmp_path, data, configuration=ON)
    DeltaTable(tmp_path).delete("id % 2 = 0")
    DeltaTable(tmp_path).create_checkpoint()
    expected = [n for n in range(1000) if n % 2]
    assert sorted(read_by_theirs(tmp_path)["id"].to_pylist()) == expected
    # The statistics come from the checkpoint now.
    DeltaTable(tmp_path).delete("k = 1")
    assert json.loads(actions(tmp_path, 2, "add")[0]["stats"])["numRecords"] == 1000
    expected = [n for n in expected if n % 7 != 1]
    assert sorted(read_by_theirs(tmp_path)["id"].to_pylist()) == expected
    deltalake.DeltaTable(tmp_path).delete("k = 2")
    expected = [n for n in expected if n % 7 != 2]
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == expected
    DeltaTable(tmp_path).delete("k = 3")
    deltalake.DeltaTable(tmp_path).optimize.compact()
    expected = [n for n in expected if n % 7 != 3]
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == expected


def test_a_file_without_statistics_gets_the_number_of_its_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration=ON)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    DeltaTable(tmp_path).delete("id = 1")
    assert json.loads(actions(tmp_path, 1, "add")[0]["stats"]) == {"numRecords": 10, "tightBounds": False}
    assert DeltaTable(tmp_path).count() == read_by_theirs(tmp_path).num_rows == 9


def test_decimals_of_statistics_stay_exact(tmp_path: Path) -> None:
    kind = pa.decimal128(38, 10)
    data = pa.table({"d": pa.array(["12345678901234567890.1234567891", "1.5"]).cast(kind), "id": [1, 2]})
    write_deltalake(tmp_path, data, configuration=ON)
    DeltaTable(tmp_path).delete("id = 2")
    assert "12345678901234567890.1234567891" in actions(tmp_path, 1, "add")[0]["stats"]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gone=st.lists(st.sets(st.integers(0, 59)), min_size=1, max_size=4), partitioned=st.booleans())
def test_any_rows_may_go_one_delete_after_another(
    tmp_path_factory: pytest.TempPathFactory, gone: list[set[int]], partitioned: bool
) -> None:
    path = tmp_path_factory.mktemp("t")
    data = pa.table({"id": range(60), "p": [n // 20 for n in range(60)]})
    write_deltalake(path, data, configuration=ON, partition_by=["p"] if partitioned else None)
    left = set(range(60))
    table = DeltaTable(path)
    for part in gone:
        listed = ", ".join(map(str, sorted(part))) or "-1"
        found = table.delete(f"id in ({listed})")
        assert found["num_deleted_rows"] == len(left & part)
        left -= part
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == sorted(left)
        assert table.count() == len(left)
    assert sorted(read_by_theirs(path)["id"].to_pylist()) == sorted(left)


@pytest.mark.parametrize("change", ["no feature", "off again"])
def test_without_the_feature_or_the_property_files_are_rewritten(tmp_path: Path, change: str) -> None:
    data = pa.table({"id": range(10)})
    write_deltalake(tmp_path, data, configuration=ON if change == "off again" else None)
    table = DeltaTable(tmp_path)
    if change == "off again":
        table.delete("id = 1")
        table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    else:
        # A property that an old writer kept, of which its protocol knows nothing.
        log = tmp_path / "_delta_log" / f"{0:020}.json"
        log.write_text(
            log.read_text().replace('"configuration":{}', '"configuration":{"delta.enableDeletionVectors":"true"}')
        )
        table = DeltaTable(tmp_path)
        assert table.metadata().configuration == ON
    found = table.delete("id < 3")
    assert found["num_copied_rows"] == 7
    assert "deletionVector" not in actions(tmp_path, table.version(), "add")[0]
    assert ("deletionVector" in actions(tmp_path, table.version(), "remove")[0]) == (change == "off again")
    assert sorted(read_by_theirs(tmp_path)["id"].to_pylist()) == list(range(3, 10))


def test_a_commit_in_doubt_is_known_by_the_file_of_its_vectors(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(3000)}), configuration=ON)
    target = DeltaTable(tmp_path)._write_target()
    DeltaTable(tmp_path).delete("id % 3 = 0")
    again = DeltaCommit(target, LogEntry("DELETE", {}, entry(tmp_path, 1)[1:]))
    again._staged = StagedFiles()
    assert again.is_part_of(1)
    assert not again.is_part_of(0)
    # A vector in the log is no proof: another delete of the same rows writes the same.
    DeltaTable(tmp_path).delete("id = 1")
    write_deltalake(tmp_path / "small", pa.table({"id": range(10)}), configuration=ON)
    target = DeltaTable(tmp_path / "small")._write_target()
    DeltaTable(tmp_path / "small").delete("id = 1")
    again = DeltaCommit(target, LogEntry("DELETE", {}, entry(tmp_path / "small", 1)[1:]))
    again._staged = StagedFiles()
    assert not again.is_part_of(1)


@pytest.mark.parametrize("checkpoint", [None, "one", "v2"])
def test_tags_of_a_file_stay_when_it_gets_a_vector(tmp_path: Path, checkpoint: str | None) -> None:
    policy = {"delta.checkpointPolicy": "v2"} if checkpoint == "v2" else {}
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration={**ON, **policy})
    write_deltalake(tmp_path, pa.table({"id": range(10)}), mode="append")
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    tags = {"ZCUBE_ID": "7", 'odd "key"': None}
    (added,) = [line["add"] for line in lines if "add" in line]
    added["tags"] = tags
    log.write_text("\n".join(map(json.dumps, lines)))
    table = DeltaTable(tmp_path)
    if checkpoint is not None:
        table.create_checkpoint()
        table = DeltaTable(tmp_path)
    table.delete("id = 3")
    table.update({"id": "id + 100"}, predicate="id = 5")
    for version in (2, 3):
        kept = {add["path"]: add.get("tags") for add in actions(tmp_path, version, "add") if "deletionVector" in add}
        assert len(kept) == 2
        assert kept.pop(added["path"]) == tags
        assert list(kept.values()) == [None]
    assert rows(read_by_theirs(tmp_path)) == rows(table.to_pyarrow_table())


def test_tags_that_were_taken_away_stay_away(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(10)}), configuration=ON)
    log = tmp_path / "_delta_log"
    lines = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    (added,) = [line["add"] for line in lines if "add" in line]
    again = {"commitInfo": {"operation": "TAG"}}, {"add": {**added, "dataChange": False}}
    added["tags"] = {"old": "1"}
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, again)))
    DeltaTable(tmp_path).delete("id = 3")
    assert "tags" not in actions(tmp_path, 2, "add")[0]
