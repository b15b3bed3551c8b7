"""Deletes and updates that lose a race: they go on top where the rules see no overlap, else they are computed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker import exceptions
from esker.delta import CommitProperties, DeltaTable, Field, TableFeatures, write_deltalake
from esker.exceptions import CommitConflictError
from tests.delta_rows import rows
from tests.test_delta_delete import entry, read_by_theirs

COPY: dict[str, str | None] = {}
ON: dict[str, str | None] = {"delta.enableDeletionVectors": "true"}
DATA = pa.table({"id": [1, 2, 3, 4], "n": [10, 20, 30, 40], "p": ["a", "a", "b", "b"]})

Change = Callable[[DeltaTable], Any]


def more(*ids: int, p: str = "c") -> pa.Table:
    return pa.table({"id": list(ids), "n": [0] * len(ids), "p": [p] * len(ids)})


def race(path: Path, ours: Change, theirs: Change, **layout: Any) -> tuple[DeltaTable, Any]:
    """Our change from a stale handle, after another has landed: the table, and what ours told."""
    write_deltalake(path, DATA, **layout)
    stale = DeltaTable(path)
    theirs(DeltaTable(path))
    told = ours(stale)
    assert stale.version() == DeltaTable(path).version()
    assert rows(stale.to_pyarrow_table()) == rows(read_by_theirs(path))
    return stale, told


def computed_from(path: Path, version: int) -> int:
    """The version that an entry was computed from."""
    found: int = entry(path, version)[0][1]["readVersion"]
    return found


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.to_pyarrow_table()["id"].to_pylist())


both = pytest.mark.parametrize("properties", [COPY, ON], ids=["copy", "vectors"])


@both
def test_an_append_of_other_rows_leaves_room(tmp_path: Path, properties: dict[str, str | None]) -> None:
    def theirs(table: DeltaTable) -> None:
        deltalake.write_deltalake(tmp_path, more(50, 60), mode="append")

    table, told = race(tmp_path, lambda t: t.delete("id < 3"), theirs, configuration=properties)
    assert (ids(table), told["num_deleted_rows"]) == ([3, 4, 50, 60], 2)
    assert computed_from(tmp_path, 2) == 0


@both
def test_an_append_of_such_rows_is_seen(tmp_path: Path, properties: dict[str, str | None]) -> None:
    def theirs(table: DeltaTable) -> None:
        write_deltalake(tmp_path, more(1, 9), mode="append")

    table, told = race(tmp_path, lambda t: t.delete("id < 3"), theirs, configuration=properties)
    assert (ids(table), told["num_deleted_rows"]) == ([3, 4, 9], 3)
    assert computed_from(tmp_path, 2) == 1
    # Files of the first attempt are gone.
    assert len(list(tmp_path.glob("*.parquet"))) == len({*DeltaTable(tmp_path).file_uris()}) + (
        2 if not properties else 0
    )


def test_with_less_isolation_blind_appends_leave_room(tmp_path: Path) -> None:
    level: dict[str, str | None] = {"delta.isolationLevel": "WriteSerializable"}

    def theirs(table: DeltaTable) -> None:
        write_deltalake(tmp_path, more(1), mode="append")

    table, _ = race(tmp_path, lambda t: t.delete("id < 3"), theirs, configuration=level)
    assert ids(table) == [1, 3, 4]


@both
def test_other_partitions_leave_room(tmp_path: Path, properties: dict[str, str | None]) -> None:
    table, _ = race(
        tmp_path,
        lambda t: t.update({"n": "n + 1"}, predicate="p = 'a' and id = 1"),
        lambda t: t.delete("p = 'b' and id = 3"),
        partition_by="p",
        configuration=properties,
    )
    assert (ids(table), computed_from(tmp_path, 2)) == ([1, 2, 4], 0)


@both
def test_rows_of_one_file_are_changed_by_both(tmp_path: Path, properties: dict[str, str | None]) -> None:
    table, told = race(tmp_path, lambda t: t.delete("id = 2"), lambda t: t.delete("id = 1"), configuration=properties)
    assert (ids(table), told["num_deleted_rows"], computed_from(tmp_path, 2)) == ([3, 4], 1, 1)


@both
def test_both_increments_count(tmp_path: Path, properties: dict[str, str | None]) -> None:
    def add(table: DeltaTable) -> Any:
        return table.update({"n": "n + 1"}, predicate="id >= 3")

    table, _ = race(tmp_path, add, add, configuration=properties)
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [10, 20, 32, 42]


@both
def test_what_others_have_done_is_not_done_twice(tmp_path: Path, properties: dict[str, str | None]) -> None:
    table, told = race(tmp_path, lambda t: t.delete("id = 1"), lambda t: t.delete("id = 1"), configuration=properties)
    assert (table.version(), told["num_deleted_rows"], ids(table)) == (1, 0, [2, 3, 4])
    assert not [path for path in tmp_path.glob("*.parquet") if path.stat().st_mtime_ns == 0]


def test_a_change_that_lost_to_a_compaction_runs_again(tmp_path: Path) -> None:
    write_deltalake(tmp_path, more(7), mode="append")

    def theirs(table: DeltaTable) -> None:
        deltalake.DeltaTable(tmp_path).optimize.compact()

    write_deltalake(tmp_path, DATA, mode="append")
    stale = DeltaTable(tmp_path)
    theirs(stale)
    stale.update({"n": "-1"}, predicate="id = 2")
    assert (ids(stale), computed_from(tmp_path, 3)) == ([1, 2, 3, 4, 7], 2)


@both
@pytest.mark.parametrize(
    "theirs",
    [
        lambda t: t.alter.add_columns(Field("x", "long")),
        lambda t: t.alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
        lambda t: t.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True),
        lambda t: t.alter.set_table_properties({"delta.enableDeletionVectors": "true"}),
        lambda t: t.alter.add_constraint({"c": "id > 0"}),
    ],
    ids=["column", "feed", "feature", "vectors", "constraint"],
)
def test_a_table_that_others_altered_is_changed_by_its_new_rules(
    tmp_path: Path, theirs: Change, properties: dict[str, str | None]
) -> None:
    table, told = race(tmp_path, lambda t: t.update({"n": "-1"}, predicate="id = 2"), theirs, configuration=properties)
    assert told["num_updated_rows"] == 1
    assert sorted(table.to_pyarrow_table()["n"].to_pylist()) == [-1, 10, 30, 40]
    configuration = table.metadata().configuration
    if configuration.get("delta.enableChangeDataFeed") == "true":
        assert pa.table(table.load_cdf(2, 2)).num_rows == 2
    assert (told["num_removed_files"] == 0) == ("delta.enableDeletionVectors" in configuration)


def test_a_table_that_became_append_only_refuses(tmp_path: Path) -> None:
    with pytest.raises(exceptions.InvalidArgumentError, match="append-only"):
        race(
            tmp_path,
            lambda t: t.delete("id = 1"),
            lambda t: t.alter.set_table_properties({"delta.appendOnly": "true"}),
        )
    assert DeltaTable(tmp_path).version() == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_without_retries_a_lost_race_is_an_error(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 1")
    with pytest.raises(CommitConflictError, match="another writer committed"):
        stale.delete("id = 2", commit_properties=CommitProperties(max_commit_retries=0))
    assert ids(DeltaTable(tmp_path)) == [2, 3, 4]


def test_a_delete_of_all_sees_what_was_appended(tmp_path: Path) -> None:
    def theirs(table: DeltaTable) -> None:
        write_deltalake(tmp_path, more(9), mode="append")

    table, told = race(tmp_path, lambda t: t.delete(), theirs)
    assert (ids(table), told["num_deleted_rows"]) == ([], 5)


def test_times_that_partitions_are_by_rule_nothing_out(tmp_path: Path) -> None:
    times = pa.array([0, 10**12], pa.timestamp("us", "UTC"))
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "t": times}), partition_by="t")
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [1, 5], "t": times}), mode="append")
    stale.delete("id = 1")
    assert ids(stale) == [2, 5]
