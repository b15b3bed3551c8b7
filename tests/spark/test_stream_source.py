"""The source of `readStream`: where it starts, how much a batch reads, what a version that is no append means."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import esker
import esker.delta
from esker.exceptions import CommitConflictError, InvalidArgumentError, NotFoundError, SchemaMismatchError
from esker.spark import EskerSource
from tests.spark.jobs import read
from tests.spark.streams import Query, ids

FORMATS = ["lance", "delta"]


class Table:
    """A table of one of the formats, which the peers write, too."""

    def __init__(self, kind: str, uri: str) -> None:
        self.kind, self.uri = kind, uri
        self.first = 1 if kind == "lance" else 0
        self.make(ids(0, 3))

    def make(self, rows: pa.Table) -> None:
        if self.kind == "lance":
            lance.write_dataset(rows, self.uri, enable_stable_row_ids=True)
        else:
            deltalake.write_deltalake(self.uri, rows)

    def append(self, rows: pa.Table) -> None:
        if self.kind == "lance":
            lance.write_dataset(rows, self.uri, mode="append")
        else:
            deltalake.write_deltalake(self.uri, rows, mode="append")

    def overwrite(self, rows: pa.Table) -> None:
        if self.kind == "lance":
            lance.write_dataset(rows, self.uri, mode="overwrite")
        else:
            deltalake.write_deltalake(self.uri, rows, mode="overwrite")

    def delete(self, where: str) -> None:
        if self.kind == "lance":
            lance.dataset(self.uri).delete(where)
        else:
            deltalake.DeltaTable(self.uri).delete(where)

    def update(self, where: str) -> None:
        if self.kind == "lance":
            lance.dataset(self.uri).update({"s": "'new'"}, where=where)
        else:
            deltalake.DeltaTable(self.uri).update(updates={"s": "'new'"}, predicate=where)

    def compact(self) -> None:
        if self.kind == "lance":
            lance.dataset(self.uri).optimize.compact_files()
        else:
            deltalake.DeltaTable(self.uri).optimize.compact()

    def version(self) -> int:
        if self.kind == "lance":
            return int(lance.dataset(self.uri).version)
        return int(deltalake.DeltaTable(self.uri).version())


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(request.param, str(tmp_path / "t"))


def _ids(rows: list[dict[str, Any]] | None) -> list[int]:
    return sorted(row["id"] for row in rows or [])


def test_all_rows_come_first_and_then_what_is_added(table: Table) -> None:
    table.append(ids(3, 5))
    query = Query(table.uri)
    assert _ids(query.rows()) == [0, 1, 2, 3, 4]
    assert query.batch() is None
    table.append(ids(5, 6))
    table.append(ids(6, 8))
    query.start()
    assert _ids(query.rows()) == [5, 6, 7]


def test_a_batch_that_is_run_again_reads_the_same_rows(table: Table) -> None:
    query = Query(table.uri, maxRowsPerTrigger=2)
    query.start()
    start = query.reader.initialOffset()
    found = query.batch()
    end = query.offset
    table.append(ids(3, 9))
    query.start(maxRowsPerTrigger=100)
    assert end is not None
    assert query.between(start, end) == found


def test_starting_points(table: Table) -> None:
    table.append(ids(3, 5))
    table.append(ids(5, 6))
    assert _ids(Query(table.uri, startingVersion=table.version()).rows()) == [5]
    assert _ids(Query(table.uri, startingVersion=table.first).rows()) == [0, 1, 2, 3, 4, 5]
    latest = Query(table.uri, startingVersion="latest")
    assert latest.rows() == []
    next_one = Query(table.uri, startingVersion=table.version() + 1)
    assert next_one.rows() == []
    table.append(ids(6, 7))
    assert _ids(latest.rows()) == [6]
    assert _ids(next_one.rows()) == [6]
    with pytest.raises(InvalidArgumentError, match="startingVersion: expected a version from"):
        Query(table.uri, startingVersion=99).rows()
    with pytest.raises(InvalidArgumentError, match="both"):
        Query(table.uri, startingVersion=1, startingTimestamp="2024-01-01").rows()


def test_a_starting_time_is_of_its_zone(table: Table) -> None:
    assert _ids(Query(table.uri, startingTimestamp="2024-01-01").rows()) == [0, 1, 2]
    now = datetime.now(UTC)
    with pytest.raises(InvalidArgumentError, match="timezone"):
        Query(table.uri, startingTimestamp=now.strftime("%Y-%m-%d %H:%M:%S")).rows()
    with pytest.raises(InvalidArgumentError, match="startingTimestamp"):
        Query(table.uri, startingTimestamp="2190-01-01T00:00:00Z").rows()
    local = now.strftime("%Y-%m-%d 00:00:00")
    assert _ids(Query(table.uri, startingTimestamp=local, timezone="UTC").rows()) == [0, 1, 2]


@pytest.mark.parametrize("start", [None, "first"])
def test_limits(table: Table, start: str | None) -> None:
    for low in range(3, 12, 3):
        table.append(ids(low, low + 3))
    options = {} if start is None else {"startingVersion": table.first}
    for limit in ({"maxRowsPerTrigger": 3}, {"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": 1}):
        query = Query(table.uri, **options, **limit)
        found = [_ids(rows) for rows in query.batches()]
        assert sorted(number for rows in found for number in rows) == list(range(12))
        assert len(found) == (4 if "maxBytesPerTrigger" not in limit or table.kind == "delta" else 12), limit
    whole = Query(table.uri, **options, maxRowsPerTrigger=1)
    assert _ids(whole.batch(lifts_limits=True)) == list(range(12))
    versions = Query(table.uri, **options, maxVersionsPerTrigger=1)
    assert len([rows for rows in versions.batches() if rows]) == (1 if start is None else 4)


def _without_statistics(uri: str, version: int, wanted: Any) -> None:
    """Takes the statistics of files out of an entry of a log."""
    entry = Path(uri, "_delta_log", f"{version:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action and wanted(action["add"]):
            del action["add"]["stats"]
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_files_that_do_not_tell_their_rows_are_counted_by_their_footers(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": range(12), "p": [n // 3 for n in range(12)]})
    deltalake.write_deltalake(uri, rows, partition_by=["p"])
    _without_statistics(uri, 0, lambda add: add["partitionValues"]["p"] != "1")
    for start in ({}, {"startingVersion": 0}):
        for limit, expected in ((4, [3, 3, 3, 3]), (6, [6, 6]), (100, [12])):
            batches = [_ids(found) for found in Query(uri, maxRowsPerTrigger=limit, **start).batches()]
            assert [len(ids) for ids in batches] == expected
            assert sorted(number for found in batches for number in found) == [*range(12)]


def test_a_file_that_does_not_tell_its_rows_comes_after_one_that_has_more_than_a_batch_reads(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    deltalake.write_deltalake(uri, pa.table({"id": range(6), "p": ["a"] * 5 + ["b"]}), partition_by=["p"])
    _without_statistics(uri, 0, lambda add: add["partitionValues"] == {"p": "b"})
    for start in ({}, {"startingVersion": 0}):
        assert [_ids(rows) for rows in Query(uri, maxRowsPerTrigger=2, **start).batches()] == [[0, 1, 2, 3, 4], [5]]


def test_rows_of_a_lance_table_are_limited_exactly_even_if_the_limit_changes(tmp_path: Path) -> None:
    table = Table("lance", str(tmp_path / "t"))
    table.append(ids(3, 11))
    query = Query(table.uri, maxRowsPerTrigger=4)
    assert _ids(query.batch()) == [0, 1, 2, 3]
    query.start(maxRowsPerTrigger=1)
    assert _ids(query.batch()) == [4]
    query.start(maxRowsPerTrigger=5)
    assert [_ids(rows) for rows in query.batches()] == [[5, 6, 7, 8, 9], [10]]


def test_available_now_reads_what_is_there_at_its_start(table: Table) -> None:
    query = Query(table.uri, maxFilesPerTrigger=1)
    query.start()
    query.reader.prepareForTriggerAvailableNow()
    table.append(ids(3, 4))
    assert _ids(query.rows()) == [0, 1, 2]


Change = Callable[[Table], None]


@pytest.mark.parametrize(
    ("change", "ignored"),
    [
        pytest.param(lambda t: t.delete("id = 1"), "ignoreDeletes", id="delete"),
        pytest.param(lambda t: t.update("id = 1"), None, id="update"),
        pytest.param(lambda t: t.overwrite(ids(0, 2)), None, id="overwrite"),
    ],
)
def test_versions_that_change_rows_are_refused_or_passed_over(
    table: Table, change: Change, ignored: str | None
) -> None:
    query = Query(table.uri)
    assert len(query.rows()) == 3
    change(table)
    table.append(ids(10, 12))
    with pytest.raises(InvalidArgumentError, match="skipChangeCommits=true"):
        query.batch()
    if ignored is None:
        query.start(ignoreDeletes="true")
        with pytest.raises(InvalidArgumentError, match="readChangeFeed"):
            query.batch()
    query.start(**{ignored or "skipChangeCommits": "true"})
    assert _ids(query.rows()) == [10, 11]


def _merged(table: Table, rows: pa.Table, *, by_peer: bool, deletes: bool = False) -> None:
    """An upsert, or a delete of the rows that match."""
    if table.kind == "lance":
        given: Any = (lance if by_peer else esker).dataset(table.uri).merge_insert("id")
        ready = given.when_matched_delete() if deletes else given.when_matched_update_all()
    else:
        given = (deltalake if by_peer else esker.delta).DeltaTable(table.uri).merge(rows, "t.id = s.id", "s", "t")
        ready = given.when_matched_delete() if deletes else given.when_matched_update_all()
    ready = ready if deletes else ready.when_not_matched_insert_all()
    ready.execute(*([rows] if table.kind == "lance" else []))


@pytest.mark.parametrize("by_peer", [False, True])
@pytest.mark.parametrize("stable", [False, True])
def test_an_upsert_of_new_keys_only_adds_rows(tmp_path: Path, table: Table, by_peer: bool, stable: bool) -> None:
    if table.kind == "lance" and not stable:
        table.uri = str(tmp_path / "unstable")
        lance.write_dataset(ids(0, 3), table.uri)
    query = Query(table.uri)
    assert len(query.rows()) == 3
    _merged(table, ids(3, 6), by_peer=by_peer)
    _merged(table, ids(6, 7), by_peer=by_peer)
    table.append(ids(7, 8))
    one_by_one = Query(table.uri, startingVersion=table.first + 1, maxRowsPerTrigger=2)
    assert [row["id"] for row in one_by_one.rows()] == [3, 4, 5, 6, 7]
    assert _ids(query.rows()) == [3, 4, 5, 6, 7]
    if table.kind == "lance":
        # A feed needs no row ids for what was only inserted.
        fed = Query(table.uri, readChangeFeed="true", startingVersion=2).rows()
        assert [(row["_change_type"], row["id"]) for row in fed] == [("insert", n) for n in (3, 4, 5, 6, 7)]
    _merged(table, ids(7, 9), by_peer=by_peer)
    with pytest.raises(InvalidArgumentError, match="changes rows"):
        query.batch()


@pytest.mark.parametrize("by_peer", [False, True])
def test_a_merge_that_only_deletes_is_a_delete_where_the_log_tells(table: Table, by_peer: bool) -> None:
    query = Query(table.uri)
    assert len(query.rows()) == 3
    _merged(table, ids(1, 2), by_peer=by_peer, deletes=True)
    table.append(ids(10, 11))
    with pytest.raises(InvalidArgumentError, match="skipChangeCommits"):
        query.batch()
    # A merge of a Delta table writes whole files anew, and does not say that their rows have only stayed.
    query.start(**{"ignoreDeletes" if table.kind == "lance" else "skipChangeCommits": "true"})
    assert _ids(query.rows()) == [10]


def test_a_change_of_no_rows_is_none(table: Table) -> None:
    query = Query(table.uri)
    assert len(query.rows()) == 3
    table.update("id = 99")
    table.delete("id = 99")
    table.append(ids(10, 11))
    assert _ids(query.rows()) == [10]


def test_rearranged_rows_are_none(table: Table) -> None:
    table.append(ids(3, 6))
    query = Query(table.uri)
    assert len(query.rows()) == 6
    table.compact()
    table.append(ids(6, 7))
    assert _ids(query.rows()) == [6]


def test_a_table_in_its_place_is_another_one(table: Table) -> None:
    query = Query(table.uri)
    assert len(query.rows()) == 3
    shutil.rmtree(table.uri)
    table.make(ids(0, 3))
    table.append(ids(3, 4))
    with pytest.raises(CommitConflictError, match="was replaced, reset or restored"):
        query.batch()


def test_a_table_that_was_reset_is_another_one(table: Table, tmp_path: Path) -> None:
    shutil.copytree(table.uri, tmp_path / "copy")
    table.append(ids(3, 4))
    query = Query(table.uri)
    assert len(query.rows()) == 4
    shutil.rmtree(table.uri)
    shutil.copytree(tmp_path / "copy", table.uri)
    query.start()
    with pytest.raises(CommitConflictError, match="as its newest one"):
        query.batch()
    table.append(ids(5, 6))
    with pytest.raises(CommitConflictError, match="another one of that number"):
        query.batch()


@pytest.mark.parametrize(
    "options",
    [{}, {"startingVersion": 1, "ignoreDeletes": "true"}, {"startingVersion": 1, "readChangeFeed": "true"}],
    ids=["all", "added", "feed"],
)
def test_tasks_of_a_batch_read_nothing_of_a_table_that_took_the_place_of_its_own(
    table: Table, options: dict[str, object]
) -> None:
    """Tasks run later than the driver plans, and again after a failure."""
    wanted = options if table.kind == "lance" else {}
    table.append(ids(3, 5))
    table.delete("id = 1")
    query = Query(table.uri, **wanted)
    query.start()
    start = query.reader.initialOffset()
    parts = query.reader.partitions(start, query.reader.latestOffset(start))
    assert parts
    shutil.rmtree(table.uri)
    table.make(ids(10, 13))
    table.append(ids(13, 15))
    table.delete("id = 11")
    for part in parts:
        with pytest.raises((CommitConflictError, NotFoundError), match="start a new query"):
            [*query.reader.read(part)]


@pytest.mark.parametrize("start", [None, 1], ids=["all", "added"])
def test_a_batch_that_is_planned_while_another_table_takes_the_place_of_its_own_is_none(
    table: Table, start: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(ids(3, 5))
    query = Query(table.uri, **({} if start is None else {"startingVersion": start}))
    query.start()
    first = query.reader.initialOffset()
    end = query.reader.latestOffset(first)
    reading = "snapshot" if start is None else "changes"
    planned = getattr(query.reader._history, reading)

    def replaced_before(*versions: int) -> Any:
        shutil.rmtree(table.uri)
        table.make(ids(10, 13))
        table.append(ids(13, 15))
        return planned(*versions)

    monkeypatch.setattr(query.reader._history, reading, replaced_before)
    with pytest.raises(CommitConflictError, match="was replaced, reset or restored"):
        query.between(first, end)


def test_a_version_that_was_cleaned_up_says_how_to_start_anew(table: Table) -> None:
    query = Query(table.uri)
    assert len(query.rows()) == 3
    for low in range(3, 6):
        table.append(ids(low, low + 1))
    folder, names = ("_versions", "*.manifest") if table.kind == "lance" else ("_delta_log", "*.json")
    found = sorted(Path(table.uri, folder).glob(names))
    if table.kind == "delta":
        deltalake.DeltaTable(table.uri).create_checkpoint()
    # V2 names of a Lance table sort the newest version first.
    for path in found[1:] if table.kind == "lance" else found[:-1]:
        path.unlink()
    with pytest.raises(NotFoundError, match="startingVersion=latest"):
        query.batch()
    assert _ids(Query(table.uri).rows()) == list(range(6))


def test_files_that_were_cleaned_up_under_a_batch_say_how_to_start_anew(table: Table) -> None:
    """The driver has planned the batch; the version's entry may be there still."""
    for low in range(3, 9, 3):
        table.append(ids(low, low + 3))
    query = Query(table.uri, maxRowsPerTrigger=4)
    assert query.batch()
    for path in [*Path(table.uri).glob("*.parquet"), *Path(table.uri).glob("data/*.lance")]:
        path.unlink()
    with pytest.raises(NotFoundError, match="are not there any more.*it was cleaned up.*startingVersion=latest"):
        query.batch()


