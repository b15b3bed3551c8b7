"""Times without a zone that are assigned to columns with one: of UTC as in deltalake, or of the session's zone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

NEW_YORK = "America/New_York"
NOON = dt.datetime(2024, 7, 1, 12)
ZONED = pa.timestamp("us", "UTC")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    data = pa.table(
        {
            "id": [1],
            "ts": pa.array([NOON.replace(tzinfo=dt.UTC)], ZONED),
            "to": pa.nulls(1, ZONED),
            "n": pa.array([NOON], pa.timestamp("us")),
            "d": [NOON.date()],
            "text": ["2024-07-01 12:00:00"],
            "many": pa.nulls(1, pa.list_(ZONED)),
            "st": pa.nulls(1, pa.struct([("at", ZONED)])),
        }
    )
    write_deltalake(tmp_path, data)
    return tmp_path


def assigned(table: Any, verb: str, column: str, sql: str) -> Any:
    """The value of a column of the one row after a change, in UTC."""
    if verb == "update":
        table.update({column: sql})
    else:
        source = pa.table({"key": [1], **{f"s{name}": values for name, values in rows_of(table).items()}})
        for name in ("n", "d", "text", "ts"):
            sql = sql.replace(f"<{name}>", f"s{name}")
        table.merge(source, "id = key").when_matched_update({column: sql}).execute()
    return rows_of(table)[column][0].as_py()


def rows_of(table: Any) -> dict[str, pa.ChunkedArray]:
    found = table.to_pyarrow_table()
    return dict(zip(found.column_names, found.columns, strict=True))


SQL = {
    "n": "n",
    "d": "d",
    "text": "text",
    "literal": "'2024-07-01 12:00:00'",
    "timestamp": "timestamp '2024-07-01 12:00:00'",
    "with a zone": "'2024-07-01T12:00:00+02:00'",
    "branches": "case when id = 1 then n else ts end",
    "day": "cast(d as timestamp)",
}


@pytest.mark.parametrize("verb", ["update", "merge"])
@pytest.mark.parametrize("sql", SQL.values(), ids=SQL)
@pytest.mark.parametrize("zone", [None, "UTC", NEW_YORK, "+05:30"])
def test_what_is_assigned_is_what_filters_of_the_session_find(
    place: Path, verb: str, sql: str, zone: str | None
) -> None:
    table = DeltaTable(place, session_timezone=zone)
    found = assigned(table, verb, "to", sql)
    assert table.to_pyarrow_table(filters=f"to = {sql}" if "case" not in sql else "to = n").num_rows == 1
    if zone in (None, "UTC"):
        assert found == assigned(deltalake.DeltaTable(place), "update", "to", sql)
    elif "+" not in sql:
        clock = found.astimezone(ZoneInfo(zone)) if zone == NEW_YORK else found + dt.timedelta(hours=5.5)
        assert clock.replace(tzinfo=None) == (dt.datetime(2024, 7, 1) if sql in (SQL["d"], SQL["day"]) else NOON)


@pytest.mark.parametrize("verb", ["update", "merge"])
def test_times_within_columns_are_of_the_session_too(place: Path, verb: str) -> None:
    table = DeltaTable(place, session_timezone=NEW_YORK)
    moment = NOON.replace(tzinfo=ZoneInfo(NEW_YORK)).astimezone(dt.UTC)
    midnight = moment - dt.timedelta(hours=12)
    assert assigned(table, verb, "many", "[n, null]") == [moment, None]
    assert assigned(table, verb, "many", "[d]") == [midnight]
    assert assigned(table, verb, "many", "[text]") == [moment]
    assert assigned(table, verb, "st", "named_struct('at', n)") == {"at": moment}


@pytest.mark.parametrize("verb", ["update", "merge"])
def test_the_days_and_clocks_of_instants_are_the_sessions(place: Path, verb: str) -> None:
    table = DeltaTable(place, session_timezone="Asia/Tokyo")
    assert assigned(table, verb, "n", "ts") == NOON + dt.timedelta(hours=9)
    assert assigned(table, verb, "ts", "'2024-07-02 01:00:00'") == dt.datetime(2024, 7, 1, 16, tzinfo=dt.UTC)
    assert assigned(table, verb, "d", "ts") == dt.date(2024, 7, 2)


def test_values_of_python_are_of_the_session(place: Path) -> None:
    table = DeltaTable(place, session_timezone=NEW_YORK)
    table.update(new_values={"to": NOON, "n": NOON, "ts": NOON.replace(tzinfo=dt.UTC), "many": [NOON]})
    found = rows_of(table)
    moment = NOON.replace(tzinfo=ZoneInfo(NEW_YORK)).astimezone(dt.UTC)
    assert [found[name][0].as_py() for name in ("to", "n", "ts")] == [moment, NOON, NOON.replace(tzinfo=dt.UTC)]
    assert found["many"][0].as_py() == [moment]


@pytest.mark.parametrize("verb", ["update", "merge"])
@pytest.mark.parametrize("now", ["now()", "current_timestamp", "CURRENT_TIMESTAMP()", "getdate ( )"])
def test_now_is_now_in_every_zone(place: Path, verb: str, now: str) -> None:
    table = DeltaTable(place, session_timezone="Pacific/Kiritimati")
    before = dt.datetime.now(dt.UTC)
    assert before <= assigned(table, verb, "to", now) <= dt.datetime.now(dt.UTC)
    assert table.to_pyarrow_table(filters=f"to <= {now} and to > {now} - interval '1 hour'").num_rows == 1
    there = dt.datetime.now(dt.UTC).astimezone(ZoneInfo("Pacific/Kiritimati"))
    assert abs(assigned(table, verb, "n", now) - there.replace(tzinfo=None)) < dt.timedelta(minutes=1)


def test_today_is_the_sessions(place: Path) -> None:
    days = {}
    for zone in ("Pacific/Kiritimati", "-12:00"):
        table = DeltaTable(place, session_timezone=zone)
        days[zone] = {assigned(table, "update", "d", today) for today in ("current_date", "today()", "CURRENT_DATE()")}
        assert table.to_pyarrow_table(filters="d = current_date and 'now()' <> 'today()'").num_rows == 1
    (east,), (west,) = days.values()
    assert east > west


def test_a_column_may_be_called_as_a_clock_is(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"current_date": ["a"], "now": ["b"], "t": ["c"]}))
    table = DeltaTable(tmp_path, session_timezone=NEW_YORK)
    assert assigned(table, "update", "t", "current_date") == "a"
    assert table.to_pyarrow_table(filters="`current_date` = 'a' and now = 'b' and \"current_date\" = t").num_rows == 1


def test_times_that_clocks_leap_over_or_show_twice_are_taken(place: Path) -> None:
    table = DeltaTable(place, session_timezone=NEW_YORK)
    for local, moment in (
        (dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 3, 10, 7, 30)),
        (dt.datetime(2024, 11, 3, 1, 30), dt.datetime(2024, 11, 3, 5, 30)),
    ):
        table.update(new_values={"n": local})
        assert assigned(table, "update", "to", "n") == moment.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-11-03 01:30:00", "2024-11-03 05:30"),
        ("2024-03-10 02:30:00", "2024-03-10 07:30"),
        ("2024-01-01", "2024-01-01 05:00"),
        ("2024-01-01 00:00:00Z", "2024-01-01 00:00"),
        ("2024-01-01T00:00:00+02:00", "2023-12-31 22:00"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_texts_are_times_as_times_without_a_zone_are(place: Path, text: str, expected: str, strict: bool) -> None:
    """Where clocks leap, too: twice an hour, or none."""
    table = DeltaTable(place, session_timezone=NEW_YORK)
    table.update({"text": f"'{text}'"})
    for sql in ("text", f"'{text}'"):
        table.update({"to": sql, "many": f"[{sql}]"}, error_on_type_mismatch=strict)
        moment = dt.datetime.fromisoformat(expected).replace(tzinfo=dt.UTC)
        row = table.to_pyarrow_table().to_pylist()[0]
        assert (row["to"], row["many"]) == (moment, [moment])
