"""Rows that move to other files (`dataChange` is false) beside appends, deletes, updates, merges and each other.

What deltalake does wrong there is a test of its own, so that nobody relies on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.commit.orphans import StagedFiles
from esker.delta import CommitProperties, DeltaTable, Field, write_deltalake
from esker.delta.change.changed_table import ChangedTable
from esker.delta.change.files import ChangedFiles
from esker.delta.log.commit import CommitRequest, DeltaCommit, LogEntry
from esker.delta.log.conflict import ReadSet
from esker.exceptions import CommitConflictError, EskerError
from tests.delta_rows import rows
from tests.simulation.delta_verbs import compact
from tests.test_delta_delete import entry, read_by_theirs

ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
layouts = pytest.mark.parametrize("layout", [{}, ON], ids=["copy", "vectors"])
Change = Callable[[Path], Any]


def ids(path: Path) -> list[int]:
    found = sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
    assert sorted(read_by_theirs(path)["id"].to_pylist()) == found
    return found


def prepare(path: Path, layout: dict[str, str | None]) -> None:
    """Three files of ten rows."""
    for first in (0, 10, 20):
        data = pa.table({"id": range(first, first + 10), "n": [0] * 10})
        write_deltalake(path, data, mode="append", configuration=layout)


def append(path: Path) -> None:
    write_deltalake(path, pa.table({"id": [100], "n": [0]}), mode="append")


def upsert(path: Path | DeltaTable) -> dict[str, Any]:
    table = path if isinstance(path, DeltaTable) else DeltaTable(path)
    merger = table.merge(pa.table({"id": [5, 200], "n": [7, 7]}), "t.id = s.id", "s", "t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


@layouts
@pytest.mark.parametrize(
    "theirs",
    [append, lambda path: deltalake.write_deltalake(path, pa.table({"id": [100], "n": [0]}), mode="append")],
    ids=["ours", "theirs"],
)
def test_a_move_of_rows_goes_on_top_of_appends(tmp_path: Path, layout: dict[str, str | None], theirs: Change) -> None:
    prepare(tmp_path, layout)
    stale = DeltaTable(tmp_path)
    theirs(tmp_path)
    assert compact(stale)
    assert ids(tmp_path) == [*range(30), 100]
    info = entry(tmp_path, 4)[0][1]
    assert (info["readVersion"], info["isolationLevel"]) == (2, "SnapshotIsolation")
    assert len(DeltaTable(tmp_path).file_uris()) == 2


OVERLAPS: dict[str, Change] = {
    "delete": lambda path: DeltaTable(path).delete("id = 3"),
    "delete of a file": lambda path: DeltaTable(path).delete("id < 10"),
    "update": lambda path: DeltaTable(path).update({"n": "1"}, predicate="id = 3"),
    "merge": upsert,
    "overwrite": lambda path: write_deltalake(path, pa.table({"id": [1], "n": [1]}), mode="overwrite"),
    "move": lambda path: compact(DeltaTable(path)),
    "their move": lambda path: deltalake.DeltaTable(path).optimize.compact(),
    "their delete": lambda path: deltalake.DeltaTable(path).delete("id = 3"),
    "column": lambda path: DeltaTable(path).alter.add_columns(Field("x", "long")),
    "property": lambda path: DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "false"}),
}


@layouts
@pytest.mark.parametrize("theirs", OVERLAPS)
def test_a_move_of_rows_that_others_changed_is_refused(
    tmp_path: Path, layout: dict[str, str | None], theirs: str
) -> None:
    prepare(tmp_path, layout)
    stale = DeltaTable(tmp_path)
    OVERLAPS[theirs](tmp_path)
    found, version = rows(DeltaTable(tmp_path).to_pyarrow_table()), DeltaTable(tmp_path).version()
    with pytest.raises(CommitConflictError) as told:
        compact(stale)
    assert told.value.facts["retryable"] is True
    assert DeltaTable(tmp_path).version() == version
    assert rows(DeltaTable(tmp_path).to_pyarrow_table()) == found
    # Again, on the newest version.
    compact(DeltaTable(tmp_path))
    assert rows(DeltaTable(tmp_path).to_pyarrow_table()) == found == rows(read_by_theirs(tmp_path))


@layouts
@pytest.mark.parametrize(
    "move", [lambda path: compact(DeltaTable(path)), OVERLAPS["their move"]], ids=["ours", "theirs"]
)
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_each_verb_that_lost_to_a_move_of_rows_runs_again(
    tmp_path: Path, layout: dict[str, str | None], move: Change, level: str
) -> None:
    prepare(tmp_path, {**layout, "delta.isolationLevel": level})
    stale = [DeltaTable(tmp_path) for _ in range(3)]
    move(tmp_path)
    assert stale[0].delete("id in (3, 14)")["num_deleted_rows"] == 2
    assert stale[1].update({"n": "n + 1"}, predicate="id >= 28")["num_updated_rows"] == 2
    assert upsert(stale[2])["num_target_rows_updated"] == 1
    assert ids(tmp_path) == [*(n for n in range(30) if n not in (3, 14)), 200]
    table = DeltaTable(tmp_path).to_pyarrow_table()
    assert {row["id"]: row["n"] for row in table.to_pylist() if row["n"]} == {5: 7, 28: 1, 29: 1, 200: 7}


def test_without_retries_a_verb_that_lost_to_a_move_of_rows_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, {})
    stale = DeltaTable(tmp_path)
    compact(DeltaTable(tmp_path))
    with pytest.raises(CommitConflictError, match="files were removed that ours had read"):
        stale.delete("id = 3", commit_properties=CommitProperties(max_commit_retries=0))


def test_two_stale_moves_of_deltalake_double_every_row(tmp_path: Path) -> None:
    prepare(tmp_path, {})
    tables = [deltalake.DeltaTable(tmp_path) for _ in range(2)]
    for table in tables:
        table.optimize.compact()
    assert len(DeltaTable(tmp_path).to_pyarrow_table()) == 60, "theirs refuses it now: say so in the docs"


def test_a_full_vacuum_of_deltalake_takes_live_vectors_and_ours_says_which(tmp_path: Path) -> None:
    data = pa.table({"id": range(5000), "n": [0] * 5000})
    write_deltalake(tmp_path, data, configuration=ON)
    DeltaTable(tmp_path).delete("id % 3 = 0")
    (vector,) = tmp_path.glob("*.bin")
    deltalake.DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not vector.exists(), "theirs keeps it now: say so in the docs"
    version = DeltaTable(tmp_path).version()
    for change in (
        lambda t: t.to_pyarrow_table(),
        lambda t: t.delete("id = 1"),
        lambda t: t.update({"n": "1"}, predicate="id = 1"),
        upsert,
        compact,
    ):
        # No row that was deleted comes back.
        with pytest.raises(EskerError, match=vector.name):
            change(DeltaTable(tmp_path))
    assert DeltaTable(tmp_path).version() == version
    # What needs no vector goes on.
    assert DeltaTable(tmp_path).delete()["num_deleted_rows"] == 3333
    assert ids(tmp_path) == []


TABLE: list[tuple[str, str, bool, bool]] = [
    # Level, what others did, whether it is blind, whether our delete of such rows runs again.
    ("Serializable", "blind append", True, True),
    ("Serializable", "append", False, True),
    ("WriteSerializable", "blind append", True, False),
    ("WriteSerializable", "append", False, True),
]


@layouts
@pytest.mark.parametrize(("level", "what", "is_blind", "again"), TABLE)
@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_the_isolation_level_says_which_appends_are_seen(
    tmp_path: Path, layout: dict[str, str | None], level: str, what: str, is_blind: bool, again: bool, verb: str
) -> None:
    prepare(tmp_path, {**layout, "delta.isolationLevel": level})
    stale = DeltaTable(tmp_path)
    data = pa.table({"id": [5], "n": [50]})
    if is_blind:
        write_deltalake(tmp_path, data, mode="append")
    else:
        # Without a word on whether it read anything.
        deltalake.write_deltalake(tmp_path, data, mode="append")
    seen = 2 if again else 1
    if verb == "delete":
        assert stale.delete("id = 5")["num_deleted_rows"] == seen
    elif verb == "update":
        assert stale.update({"n": "9"}, predicate="id = 5")["num_updated_rows"] == seen
    else:
        assert upsert(stale)["num_target_rows_updated"] == seen
    assert entry(tmp_path, 4)[0][1]["readVersion"] == (3 if again else 2)
    assert entry(tmp_path, 4)[0][1]["isolationLevel"] == level


def test_a_change_of_rows_and_columns_is_serializable_at_any_level(tmp_path: Path) -> None:
    prepare(tmp_path, {"delta.isolationLevel": "WriteSerializable"})
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [5], "n": [50]}), mode="append")
    merger = stale.merge(pa.table({"id": [5], "more": ["x"]}), "t.id = s.id", "s", "t", merge_schema=True)
    assert merger.when_matched_update_all().execute()["num_target_rows_updated"] == 2


def test_a_move_of_rows_that_changes_the_metadata_sees_appends(tmp_path: Path) -> None:
    prepare(tmp_path, {})
    stale = DeltaTable(tmp_path)
    target = stale._write_target()
    append(tmp_path)
    changed = ChangedTable(target, None)
    with StagedFiles() as staged, ChangedFiles(changed, staged, None, keeps_changes=False) as files:
        for file in changed.candidates():
            files.remove(file)
        actions = [(name, {**fields, "dataChange": False}) for name, fields in files.close()]
        metadata = json.loads((tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()[2])["metaData"]
        actions.append(("metaData", metadata))
        commit = DeltaCommit(target, LogEntry("X", {}, actions, ReadSet(whole_table=True)), CommitRequest())
        with pytest.raises(CommitConflictError, match="files were added that ours would have read"):
            commit.run(staged)