def test_columns_and_filters(table: Table) -> None:
    table.append(ids(3, 6))
    query = Query(table.uri, columns="s", filter="id >= 2")
    assert sorted(row["s"] for row in query.rows()) == ["x2", "x3", "x4", "x5"]
    table.append(ids(6, 7))
    assert query.rows() == [{"s": "x6"}]


def test_a_feed_that_is_switched_off_is_none(table: Table) -> None:
    rows = Query(table.uri, readChangeFeed="false").rows()
    assert sorted(rows[0]) == sorted(read(table.uri, readChangeFeed="false")[0]) == ["id", "s"]
    with pytest.raises(InvalidArgumentError, match="expected startingVersion|readChangeFeed is for Delta tables"):
        read(table.uri, readChangeFeed="true")


def test_columns_that_come_and_go(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(ids(0, 2), uri)
    esker.dataset(uri).add_columns({"more": "id * 2"})
    query = Query(uri, startingVersion=1)
    assert [row["more"] for row in query.rows()] == [None, None]
    esker.dataset(uri).drop_columns(["s"])
    esker.write_dataset(pa.table({"id": [7], "more": [8]}), uri, mode="append")
    with pytest.raises(SchemaMismatchError, match="'s'"):
        query.batch()
    query.start()
    assert query.rows() == [{"id": 7, "more": 8}]


@pytest.mark.parametrize("new", [pa.float64(), pa.string()], ids=str)
def test_a_column_whose_type_changes_under_a_query_says_to_start_again(table: Table, new: pa.DataType) -> None:
    """A value of another type that looks like one of the old one is no such value."""
    query = Query(table.uri, skipChangeCommits="true")
    assert len(query.rows()) == 3
    changed = pa.table({"id": pa.array([3, 4]).cast(new), "s": ["a", "b"]})
    if table.kind == "lance":
        esker.dataset(table.uri).alter_columns({"path": "id", "data_type": new})
        table.append(changed)
    else:
        deltalake.write_deltalake(table.uri, changed, mode="overwrite", schema_mode="overwrite")
        table.append(changed)
    with pytest.raises(SchemaMismatchError, match=r"'id'.*load the stream again.*startingVersion=latest") as raised:
        query.batch()
    assert "cast the column" not in str(raised.value)
    query.start()
    assert [row["id"] for row in query.rows()] == changed["id"].to_pylist()


def test_a_value_beyond_the_type_with_which_a_query_was_started_says_to_start_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"id": pa.array([1], pa.int32())}), uri)
    query = Query(uri)
    assert query.rows() == [{"id": 1}]
    esker.dataset(uri).alter_columns({"path": "id", "data_type": pa.int64()})
    esker.write_dataset(pa.table({"id": [2]}), uri, mode="append")
    assert query.rows() == [{"id": 2}]
    esker.write_dataset(pa.table({"id": [2**40]}), uri, mode="append")
    with pytest.raises(SchemaMismatchError, match="not in range.*load the stream again"):
        query.batch()
    query.start()
    assert query.rows() == [{"id": 2**40}]


