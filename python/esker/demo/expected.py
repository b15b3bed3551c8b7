"""What the table must hold, computed a second time from the CSV files.

Nothing here uses Spark or esker, only pyarrow, so that an error in either cannot hide.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from esker.demo.questions import LATE_AFTER
from esker.demo.source import SourceFiles

KEY = ["scheduled", "carrier", "flight"]
"""The key of a flight."""

ORDER = [(name, "ascending") for name in KEY]

MOMENT = pa.timestamp("us", "UTC")

KEPT = [
    *("month", "hour", "dep_delay", "arr_delay", "carrier", "flight", "tailnum"),
    *("origin", "dest", "air_time", "distance", "time_hour"),
]
"""The columns of the flights that the table has unchanged; the last one is needed for the weather only."""


def read_csv(path: Path, **columns: str) -> pa.Table:
    """Read a CSV file with ``NA`` as null: all of its columns, or those named as ``new_name="name in the file"``."""
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True, include_columns=list(columns.values()))
    table = csv.read_csv(path, convert_options=options)
    return table.rename_columns(list(columns)) if columns else table


def clean_flights(path: Path, months: int) -> pa.Table:
    """The flights of the first ``months`` months with the table's own columns."""
    raw = read_csv(path).filter(pc.field("month") <= months)
    minute = pa.scalar(60_000_000)
    hour = raw["time_hour"].cast(MOMENT).cast(pa.int64())
    scheduled = pc.add(hour, pc.multiply(raw["minute"], minute))
    departed = pc.add(scheduled, pc.multiply(raw["dep_delay"], minute))
    days = map(datetime.date, *(raw[name].to_pylist() for name in ("year", "month", "day")))
    flights = raw.select(KEPT)
    flights = flights.append_column("scheduled", scheduled.cast(MOMENT))
    flights = flights.append_column("departed", departed.cast(MOMENT))
    flights = flights.append_column("date", pa.chunked_array([pa.array(days, pa.date32())]))
    return flights.append_column("cancelled", pc.is_null(raw["dep_time"]))


def expected_table(source: SourceFiles, months: int) -> pa.Table:
    """The whole table, cleaned, joined and sorted by `KEY`."""
    flights = clean_flights(source.flights, months)
    airlines = read_csv(source.airlines, carrier="carrier", airline="name")
    airports = read_csv(source.airports, dest="faa", dest_name="name", dest_lat="lat", dest_lon="lon")
    planes = read_csv(source.planes, tailnum="tailnum", plane_year="year", **same("manufacturer", "model", "seats"))
    weather = read_csv(source.weather, **same("origin", "time_hour", "temp", "wind_speed", "precip", "visib"))
    joined = flights.join(airlines, "carrier").join(airports, "dest").join(planes, "tailnum")
    return joined.join(weather, ["origin", "time_hour"]).drop_columns(["time_hour"]).sort_by(ORDER)


def same(*names: str) -> dict[str, str]:
    """Columns that keep their names."""
    return {name: name for name in names}


def expected_answers(table: pa.Table) -> dict[str, pa.Table]:
    """The three answers of `esker.demo.questions`, by topic: grouped with pyarrow."""
    visib = table["visib"]
    bands = pc.if_else(
        pc.is_null(visib),
        "not recorded",
        pc.if_else(
            pc.less(visib, pa.scalar(1.0)),
            "fog, below 1 mile",
            pc.if_else(
                pc.less(visib, pa.scalar(5.0)),
                "mist, 1 to 5 miles",
                pc.if_else(pc.less(visib, pa.scalar(10.0)), "haze, 5 to 10 miles", "clear, 10 miles"),
            ),
        ),
    )
    late = pc.greater(table["arr_delay"], pa.scalar(LATE_AFTER))
    numbers = table.append_column("late", late.cast(pa.int64())).append_column("visibility", bands)
    numbers = numbers.set_column(
        numbers.column_names.index("cancelled"), "cancelled", table["cancelled"].cast(pa.int64())
    )
    left = numbers.filter(pc.field("dep_delay").is_valid())
    return {
        "airlines": means(numbers, ["airline"], ["cancelled", "late", "arr_delay"]),
        "weather": means(numbers, ["visibility"], ["cancelled", "dep_delay"]),
        "hours": means(left, ["month", "hour"], ["dep_delay"]),
    }


def means(table: pa.Table, key: list[str], columns: list[str]) -> pa.Table:
    """The number of flights and the means of some columns, per group, sorted by the group."""
    grouped = table.group_by(key).aggregate([([], "count_all"), *((name, "mean") for name in columns)])
    return grouped.rename_columns([*key, "flights", *columns]).sort_by([(name, "ascending") for name in key])
