"""Times without a zone in filters, predicates and time travel of Delta tables: UTC, or the zone of a session."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esker import exceptions
from esker.delta import DeltaTable, write_deltalake
from esker.delta.read.session_zone import zone_name

UTC = dt.UTC
NEW_YORK = "America/New_York"
EVENING, MORNING = dt.datetime(2024, 7, 2, 1, tzinfo=UTC), dt.datetime(2024, 7, 2, 14, tzinfo=UTC)
"""July 1st 21:00 and July 2nd 10:00 in New York; both are of July 2nd in UTC."""
FILTERS: list[Any] = [
    "ts >= timestamp'2024-07-02 00:00:00'",
    "ts >= '2024-07-02'",
    "'2024-07-02' <= ts",
    "ts >= date'2024-07-02'",
    "ts >= d",
    "cast(ts as date) = date'2024-07-02'",
    "cast(ts as date) = d",
    "date_part('hour', ts) = 10",
    "ts in ('2024-07-02 10:00:00')",
    "ts between '2024-07-02' and '2024-07-03'",
    "st.ts >= '2024-07-02'",
    [("ts", ">=", "2024-07-02")],
    [("ts", "=", "2024-07-02T10:00:00")],
    [("ts", "in", ["2024-07-02 10:00"])],
    [("ts", ">=", dt.datetime(2024, 7, 2))],
    [("ts", ">=", dt.date(2024, 7, 2))],
    [("ts", ">=", dt.datetime(2024, 7, 2, tzinfo=ZoneInfo(NEW_YORK)))],
    "ts >= '2024-07-02T00:00:00-04:00'",
    [("ts", ">=", "2024-07-02T04:00:00Z")],
    [("ts", ">=", "2024-07-02T00:00:00-0400")],
]
"""Each keeps the morning alone in New York."""


def _times() -> pa.Table:
    times = pa.array([EVENING, MORNING], pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "k": [1, 2],
            "ts": times,
            "n": pa.array([dt.datetime(2024, 7, 2), dt.datetime(2024, 7, 2)]),
            "d": [dt.date(2024, 7, 2)] * 2,
            "st": pa.StructArray.from_arrays([times], ["ts"]),
        }
    )


@pytest.fixture(params=[[], ["ts"]], ids=["rows", "partitions"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for row in range(2):
        write_deltalake(tmp_path / "t", _times().slice(row, 1), mode="append", partition_by=request.param)
    return tmp_path / "t"


@pytest.mark.parametrize("zone", [NEW_YORK, "-04:00", "GMT-4"])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_times_without_a_zone_are_those_of_the_session(table: Path, zone: str, filters: Any) -> None:
    found = DeltaTable(table, session_timezone=zone)
    assert found.to_pyarrow_table(filters=filters)["k"].to_pylist() == [2]
    assert found.scan(["k"], filters).read_all()["k"].to_pylist() == [2]
    assert len(found.file_uris(file_pruning_predicate=filters)) >= 1


def test_without_a_session_they_are_of_utc(table: Path) -> None:
    for filters in ("ts >= '2024-07-02'", [("ts", ">=", "2024-07-02")], [("ts", ">=", dt.datetime(2024, 7, 2))]):
        assert DeltaTable(table).to_pyarrow_table(filters=filters).num_rows == 2
    assert DeltaTable(table, session_timezone=NEW_YORK).to_pyarrow_table(filters="n = '2024-07-02'").num_rows == 2
    expression = pc.field("ts") >= pa.scalar(dt.datetime(2024, 7, 2, tzinfo=UTC))
    assert DeltaTable(table, session_timezone=NEW_YORK).to_pyarrow_table(filters=expression).num_rows == 2


@pytest.mark.parametrize(
    "predicate", ["ts >= timestamp'2024-07-02 00:00:00'", "ts >= '2024-07-02'", "ts >= date'2024-07-02'"]
)
def test_an_overwrite_replaces_the_rows_that_the_session_means(table: Path, predicate: str) -> None:
    new = _times().slice(1, 1).set_column(0, "k", pa.array([3]))
    write_deltalake(table, new, mode="overwrite", predicate=predicate, session_timezone=NEW_YORK)
    assert sorted(DeltaTable(table).to_pyarrow_table()["k"].to_pylist()) == [1, 3]
    opened = DeltaTable(table, session_timezone=NEW_YORK)
    with pytest.raises(exceptions.InvalidArgumentError, match="predicate is true"):
        write_deltalake(opened, _times().slice(0, 1), mode="overwrite", predicate=predicate)


def test_a_version_is_found_by_the_sessions_clock(table: Path) -> None:
    newest = max(path.stat().st_mtime for path in (table / "_delta_log").iterdir())
    moment = dt.datetime.fromtimestamp(newest + 1, ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%d %H:%M:%S")
    found = DeltaTable(table, session_timezone="Asia/Tokyo")
    found.load_as_version(moment)
    assert found.version() == 1
    early = DeltaTable(table, session_timezone="-18:00")
    early.load_as_version(moment)
    with pytest.raises(exceptions.NotFoundError):
        DeltaTable(table, session_timezone="Pacific/Kiritimati").load_as_version(
            dt.datetime.fromtimestamp(newest + 60, UTC).strftime("%Y-%m-%d %H:%M:%S")
        )


def test_zones_are_named_as_spark_names_them() -> None:
    named = {
        None: "UTC",
        "UTC": "UTC",
        "Z": "UTC",
        "GMT": "UTC",
        "UTC+02:30": "+02:30",
        "-3": "-03:00",
        NEW_YORK: NEW_YORK,
    }
    assert {given: zone_name(given) for given in named} == named
    for wrong in ("Nowhere/None", "", "+19:00", "../etc/passwd"):
        with pytest.raises(exceptions.InvalidArgumentError, match="time zone such as"):
            DeltaTable("memory://nothing", session_timezone=wrong)