def test_a_column_that_is_dropped_under_a_query_says_to_start_again(table: Table) -> None:
    query = Query(table.uri, skipChangeCommits="true")
    assert len(query.rows()) == 3
    if table.kind == "lance":
        lance.dataset(table.uri).drop_columns(["s"])
    else:
        rows = pa.table({"id": [1]})
        deltalake.write_deltalake(table.uri, rows, mode="overwrite", schema_mode="overwrite")
    table.append(pa.table({"id": [7]}))
    with pytest.raises(SchemaMismatchError, match=r"no column 's', with.*any more, load the stream again"):
        query.batch()
    query.start()
    assert query.rows() == [{"id": 7}]


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}, {"columns": "s,id"}])
def test_columns_that_change_between_load_and_start_say_to_load_again(table: Table, options: dict[str, str]) -> None:
    query = Query(table.uri, **options)
    query.start()
    if table.kind == "lance":
        lance.dataset(table.uri).alter_columns({"path": "s", "name": "t"})
        esker.dataset(table.uri).alter_columns({"path": "id", "data_type": pa.string()})
    else:
        rows = pa.table({"id": ["1"], "t": ["x"]})
        deltalake.write_deltalake(table.uri, rows, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="no column 's', with.*load the stream again.*if it never was"):
        query.batch()
    query.schema = StructType([query.schema["id"]])
    query.reader = EskerSource(query.given).streamReader(query.schema)
    with pytest.raises(SchemaMismatchError, match="'id' .* has the type string .*load the stream again"):
        query.batch()


