"""Times without a zone in the texts of options mean those of the session: as Spark itself reads them."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import esker.spark
from esker.delta import DeltaTable
from esker.delta.read.session_zone import clock_in_zone, leaps_in_zone
from esker.exceptions import InvalidArgumentError, NotFoundError
from esker.spark import EskerSource
from esker.spark.delta_reader import DeltaReader
from esker.spark.reader import EskerReader
from esker.spark.session_settings import machine_zone, session_zone
from esker.spark.spelling import spelled_sql
from esker.spark.zoned_filter import whatever_the_zone
from tests.spark.conftest import load, save
from tests.spark.jobs import batches, planned, read, staged, wrote

FRAME = T.StructType().add("k", T.LongType()).add("ts", T.TimestampType())
HOURS = [dt.datetime(2024, 7, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(-30, 60)]
ROWS: list[dict[str, Any]] = [{"k": n, "ts": moment} for n, moment in enumerate(HOURS)]
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "+02:00"]
Model = Callable[[dt.datetime], bool]
MIDNIGHT = dt.datetime(2024, 7, 2)
FILTERS: dict[str, Model] = {
    "ts >= '2024-07-02 00:00:00'": lambda t: t.replace(tzinfo=None) >= MIDNIGHT,
    "ts >= timestamp'2024-07-02 00:00:00'": lambda t: t.replace(tzinfo=None) >= MIDNIGHT,
    "ts < '2024-07-02'": lambda t: t.replace(tzinfo=None) < MIDNIGHT,
    "ts = timestamp '2024-07-02 00:00:00'": lambda t: t.replace(tzinfo=None) == MIDNIGHT,
    "ts IN ('2024-07-02 00:00:00', '2024-07-01 06:00:00')": lambda t: (
        t.replace(tzinfo=None) in (MIDNIGHT, dt.datetime(2024, 7, 1, 6))
    ),
    "ts BETWEEN '2024-07-01' AND '2024-07-02'": lambda t: dt.datetime(2024, 7, 1) <= t.replace(tzinfo=None) <= MIDNIGHT,
    "ts >= timestamp '2024-07-02 00:00:00Z'": lambda t: t >= MIDNIGHT.replace(tzinfo=dt.UTC),
    "k >= 0 -- it's midnight\n AND ts >= timestamp '2024-07-02 00:00:00Z'": lambda t: (
        t >= MIDNIGHT.replace(tzinfo=dt.UTC)
    ),
    "ts >= '2024-07-02T00:00:00+02:00'": lambda t: t >= dt.datetime(2024, 7, 1, 22, tzinfo=dt.UTC),
    "ts >= date '2024-07-02' AND k > 0": lambda t: t.replace(tzinfo=None) >= MIDNIGHT,
    "cast(ts AS date) = date '2024-07-01'": lambda t: t.date() == dt.date(2024, 7, 1),
    "ts IS NULL OR NOT ts < '2024-07-02'": lambda t: t.replace(tzinfo=None) >= MIDNIGHT,
}


@pytest.fixture(scope="module", params=["lance", "delta"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("zones") / "t")
    for start in range(0, len(ROWS), 15):
        wrote(uri, FRAME, ROWS[start : start + 15], tableFormat=request.param)
    return uri


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    for name in ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    return lambda zone: monkeypatch.setenv("TZ", zone)


def _kept(model: Model, zone: str) -> list[int]:
    place = dt.timezone(dt.timedelta(hours=2)) if zone == "+02:00" else ZoneInfo(zone)
    return [row["k"] for row in ROWS if model(row["ts"].astimezone(place))]


@pytest.mark.parametrize("sql", FILTERS)
def test_a_filter_keeps_the_rows_of_the_sessions_zone(sql: str, table: str, machine: Callable[[str], None]) -> None:
    for zone in ZONES:
        expected = _kept(FILTERS[sql], zone)
        assert len(expected) < len(ROWS)
        assert sorted(row["k"] for row in read(table, filter=sql, timezone=zone)) == expected, zone
        # The planner knows no zone then, and must not leave out files of any.
        machine(zone if zone != "+02:00" else "Etc/GMT-2")
        if zone != "+02:00":
            assert sorted(row["k"] for row in read(table, filter=sql)) == expected, zone


def test_an_option_goes_before_the_session_and_the_session_before_the_machine(machine: Callable[[str], None]) -> None:
    machine("Asia/Kolkata")
    assert machine_zone() == "Asia/Kolkata"
    assert session_zone(None, "Asia/Kolkata") == "Asia/Kolkata"
    assert session_zone("GMT+2", "Asia/Kolkata") == "+02:00"
    os.environ["JAVA_TOOL_OPTIONS"] = "-Xmx1g -Duser.timezone=Europe/Berlin -Dx=y"
    try:
        assert machine_zone() == "Europe/Berlin"
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]
    with pytest.raises(InvalidArgumentError, match="option timezone: expected a time zone"):
        read("nowhere", timezone="Mars/Olympus")


def test_a_filter_whose_zone_nobody_knows_is_refused(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("reader", "delta_reader"):
        monkeypatch.setattr(f"esker.spark.{module}.machine_zone", lambda: None)
    with pytest.raises(InvalidArgumentError, match="set the option timezone, or spark.sql.session.timeZone"):
        read(table, filter="ts > '2024-07-02'")
    assert [row["k"] for row in read(table, filter="k = 3")] == [3]


def test_files_are_left_out_where_no_zone_would_keep_them(tmp_path: Path, machine: Callable[[str], None]) -> None:
    uri = str(tmp_path / "t")
    days = [dt.datetime(2024, 7, day, 12, tzinfo=dt.UTC) for day in range(1, 21)]
    for day in days:
        wrote(uri, FRAME, [{"k": day.day, "ts": day}], tableFormat="delta")
    machine("UTC")
    for sql, most in (
        ("ts >= '2024-07-18'", 5),
        ("ts = timestamp '2024-07-09 12:00:00'", 3),
        ("ts < '2024-07-03' AND k = 2", 1),
        ("ts IN ('2024-07-09 12:00:00', '2024-07-10 12:00:00')", 4),
        ("k = 4", 1),
        ("ts > '2024-07-18' OR k = 1", 20),
    ):
        source = EskerSource({"path": uri, "filter": sql})
        partitions = source.reader(source.schema()).partitions()
        assert 1 <= len(partitions) <= most, sql


@pytest.mark.parametrize("is_fed", [False, True])
@pytest.mark.parametrize("is_told", [False, True])
def test_rows_are_replaced_by_the_sessions_zone(
    tmp_path: Path, machine: Callable[[str], None], is_told: bool, is_fed: bool
) -> None:
    # Where no option tells the zone, and the session has none of its own, Spark's batches do.
    machine("UTC")
    sent = "UTC" if is_told else "America/New_York"
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS[:45], tableFormat="delta", **{"delta.enableChangeDataFeed": str(is_fed).lower()})
    wrote(uri, FRAME, ROWS[45:], tableFormat="delta")
    sql = "ts >= timestamp'2024-07-02 00:00:00'"
    gone = _kept(FILTERS[sql], "America/New_York")
    new = [{"k": 1000, "ts": dt.datetime(2024, 7, 2, 4, tzinfo=dt.UTC)}]
    wrong = [{"k": 1001, "ts": dt.datetime(2024, 7, 2, 3, tzinfo=dt.UTC)}]
    options = {"replaceWhere": sql, **({"timezone": "America/New_York"} if is_told else {})}
    with pytest.raises(InvalidArgumentError, match="option replaceWhere: expected rows"):
        wrote(uri, FRAME, wrong, overwrite=True, zone=sent, **options)
    wrote(uri, FRAME, new, overwrite=True, zone=sent, **options)
    left = sorted(row["k"] for row in read(uri))
    assert left == [k for k in range(len(ROWS)) if k not in gone] + [1000]
    assert sorted(deltalake.DeltaTable(uri).to_pyarrow_table()["k"].to_pylist()) == left
    if is_fed:
        for made in (deltalake.DeltaTable(uri), DeltaTable(uri)):
            changes = pa.table(made.load_cdf(2, 2)).to_pylist()
            assert sorted((row["_change_type"], row["k"]) for row in changes) == [
                *(("delete", k) for k in gone),
                ("insert", 1000),
            ]


FAR = ("Pacific/Kiritimati", "Etc/GMT+12")
"""In one of them at least it is not the day that it is in UTC."""
DAYS = T.StructType().add("day", T.DateType()).add("k", T.LongType())


def _today(zone: str) -> dt.date:
    return dt.datetime.now(ZoneInfo(zone)).date()


@pytest.mark.parametrize("sql", ["day = current_date()", "k >= 0 AND day = today()", "day = cast(now() AS date)"])
@pytest.mark.parametrize("kind", ["lance", "delta"])
def test_today_is_the_day_of_the_session(kind: str, sql: str, tmp_path: Path, machine: Callable[[str], None]) -> None:
    uri = str(tmp_path / "t")
    for k in range(5):
        day = _today("UTC") + dt.timedelta(days=k - 2)
        wrote(uri, DAYS, [{"day": day, "k": k}], tableFormat=kind)
    for zone in FAR:
        machine(zone)
        before = _today(zone)
        by_session, by_option = (
            [row["day"] for row in read(uri, filter=sql, **given)] for given in ({}, {"timezone": zone})
        )
        assert by_session == by_option
        # Midnight may have passed.
        assert by_session in ([before], [_today(zone)])


def test_what_is_replaced_of_today_is_of_the_day_of_the_session(tmp_path: Path, machine: Callable[[str], None]) -> None:
    for zone in FAR:
        machine(zone)
        uri, today = str(tmp_path / zone.replace("/", "-")), _today(zone)
        days = [today + dt.timedelta(days=n) for n in (-2, -1, 0, 1, 2)]
        wrote(uri, DAYS, [{"day": day, "k": n} for n, day in enumerate(days)], tableFormat="delta")
        wrote(uri, DAYS, [{"day": today, "k": 9}], overwrite=True, replaceWhere="day = current_date()", zone=zone)
        assert sorted(row["k"] for row in read(uri)) == [0, 1, 3, 4, 9]


@pytest.mark.parametrize("zone", ["UTC", *FAR, "America/New_York"])
def test_a_read_that_ends_after_midnight_is_of_the_day_on_which_it_began(tmp_path: Path, zone: str) -> None:
    uri, tomorrow = str(tmp_path / "t"), _today(zone) + dt.timedelta(days=1)
    wrote(uri, DAYS, [{"day": tomorrow, "k": 1}], tableFormat="delta")
    wrote(uri, DAYS, [{"day": tomorrow - dt.timedelta(days=1), "k": 2}])
    given = {"path": uri, "filter": "day = current_date() AND now() < timestamp '2999-01-01'", "timezone": zone}
    reader = EskerSource(given).reader(DAYS)
    assert isinstance(reader, DeltaReader)
    parts = reader.partitions()
    assert [row["k"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()] == [2]
    # What was planned a day ago, or will be in a day: tasks go by the clock of the plan.
    for days, expected in ((1, [1]), (-1, [])):
        reader._clock += dt.timedelta(days=days)
        task = pickle.loads(pickle.dumps(reader))
        reader._clock -= dt.timedelta(days=days)
        every = EskerSource({"path": uri}).reader(DAYS).partitions()
        assert [row["k"] for part in every for batch in task.read(part) for row in batch.to_pylist()] == expected


@pytest.mark.parametrize("zone", ["UTC", *FAR])
def test_a_read_of_a_lance_table_is_of_the_day_on_which_it_began(tmp_path: Path, zone: str) -> None:
    uri, today = str(tmp_path / "t"), _today(zone)
    for n in (0, 1):
        wrote(uri, DAYS, [{"day": today + dt.timedelta(days=n), "k": n}])
    given = {"path": uri, "filter": "day = current_date() AND now() < timestamp '2999-01-01'", "timezone": zone}
    reader = EskerSource(given).reader(DAYS)
    assert isinstance(reader, EskerReader)
    for days, expected in ((0, [0]), (1, [1]), (-1, [])):
        clock = reader._scan.clock + dt.timedelta(days=days)
        reader._scan = replace(reader._scan, clock=clock)
        task = pickle.loads(pickle.dumps(reader))
        reader._scan = replace(reader._scan, clock=clock - dt.timedelta(days=days))
        assert [
            row["k"] for part in reader.partitions() for batch in task.read(part) for row in batch.to_pylist()
        ] == expected


@pytest.mark.parametrize("zone", ["UTC", *FAR])
def test_a_replacement_that_ends_after_midnight_is_of_the_day_on_which_it_began(
    tmp_path: Path, machine: Callable[[str], None], zone: str
) -> None:
    machine(zone)
    uri, began = str(tmp_path / "t"), _today(zone) - dt.timedelta(days=1)
    days = [began + dt.timedelta(days=n) for n in (-2, -1, 0, 1, 2)]
    wrote(uri, DAYS, [{"day": day, "k": n} for n, day in enumerate(days)], tableFormat="delta")
    writer = planned(uri, DAYS, overwrite=True, replaceWhere="day = current_date() AND now() > timestamp '2024-07-01'")
    request = writer._plan.request
    writer._plan = replace(writer._plan, request=replace(request, clock=request.clock - dt.timedelta(days=1)))
    writer.commit(staged(writer, [batches(DAYS, [{"day": began, "k": 9}], zone)]))
    assert sorted(row["k"] for row in read(uri)) == [0, 1, 3, 4, 9]


def test_what_is_compared_with_the_clock_leaves_out_no_file_before_the_zone_is_known() -> None:
    schema = pa.schema({"day": pa.date32(), "k": pa.int64(), "ts": pa.timestamp("us", "UTC")})
    for sql in (
        "day = current_date AND k = 1",
        "ts > now() - interval '1 hour' AND k = 1",
        "day IN (today(), date '2024-07-01') AND k = 1",
    ):
        assert [str(each) for each in whatever_the_zone(sql, schema)] == ["k = 1"], sql
    assert whatever_the_zone("day >= current_date() OR k = 1", schema) == []


def test_an_apostrophe_in_a_comment_hides_no_time_that_follows() -> None:
    columns = pa.schema({"t": pa.timestamp("us", "UTC"), "s": pa.string()})
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    for comment in ("-- it's\n", "/* it's */"):
        told = clock_in_zone(f"s <> 'b' {comment} AND t < now() AND s = 'a'", columns.names, "UTC", noon)
        assert "now()" not in told
        told = leaps_in_zone(f"s <> 'b' {comment} AND t < '2024-03-31 02:30:00' AND s = 'a'", columns, "Europe/Berlin")
        assert "02:30" not in told, "Berlin's clocks leap over it"
        assert spelled_sql(f"s <> 'b' {comment} AND T IS NULL AND S = 'a'", columns.names).endswith(
            "t IS NULL AND s = 'a'"
        )


def test_an_empty_replacement_in_an_unfed_and_a_fed_table_takes_whole_files(tmp_path: Path) -> None:
    for is_fed in ("false", "true"):
        uri = str(tmp_path / is_fed)
        wrote(uri, FRAME, ROWS[:10], tableFormat="delta", **{"delta.enableChangeDataFeed": is_fed})
        wrote(uri, FRAME, ROWS[70:], tableFormat="delta")
        wrote(uri, FRAME, [], overwrite=True, replaceWhere="ts < '2024-07-01'")
        assert sorted(row["k"] for row in read(uri)) == list(range(70, len(ROWS)))


def test_a_time_to_travel_to_is_certain_or_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for n in range(3):
        wrote(
            uri,
            FRAME,
            [{"k": n, "ts": HOURS[n]}],
            tableFormat="delta",
            **({} if n else {"delta.enableChangeDataFeed": "true"}),
        )
        made = dt.datetime(2024, 7, 1 + n, 12, tzinfo=dt.UTC).timestamp()
        entry = tmp_path / "t" / "_delta_log" / f"{n:020}.json"
        os.utime(entry, (made, made))
    count = lambda **options: len(read(uri, **options))  # noqa: E731
    assert count(timestampAsOf="2024-07-02T12:00:00Z") == 2
    assert count(timestampAsOf="2024-07-02T14:00:00+02:00") == 2
    assert count(timestampAsOf="2999-01-01") == 3
    with pytest.raises(NotFoundError, match="as old as 2020-01-01"):
        count(timestampAsOf="2020-01-01")
    # Half past eleven in New York is half past three in UTC.
    for moment, by_zone in (("2024-07-02 11:30:00", {"UTC": 1, "America/New_York": 2}), ("2024-07-03", {"UTC": 2})):
        with pytest.raises(InvalidArgumentError, match="option timestampAsOf: expected a time with its zone.*timezone"):
            count(timestampAsOf=moment)
        for zone, rows in by_zone.items():
            assert count(timestampAsOf=moment, timezone=zone) == rows
    feed = {"readChangeFeed": "true"}
    assert count(**feed, startingTimestamp="2024-07-02T12:00:00Z") == 2
    assert count(**feed, startingTimestamp="2024-07-02 08:00:00", timezone="America/New_York") == 2
    assert count(**feed, startingTimestamp="2020-01-01", endingTimestamp="2024-07-02T12:00:00Z") == 2
    for options, message in (
        ({"startingTimestamp": "2024-07-02 08:00:00"}, "option startingTimestamp: expected a time with its zone"),
        ({"startingTimestamp": "2999-01-01"}, "option startingTimestamp: expected a time up to .* 2, found"),
        ({"startingVersion": "7"}, "option startingVersion: expected a version up to the newest, 2, found 7"),
        ({"startingVersion": "2", "endingVersion": "1"}, "starts before it ends"),
        (
            {"startingTimestamp": "gestern"},
            "option startingTimestamp: Failed to parse datetime string: expected ISO",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            count(**feed, **options)


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_spark_and_its_options_agree_on_what_a_time_means(new_york: SparkSession, tmp_path: Path) -> None:
    rows = new_york.sql(
        "SELECT * FROM VALUES (1, TIMESTAMP'2024-07-01 21:00:00'), (2, TIMESTAMP'2024-07-02 10:00:00') t(k, ts)"
    )
    sql = "ts >= timestamp'2024-07-02 00:00:00'"
    for table_format in ("lance", "delta"):
        uri = str(tmp_path / table_format)
        save(rows.coalesce(1), uri, tableFormat=table_format)
        there = [row.k for row in load(new_york, uri).where(sql).collect()]
        assert there == [2]
        assert [row.k for row in load(new_york, uri, filter=sql).collect()] == there
        assert [row.k for row in esker.spark.read(new_york, uri, columns=["k"], filter=sql).collect()] == there
        other = esker.spark.read(new_york, uri, filter=sql, timezone="UTC")
        assert sorted(row.k for row in other.collect()) == [1, 2]
    replaced = new_york.sql("SELECT 3 AS k, TIMESTAMP'2024-07-02 11:00:00' AS ts")
    save(replaced, uri, mode="overwrite", replaceWhere=sql)
    assert sorted(DeltaTable(uri).to_pyarrow_table()["k"].to_pylist()) == [1, 3]


def test_a_sessions_dynamic_overwrite_counts_and_a_writes_own_option_goes_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    save(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') t(id, p)"), uri, tableFormat="delta", partitionColumns="p")
    ids = lambda: sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist())  # noqa: E731
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "DYNAMIC")
    try:
        save(spark.sql("SELECT 3 AS id, 'b' AS p"), uri, mode="overwrite")
        assert ids() == [1, 3]
        with pytest.raises(Exception, match="overwriteSchema=true or partitionOverwriteMode=dynamic"):
            save(spark.sql("SELECT 4 AS id, 'b' AS p"), uri, mode="overwrite", overwriteSchema=True)
        save(spark.sql("SELECT 5 AS id, 'a' AS p"), uri, mode="overwrite", replaceWhere="id = 3 OR p = 'a'")
        assert ids() == [5]
        save(spark.sql("SELECT 6 AS id, 'b' AS p"), uri, mode="overwrite", partitionOverwriteMode="static")
        assert ids() == [6]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    entry = json.loads((tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text().splitlines()[0])
    assert entry["commitInfo"]["operation"] == "WRITE"
