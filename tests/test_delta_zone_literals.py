"""`timestamp '...'` with a zone of its own, or at hours that clocks leap over or show twice, in a session's zone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

NEW_YORK = "America/New_York"
WINTER = dt.datetime(2024, 1, 1, 5)
"""Midnight in New York, as a time of UTC."""
SPRING, AUTUMN, LATER = (
    dt.datetime(2024, 3, 10, 7, 30),
    dt.datetime(2024, 11, 3, 5, 30),
    dt.datetime(2024, 11, 3, 6, 30),
)
"""03:30 after the hour that is left out, and 01:30 before and after clocks go back."""
MOMENTS = [WINTER, SPRING, AUTUMN, LATER]
CLOCKS = [dt.datetime(2024, 1, 1), dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 11, 3, 1, 30), WINTER]
FILTERS = {
    "ts = timestamp '2024-01-01T05:00:00Z'": [0],
    "ts = TIMESTAMP'2024-01-01 00:00:00-05:00'": [0],
    "ts = timestamp '2024-01-01 05:00:00 UTC'": [0],
    "ts = timestamp '2024-01-01 14:00:00 Asia/Tokyo'": [0],
    "ts = timestamp '2024-01-01 00:00:00'": [0],
    "ts < timestamp '2024-01-01T05:00:00.0000001Z'": [0],
    "ts in (timestamp '2024-01-01T05:00:00Z', timestamp '2024-11-03T06:30:00Z')": [0, 3],
    "ts = cast('2024-01-01T05:00:00Z' as timestamp)": [0],
    "ts = TRY_CAST( '2024-01-01T05:00:00Z'  AS TIMESTAMP )": [0],
    "ts = to_timestamp('2024-01-01T05:00:00Z')": [0],
    "ts = '2024-01-01T05:00:00Z'::timestamp": [0],
    "ts = cast('2024-01-01 00:00:00' as timestamp)": [0],
    "ts = cast('2024-11-03 01:30:00' as timestamp)": [2],
    "n = cast('2024-03-10 02:30:00' as timestamp)": [1],
    "s = 'timestamp ''2024-01-01T05:00:00Z'''": [],
    "ts = timestamp '2024-03-10 02:30:00'": [1],
    "ts = timestamp '2024-11-03 01:30:00'": [2],
    "ts > timestamp '2024-11-03 01:30:00'": [3],
    "n = timestamp '2024-03-10 02:30:00'": [1],
    "n = timestamp '2024-11-03 01:30:00'": [2],
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    times = pa.array(MOMENTS, pa.timestamp("us", "UTC"))
    rows = pa.table({"id": range(4), "ts": times, "n": pa.array(CLOCKS, pa.timestamp("us")), "s": ["a"] * 4})
    write_deltalake(tmp_path, rows)
    return tmp_path


@pytest.mark.parametrize("sql", FILTERS)
def test_literals_are_the_moments_that_they_say(table: Path, sql: str) -> None:
    opened = DeltaTable(table, session_timezone=NEW_YORK)
    assert opened.to_pyarrow_table(filters=sql)["id"].to_pylist() == FILTERS[sql]
    assert opened.delete(sql)["num_deleted_rows"] == len(FILTERS[sql])


@pytest.mark.parametrize("sql", [sql for sql in FILTERS if FILTERS[sql]])
def test_overwrites_replace_the_rows_of_these_moments(table: Path, sql: str) -> None:
    none = DeltaTable(table).to_pyarrow_table().slice(0, 0)
    write_deltalake(table, none, mode="overwrite", predicate=sql, session_timezone=NEW_YORK)
    kept = DeltaTable(table).to_pyarrow_table()["id"].to_pylist()
    assert sorted(kept) == [row for row in range(4) if row not in FILTERS[sql]]


def test_assigned_literals_keep_their_zone(table: Path) -> None:
    opened = DeltaTable(table, session_timezone=NEW_YORK)
    opened.update({"ts": "timestamp '2024-07-01T00:00:00Z'"}, predicate="id = 0")
    source = pa.table({"id": [1]})
    merger = opened.merge(source, "t.id = s.id and t.ts = timestamp '2024-03-10T07:30:00Z'", "s", "t")
    assert (
        merger.when_matched_update({"ts": "timestamp '2024-07-01 02:00:00+02:00'"}).execute()["num_target_rows_updated"]
        == 1
    )
    found = opened.to_pyarrow_table().sort_by("id")["ts"].to_pylist()[:2]
    assert found == [dt.datetime(2024, 7, 1, tzinfo=dt.UTC)] * 2