def test_options_are_refused_by_name(table: Table) -> None:
    for options, found in (
        ({"startingVersoin": 1}, "startingVersion"),
        ({"ignoreChanges": "true"}, "skipChangeCommits"),
        ({"maxRowsPerTrigger": 0}, "whole number from 1"),
        ({"endingVersion": 3, "maxRowsPerTrigger": 2}, "endingVersion is for reads"),
        ({"readChangeFeed": "true", "skipChangeCommits": "true"}, "leave one out"),
        ({"tableFormat": "delta"}, "tableFormat is for writes"),
    ):
        with pytest.raises(InvalidArgumentError, match=found):
            Query(table.uri, **options).start()
    # Spark hides what is raised before it asks for the first offset.
    for option, value, instead in (
        ("parallelism", 1, "leave it out"),
        ("version", 1 if table.kind == "lance" else 0, "say startingVersion"),
    ):
        query = Query(table.uri, **{option: value})
        query.start()
        with pytest.raises(InvalidArgumentError, match=f"{option} is for reads.*: {instead}"):
            query.batch()
    source = EskerSource({"path": table.uri, "maxRowsPerTrigger": "3"})
    schema = source.schema()
    with pytest.raises(InvalidArgumentError, match="maxRowsPerTrigger is for streams"):
        source.reader(schema)


@pytest.mark.parametrize("kind", FORMATS)
def test_small_files_share_a_task_and_keep_their_order(kind: str, tmp_path: Path) -> None:
    table = Table(kind, str(tmp_path / "t"))
    for first in range(3, 60, 3):
        table.append(ids(first, first + 3))
    query = Query(table.uri, startingVersion=table.first)
    query.start()
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    assert len(query.reader.partitions(start, end)) < 10
    assert [row["id"] for row in query.rows()] == list(range(60))
    cut = Query(table.uri, startingVersion=table.first, maxRowsPerTrigger=7)
    assert [row["id"] for row in cut.rows()] == list(range(60))
