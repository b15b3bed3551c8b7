"""Columns of streams whose tables rename, exchange, drop and add them between what was read and what was not."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import types as T

import esker
import esker.delta
from esker.delta.read.session_zone import leaps_in_zone
from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.spark import EskerSource
from tests.delta_logs import commit, metadata
from tests.spark.jobs import read
from tests.spark.streams import Query, ids

Renames = list[tuple[str, str]]


def _append(uri: str, first: int, last: int, mode: str = "append", **names: str) -> None:
    numbers = range(first, last)
    columns = {names.get("a", "a"): [f"A{n}" for n in numbers], names.get("b", "b"): [f"B{n}" for n in numbers]}
    rows = pa.table({"id": pa.array(numbers, pa.int64()), **columns})
    lance.write_dataset(rows, uri, mode=mode, enable_stable_row_ids=True)


def _rename(uri: str, names: Renames) -> None:
    for old, new in names:
        lance.dataset(uri).alter_columns({"path": old, "name": new})


def _rename_mapped(table: Path, old: str, new: str) -> None:
    """As Spark renames a column of a Delta table: an entry with another schema."""
    entries = sorted((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in entries for line in path.read_text().splitlines()]
    there = [action["metaData"] for action in actions if "metaData" in action][-1]
    schema = json.loads(there["schemaString"])
    for field in schema["fields"]:
        field["name"] = new if field["name"] == old else field["name"]
    partitions = [new if name == old else name for name in there["partitionColumns"]]
    changed = {**there, "schemaString": json.dumps(schema), "partitionColumns": partitions}
    commit(table, len(entries), [metadata(**changed)])


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]


EXCHANGE = [("a", "x"), ("b", "a"), ("x", "b")]


@pytest.mark.parametrize("feed", [False, True])
@pytest.mark.parametrize("names", [[("a", "x")], [("a", "A")], EXCHANGE], ids=["renamed", "other case", "exchanged"])
def test_rows_that_were_not_read_yet_are_those_of_the_table_after_a_restart(
    names: Renames, feed: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 3, "create")
    query = Query(uri, **({"readChangeFeed": "true"} if feed else {}))
    query.rows()
    _append(uri, 3, 5)
    _rename(uri, names)
    query.start()
    assert _plain(query.rows()) == lance.dataset(uri).to_table(filter="id >= 3").to_pylist()
    assert _plain(Query(uri, startingVersion=1).rows()) == lance.dataset(uri).to_table().to_pylist()


def test_a_snapshot_that_is_cut_by_a_limit_goes_on_under_new_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 4, "create")
    query = Query(uri, maxRowsPerTrigger=2)
    query.batch()
    _rename(uri, EXCHANGE)
    query.start(filter="b = 'A3'")
    assert _plain(query.rows()) == [{"id": 3, "b": "A3", "a": "B3"}]


def test_a_feed_shows_older_states_under_new_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 4, "create")
    query = Query(uri, readChangeFeed="true", columns="id,_change_type,x")
    lance.dataset(uri).update({"a": "'new'"}, where="id = 1")
    lance.dataset(uri).delete("id = 2")
    _rename(uri, [("a", "x")])
    query.start(startingVersion=2)
    found = [(row["id"], row["_change_type"], row["x"]) for row in query.rows()]
    assert found == [(1, "update_preimage", "A1"), (1, "update_postimage", "new"), (2, "delete", "A2")]


def test_a_column_that_was_dropped_is_not_the_one_that_was_added_under_its_name(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 2, "create")
    _append(uri, 2, 3)
    lance.dataset(uri).drop_columns(["a"])
    lance.dataset(uri).add_columns({"a": "'new'"})
    assert _plain(Query(uri, startingVersion=2).rows()) == [{"id": 2, "b": "B2", "a": None}]
    # A cast gives a column another id, too.
    lance.dataset(uri).alter_columns({"path": "id", "data_type": pa.int32()})
    assert _plain(Query(uri, startingVersion=2, columns="id,b").rows()) == [{"id": 2, "b": "B2"}]


@pytest.mark.parametrize("nested", ["struct", "list", "map", "large list"])
def test_fields_within_columns_keep_their_values_under_new_names(nested: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    inner = pa.struct({"p": pa.int64(), "q": pa.int64(), "r": pa.int64()})
    value = {"p": 1, "q": 2, "r": 3}
    column, path = {
        "struct": (pa.array([value, None], inner), "s"),
        "list": (pa.array([[value, None], None], pa.list_(inner)), "s.item"),
        "large list": (pa.array([[value], []], pa.large_list(inner)), "s.item"),
        "map": (pa.array([[("k", value)], None], pa.map_(pa.string(), inner)), "s.entries.value"),
    }[nested]
    lance.write_dataset(pa.table({"id": [1, 2], "s": column}), uri, data_storage_version="2.2")
    _rename(uri, [(f"{path}.p", "x"), (f"{path}.q", "p"), (f"{path}.x", "q")])
    if nested == "struct":
        lance.dataset(uri).drop_columns(["s.r"])
    assert Query(uri, startingVersion=1).rows() == lance.dataset(uri).to_table().to_pylist()


@pytest.mark.parametrize("names", [[("a", "x")], EXCHANGE], ids=["renamed", "exchanged"])
@pytest.mark.parametrize("mapped", [False, True], ids=["lance", "mapped delta"])
def test_names_that_change_under_a_running_query_are_an_error_that_a_restart_cures(
    names: Renames, mapped: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    if mapped:
        configuration = {"delta.columnMapping.mode": "name"}
        rows = pa.table({"id": [0], "a": ["A0"], "b": ["B0"]})
        esker.delta.write_deltalake(uri, rows, configuration=configuration)
    else:
        _append(uri, 0, 1, "create")
    query = Query(uri)
    query.rows()
    after = {"a": "b", "b": "a"} if names == EXCHANGE else {"a": "x", "b": "b"}
    if mapped:
        for old, new in names:
            _rename_mapped(tmp_path / "t", old, new)
        rows = pa.table({"id": [1], after["a"]: ["A1"], after["b"]: ["B1"]})
        esker.delta.write_deltalake(uri, rows, mode="append")
    else:
        _rename(uri, names)
        _append(uri, 1, 2, **after)
    for _ in range(2):
        with pytest.raises(SchemaMismatchError, match="load the stream again"):
            query.rows()
    query.start()
    assert _plain(query.rows()) == [{"id": 1, after["a"]: "A1", after["b"]: "B1"}]


def test_a_filter_may_ask_for_a_column_that_older_versions_lack(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(ids(0, 3), uri, enable_stable_row_ids=True)
    query = Query(uri, maxRowsPerTrigger=1)
    query.batch()
    lance.dataset(uri).add_columns({"c": "id * 2"})
    query.start(filter="c IS NULL AND id < 2")
    assert [row["id"] for row in query.rows()] == [1]
    assert Query(uri, startingVersion=1, filter="c = 2").rows() == []


def test_a_filter_may_ask_for_what_happened(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(ids(0, 4), uri, enable_stable_row_ids=True)
    lance.dataset(uri).delete("id = 2")
    query = Query(uri, readChangeFeed="true", startingVersion=1, columns="id", filter="_change_type = 'delete'")
    assert query.rows() == [{"id": 2}]


@pytest.mark.parametrize(
    "condition",
    [
        "At >= '2024-07-01 00:00:00'",
        "At >= TIMESTAMP '2024-07-01 00:00:00'",
        "hour(At) < 6",
        "cast(At AS date) = date '2024-07-01'",
    ],
)
def test_the_zone_of_a_filter_holds_for_all_that_a_feed_says(condition: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    times = pa.array([dt.datetime(2024, 7, 1, hour, tzinfo=dt.UTC) for hour in range(10)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "v": pa.array([0] * 10, pa.int64()), "At": times})
    lance.write_dataset(rows, uri, enable_stable_row_ids=True)
    given = {"readChangeFeed": "true", "timezone": "America/New_York", "columns": "id,_change_type"}
    query = Query(uri, filter=condition, **given)
    assert [row["id"] for row in query.rows()] == [4, 5, 6, 7, 8, 9]
    lance.dataset(uri).update({"v": "v + 1"}, where="id % 2 = 0")
    assert [row["id"] for row in query.rows()] == [4, 6, 8, 4, 6, 8]
    lance.dataset(uri).delete("id % 2 = 1")
    assert [row["id"] for row in query.rows()] == [5, 7, 9]


@pytest.mark.parametrize("kind", ["lance", "delta"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("at > TIMESTAMP '2024-10-27 02:00:00'", [3, 4, 5, 6, 7]),
        ("at > TIMESTAMP '2024-10-27 02:00:00' AND loc IS NOT NULL", [3, 4, 5, 6, 7]),
        ("at >= '2024-10-27 02:30:00'", [3, 4, 5, 6, 7]),
        ("'2024-10-27 02:30:00' <= at", [3, 4, 5, 6, 7]),
        ("at < '2024-03-31 02:00:00'", []),
        ("`at` >= '2024-10-27 02:30:00' AND loc < timestamp '2024-10-27 02:30:00'", [3, 4, 5, 6]),
    ],
)
def test_times_at_which_clocks_leap_are_the_first_moment_as_in_spark(
    condition: str, expected: list[int], kind: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    start = dt.datetime(2024, 10, 26, 23, tzinfo=dt.UTC)
    times = [start + dt.timedelta(minutes=30 * n) for n in range(8)]
    zoneless = [time.replace(tzinfo=None) for time in times]
    at, loc = pa.array(times, pa.timestamp("us", "UTC")), pa.array(zoneless, pa.timestamp("us"))
    rows = pa.table({"id": range(8), "at": at, "loc": loc})
    if kind == "lance":
        lance.write_dataset(rows, uri)
    else:
        esker.delta.write_deltalake(uri, rows)
    assert [row["id"] for row in read(uri, filter=condition, timezone="Europe/Berlin")] == expected


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_text_that_clocks_show_twice_is_refused_where_it_is_not_beside_its_column(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    times = [dt.datetime(2024, 10, 27, hour, tzinfo=dt.UTC) for hour in range(4)]
    rows = pa.table({"id": range(4), "at": pa.array(times, pa.timestamp("us", "UTC"))})
    if kind == "lance":
        lance.write_dataset(rows, uri)
    else:
        esker.delta.write_deltalake(uri, rows)
    for condition in ("at BETWEEN {} AND '2024-10-27 04:00:00'", "at IN ({})"):
        with pytest.raises(InvalidArgumentError, match="2024-10-27 02:00:00"):
            read(uri, filter=condition.format("'2024-10-27 02:00:00'"), timezone="Europe/Berlin")
        for text in ("timestamp '2024-10-27 02:00:00'", "'2024-10-27 02:00:00+02:00'"):
            found = read(uri, filter=condition.format(text), timezone="Europe/Berlin")
            assert found[0]["id"] == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_limit_of_rows_holds_whatever_is_deleted(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    uri = str(tmp_path / "t")
    rows, limit = rng.randrange(50, 400), rng.randrange(1, 40)
    lance.write_dataset(ids(0, rows), uri, max_rows_per_file=rng.choice([30, 100, 1000]))
    first = rng.randrange(rows)
    gone = {n for n in range(rows) if rng.random() < 0.1} | set(range(first, min(rows, first + rng.randrange(80))))
    lance.dataset(uri).delete(f"id IN ({', '.join(map(str, [-1, *gone]))})")
    batches = [[row["id"] for row in batch] for batch in Query(uri, maxRowsPerTrigger=limit).batches()]
    assert [n for batch in batches for n in batch] == [n for n in range(rows) if n not in gone]
    assert all(len(batch) <= limit for batch in batches)
    assert all(batches[:-1])


def test_another_column_under_the_name_of_one_that_was_dropped_is_an_error(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    query = Query(uri, columns="id,a")
    query.rows()
    lance.dataset(uri).drop_columns(["a"])
    _rename(uri, [("b", "a")])
    lance.write_dataset(pa.table({"id": [1], "a": ["B1"]}), uri, mode="append")
    with pytest.raises(SchemaMismatchError, match="any more"):
        query.rows()
    query.start()
    assert query.rows() == [{"id": 1, "a": "B1"}]


def test_changes_of_columns_that_a_query_does_not_read_are_nothing_to_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    query = Query(uri, columns="id,a", filter="id >= 0")
    query.rows()
    _rename(uri, [("b", "c")])
    lance.dataset(uri).alter_columns({"path": "a", "nullable": True})
    lance.dataset(uri).add_columns({"d": "id + 1"})
    lance.dataset(uri).drop_columns(["c"])
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).optimize.compact_files()
    lance.write_dataset(pa.table({"id": [1], "a": ["A1"], "d": [2]}), uri, mode="append")
    assert query.rows() == [{"id": 1, "a": "A1"}]


@pytest.mark.parametrize("feed", [False, True])
def test_an_overwrite_numbers_columns_anew(feed: bool, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": ["a1"], "b": ["b1"], "s": [{"p": 1, "q": 2}]}), uri)
    running = Query(uri, readChangeFeed="true") if feed else Query(uri, skipChangeCommits="true")
    running.rows()
    lance.write_dataset(pa.table({"s": [{"q": 3, "p": 4}], "b": ["B"], "a": ["A"]}), uri, mode="overwrite")
    first, second = ({"a": "a1", "b": "b1", "s": {"p": 1, "q": 2}}, {"a": "A", "b": "B", "s": {"p": 4, "q": 3}})
    if feed:
        assert _plain(running.rows()) == [first, second]
        assert _plain(Query(uri, readChangeFeed="true", startingVersion=1).rows()) == [first, first, second]
        return
    again = Query(uri, startingVersion=1, skipChangeCommits="true", filter="a = 'a1'")
    assert _plain(again.rows()) == [first]


@pytest.mark.parametrize("column", ["c", "b"])
def test_the_id_of_a_dropped_column_may_be_given_to_another_one(column: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _append(uri, 1, 2)
    dataset = lance.dataset(uri)
    dataset.drop_columns(["b"])
    dataset.optimize.compact_files()
    lance.dataset(uri).add_columns({column: "'new'"} if column == "c" else {column: "7"})
    assert {row[column] for row in Query(uri, startingVersion=1).rows()} == {None}
    # A version that is restored has the ids of then.
    lance.dataset(uri, version=2).restore()
    lance.dataset(uri).drop_columns(["b"])
    lance.dataset(uri).add_columns({"d": "'d'"})
    assert {row["d"] for row in Query(uri, startingVersion=1, skipChangeCommits="true").rows()} == {None}


def test_casts_and_new_names_together_keep_the_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": [1], "b": [2], "s": [{"p": 3, "q": 4}], "v": [5]}), uri)
    for path in ("a", "b", "s.p", "s.q"):
        lance.dataset(uri).alter_columns({"path": path, "data_type": pa.int32()})
    for old, new in [*EXCHANGE, ("s.p", "x"), ("s.q", "p"), ("s.x", "q")]:
        lance.dataset(uri).alter_columns({"path": old, "name": new})
    lance.dataset(uri).alter_columns({"path": "v", "name": "w", "data_type": pa.int32()})
    assert Query(uri, startingVersion=1).rows() == lance.dataset(uri).to_table().to_pylist()
    assert Query(uri, startingVersion=1, filter="w = 5 AND s.p = 4", columns="a").rows() == [{"a": 2}]


@pytest.mark.parametrize("condition", ["c > 1", "c IS NULL"])
def test_a_column_of_the_filter_that_is_dropped_is_an_error_to_a_running_query(condition: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [1], "c": [5]}), uri)
    query = Query(uri, columns="id", filter=condition)
    query.rows()
    lance.dataset(uri).drop_columns(["c"])
    lance.write_dataset(pa.table({"id": [3]}), uri, mode="append")
    with pytest.raises(SchemaMismatchError, match="'c' .* is not there any more in version 2"):
        query.rows()


@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_a_schema_of_ones_own_finds_columns_in_any_case(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"Id": [1, 2], "x": [3, 4]})
    if kind == "lance":
        lance.write_dataset(rows, uri)
    else:
        esker.delta.write_deltalake(uri, rows)
    query = Query(uri, filter="ID > 1")
    query.schema = T.StructType().add("X", T.LongType()).add("iD", T.LongType())
    query.reader = EskerSource(query.given).streamReader(query.schema)
    assert query.batch() == [{"X": 4, "iD": 2}]


def test_nested_names_of_a_mapped_table_that_are_exchanged_are_an_error(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [0], "s": [{"p": 1, "q": 2}], "a": ["A"], "b": ["B"]})
    esker.delta.write_deltalake(uri, rows, configuration={"delta.columnMapping.mode": "name"})
    nested, filtered = Query(uri, columns="id,s"), Query(uri, columns="id", filter="a LIKE 'A%'")
    assert len(nested.rows()) == len(filtered.rows()) == 1
    _rename_mapped(tmp_path / "t", "a", "x")
    _rename_mapped(tmp_path / "t", "b", "a")
    with pytest.raises(SchemaMismatchError, match="'a' .* another one"):
        filtered.rows()
    nested.rows()
    entries = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))
    there = json.loads(entries[-1].read_text())["metaData"]
    schema = json.loads(there["schemaString"])
    for field in schema["fields"][1]["type"]["fields"]:
        field["name"] = {"p": "q", "q": "p"}[field["name"]]
    commit(tmp_path / "t", len(entries), [metadata(**{**there, "schemaString": json.dumps(schema)})])
    with pytest.raises(SchemaMismatchError, match=r"'s\.p' .* another one"):
        nested.rows()


def test_a_limit_that_takes_whole_fragments_reads_no_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(ids(0, 40), uri, max_rows_per_file=10)
    lance.dataset(uri).delete("id % 10 = 3")
    query = Query(uri, maxFilesPerTrigger=1)
    query.start()
    monkeypatch.setattr("esker.spark.streaming.lance_history.Scan", None)
    query.offset = json.loads(json.dumps(query.reader.initialOffset()))
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert end != query.offset


def test_literals_that_are_no_times_of_a_column_stay_as_they_are() -> None:
    schema = pa.schema({"t": pa.string(), "at": pa.timestamp("us", "UTC")})
    for sql, zone in (
        ("t = '2024-10-27 02:30:00' AND at IS NULL", "Europe/Berlin"),
        ("'2024-10-27 02:30:00' <= t", "Europe/Berlin"),
        ("date '2024-03-10' <= at", "America/Havana"),
        # Texts by the thousand take no longer each: only what is near one is looked at.
        (f"t IN ({', '.join(['2024-10-27 02:30:00'.join(chr(39) * 2)] * 20_000)})", "Europe/Berlin"),
    ):
        assert leaps_in_zone(sql, schema, zone) == sql
    assert "arrow_cast" in leaps_in_zone("at = '2024-10-27 02:30:00'", schema, "Europe/Berlin")
