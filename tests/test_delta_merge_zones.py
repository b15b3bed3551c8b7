"""Times of zones in merges: those of a source are of UTC, as a table's are, whatever zone they came in."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from esker.delta import DeltaTable
from tests.delta_rows import rows

MOMENTS = [dt.datetime(2024, 1, 1, 2), dt.datetime(2024, 7, 2, 3, 30)]
"""Both are of the day before in New York."""


def source_of(zone: str, unit: str) -> pa.Table:
    """Times alone and within columns."""
    at = pa.array(MOMENTS, pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))
    return pa.table(
        {
            "id": [1, 2],
            "at": at,
            "st": pa.StructArray.from_arrays([at], ["at"]),
            "many": pa.ListArray.from_arrays([0, 1, 2], at),
            "map": pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "k"]), at),
            "coded": at.dictionary_encode(),
        }
    )


def target_table() -> pa.Table:
    """Columns for what is computed of times, and for the times themselves."""
    at = pa.array(MOMENTS, pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "id": [1, 2],
            "at": at,
            "n": pa.array(MOMENTS, pa.timestamp("us")),
            "day": pa.array([None, None], pa.date32()),
            "text": pa.array([None, None], pa.string()),
            "hour": pa.array([None, None], pa.int32()),
            "times": pa.nulls(2, pa.list_(pa.timestamp("us", "UTC"))),
            "days": pa.nulls(2, pa.list_(pa.date32())),
        }
    )


def merged(
    path: Path, table: Any, source: pa.Table, condition: str, updates: dict[str, str], when: str | None
) -> list[Any]:
    place = path / table.__module__
    if not place.exists():
        deltalake.write_deltalake(place, target_table())
    merger = table(str(place)).merge(source, condition, source_alias="s", target_alias="t")
    merger.when_matched_update(updates, predicate=when).execute()
    return rows(DeltaTable(place).to_pyarrow_table())


CASES: list[tuple[str, dict[str, str], str | None]] = [
    ("cast(t.at as date) = cast(s.at as date)", {"hour": "1"}, None),
    ("t.n = s.at", {"hour": "2"}, None),
    ("t.at = s.at", {"hour": "3"}, None),
    ("t.id = s.id", {"day": "s.at", "n": "s.at"}, None),
    ("t.id = s.id", {"day": "cast(s.at as date)"}, None),
    ("t.id = s.id", {"day": "s.st['at']"}, None),
    ("t.id = s.id", {"day": "s.many[1]"}, None),
    ("t.id = s.id", {"day": "s.map['k']"}, None),
    ("t.id = s.id", {"day": "s.coded"}, None),
    ("t.id = s.id", {"text": "s.at"}, None),
    ("t.id = s.id", {"text": "cast(s.at as string)"}, None),
    ("t.id = s.id", {"days": "s.many", "times": "s.many"}, None),
    ("t.id = s.id", {"at": "date_trunc('day', s.at)"}, None),
    ("t.id = s.id", {"hour": "extract(hour from s.at)"}, None),
    ("t.id = s.id", {"hour": "4"}, "s.at >= '2024-07-02 03:30:00'"),
    ("t.id = s.id and s.at = '2024-01-01 02:00:00'", {"hour": "5"}, None),
]


@pytest.mark.parametrize(("condition", "updates", "when"), CASES, ids=str)
@pytest.mark.parametrize(("zone", "unit"), [("America/New_York", "us"), ("+05:30", "us"), ("Asia/Tokyo", "ns")])
def test_times_of_a_source_are_of_utc(
    tmp_path: Path, zone: str, unit: str, condition: str, updates: dict[str, str], when: str | None
) -> None:
    source = source_of(zone, unit)
    found = merged(tmp_path, DeltaTable, source, condition, updates, when)
    assert found == merged(tmp_path, deltalake.DeltaTable, source, condition, updates, when)
    assert found != rows(target_table())
